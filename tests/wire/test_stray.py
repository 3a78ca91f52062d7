"""Many lines between the messages of a pipe are reported in blocks; a few, one by one."""

from __future__ import annotations

import itertools

import pytest

from a2a_proxy.model.wire import Direction, Framed, Line, WireEvent
from a2a_proxy.wire import stray
from a2a_proxy.wire.stdio import StdioDecoder
from support_wire import Step, in_every_split

_MESSAGE = b'{"a":1}\n'


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two lines one by one, then blocks of 12 bytes or more."""
    monkeypatch.setattr(stray, "MAX_SINGLE_LINES", 2)
    monkeypatch.setattr(stray, "MAX_BLOCK_SIZE", 12)


def read(data: bytes, *, eof: bool = True) -> list[WireEvent]:
    """What the agent says, in every split, saved and restored in between."""
    steps: list[Step] = [("A", data), *([("a-eof", b"")] if eof else [])]
    return in_every_split(StdioDecoder, steps)


def lines(events: list[WireEvent]) -> list[bytes]:
    """The stray ones, each with its line end; a message as `-`."""
    found = []
    for each in events:
        if isinstance(each, Line):
            assert each.stray
            found.append(each.data + each.framing[1:].encode())
        elif isinstance(each, Framed):
            found.append(b"-")
    return found


@pytest.mark.usefixtures("small")
def test_blocks_of_whole_lines() -> None:
    """A block is full with the line that fills it; the last one ends with the pipe."""
    told = lines(read(b"one\ntwo\nthree\r\nfour\n\nfive\nsix 123\nseven"))
    assert told == [b"one\n", b"two\n", b"three\r\nfour\n\n", b"five\nsix 123\n", b"seven"]


@pytest.mark.usefixtures("small")
def test_a_message_ends_a_block() -> None:
    """Later lines are reported one by one again."""
    told = lines(read(b"one\ntwo\nthree\n" + _MESSAGE + b"four\nfive\nsix\n"))
    assert told == [b"one\n", b"two\n", b"three\n", b"-", b"four\n", b"five\n", b"six\n"]


@pytest.mark.usefixtures("small")
def test_blocks_have_byte_ranges() -> None:
    """It has its bytes, from its first line to its last, and is told when that came."""
    raw = b"one\ntwo\n" + b"three\n" * 5
    found = [each for each in read(raw) if isinstance(each, Line)]
    assert [(each.direction, each.start, each.end) for each in found] == [
        (Direction.TO_CLIENT, start, end) for start, end in itertools.pairwise([0, 4, 8, 26, 38])
    ]
    assert all(each.size == len(each.data) and not each.truncated for each in found)
    assert b"".join(lines(list(found))) == raw


def test_a_flood_of_lines_yields_few_frames() -> None:
    """A megabyte of two bytes a line: the first hundred, and some blocks more."""
    out: list[WireEvent] = []
    decoder = StdioDecoder()
    for at in range(1, 17):
        decoder.feed(Direction.TO_CLIENT, b"y\n" * 32_768, at, out)
    decoder.feed_eof(Direction.TO_CLIENT, 17, out)
    told = [each for each in out if isinstance(each, Line)]
    assert len(told) == stray.MAX_SINGLE_LINES + 64
    assert told[-1].end == 2 * 16 * 32_768
