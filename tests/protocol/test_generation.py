"""The generations of one task: ranges, gaps and their healing, in bounded memory."""

from __future__ import annotations

from itertools import pairwise

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.model.task import MissedGenerations, Support, Task
from a2a_proxy.protocol import generation
from a2a_proxy.protocol.generation import GenerationReport, TaskGenerations, union_of_ranges


class Following:
    """Numbers, and what was said to be healed."""

    def __init__(self, numbers: TaskGenerations | None = None) -> None:
        self.numbers = numbers or TaskGenerations()
        self.healed: list[MissedGenerations] = []
        self.at = 0

    def event(self, number: int, exchange: int = 1, client: str = "a", *, progress: bool = False) -> Following:
        self.at += 1
        told = GenerationReport(number, self.at, exchange, client, streams=True, digest=self.at, progress=progress)
        self.numbers.apply_report(told, self.healed.append)
        return self

    def snapshot(self, number: int, exchange: int = 9, client: str = "a", *, streams: bool = False) -> Following:
        self.at += 1
        self.numbers.apply_report(GenerationReport(number, self.at, exchange, client, streams), self.healed.append)
        return self

    def events(self, *numbers: int, exchange: int = 1) -> Following:
        for number in numbers:
            self.event(number, exchange)
        return self

    @property
    def open(self) -> list[tuple[int, int]]:
        return [(each.first, each.last) for each in self.numbers.missed_runs() if not each.healed]


@given(st.lists(st.integers(1, 60)))
def test_ranges_are_the_set_of_numbers(numbers: list[int]) -> None:
    """Ascending, without touching, whatever the order."""
    following = Following().events(*numbers)
    ranges = following.numbers.seen
    assert {number for first, last in ranges for number in range(first, last + 1)} == set(numbers)
    assert all(one[1] + 1 < two[0] for one, two in pairwise(ranges))


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 5))),
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 5))),
)
def test_a_union_has_both(one: list[tuple[int, int]], two: list[tuple[int, int]]) -> None:
    first, second = (tuple((low, low + more) for low, more in each) for each in (one, two))
    wanted = {number for low, high in (*first, *second) for number in range(low, high + 1)}
    assert {number for low, high in union_of_ranges(first, second) for number in range(low, high + 1)} == wanted


def test_skipped_numbers_are_one_gap() -> None:
    following = Following().events(1, 2, 3, 7)
    assert following.open == [(4, 6)]
    assert following.healed == []


def test_an_older_snapshot_does_not_heal_a_gap() -> None:
    """An older snapshot does not contain the missed change."""
    following = Following().events(1, 2, 5).snapshot(3)
    assert following.open == [(3, 4)]
    following.snapshot(4)
    assert following.open == []
    assert following.healed == [MissedGenerations(3, 4, 3, 1, 5, 9, 4)]


def test_another_client_does_not_heal_a_gap() -> None:
    following = Following().events(1, 3).snapshot(3, client="b").event(2, 2, "b")
    assert following.open == [(2, 2)]


def test_late_events_heal_a_gap_once_complete() -> None:
    following = Following().events(1, 4, 3)
    assert following.open == [(2, 3)]
    following.event(2)
    assert following.healed == [MissedGenerations(2, 3, 2, 1, 4, 1, 2)]


def test_another_stream_of_the_client_heals_a_gap() -> None:
    """Before the gap or after it."""
    after = Following().events(1, 4).events(1, 2, 3, exchange=2)
    assert [(each.by, each.generation) for each in after.healed] == [(2, 3)]
    before = Following().events(1, 2, 3, exchange=2).events(1, 3)
    assert [(each.first, each.by) for each in before.healed] == [(2, 0)]


def test_a_snapshot_ahead_in_mid_stream_is_a_healed_gap() -> None:
    following = Following().events(1, 2).snapshot(4, 1, streams=True)
    assert following.healed == [MissedGenerations(3, 4, 3, 1, 3, 1, 4)]


def test_repeated_numbers_are_ignored() -> None:
    """But a progress update may have the number of the one before."""
    allowed = Following().event(1).event(2).event(2, progress=True).event(4)
    assert (allowed.open, allowed.numbers.support) == ([(3, 3)], Support.YES)
    broken = Following().event(1).event(2).event(2).event(4)
    assert (broken.open, broken.numbers.support) == ([], Support.NO)


def test_memory_is_bounded() -> None:
    """An agent that leaves out every second one, on ever new streams to ever new clients."""
    following = Following()
    for number in range(1, 20_000, 2):
        following.event(number, exchange=number // 500, client=str(number // 1000))
    numbers = following.numbers
    assert len(numbers.seen) == generation.MAX_RANGES
    assert len(numbers.missed_runs()) == generation.MAX_MISSED
    assert len(numbers.cursors) <= generation.MAX_CURSORS
    assert len(numbers.told) == generation.MAX_CLIENTS
    assert max(len(cursor.told) for cursor in numbers.cursors.values()) == generation.MAX_KNOWN_EVENTS
    assert numbers.open == len(following.open) == generation.MAX_MISSED
    assert len(msgspec.msgpack.encode(numbers)) < 64 << 10
    assert following.snapshot(30_000, client="19").numbers.open < generation.MAX_MISSED


def test_gaps_of_a_recording_continue() -> None:
    """Its streams count anew; whose gap it was is not known any more, so whoever reads the task heals it."""
    before = Following().events(1, 2, 4).numbers
    seen = tuple((first, last) for first, last in before.seen)
    task = Task("agent", "t1", generation=4, seen=seen, missed=before.missed_runs(), support=Support.YES)
    again = Following(TaskGenerations.from_task(task)).event(7, 5)
    assert (again.numbers.seen, again.open) == ([[1, 2], [4, 4], [7, 7]], [(3, 3)])
    again.snapshot(7, client="anybody")
    assert again.open == []
    assert TaskGenerations.from_task(Task("agent", "t1")) is None
