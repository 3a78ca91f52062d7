"""The scanner of frames: what no handler changes is forwarded in any split, and frames are inserted
between others."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable

import pytest

from a2a_proxy.http import PREFACE
from a2a_proxy.http.h2 import (
    BLOCK_WORK,
    HANDLER_SHIFT,
    HANDLER_WORK,
    KNOWN_SHIFT,
    Frame,
    FrameScanner,
    HeaderBlock,
    Violation,
)
from a2a_proxy.http.h2_scan import Http2Scanner
from a2a_proxy.http.hpack import MAX_KNOWN_BLOCK, HpackError

MAX_PAYLOAD = FrameScanner().max_payload
DATA, HEADERS, RST_STREAM, PING, CONTINUATION = 0, 1, 3, 6, 9
END_HEADERS = 4


def frame(kind: int, payload: bytes = b"", flags: int = 0, stream: int = 1) -> bytes:
    return struct.pack(">IBBI", len(payload), kind, flags, stream)[1:] + payload


class Edited:
    """A scanner whose handlers note what they are given, and replace each PING by two."""

    def __init__(self, *, preface: bool = False) -> None:
        self.frames: list[tuple[int, int, int, bytes]] = []
        self.blocks: list[tuple[int, int, bytes]] = []
        self.known: set[bytes] = set()
        self.watched: list[int] = []
        handlers = {PING: self._on_ping, RST_STREAM: self._on_reset}
        self.scanner = Http2Scanner(
            whole=handlers,
            blocks=self._on_block,
            preface=preface,
            known=self.known,
            watched=self.watched,
        )

    def _on_ping(self, ping: Frame) -> bytes:
        self.frames.append((ping.flags, ping.stream, ping.start, ping.raw))
        return ping.raw * 2

    def _on_reset(self, reset: Frame) -> None:
        self.frames.append((reset.flags, reset.stream, reset.start, reset.raw))

    def _on_block(self, block: HeaderBlock) -> bytes | None:
        if bytes(block.fragment) == b"bad":
            raise HpackError("bad")
        self.blocks.append((block.stream, block.start, bytes(block.fragment)))
        return b"<edited>" if bytes(block.fragment) == b"edit" else None

    def feed(self, data: bytes, cuts: Iterable[int] = ()) -> bytes:
        edges = [0, *cuts, len(data)]
        for start, stop in itertools.pairwise(edges):
            at = 0
            while at < stop - start:
                at = self.scanner.feed(data[start:stop], at)
        return self.sent()

    def sent(self) -> bytes:
        data = b"".join(self.scanner.out)
        self.scanner.out.clear()
        return data


PING_FRAME = frame(PING, b"12345678", stream=0)
FRAMES = [
    frame(HEADERS, b"plain", END_HEADERS),
    frame(DATA, b"x" * 20, stream=3),
    frame(DATA, b"", 1, 0x80000003),
    PING_FRAME,
    frame(HEADERS, b"ed", 0, 5),
    frame(CONTINUATION, b"i", 0, 5),
    frame(CONTINUATION, b"t", END_HEADERS, 5),
    frame(RST_STREAM, b"\0\0\0\1", stream=0x80000005),
    frame(HEADERS, b"ab", 0, 7),
    frame(CONTINUATION, b"cdef", END_HEADERS, 7),
    frame(99, b"unknown"),
]
WIRE = b"".join(FRAMES)
SENT = b"".join([*FRAMES[:3], PING_FRAME * 2, b"<edited>", *FRAMES[7:]])
STARTS = [sum(map(len, FRAMES[:number])) for number in range(len(FRAMES))]


def test_frames_are_edited_and_forwarded_in_any_split() -> None:
    def check(cuts: Iterable[int], *, preface: bool) -> None:
        edited, before = Edited(preface=preface), PREFACE if preface else b""
        assert edited.feed(before + WIRE, cuts) == before + SENT
        size = len(before)
        assert edited.frames == [
            (0, 0, size + STARTS[3], PING_FRAME),
            (0, 5, size + STARTS[7], FRAMES[7]),
        ]
        assert edited.blocks == [
            (1, size + STARTS[0], b"plain"),
            (5, size + STARTS[4], b"edit"),
            (7, size + STARTS[8], b"abcdef"),
        ]

    for preface in (False, True):
        size = len(WIRE) + (len(PREFACE) if preface else 0)
        check((), preface=preface)
        check(range(1, size), preface=preface)
        for cut in range(1, size):
            check((cut,), preface=preface)


def test_bytes_of_data_are_forwarded_as_they_arrive() -> None:
    edited, data = Edited(), frame(DATA, b"x" * 100)
    assert edited.feed(data[:5]) == b""
    assert edited.feed(data[5:20]) == data[:20]
    assert edited.feed(data[20:21]) == data[20:21]
    assert edited.feed(data[21:] + PING_FRAME[:3]) == data[21:]


def test_a_frame_is_inserted_after_the_one_in_the_middle() -> None:
    data, inserted = frame(DATA, b"x" * 100), frame(PING, b"inserted", stream=0)
    edited = Edited()
    edited.scanner.insert_frames(inserted)
    assert edited.sent() == inserted
    edited.feed(data[:50])
    edited.scanner.insert_frames(inserted)
    edited.scanner.insert_frames(b"")
    edited.scanner.insert_frames(inserted)
    assert edited.sent() == b""
    assert edited.feed(data[50:99]) == data[50:99]
    assert edited.feed(data[99:] + data) == data[99:] + inserted * 2 + data
    edited.scanner.insert_frames(inserted)
    assert edited.sent() == inserted


def test_a_handler_inserts_after_its_frame() -> None:
    inserted = frame(PING, b"inserted", stream=0)
    scanner = Http2Scanner(
        whole={PING: lambda _: scanner.insert_frames(inserted), RST_STREAM: lambda _: b""}
    )
    data = frame(99, b"a") + PING_FRAME + frame(RST_STREAM, b"\0\0\0\0") + frame(99, b"b")
    scanner.feed(data, 0)
    assert b"".join(scanner.out) == frame(99, b"a") + PING_FRAME + inserted + frame(99, b"b")


def test_all_is_forwarded_or_dropped_on_demand() -> None:
    passing = Edited()
    assert passing.feed(FRAMES[4] + PING_FRAME[:5]) == b""
    passing.scanner.pass_all()
    assert passing.sent() == FRAMES[4] + PING_FRAME[:5]
    assert passing.feed(PING_FRAME[5:] + PING_FRAME) == PING_FRAME[5:] + PING_FRAME
    dropping = Edited()
    dropping.feed(FRAMES[4] + PING_FRAME[:5])
    dropping.scanner.drop_all()
    assert dropping.feed(PING_FRAME[5:] + PING_FRAME) == b""
    dropping.scanner.insert_frames(PING_FRAME)
    assert dropping.sent() == b""
    assert dropping.frames == passing.frames == []


def test_at_the_end_incomplete_frames_are_forwarded_and_nothing_is_inserted() -> None:
    edited = Edited()
    edited.feed(FRAMES[4] + PING_FRAME[:5])
    edited.scanner.feed_eof()
    edited.scanner.insert_frames(PING_FRAME)
    assert edited.sent() == FRAMES[4] + PING_FRAME[:5]


@pytest.mark.parametrize(
    ("wire", "before", "text"),
    [
        (frame(CONTINUATION, b"x"), 0, "HEADERS before CONTINUATION"),
        (FRAMES[4] + frame(DATA, b"x", stream=5), 1, "CONTINUATION"),
        (FRAMES[4] + frame(CONTINUATION, b"x", stream=7), 1, "CONTINUATION"),
        (frame(99) + frame(HEADERS, b"bad", END_HEADERS), 1, "header block in HPACK"),
        (
            frame(99) + frame(PING, b"x" * (MAX_PAYLOAD + 1))[:-1],
            1,
            f"frame of at most {MAX_PAYLOAD} bytes",
        ),
        (
            frame(99) + frame(HEADERS, b"x" * (MAX_PAYLOAD + 1))[:-1],
            1,
            f"frame of at most {MAX_PAYLOAD} bytes",
        ),
    ],
)
def test_a_violation_is_raised_at_its_frame_and_the_rest_can_be_forwarded(
    wire: bytes, before: int, text: str
) -> None:
    first = len(FRAMES[4]) if wire.startswith(FRAMES[4]) else 9 * before
    for cuts in ((), (first + 5,), (first + 9,)):
        edited = Edited()
        with pytest.raises(Violation) as caught:
            edited.feed(wire, cuts)
        assert text in str(caught.value.expected)
        assert caught.value.offset == first
        edited.scanner.pass_all()
        rest = edited.sent()
        assert wire.startswith(rest)
        assert len(rest) >= min(len(wire), (*cuts, len(wire))[0])


def test_a_header_block_has_at_most_256_kib_in_all_its_frames() -> None:
    edited, piece = Edited(), MAX_PAYLOAD // 4
    edited.feed(frame(HEADERS, b"x" * (piece - 9)))
    for _ in range(3):
        edited.feed(frame(CONTINUATION, b"x" * (piece - 9)))
    with pytest.raises(Violation) as caught:
        edited.feed(frame(CONTINUATION, b""))
    assert (caught.value.offset, caught.value.expected) == (
        0,
        f"header block of at most {MAX_PAYLOAD} bytes",
    )


def test_a_frame_of_the_maximum_size_is_edited() -> None:
    edited = Edited()
    whole = frame(PING, b"x" * MAX_PAYLOAD)
    assert edited.feed(whole) == whole * 2


def test_scanning_stops_when_the_budget_is_spent() -> None:
    edited = Edited()
    data = frame(99) * 10
    edited.scanner.budget = 4
    assert edited.scanner.feed(data, 0) == 36
    assert edited.scanner.budget == 0
    assert edited.sent() == data[:36]
    edited.scanner.budget = 100
    assert edited.scanner.feed(data, 36) == 90
    assert edited.sent() == data[36:]
    assert edited.scanner.budget == 94
    assert edited.scanner.offset == 90


def test_handlers_and_blocks_cost_more() -> None:
    edited = Edited()
    edited.scanner.budget = 10_000
    edited.feed(PING_FRAME)
    assert edited.scanner.budget == 10_000 - 1 - HANDLER_WORK - (len(PING_FRAME) >> HANDLER_SHIFT)
    edited.scanner.budget = 10_000
    edited.feed(FRAMES[0])
    assert edited.scanner.budget == 10_000 - 1 - BLOCK_WORK - len(FRAMES[0])


def test_known_blocks_are_forwarded_without_the_handler_in_any_split() -> None:
    one, two = (
        frame(HEADERS, b"known", END_HEADERS, 7),
        frame(HEADERS, b"known", END_HEADERS | 1, 5),
    )
    wire = (
        one
        + frame(DATA, b"x", 0, 7)
        + two
        + PING_FRAME
        + frame(HEADERS, b"edit", END_HEADERS, 3)
        + one
    )
    for cut in range(len(wire)):
        edited = Edited()
        edited.known.add(b"known")
        sent = edited.feed(wire, (cut,))
        assert sent == wire.replace(PING_FRAME, PING_FRAME * 2).replace(
            frame(HEADERS, b"edit", 4, 3), b"<edited>"
        )
        assert [(stream, fragment) for stream, _, fragment in edited.blocks] == [(3, b"edit")]
        assert edited.scanner.highest_stream == 7
        assert edited.scanner.offset == len(wire)


@pytest.mark.parametrize(
    ("wire", "fragment"),
    [
        (frame(HEADERS, b"\x01known\0", END_HEADERS | 8), b"known"),
        (frame(HEADERS, b"\0\0\0\0\x10known", END_HEADERS | 0x20), b"known"),
        (frame(HEADERS, b"known", 0) + frame(CONTINUATION, b"", END_HEADERS), b"known"),
        (frame(HEADERS, b"kn", 0) + frame(CONTINUATION, b"own", END_HEADERS), b"known"),
        (frame(HEADERS, b"k" * MAX_KNOWN_BLOCK, END_HEADERS), b"k" * MAX_KNOWN_BLOCK),
    ],
)
def test_other_frames_with_a_known_block_are_given_to_the_handler(
    wire: bytes, fragment: bytes
) -> None:
    edited = Edited()
    edited.known.add(fragment)
    assert edited.feed(wire) == wire
    assert edited.blocks == [(1, 0, fragment)]
    assert edited.scanner.highest_stream == 1


def test_known_blocks_are_given_to_the_handler_while_streams_are_watched() -> None:
    edited, wire = Edited(), frame(HEADERS, b"known", END_HEADERS, 9)
    edited.known.add(b"known")
    edited.watched.append(1)
    assert edited.feed(wire) == wire
    edited.watched.clear()
    assert edited.feed(wire) == wire
    assert edited.blocks == [(9, 0, b"known")]


def test_a_frame_is_inserted_after_a_known_block() -> None:
    edited = Edited()
    edited.known.add(b"known")
    data, block = frame(DATA, b"x" * 10), frame(HEADERS, b"known", END_HEADERS)
    sent = edited.feed(data[:12])
    edited.scanner.insert_frames(b"<new>")
    assert sent + edited.feed(data[12:] + block) == data + b"<new>" + block


def test_a_known_block_between_the_frames_of_another_or_without_a_stream_is_a_violation() -> None:
    known = frame(HEADERS, b"known", END_HEADERS)
    for wire in (frame(HEADERS, b"ed", 0, 5) + known, known[:5] + bytes(4) + known[9:]):
        edited = Edited()
        edited.known.add(b"known")
        with pytest.raises(Violation):
            edited.feed(wire)


def test_a_known_block_costs_a_unit_and_one_for_each_quarter_of_a_kibibyte() -> None:
    edited = Edited()
    edited.known |= {b"known", b"k" * 1000}
    edited.scanner.budget = 100
    edited.feed(frame(HEADERS, b"known", END_HEADERS) * 3)
    assert edited.scanner.budget == 97
    edited.feed(frame(HEADERS, b"k" * 1000, END_HEADERS))
    assert edited.scanner.budget == 97 - 1 - (1009 >> KNOWN_SHIFT)


def test_another_beginning_is_no_preface() -> None:
    for cuts in ((), (3,), (10,)):
        edited = Edited(preface=True)
        with pytest.raises(Violation) as caught:
            edited.feed(b"PRI * HTTP/1.1\r\n" + WIRE, cuts)
        assert caught.value.offset == 0
        edited.scanner.pass_all()
        assert edited.sent()
