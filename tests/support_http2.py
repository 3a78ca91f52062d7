"""HTTP/2 frames, conversations of h2, and a form in which the events of any split compare equal."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from a2a_proxy.http import PREFACE
from a2a_proxy.model.wire import Direction, WireEvent
from a2a_proxy.wire.http2 import Http2Decoder

UP, DOWN = Direction.TO_AGENT, Direction.TO_CLIENT

REQUEST = [
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", b"/lf.a2a.v1.A2AService/SendMessage"),
    (b":authority", b"agent:9000"),
    (b"content-type", b"application/grpc"),
    (b"te", b"trailers"),
]


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">IBI", len(payload) << 8 | kind, flags, stream) + payload


def literal(name: bytes, value: bytes) -> bytes:
    """Return a field as a literal without indexing; short names and values only."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


def decode(
    chunks: Iterable[tuple[Direction, bytes]],
    start: bytes = b"",
    decoder: Http2Decoder | None = None,
) -> tuple[Http2Decoder, list[WireEvent]]:
    """Return the events of a conversation of `(direction, bytes)`, after the client's `start`."""
    decoder = decoder or Http2Decoder()
    out: list[WireEvent] = []
    for direction, data in ([(UP, start)] if start else []) + list(chunks):
        decoder.feed(direction, data, 7, out)
    return decoder, out


def upstream(*frames: bytes, settings: bytes = b"") -> bytes:
    """Return the client's bytes: preface, SETTINGS, frames."""
    return PREFACE + frame(4, 0, 0, settings) + b"".join(frames)
