"""Ended segments, interruptions and hand-offs are reported once, whenever their row arrives."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from a2a_proxy.follower.batch_reader import ended_segments
from a2a_proxy.follower.checkpoint import TableProgress
from a2a_proxy.follower.consumer import RowKind
from a2a_proxy.model.values import Changes, Handoff, Interruption, Segment
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import split_key
from a2a_proxy.recording.write.writer import Writer
from support_recording import STARTED, facts


def segment(number: int, over: int = 0) -> Segment:
    """One that begins at its number, ns, and ended at `over`."""
    at = STARTED + number
    end = STARTED + over if over else 0
    return Segment(
        number,
        "agent",
        "t",
        "c",
        "client",
        1,
        1,
        0,
        1,
        0,
        at,
        at,
        at,
        ended=end,
        reason="speaker" * bool(over),
    )


class Table:
    """A table of segments that grows, and who looks at it now and then."""

    def __init__(self, path: Path) -> None:
        self.writer = Writer(path, facts(1))
        self.writer.open()
        self.recording = Recording(path)
        self.known = TableProgress()

    def put(self, *segments: Segment) -> None:
        self.writer.write([], changes=Changes([], [], [], segments=list(segments)))

    def look(self, until: int | None = None) -> list[int]:
        """Numbers of those that are new and over."""
        found, self.known = ended_segments(self.recording.db, RowKind.SEGMENT, 1, self.known, until)
        return [split_key(number)[1] for number, _ in found]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "r.db")


def test_late_rows_are_found(table: Table) -> None:
    """Number 2 is withheld until it is known that it is no half of a unary call; 3 and 4 never
    come."""
    table.put(segment(1, over=5), segment(5))
    assert table.look() == [1]
    assert table.known.open == [5]
    table.put(segment(2), segment(6, over=8))
    assert table.look() == [6]
    table.put(segment(2, over=9), segment(5, over=9))
    assert sorted(table.look()) == [2, 5]
    assert (table.look(), table.known.open) == ([], [])


def test_rows_are_reported_once_in_any_order(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is reported once, unless it is later than the window."""
    monkeypatch.setattr("a2a_proxy.follower.batch_reader.SEEN_WINDOW", 40)
    chance = random.Random(7)
    steps = []
    for number in range(1, 300):
        came = number + chance.randrange(30)
        steps += [(came, number, False), (came + chance.randrange(1, 20), number, True)]
    found: list[int] = []
    for _, number, over in sorted(steps):
        table.put(segment(number, over=number + 1 if over else 0))
        if chance.random() < 0.4:
            found += table.look()
    found += table.look()
    assert sorted(found) == list(range(1, 300))
    assert len(table.known.seen) <= 5


def test_rows_later_than_pending_frames_wait(table: Table) -> None:
    """While there are frames to come, what began or ended after them has to wait."""
    table.put(segment(10, over=20), segment(30, over=40), segment(50, over=60))
    assert table.look(until=15) == []
    assert table.known.open == [10]
    assert table.look(until=35) == [10]
    assert table.look() == [30, 50]


def test_interruptions_and_hand_offs(table: Table) -> None:
    """With their times."""
    at = STARTED + 100
    broken = Interruption(1, "a", "t", "c", "message", 1, 1, 0, at, ended=at + 7, outcome="yielded")
    handed = Handoff(2, "next", "context", "a", "t", "c", 1, "b", "u", 2, 1, 0, at, ended=at + 9)
    table.writer.write([], changes=Changes([], [], [], [], [broken], [handed]))
    for kind, number, over in ((RowKind.INTERRUPTION, 1, 107), (RowKind.HANDOFF, 2, 109)):
        found, known = ended_segments(table.recording.db, kind, 1, TableProgress(), None)
        assert [(split_key(row)[1], time) for row, time in found] == [(number, over)]
        assert known.open == []
