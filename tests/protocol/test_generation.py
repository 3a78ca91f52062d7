"""The generations of one task: ranges, gaps and their healing, in bounded memory."""

from __future__ import annotations

from itertools import pairwise

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.model.values import EventKind, MissedGenerations, MissedReason, Support, Task
from a2a_proxy.protocol import generation, generation_ranges
from a2a_proxy.protocol.generation import (
    GenerationFault,
    GenerationReport,
    TaskGenerations,
    Verdict,
)
from a2a_proxy.protocol.timeline import EntryKind, Timeline, TimelineEntry


class Following:
    """The numbers of one task, and the gaps that were closed."""

    def __init__(self, numbers: TaskGenerations | None = None, *, from_start: bool = False) -> None:
        self.numbers = numbers or TaskGenerations(from_start=from_start)
        self.healed: list[MissedGenerations] = []
        self.found: list[Verdict] = []
        """The verdicts of the last frame."""
        self.at = 0

    def event(
        self, number: int, exchange: int = 1, client: str = "a", *, progress: bool = False
    ) -> Following:
        """An event on a stream."""
        return self._apply(
            GenerationReport(
                number,
                0,
                exchange,
                client,
                EventKind.STATUS,
                True,
                digest=f"{self.at + 1}",
                progress=progress,
            )
        )

    def snapshot(
        self, number: int, exchange: int = 9, client: str = "a", *, streams: bool = False
    ) -> Following:
        """A Task, as an answer or on a stream."""
        return self._apply(GenerationReport(number, 0, exchange, client, EventKind.TASK, streams))

    def events(self, *numbers: int, exchange: int = 1) -> Following:
        """Events on a stream of the first client."""
        for number in numbers:
            self.event(number, exchange)
        return self

    def message(self, exchange: int, ident: str = "") -> Following:
        """A client sends a message to the task."""
        self.numbers.add_client_message(ident, exchange, 0)
        return self

    def timeline(
        self, generation: int, *entries: TimelineEntry, ranges: tuple[tuple[int, int], ...] = ()
    ) -> Following:
        """A Task shows its timeline, to another client."""
        self.snapshot(generation, 20, "b")
        self.found += self.numbers.apply_timeline(Timeline(generation, entries, ranges))
        return self

    def _apply(self, report: GenerationReport) -> Following:
        self.at += 1
        self.found = list(self.numbers.apply_report(msgspec.structs.replace(report, at=self.at)))
        self.healed += [each.gap for each in self.found if each.gap is not None]
        return self

    def faults(self) -> list[GenerationFault]:
        """The faults of the last frame."""
        return [each.fault for each in self.found if each.fault is not GenerationFault.HEALED]

    def reasons(self) -> list[tuple[int, int, MissedReason, int]]:
        """First and last number of each run, its reason and the exchange with the message."""
        return [
            (each.first, each.last, each.reason, each.message)
            for each in self.numbers.missed_runs()
        ]

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
        following.event(number, exchange=number // 600, client=str(number // 1000))
    numbers = following.numbers
    assert len(numbers.seen) == generation_ranges.MAX_RANGES
    assert len(numbers.missed_runs()) == generation.MAX_MISSED
    assert len(numbers.cursors) <= generation.MAX_CURSORS
    assert len(numbers.received) == generation.MAX_CLIENTS
    assert (
        max(len(cursor.digests) for cursor in numbers.cursors.values())
        == generation.MAX_KNOWN_EVENTS
    )
    assert numbers.open == len(following.open) == generation.MAX_MISSED
    assert len(msgspec.msgpack.encode(numbers)) < 96 << 10
    assert following.snapshot(30_000, client="19").numbers.open < generation.MAX_MISSED


def test_gaps_of_a_recording_continue() -> None:
    """Its streams count anew; whose gap it was is not known any more, so whoever reads the task
    heals it."""
    before = Following().events(1, 2, 4).numbers
    seen = tuple((first, last) for first, last in before.seen)
    task = Task(
        "agent", "t1", generation=4, seen=seen, missed=before.missed_runs(), support=Support.YES
    )
    again = Following(TaskGenerations.from_task(task)).event(7, 5)
    assert (again.numbers.seen, again.open) == ([[1, 2], [4, 4], [7, 7]], [(3, 3)])
    again.snapshot(7, client="anybody")
    assert again.open == []
    assert TaskGenerations.from_task(Task("agent", "t1")) is None


def status(number: int) -> TimelineEntry:
    return TimelineEntry(number, EntryKind.STATUS)


def shown(number: int, ident: str) -> TimelineEntry:
    return TimelineEntry(number, EntryKind.MESSAGE, ident)


def test_a_state_saved_by_an_earlier_version_is_restored() -> None:
    """Its cursors had hashes of events; those events are not recognised if repeated."""
    saved = {
        "highest": 4,
        "seen": [[1, 2], [4, 4]],
        "told": {"a": [[1, 2], [4, 4]]},
        "gaps": [{"first": 3, "last": 3, "at": 9, "exchange": 1, "client": "a", "left": [[3, 3]]}],
        "open": 1,
        "cursors": {
            1: {"last": 4, "told": {1: 123, 2: 456, 4: 789}, "again": 0, "blank": 0, "off": False}
        },
        "support": 1,
    }
    following = Following(msgspec.convert(saved, TaskGenerations))
    assert following.open == [(3, 3)]
    assert following.event(5).found == []
    assert following.event(7).found[0].first == 6


def test_a_message_explains_one_missing_number() -> None:
    following = Following(from_start=True).events(1, 2).message(7).events(4)
    (gap,) = following.found
    assert (gap.fault, gap.explained, gap.messages, gap.unknown) == (
        GenerationFault.GAP,
        (3,),
        (7,),
        0,
    )
    assert following.reasons() == [(3, 3, MissedReason.MESSAGE, 7)]
    (gap,) = following.events(6).found
    assert (gap.explained, gap.unknown, gap.is_sure) == ((), 1, True), (
        "one message has one generation"
    )


def test_a_message_has_no_number_that_was_relayed_before_it() -> None:
    following = Following(from_start=True).events(1, 2, 5).message(7).events(1, 2, exchange=2)
    (gap,) = following.events(4, exchange=2).found
    assert (gap.first, gap.explained, gap.unknown) == (3, (), 1)


def test_a_message_has_the_same_number_on_every_stream() -> None:
    following = Following(from_start=True).events(1).events(1, exchange=2).message(7).events(2, 4)
    (gap,) = following.events(2, 4, exchange=2).found
    assert (gap.explained, gap.unknown) == ((3,), 0)
    (gap,) = following.events(6, exchange=2).found
    assert (gap.explained, gap.unknown) == ((), 1)


def test_messages_are_matched_so_that_most_numbers_are_explained() -> None:
    """The first message could have either number, the second one only the higher one."""
    following = Following(from_start=True).events(1, 2).message(7).events(3).message(8).events(5, 7)
    assert [each.explained for each in following.found] == [(6,)]
    assert [each[:2] for each in following.reasons()] == [(4, 4), (6, 6)]
    assert {each[3] for each in following.reasons()} == {7, 8}


def test_a_repeated_message_counts_once() -> None:
    following = Following(from_start=True).events(1, 2).message(7, "m2").message(8, "m2").events(4)
    assert not following.found[0].unknown
    assert following.events(6).found[0].unknown == 1


def test_a_refusal_reopens_the_question() -> None:
    following = Following(from_start=True).events(1, 2).message(7, "m2").events(4)
    (late,) = following.numbers.refuse_messages(7)
    assert (late.fault, late.first, late.other, late.is_sure) == (GenerationFault.LOST, 3, 1, True)
    assert following.reasons() == [(3, 3, MissedReason.UNKNOWN, 0)]
    repeated = Following(from_start=True).events(1, 2).message(7, "m2").message(8, "m2").events(4)
    assert list(repeated.numbers.refuse_messages(7)) == [], "the repetition was not refused"


def test_the_first_event_of_its_own_stream_bounds_a_message() -> None:
    """The task is at 2; the message of stream 2 is 3, its first event 4: a message cannot explain
    5."""
    following = Following(from_start=True).events(1, 2).message(2).event(4, 2)
    assert following.faults() == []
    assert following.event(6, 2).found[0].unknown == 1


def test_numbers_before_the_first_event_are_no_loss() -> None:
    """The task is at 2, a message is sent, and the stream begins with 5: 3 is the message, 4 passed
    before."""
    following = Following(from_start=True).events(1, 2).message(2).event(5, 2)
    (first,) = following.found
    assert (first.fault, first.explained, first.unknown) == (GenerationFault.FIRST_GAP, (3,), 1)
    assert Following(from_start=True).events(1, 2).message(2).event(4, 2).faults() == []


def test_an_event_elsewhere_is_lost_here() -> None:
    following = (
        Following(from_start=True)
        .events(1, 2)
        .message(7)
        .events(4)
        .event(1, 2, "b")
        .event(2, 2, "b")
    )
    (late,) = following.event(3, 2, "b").found
    assert (late.fault, late.lost, late.other) == (GenerationFault.LOST, (3,), 1)
    assert following.reasons() == [(3, 3, MissedReason.EVENT, 0)]
    before = Following(from_start=True).events(1, 2, 3, 4, exchange=2).message(7).events(1, 2, 4)
    assert before.found[0].lost == (3,)


def test_a_timeline_shows_what_a_missing_number_was() -> None:
    known = Following(from_start=True).events(1, 2).message(7, "m2").events(4)
    assert known.timeline(4, status(2), shown(3, "m2"), status(4)).faults() == []
    assert known.reasons() == [(3, 3, MissedReason.SHOWN_MESSAGE, 7)]
    second = Following(from_start=True).message(6, "m1").events(1, 2).message(7, "m2").events(4)
    second.timeline(4, status(2), shown(3, "m2"), status(4))
    assert second.reasons() == [(3, 3, MissedReason.SHOWN_MESSAGE, 7)]
    foreign = Following().events(1, 2, 4).timeline(4, status(2), shown(3, "m9"), status(4))
    assert foreign.reasons() == [(3, 3, MissedReason.SHOWN_MESSAGE, 0)]
    lost = Following(from_start=True).events(1, 2).message(7, "m2").events(4)
    assert lost.timeline(4, status(2), status(3), status(4)).faults() == [GenerationFault.LOST]
    assert lost.reasons() == [(3, 3, MissedReason.EVENT, 0)]
    unknown = Following(from_start=True).events(1, 2).events(4)
    unknown.timeline(4, TimelineEntry(3, EntryKind.UNKNOWN))
    assert unknown.reasons() == [(3, 3, MissedReason.SHOWN_MESSAGE, 0)]


def test_a_timeline_proves_a_lost_artifact_update_only_if_it_reaches_back() -> None:
    entries = (status(2), status(4))
    inside = (
        Following(from_start=True)
        .events(1, 2)
        .message(7)
        .events(4)
        .timeline(4, *entries, ranges=((3, 3),))
    )
    assert inside.faults() == [GenerationFault.LOST]
    cut = (
        Following(from_start=True)
        .events(1, 2)
        .message(7)
        .events(4)
        .timeline(4, status(4), ranges=((3, 3),))
    )
    assert cut.faults() == []
    outside = (
        Following(from_start=True)
        .events(1, 2)
        .message(7)
        .events(4)
        .timeline(4, *entries, ranges=((1, 2),))
    )
    assert outside.faults() == []


def test_a_missing_number_is_uncertain_if_a_message_may_have_come_another_way() -> None:
    assert Following().events(1, 2, 4).found[0].is_sure is False, "the beginning was not relayed"
    assert Following(from_start=True).events(1, 2, 4).found[0].is_sure
    foreign = (
        Following(from_start=True).events(1, 2).timeline(2, status(1), shown(2, "m9")).events(4)
    )
    assert foreign.found[0].is_sure is False
    assert Following(from_start=True).events(1, 3).found[0].is_sure is False, (
        "the message that created the task"
    )


def test_an_agent_with_a_timeline_must_number_progress() -> None:
    following = (
        Following(from_start=True)
        .events(1, 2)
        .timeline(2, status(1), status(2))
        .event(2, progress=True)
    )
    assert following.faults() == [GenerationFault.REPEAT]
    assert following.numbers.support is Support.NO
    assert following.events(9).found == []


@given(
    st.lists(st.sampled_from(["event", "hidden message", "message"]), min_size=1, max_size=20),
    st.integers(0, 2**16),
)
def test_a_conforming_agent_is_never_blamed(steps: list[str], seed: int) -> None:
    """Each message advances the number; whether it precedes an event in flight is up to the
    agent."""
    following, number = Following(from_start=True).event(1), 1
    for index, step in enumerate(steps):
        if step == "event":
            number += 1
            following.event(number)
        else:
            following.message(100 + index, f"m{index}")
            number += 1
            if (
                step == "hidden message" and seed >> (index % 16) & 1
            ):  # an event in flight has the number before
                following.event(number)
                number += 1
        assert not [each for each in following.found if each.unknown or each.lost]


@given(st.integers(3, 20), st.integers(0, 3))
def test_a_lost_event_is_found_where_no_message_explains_it(lost: int, messages: int) -> None:
    following = Following(from_start=True).events(*range(1, lost))
    for index in range(messages):
        following.message(100 + index, f"m{index}")
    following.event(lost + messages + 1)
    assert [each.unknown for each in following.found] == [1]
