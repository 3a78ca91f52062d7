"""Messages of gRPC assembled from pieces of DATA."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.model.wire import Body, Undecodable
from a2a_proxy.wire.grpc import GrpcMessage, GrpcReassembler
from support_http2 import DOWN, UP, decode, frame, upstream
from support_wire import reload

HEAD = 9


def message(data, flag=0):
    return struct.pack(">BI", flag, len(data)) + data


def piece(data, start=0, at=5):
    return Body(1, DOWN, at, start, start + len(data), data)


def read(pieces, parts=None, restart=False):
    parts, out = parts or GrpcReassembler(b"gzip"), []
    for each in pieces:
        parts.feed(each, out)
        parts = reload(parts) if restart else parts
    return parts, out


def cuts(data, *places):
    edges = [0, *sorted(places), len(data)]
    return [piece(data[a:b], a) for a, b in itertools.pairwise(edges)]


WIRE = (
    message(b"")
    + message(b"first")
    + message(gzip.compress(b"second" * 9, mtime=0), 1)
    + message(b"third" * 20)
)


def test_every_split_gives_the_same_messages_also_after_a_restart():
    """Whole, byte by byte, and cut at each two bytes."""
    _, expected = read([piece(WIRE)])
    assert [each.data for each in expected] == [b"", b"first", b"second" * 9, b"third" * 20]
    assert [each.encoding for each in expected] == ["", "", "gzip", ""]
    assert [each.compressed for each in expected] == [False, False, True, False]
    assert [each.start for each in expected[1:]] == [each.end for each in expected[:-1]]
    for restart in (False, True):
        assert read(cuts(WIRE, *range(1, len(WIRE))), restart=restart)[1] == expected
        for cut in range(len(WIRE)):
            assert read(cuts(WIRE, cut, min(cut + 3, len(WIRE))), restart=restart)[1] == expected


PADS = st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.integers(0, 5)), max_size=20)


@given(st.lists(st.binary(max_size=40), max_size=8), PADS, st.integers(1, 40))
@settings(max_examples=100, deadline=None)
def test_spans_do_not_depend_on_how_the_bytes_came(messages, pads, step):
    """Messages that share and straddle DATA frames, padded or not, through the HTTP/2 decoder, in
    any split."""
    rest, wire = b"".join(map(message, messages)), upstream(frame(1, 4, 1, b"\x83"))
    for size, padded, pad in [*pads, (len(rest), False, 0)]:
        taken, rest = rest[:size], rest[size:]
        wire += (
            frame(0, 8, 1, bytes([pad]) + taken + bytes(pad)) if padded else frame(0, 0, 1, taken)
        )
    told = []
    for chunks in ([(UP, wire)], [(UP, wire[i : i + step]) for i in range(0, len(wire), step)]):
        _, events = decode(chunks)
        told.append(read([event for event in events if isinstance(event, Body)])[1])
    assert told[0] == told[1]
    assert [each.data for each in told[0]] == messages


def test_byte_ranges_start_with_the_frame_of_the_message():
    wire = upstream(frame(1, 4, 1, b"\x83"))
    first = len(wire)
    _, events = decode([(UP, wire + frame(0, 0, 1, message(b"one") + message(b"two")))])
    _, (one, two) = read([event for event in events if isinstance(event, Body)])
    assert (one.start, one.end) == (first, first + HEAD + 8)
    assert (two.start, two.end) == (one.end, one.end + 8)


def test_a_message_begins_at_the_time_of_its_first_byte():
    wire = message(b"ab")
    _, (only,) = read([piece(wire[:2], 0, at=10), piece(wire[2:], 2, at=20)])
    assert (only.began, only.at, only.start, only.end) == (10, 20, 0, 7)


def test_a_large_message_is_truncated_with_its_size_and_hash():
    """Over the limit the beginning is kept; the next message is read as usual."""
    data = bytes(range(200))
    wire = message(data) + message(b"next")
    for pieces in ([piece(wire)], cuts(wire, *range(1, len(wire)))):
        _, (large, following) = read(pieces, GrpcReassembler(limit=100, keep=10))
        assert (large.data, large.size, large.truncated) == (data[:10], 200, True)
        assert large.sha256 == hashlib.sha256(data).digest()
        assert following.data == b"next"
    plain = b"z" * 150
    _, (large,) = read(
        [piece(message(gzip.compress(plain, mtime=0), 1))],
        GrpcReassembler(b"gzip", limit=100, keep=10),
    )
    assert (large.data, large.size, large.truncated) == (b"z" * 10, 150, True)
    assert large.sha256 == hashlib.sha256(plain).digest()


def test_an_oversized_compressed_message_has_its_compressed_size_and_hash():
    """It cannot be decompressed whole: its beginning is, size and hash are those of the compressed
    bytes."""
    packed = zlib.compress(bytes(range(256)) * 4, 0)
    _, (large, following) = read(
        [piece(message(packed, 1) + message(b"next"))],
        GrpcReassembler(b"deflate", limit=500, keep=100),
    )
    assert bytes(range(256)).startswith(large.data)
    assert (large.size, large.truncated, large.sha256) == (
        len(packed),
        True,
        hashlib.sha256(packed).digest(),
    )
    assert following.data == b"next"


def test_a_compression_bomb_is_truncated_and_reported():
    wire = message(gzip.compress(bytes(80 << 20), mtime=0), 1) + message(b"next")
    _, (bomb, wrong) = read([piece(wire)])
    assert (bomb.truncated, len(bomb.data)) == (True, 64 << 10)
    assert isinstance(wrong, Undecodable)
    assert wrong.expected == "message in gzip"


@pytest.mark.parametrize(
    ("encoding", "wire", "expected"),
    [
        (b"gzip", message(b"x", 2), "compressed flag 0 or 1"),
        (b"identity", message(b"x", 1), "message in identity"),
        (b"gzip", message(b"not gzip", 1), "message in gzip"),
        (b"gzip", message(gzip.compress(b"cut", mtime=0)[:-2], 1), "message in gzip"),
        (b"snappy", message(b"x", 1), "message in snappy"),
    ],
    ids=["flag", "no encoding", "no gzip", "cut gzip", "unknown encoding"],
)
def test_undecodable_messages_make_the_stream_opaque(encoding, wire, expected):
    """One Undecodable naming the message's offset, nothing after it, the same in every split."""
    data = message(b"good") + wire + message(b"after")
    for pieces in ([piece(data)], cuts(data, *range(1, len(data)))):
        parts, out = read(pieces, GrpcReassembler(encoding), restart=True)
        wrong = [each for each in out if isinstance(each, Undecodable)]
        assert [(each.offset, each.expected, each.stream, each.direction) for each in wrong] == [
            (9, expected, 1, DOWN)
        ]
        assert out[-1] is wrong[0]
        assert next(each.data for each in out if isinstance(each, GrpcMessage)) == b"good"
        parts.finish(9, out)
        assert out[-1] is wrong[0]


ENDS = [(3, "message prefix of 5 bytes", 3), (7, "message of 4 bytes", 2)]


@pytest.mark.parametrize(("cut", "expected", "got"), ENDS)
def test_an_incomplete_message_at_the_end_is_reported(cut, expected, got):
    parts, out = read([piece(message(b"full") + message(b"half")[:cut], 100)], restart=True)
    parts.finish(9, out)
    assert (out[-1].offset, out[-1].expected, out[-1].got) == (
        109,
        expected,
        f"end after {got} bytes",
    )
    assert len(out) == 2


@given(st.lists(st.binary(max_size=30), max_size=6))
@settings(max_examples=200, deadline=None)
def test_garbage_never_raises(pieces):
    parts, out = read([piece(data) for data in pieces])
    parts.finish(9, out)
    assert len([each for each in out if isinstance(each, Undecodable)]) <= 1
