"""The decoder that detects the protocol of a connection."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.http import PREFACE
from a2a_proxy.model.wire import Control, Direction, Head, WireEvent
from a2a_proxy.wire.connection import MAX_HELD, ConnectionDecoder
from a2a_proxy.wire.http1 import Http1Decoder
from a2a_proxy.wire.http2 import Http2Decoder
from support_wire import Step, in_every_split, play, reload

GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
HELLO = bytes.fromhex("1603010200010001fc0303")


@pytest.mark.parametrize(
    ("steps", "inner", "kind"),
    [
        (
            [("C", GET), ("S", OK), ("C", GET[:9]), ("c-eof", b""), ("s-eof", b"")],
            Http1Decoder,
            "http/1.1",
        ),
        (
            [("S", OK), ("C", b"\r\n" + GET[:2]), ("s-eof", b""), ("C", GET[2:])],
            Http1Decoder,
            "http/1.1",
        ),
        ([("S", OK[:5]), ("s-reset", b""), ("C", GET)], Http1Decoder, "http/1.1"),
        ([("C", PREFACE + SETTINGS), ("S", SETTINGS)], Http2Decoder, "h2c"),
        ([("S", SETTINGS), ("C", PREFACE + SETTINGS)], Http2Decoder, "h2c"),
    ],
)
def test_bytes_reach_the_right_decoder_in_order(
    steps: list[Step], inner: type[Http1Decoder] | type[Http2Decoder], kind: str
) -> None:
    """Also what the agent said before the client was recognised (gRPC servers send SETTINGS at
    once)."""
    assert in_every_split(ConnectionDecoder, steps) == play(inner(), steps)
    decoder = ConnectionDecoder()
    play(decoder, steps)
    assert (decoder.kind, reload(decoder).kind) == (kind, kind)


def test_connection_that_switches_to_http2() -> None:
    ask = b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    switch = b"HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    steps = [("C", ask), ("S", switch), ("S", SETTINGS), ("C", PREFACE + SETTINGS)]
    assert in_every_split(ConnectionDecoder, steps) == play(Http1Decoder(), steps)
    decoder = ConnectionDecoder()
    play(decoder, steps)
    assert (decoder.protocol, reload(decoder).protocol) == ("h2c", "h2c")


@pytest.mark.parametrize(
    ("steps", "kind", "looks"),
    [
        ([("C", HELLO), ("S", b"\x16\x03\x03")], "tls", "tls"),
        ([("C", b"*1\r\n$4\r\nPING\r\n"), ("S", b"+PONG\r\n")], "opaque", "unknown"),
        (
            [("S", b"220 mail\r\n"), ("C", b"\x00"), ("S", b"500\r\n"), ("s-eof", b"")],
            "opaque",
            "unknown",
        ),
        ([("C", b"GE"), ("c-eof", b"")], "opaque", "unknown"),
        ([("S", b"220 mail\r\n"), ("c-eof", b"")], "opaque", "server first"),
        ([("S", b"x" * (MAX_HELD + 1)), ("C", GET)], "opaque", "server first"),
        ([("c-lost", b""), ("C", GET)], "opaque", "lost"),
        ([("C", b"GE"), ("c-lost", b"")], "opaque", "lost"),
    ],
)
def test_bytes_that_are_not_http_are_counted_and_reported_once(
    steps: list[Step], kind: str, looks: str
) -> None:
    """One Control, bytes of both directions counted, nothing else."""
    total = sum(len(raw) for _, raw in steps)
    for size in (1 << 20, 7):
        decoder = ConnectionDecoder()
        (told,) = play(
            decoder, steps, lambda data, size=size: range(0, len(data), size), restart=size > 7
        )  # type: ignore[misc]
        assert isinstance(told, Control)
        assert (told.name, told.detail) == ("opaque", {"looks_like": looks})
        if size == 7:
            assert decoder.kind == kind
            assert sum(decoder.counters.values()) == total


def test_a_connection_without_bytes_has_no_event() -> None:
    """Health checks connect and leave: no kind, no event."""
    decoder = ConnectionDecoder()
    assert play(decoder, [("c-eof", b""), ("s-eof", b"")]) == []
    assert (decoder.kind, decoder.counters) == ("", {})


def test_held_bytes_keep_their_time() -> None:
    """A head that began before the connection was recognised began then."""
    (head, _) = play(ConnectionDecoder(), [("C", GET[:2]), ("C", GET[2:])])
    assert isinstance(head, Head)
    assert (head.began, head.at) == (1000, 2000)


@settings(max_examples=200, deadline=None)
@given(
    pieces=st.lists(
        st.tuples(
            st.sampled_from("CS"),
            st.one_of(st.binary(max_size=40), st.sampled_from([GET, OK, PREFACE, SETTINGS, HELLO])),
        ),
        max_size=6,
    )
)
def test_noise_never_raises(pieces: list[Step]) -> None:
    """Whatever comes, in either order."""
    out: list[WireEvent] = play(ConnectionDecoder(), pieces)
    assert play(ConnectionDecoder(), pieces, lambda data: range(len(data)), restart=True) == out
    assert {event.direction for event in out} <= set(Direction)
