"""HTTP/2 frames, conversations of h2, and a form in which the events of any split compare equal."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import h2.config
import h2.connection

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


def upgraded(
    post: bytes = b"", answer: bytes = b"one", media: str = "a/b"
) -> list[tuple[str, bytes]]:
    """Return the steps of a connection after `101` for `h2c`, by the `h2` library on both sides:
    the answer on stream 1, and a call on stream 3. `post` is the end of the client's request."""
    client = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding=None))
    agent = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    asked = client.initiate_upgrade_connection()
    agent.initiate_upgrade_connection(asked)
    agent.send_headers(1, [(":status", "200"), ("content-type", media)])
    agent.send_data(1, answer, end_stream=True)
    steps = [("S", agent.data_to_send()), ("C", post + client.data_to_send())]
    client.receive_data(steps[0][1])
    target = [(":method", "GET"), (":path", "/3"), (":scheme", "http"), (":authority", "h")]
    client.send_headers(3, target, end_stream=True)
    steps.append(("C", client.data_to_send()))
    agent.receive_data(steps[1][1].removeprefix(post) + steps[2][1])
    agent.send_headers(3, [(":status", "204"), ("content-type", "a/b")], end_stream=True)
    return [*steps, ("S", agent.data_to_send())]


SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
