"""The order of rows."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_inspect.lanes.model import LaneMark, LaneRowKind
from a2a_inspect.lanes.order import PAUSE_ENTRY, FrameKey, RowOrder, TurnEffect
from support_inspect import MS


def seen(
    number: int,
    at: int,
    *,
    exchange: int = 1,
    task: int = 9,
    turns: TurnEffect = TurnEffect.NEITHER,
) -> FrameKey:
    """Frame `number`, which is also its place in the exchange, at so many ms."""
    return FrameKey(number, at * MS, exchange, number, task, turns)


def laid(order: RowOrder) -> list[str]:
    """Rows in short: frames by id, a pause with its ms, marks by their text."""
    words = []
    for index, entry in enumerate(order.entries):
        if entry > 0:
            words.append(str(entry))
        elif entry == PAUSE_ENTRY:
            words.append(f"pause {order.pause_length(index) // MS}")
        else:
            words.append(order.marks[-1 - entry].text)
    return words


def order(frames: list[FrameKey], *marks: LaneMark) -> RowOrder:
    made = RowOrder(marks)
    for frame in frames:
        made.add_frame(frame)
    made.finish()
    return made


def test_a_second_without_a_frame_is_a_pause() -> None:
    """A second or more; less is told by the times alone."""
    made = order([seen(1, 5000), seen(2, 5999), seen(3, 6999)])
    assert laid(made) == ["1", "2", "pause 1000", "3"]
    assert made.start == 5000 * MS
    assert made.frame_before(3) == 5999 * MS
    assert made.frame_before(0) == 5000 * MS


def test_marks_follow_their_frames_and_turns_precede_them() -> None:
    """A pause before a turn precedes its heading; marks without a frame are placed by time, or at
    the end."""
    marks = [
        LaneMark(LaneRowKind.TURN, 0, 1, 2, "turn 2"),
        LaneMark(LaneRowKind.FINDING, 0, 1, 2, "found"),
        LaneMark(LaneRowKind.MISSED, 1 * MS, 1, -1, "missed"),
        LaneMark(LaneRowKind.FINDING, 7 * MS, 1, 77, "of a frame that is not there"),
        LaneMark(LaneRowKind.FINDING, 9000 * MS, 1, -1, "late"),
    ]
    made = order([seen(1, 1), seen(2, 3000), seen(3, 3001)], *marks)
    assert laid(made) == [
        "1",
        "missed",
        "pause 2999",
        "turn 2",
        "2",
        "found",
        "3",
        "of a frame that is not there",
        "late",
    ]
    assert made.frames == 3


@pytest.mark.parametrize(
    ("asks", "words"),
    [
        (TurnEffect.ASKS_INPUT, "200 ms for input"),
        (TurnEffect.ASKS_AUTH, "200 ms for authorisation"),
    ],
)
def test_client_waits_are_measured(asks: TurnEffect, words: str) -> None:
    """Until the client says something on that task; the same state told again, to a poll, is no
    second wait."""
    frames = [
        seen(1, 0, turns=asks),
        seen(2, 10, exchange=2, turns=asks),
        seen(3, 20, task=8, exchange=3),
    ]
    frames += [
        seen(4, 30, task=8, exchange=3, turns=TurnEffect.SAYS),
        seen(5, 200, exchange=4, turns=TurnEffect.SAYS),
    ]
    assert laid(order(frames)) == ["1", f"waited {words}", "2", "3", "4", "5"]
    assert laid(order(frames[:3])) == ["1", f"waits for {words.partition(' for ')[2]}", "2", "3"]


def test_marks_are_visited_in_order() -> None:
    made = order(
        [seen(1, 0), seen(2, 1), seen(3, 2)],
        *(LaneMark(LaneRowKind.FINDING, 0, 1, n, f"f{n}") for n in (1, 3)),
    )
    assert made.next_mark(0, 1, (LaneRowKind.FINDING,)) == 1
    assert made.next_mark(1, 1, (LaneRowKind.FINDING,)) == 4
    assert made.next_mark(4, 1, (LaneRowKind.FINDING,)) is None
    assert made.next_mark(4, -1, (LaneRowKind.FINDING,)) == 1
    assert made.next_mark(0, 1, (LaneRowKind.WAIT,)) is None
    assert (made.index_of(3), made.index_of(77)) == (3, None)


@given(
    st.lists(st.integers(0, 4000), min_size=1, max_size=30),
    st.lists(st.tuples(st.integers(-1, 35), st.integers(0, 130_000)), max_size=20),
)
def test_nothing_is_lost_and_time_goes_down(gaps: list[int], marks: list[tuple[int, int]]) -> None:
    """Every frame and every mark has one row, in order of time, whatever the marks point at."""
    at, frames = 0, []
    for number, gap in enumerate(gaps, 1):
        at += gap
        frames.append(seen(number, at))
    given_marks = [
        LaneMark(LaneRowKind.FINDING, when * MS, 1, seq, f"m{n}")
        for n, (seq, when) in enumerate(marks)
    ]
    made = order(frames, *given_marks)
    assert [entry for entry in made.entries if entry > 0] == [frame.id for frame in frames]
    assert sorted(mark.text for mark in made.marks) == sorted(mark.text for mark in given_marks)
    assert sum(entry < 0 for entry in made.entries) == len(given_marks)
    assert all(a <= b for a, b in pairwise(made.times))
    assert all(
        made.pause_length(n) >= 1000 * MS
        for n, entry in enumerate(made.entries)
        if entry == PAUSE_ENTRY
    )
