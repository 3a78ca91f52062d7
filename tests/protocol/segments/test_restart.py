"""Saved and restored anywhere, asked for changes anywhere, ticked anywhere: the same segments. And
bounded."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.model.saved_state import encode_state
from a2a_proxy.model.values import Changes, FrameKind
from a2a_proxy.protocol.segments import index
from a2a_proxy.protocol.segments.tracker import SegmentTracker
from support_segments import MS, ZERO, Timeline, run

_STATES = ("SUBMITTED", "WORKING", "WORKING", "INPUT_REQUIRED", "COMPLETED", "CANCELED")
_TRACES = [f"00-{trace * 32}-{span * 16}-01" for trace in "ab" for span in "12"]


def babel(seed: int, steps: int, *, ticks: bool) -> Timeline:
    """Several clients, agents, tasks and contexts at once, sensible or not."""
    pick = random.Random(seed)
    line, at, exchanges = Timeline(), 0.0, 0
    open_now: dict[int, str] = {}
    for _ in range(steps):
        at += pick.choice((0, 1, 5, 40, 300, 900, 1600))
        what = pick.random()
        if ticks and what < 0.1:
            line.tick(at)
        elif not open_now or what < 0.25:
            exchanges += 1
            operation = pick.choice(
                ("SendStreamingMessage", "SendMessage", "SendLiveMessage", "CancelTask", "GetTask")
            )
            task = f"t{pick.randrange(4)}"
            open_now[exchanges] = task
            line.ask(
                at,
                operation,
                exchange=exchanges,
                agent=f"agent:{pick.randrange(3)}",
                task_id=pick.choice((task, "", "")),
                context_id=pick.choice(("c", "d", "")),
                traceparent=pick.choice(("", *_TRACES)),
            )
        else:
            exchange = pick.choice([*open_now])
            _answer(pick, line, at, exchange, open_now)
    return line


def _answer(
    pick: random.Random, line: Timeline, at: float, exchange: int, open_now: dict[int, str]
) -> None:
    task, what = open_now[exchange], pick.randrange(6)
    if what < 2:
        line.chunk(
            at,
            pick.choice("ab"),
            exchange=exchange,
            task=task,
            append=pick.random() < 0.7,
            last_chunk=what == 0,
        )
    elif what < 4:
        line.state(
            at, pick.choice(_STATES), exchange=exchange, task=task, said=pick.choice(("", "m", "n"))
        )
    elif what == 4:
        line.task(
            at, pick.choice(_STATES), exchange=exchange, task=task, generation=pick.randrange(3)
        )
    else:
        kind = pick.choice((FrameKind.END, FrameKind.ERROR, FrameKind.CUT))
        line.end(at, exchange=exchange, kind=kind)
        del open_now[exchange]


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 79), max_size=6, unique=True), st.booleans())
def test_split_and_restored_anywhere_it_is_the_same(
    seed: int, places: list[int], whole: bool
) -> None:
    line = babel(seed, 80, ticks=True)
    expected = run(line, 10**6, whole=whole)
    assert run(line, 10**6, tuple(places), whole=whole) == expected


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6))
def test_ticks_change_nothing(seed: int) -> None:
    """The same frames with and without ticks in between."""
    line = babel(seed, 80, ticks=True)
    quiet = Timeline()
    quiet.steps = [step for step in line.steps if step.__name__ != "tick"]
    assert run(quiet, 10**6) == run(line, 10**6)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6))
def test_segments_are_in_order_and_whole(seed: int) -> None:
    cut = run(babel(seed, 80, ticks=True), 10**6)
    assert [each.id for each in cut.segments] == list(range(1, len(cut.segments) + 1))
    for each in cut.segments:
        assert each.began <= each.start <= each.end <= each.ended
        assert each.reason
        assert each.outputs <= each.frames
        assert (
            not each.first_output or each.start <= each.first_output <= each.last_output <= each.end
        )
    ids = {each.id: each for each in cut.segments}
    for broken in cut.interruptions:
        assert broken.outcome
        assert broken.at <= broken.ended
        assert broken.segment in ids
    for handoff in cut.handoffs:
        assert handoff.at <= handoff.ended
        assert handoff.segment in ids


def test_open_segments_of_a_lost_tracker_end_and_numbers_continue() -> None:
    line = (
        Timeline()
        .ask(0)
        .state(10, "WORKING")
        .chunk(20, append=True)
        .ask(30, exchange=2, task_id="t")
    )
    lost = run(line.ask(40, exchange=3, agent="agent:2", context_id="c"))
    changes = Changes([], [], [])
    changes.segments = [each for each in lost.segments if not each.ended]
    changes.interruptions, changes.handoffs = lost.interruptions, lost.handoffs
    assert (len(changes.segments), len(changes.interruptions), len(changes.handoffs)) == (2, 1, 1)
    tracker = SegmentTracker()
    tracker.adopt_recorded(changes, (4, 1, 1), ZERO + 50 * MS)
    for step in Timeline().ask(60, exchange=9).steps:
        step(tracker)
    segments, interruptions, handoffs = tracker.pop_changes()
    assert [(each.id, each.reason) for each in segments] == [
        *((each.id, "broken") for each in changes.segments),
        (5, ""),
    ]
    assert [each.ended for each in (*interruptions, *handoffs)] == [ZERO + 50 * MS] * 2


def test_the_number_and_size_of_tracked_tasks_are_bounded() -> None:
    line, tracker = Timeline(), SegmentTracker()
    for number in range(1, index.MAX_CONVERSATIONS + 501):
        line.ask(number, "SendMessage", exchange=number).task(
            number, "COMPLETED", exchange=number, task=f"d{number}"
        )
    for step in line.steps:
        step(tracker)
    tracker.pop_changes()
    assert len(tracker.save().tasks) == index.MAX_CONVERSATIONS
    line, tracker = Timeline(), SegmentTracker()
    for number in range(1, 1001):
        line.ask(number, "SendMessage", exchange=number).task(
            number, "WORKING", exchange=number, task=f"w{number}"
        )
    for step in line.steps:
        step(tracker)
    tracker.pop_changes()
    tracker.tick(1 << 61)
    assert len(encode_state(tracker.save())) < 1000 * 200


def test_the_longest_idle_task_without_open_calls_is_evicted() -> None:
    kept = index.ConversationIndex(limit=2)
    for name in "abcd":
        talk = kept.make_conversation("agent", name, "")
        talk.tellers = {1: None} if name == "a" else {}
        kept.add_to_task(talk)
    assert [kept.conversation_of_task("agent", name) is not None for name in "abcd"] == [
        True,
        False,
        False,
        True,
    ]
