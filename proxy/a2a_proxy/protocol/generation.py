"""Generations of one task: the numbers received, the gaps of each stream, and the reason for each
missing number.

An event carries the generation of the change that it reports. A snapshot (Task) carries the
generation of the state that it shows and is not an event. Each stream has a cursor of its own: its
first number is a baseline, and the same number on two streams is one event sent twice. A gap is a
run of numbers that a stream leaves out. It is closed for its client by a snapshot of the task that
is at least as new, or by the missing events, late or on another stream.

A missing number is lost if another stream or a push notification carried it, or a timeline shows
that it was an event. It is explained if a timeline shows that it was a client's message, or if a
client's message can have it. Otherwise its reason is unknown.

The tracker of tasks and the rules use this module; the algorithm is described in manual/protocol.md
"Generation tracking".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import EventKind, MissedGenerations, MissedReason, Support, Task
from a2a_proxy.protocol.client_messages import ClientMessages, message_key
from a2a_proxy.protocol.generation_ranges import NumberRange, add_number, has_number, remove_range
from a2a_proxy.protocol.timeline import EntryKind, Timeline

MAX_MISSED = 64
"""Gaps of a task. The oldest closed gap is forgotten first, then the oldest open one."""
MAX_CURSORS = 64
"""Streams of a task; the first to begin is forgotten first."""
MAX_CLIENTS = 16
MAX_KNOWN_EVENTS = 256
"""Events of a stream, and of a task, that are recognised if repeated; timeline entries that are
remembered."""
MAX_EXAMINED = 64
"""Numbers of a gap whose reason is examined, and snapshots that are remembered."""

_ZERO_GENERATION = re.compile(rb'"generation"\s*:\s*(?:"0"|0|null)\s*[,}]')


class GenerationFault(Enum):
    """What one frame shows about the generations of its task."""

    GAP = "generations are missing between two events of a stream"
    FIRST_GAP = "generations were not sent before the first event of a stream"
    LOST = "a generation that seemed explained or uncertain was an event"
    REPEAT = "another event with the last generation"
    AGAIN = "the same event again"
    PROGRESS = (
        "a progress update with the last generation, from an agent that has shown no timeline"
    )
    REGRESS = "a generation lower than the last one"
    LATE = "an event that fills a gap"
    ZERO = "no generation, although the task had one"
    BEHIND = "a snapshot with a lower generation than the last event"
    SAME = "a snapshot with the generation of another one, but different content"
    DIFFERS = "another event than elsewhere with this generation"
    HEALED = "a gap is closed"


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """One fault of one frame."""

    fault: GenerationFault
    last: int = 0
    """Previous generation on this stream."""
    first: int = 0
    final: int = 0
    """First and last missing generation."""
    lost: tuple[int, ...] = ()
    """Missing generations that were events: another stream, a push notification or a timeline shows
    it."""
    explained: tuple[int, ...] = ()
    """Missing generations that were client messages, probably or by a timeline."""
    messages: tuple[int, ...] = ()
    """Exchanges with these messages, in order; 0 if the message did not pass here."""
    unknown: int = 0
    """Number of missing generations without a known reason."""
    is_sure: bool = False
    """Whether at least one missing generation was an event, as far as everything relayed shows."""
    other: int = 0
    """Exchange, or state, to compare with."""
    snapshot: bool = False
    gap: MissedGenerations | None = None
    """The closed gap."""


_NONE: tuple[Verdict, ...] = ()


class _Cursor(msgspec.Struct, gc=False):
    """Position of one stream."""

    last: int = 0
    """Highest number; 0 before the first one, which is the baseline."""
    digests: dict[int, str] = {}
    """Number -> digest of its event, for the last events."""
    again: int = 0
    """Number below the last one from which the agent counts again; 0 if it does not."""
    blank: int = 0
    """Events since the last number that had no readable number but may have had one of their
    own."""
    off: bool = False
    """Whether the stream's numbers are ignored from now on, because an event has none."""


class _Event(msgspec.Struct, gc=False, array_like=True):
    """Facts of one event of a task, stored by its generation."""

    digest: str
    exchange: int
    event: int
    state: int
    is_change: bool
    """Whether the event is known to be a counted change: an artifact, or a state other than the
    previous one."""
    artifact_id: str = ""
    """The artifact of an artifact update."""


class _Gap(msgspec.Struct):
    """A run of numbers that is missing on a stream."""

    first: int
    last: int
    at: int
    exchange: int
    client: str
    left: list[NumberRange]
    """Numbers of the gap that are still missing."""
    healed: int = 0
    by: int = 0
    generation: int = 0
    reason: MissedReason = MissedReason.UNKNOWN
    """Reason from a recording; the messages and timelines that showed it are not recorded here."""
    message: int = 0

    @classmethod
    def from_recording(cls, known: MissedGenerations) -> _Gap:
        """Return a gap from a recording. The client of its stream is not recorded, so any client
        can close it."""
        left = [] if known.healed else [[known.first, known.last]]
        closed = (known.healed, known.by, known.generation, known.reason, known.message)
        return cls(known.first, known.last, known.at, known.exchange, "", left, *closed)

    def is_of_client(self, client: str) -> bool:
        """Whether the stream belongs to this client, as far as is known."""
        return self.client in (client, "")


class GenerationReport(msgspec.Struct, frozen=True, gc=False):
    """One frame about a task that has generations."""

    number: int
    """Generation of the frame; 0 or less if it has none."""
    at: int
    exchange: int
    client: str
    event: EventKind
    streams: bool
    """Whether the exchange is a stream."""
    digest: str = ""
    """Digest of an event's payload, or of a snapshot's artifacts; empty if unknown."""
    content: str = ""
    """Digest of an event's content, equal on all bindings; empty if events of different streams are
    not compared."""
    state: int = 0
    artifact_id: str = ""
    audience: str = ""
    """Version that the client speaks: agents need not send generations to older clients."""
    progress: bool = False
    """Whether it is a status update in the state that its stream has shown last."""
    change: bool = True
    """Whether it is known to be a counted change: an artifact, or a state other than the previous
    one."""
    repeat: bool = False
    """Whether its payload is known to be that of an earlier event."""
    unreadable: bool = False
    """Whether the frame has an unreadable generation."""
    returns: bool = False
    """Whether the stream joins a task that a client has received before."""
    alone: bool = True
    """Whether no other stream of the task is open, so that the numbers before the first event can
    be judged."""


def has_unreadable_number(payload: bytes) -> bool:
    """Whether the generation of a payload is present, but cannot be read: it is not 0 either."""
    return b'"generation"' in payload and not _ZERO_GENERATION.search(payload)


class TaskGenerations(msgspec.Struct):
    """Generations of one task. All collections are bounded."""

    highest: int = 0
    seen: list[NumberRange] = []
    """Numbers received in any frame, snapshots included."""
    received: dict[str, list[NumberRange]] = {}
    """Client -> numbers received by it in events."""
    gaps: list[_Gap] = []
    open: int = 0
    """Number of gaps that are not closed."""
    cursors: dict[int, _Cursor] = {}
    support: Support = Support.YES
    audiences: list[str] = []
    events: dict[int, _Event] = {}
    """Events by generation, if their contents are compared."""
    snapshots: dict[int, tuple[int, str]] = {}
    """State and artifact digest of snapshots by generation."""
    entries: dict[int, int] = {}
    """Kind of timeline entries by generation."""
    artifact_changes: list[int] = []
    """Generations that a timeline proves to be artifact updates."""
    has_timeline: bool = False
    """Whether a Task of this task had a timeline: the agent counts client messages and progress
    updates."""
    has_other_route: bool = False
    """Whether the task has a client message that did not pass here."""
    messages: ClientMessages = msgspec.field(default_factory=ClientMessages)
    creator: int = 0
    """Key of the message that created the task; 0 if unknown."""
    from_start: bool = False
    """Whether the beginning of the task was relayed."""
    certain: list[int] = []
    """Missing generations that a verdict has already called lost."""

    @classmethod
    def from_task(cls, task: Task) -> TaskGenerations | None:
        """Return the generations of a recorded task, or None if it has none; its streams continue
        from their next number."""
        if not task.generation:
            return None
        gaps = [_Gap.from_recording(each) for each in task.missed]
        seen = [[first, last] for first, last in task.seen]
        unhealed = sum(not each.healed for each in gaps)
        return cls(task.generation, seen, gaps=gaps, open=unhealed, support=task.support)

    # --- client messages and timelines

    def add_client_message(self, message_id: str, exchange: int, position: int) -> None:
        """Add a message that a client has sent to the task; `position` is its place among those of
        the exchange."""
        self.messages.add_message(message_id, exchange, position, self.highest)

    def refuse_messages(self, exchange: int) -> Sequence[Verdict]:
        """Note that the agent has refused the messages of an exchange: they have no generation."""
        return self._doubt_numbers(self.messages.refuse_exchange(exchange))

    def apply_timeline(self, timeline: Timeline) -> Sequence[Verdict]:
        """Apply the timeline and the history of a Task. Call it after `apply_report` of the
        Task."""
        found: list[Verdict] = []
        doubtful: list[int] = []
        for ident in timeline.history_ids:
            doubtful += self.messages.bound_message(ident, timeline.generation)
            self._note_route(ident)
        self.has_timeline = self.has_timeline or bool(timeline.entries)
        for entry in timeline.entries:
            _put_bounded(self.entries, entry.generation, int(entry.kind), MAX_KNOWN_EVENTS)
            if entry.kind is EntryKind.MESSAGE:
                doubtful += self.messages.place_message(entry.message_id, entry.generation)
                self._note_route(entry.message_id)
        for number in list(self.messages.missing):
            kind = self.entries.get(number)
            if kind == EntryKind.STATUS:
                found += self._settle_lost(number)
            elif timeline.shows_artifact_change(number):
                self.artifact_changes = [*self.artifact_changes, number][-MAX_EXAMINED:]
                found += self._settle_lost(number)
            elif kind is not None:
                self.messages.remove_generation(number)
        return [*found, *self._doubt_numbers(doubtful)]

    def _note_route(self, message_id: str) -> None:
        if (
            message_id
            and message_key(message_id) != self.creator
            and not self.messages.is_known(message_id)
        ):
            self.has_other_route = True

    def _settle_lost(self, number: int) -> list[Verdict]:
        """Settle a missing number as an event; return a verdict for each stream that lacks it."""
        self.messages.remove_generation(number)
        if number in self.certain:
            return []
        self.certain = [*self.certain, number][-MAX_EXAMINED:]
        lost = Verdict(
            GenerationFault.LOST, first=number, final=number, lost=(number,), is_sure=True
        )
        return [
            msgspec.structs.replace(lost, other=exchange)
            for exchange in self._streams_without(number)
        ]

    def _doubt_numbers(self, numbers: list[int]) -> list[Verdict]:
        """Return a verdict for each stream that lacks one of the numbers, which client messages
        explain no more."""
        found = []
        for number in numbers:
            if number in self.messages.missing and number not in self.messages.matches:
                lost = Verdict(
                    GenerationFault.LOST,
                    first=number,
                    final=number,
                    unknown=1,
                    is_sure=self.is_followed,
                )
                found += [
                    msgspec.structs.replace(lost, other=exchange)
                    for exchange in self._streams_without(number)
                ]
                if lost.is_sure:
                    self.certain = [*self.certain, number][-MAX_EXAMINED:]
        return found

    def _streams_without(self, number: int) -> list[int]:
        """Return the streams with a gap that still lacks the number."""
        lacking = dict.fromkeys(
            gap.exchange for gap in self.gaps if gap.first <= number <= gap.last
        )
        late = {exchange for exchange, cursor in self.cursors.items() if number in cursor.digests}
        return [exchange for exchange in lacking if exchange not in late]

    # --- frames

    def apply_report(self, report: GenerationReport) -> Sequence[Verdict]:
        """Apply one frame of the agent and return its verdicts."""
        if report.number <= 0:
            return self._apply_unnumbered(report)
        number, before = report.number, self.highest
        add_number(self.seen, number)
        self.highest = max(before, number)
        if report.audience not in self.audiences and len(self.audiences) < MAX_CLIENTS:
            self.audiences.append(report.audience)
        cursor = self._cursor_of(report.exchange) if report.streams else None
        if self.support is Support.NO or (cursor is not None and cursor.off):
            return _NONE
        found: list[Verdict] = []
        if report.event is EventKind.TASK:
            self._apply_snapshot(report, cursor, before, found)
        else:
            self._apply_event(report, cursor, before, found)
        return found

    def apply_dropped(self, report: GenerationReport) -> None:
        """Apply an event that the client of its stream did not get, because a fault dropped it."""
        number, cursor = report.number, self._cursor_of(report.exchange)
        if number <= cursor.last:
            return
        self.highest = max(self.highest, number)
        if cursor.last and (first := self._advance_cursor(cursor, number)) < number:
            self._add_gap(first, number - 1, report)
        cursor.last = number
        self._add_gap(number, number, report).reason = MissedReason.DROPPED

    def _apply_unnumbered(self, report: GenerationReport) -> Sequence[Verdict]:
        """Apply an event or Task without a number of at least 1."""
        last = self.highest
        if report.streams:
            cursor = self._cursor_of(report.exchange)
            if cursor.off:
                return _NONE
            if report.progress or report.unreadable:
                cursor.blank += 1
            else:
                cursor.off = True
            last = cursor.last or last
        if report.audience not in self.audiences:
            return _NONE
        return (
            Verdict(GenerationFault.REGRESS if report.unreadable else GenerationFault.ZERO, last),
        )

    def _apply_snapshot(
        self, report: GenerationReport, cursor: _Cursor | None, before: int, found: list[Verdict]
    ) -> None:
        number = report.number
        if self.open:
            for gap in self.gaps:
                if not gap.healed and gap.last <= number and gap.is_of_client(report.client):
                    self._heal_gap(gap, report, found)
        if cursor is None:
            found += self._doubt_numbers(self.messages.bound_exchange(report.exchange, number))
        elif not cursor.last:
            cursor.last = number
            found += self._doubt_numbers(self.messages.bound_exchange(report.exchange, number))
            if report.returns and before > 0:
                self._judge_first_number(report, before + 1, number, before, found)
        elif number < cursor.last:  # a wrong generation says nothing about the state of the task
            found.append(Verdict(GenerationFault.BEHIND, cursor.last, snapshot=True))
            return
        else:
            last, first = cursor.last, self._advance_cursor(cursor, number)
            if number >= first:
                gap = self._add_gap(first, number, report)
                found.append(self._judge_gap(gap, last, snapshot=True))
                self._heal_gap(gap, report, found)
        self._compare_snapshot(report, found)

    def _compare_snapshot(self, report: GenerationReport, found: list[Verdict]) -> None:
        """Compare the snapshot with an earlier one of the same generation. Either may lack
        artifacts."""
        known = self.snapshots.get(report.number)
        if known is None:
            _put_bounded(self.snapshots, report.number, (report.state, report.digest), MAX_EXAMINED)
            return
        state, digest = known
        if (report.state and state and report.state != state) or (
            report.digest and digest and report.digest != digest
        ):
            found.append(Verdict(GenerationFault.SAME, report.number, other=state, snapshot=True))

    def _apply_event(
        self, report: GenerationReport, cursor: _Cursor | None, before: int, found: list[Verdict]
    ) -> None:
        number = report.number
        if cursor is not None:
            if self._apply_to_stream(report, cursor, before, found):
                return
            _put_bounded(cursor.digests, number, report.digest, MAX_KNOWN_EVENTS)
        if number in self.messages.missing:
            found += [each for each in self._settle_lost(number) if each.other != report.exchange]
        if report.content:
            self._compare_event(report, found)
        if self.open:
            self._fill_gaps(report, found)
        add_number(self._ranges_of_client(report.client), number)

    def _apply_to_stream(
        self, report: GenerationReport, cursor: _Cursor, before: int, found: list[Verdict]
    ) -> bool:
        """Apply an event to its stream; return whether its number must not be taken for that of a
        change."""
        number, last = report.number, cursor.last
        if not last:
            cursor.last = number
            found += self._doubt_numbers(self.messages.bound_exchange(report.exchange, number - 1))
            self._judge_first_number(report, before + 1, number - 1, before, found)
        elif cursor.again and number == cursor.again + 1:  # the agent has started to count again
            cursor.again = number if number < last else 0
            cursor.last = max(last, number)
        elif number > last:
            first = self._advance_cursor(cursor, number)
            if first < number:
                gap = self._add_gap(first, number - 1, report)
                found.append(self._judge_gap(gap, last))
                self._remove_received(gap, report, found)
        elif number == last:
            return self._apply_equal_number(report, cursor, found)
        elif self._is_late(report, cursor):
            found.append(Verdict(GenerationFault.LATE, last))
        elif _is_repeated(report, cursor):
            found.append(Verdict(GenerationFault.AGAIN, last))
        else:
            cursor.again = number
            self.events, self.snapshots = {}, {}
            found.append(Verdict(GenerationFault.REGRESS, last))
        return False

    def _apply_equal_number(
        self, report: GenerationReport, cursor: _Cursor, found: list[Verdict]
    ) -> bool:
        """Apply an event with the last number: a snapshot before it may have the same one, another
        event may not."""
        if report.repeat or _is_repeated(report, cursor):
            found.append(Verdict(GenerationFault.AGAIN, cursor.last))
            return False
        if report.number not in cursor.digests:
            return False
        if (
            report.progress and not self.has_timeline
        ):  # without a timeline the older text of the draft may apply
            found.append(Verdict(GenerationFault.PROGRESS, cursor.last))
        else:
            self.support = Support.NO
            found.append(Verdict(GenerationFault.REPEAT, cursor.last))
        return True

    def _is_late(self, report: GenerationReport, cursor: _Cursor) -> bool:
        """Whether the event fills a gap of its own stream."""
        number = report.number
        return number not in cursor.digests and any(
            gap.exchange == report.exchange and gap.first <= number <= gap.last for gap in self.gaps
        )

    def _compare_event(self, report: GenerationReport, found: list[Verdict]) -> None:
        """Remember the event, and compare it with the event of the same number in another
        exchange."""
        here = _Event(
            report.content,
            report.exchange,
            int(report.event),
            report.state,
            report.change,
            report.artifact_id,
        )
        known = self.events.get(report.number)
        if known is None or (here.is_change and not known.is_change):
            _put_bounded(self.events, report.number, here, MAX_KNOWN_EVENTS)
        if (
            known is not None
            and known.exchange != here.exchange
            and _are_contradictory(known, here)
        ):
            found.append(Verdict(GenerationFault.DIFFERS, other=known.exchange))

    # --- gaps

    def missed_runs(self) -> tuple[MissedGenerations, ...]:
        """Return the gaps of all streams, in the order of detection, each run of numbers with its
        reason."""
        return tuple(run for gap in self.gaps for run in self._runs_of_gap(gap))

    def open_gaps(self, exchange: int) -> list[tuple[int, int]]:
        """Return the gaps of a stream that are not closed and that client messages do not
        explain."""
        return [
            (gap.first, gap.last)
            for gap in self.gaps
            if gap.exchange == exchange and not gap.healed and not self._is_explained(gap)
        ]

    def reason_of(self, number: int) -> tuple[MissedReason, int]:
        """Return why a number is missing, and the exchange with the client's message that has it (0
        if unknown)."""
        kind = self.entries.get(number)
        if kind is not None and kind != EntryKind.STATUS:
            return MissedReason.SHOWN_MESSAGE, self.messages.exchange_at(number)
        if (
            kind is not None
            or number in self.artifact_changes
            or any(has_number(ranges, number) for ranges in self.received.values())
        ):
            return MissedReason.EVENT, 0
        message = self.messages.explanation_of(number)
        return (
            (MissedReason.UNKNOWN, 0)
            if message is None
            else (MissedReason.MESSAGE, message.exchanges[0])
        )

    def _is_explained(self, gap: _Gap) -> bool:
        return (
            gap.reason is not MissedReason.DROPPED
            and gap.last - gap.first < MAX_EXAMINED
            and all(
                self.reason_of(number)[0] in _EXPLAINED for number in range(gap.first, gap.last + 1)
            )
        )

    def _runs_of_gap(self, gap: _Gap) -> Iterator[MissedGenerations]:
        first, final = gap.first, min(gap.last, gap.first + MAX_EXAMINED - 1)
        while first <= final:
            reason, message = self._reason_in_gap(gap, first)
            last = first
            while last < final:
                after, other = self._reason_in_gap(gap, last + 1)
                if (after in _EXPLAINED, other) != (reason in _EXPLAINED, message):
                    break
                if after is not reason:
                    reason = MissedReason.UNKNOWN
                last += 1
            if last == final:
                last = gap.last
            yield MissedGenerations(
                first,
                last,
                gap.at,
                gap.exchange,
                gap.healed,
                gap.by,
                gap.generation,
                reason,
                message,
            )
            first = last + 1

    def _reason_in_gap(self, gap: _Gap, number: int) -> tuple[MissedReason, int]:
        if gap.reason is MissedReason.DROPPED:
            return gap.reason, 0
        reason, message = self.reason_of(number)
        return (gap.reason, gap.message) if gap.reason and not reason else (reason, message)

    def _judge_first_number(
        self, report: GenerationReport, first: int, final: int, last: int, found: list[Verdict]
    ) -> None:
        """Judge the numbers between the task's last one and the first one of a stream: they are no
        loss."""
        if not report.alone or first > final:
            return
        if not last and not self.from_start:
            return
        verdict = self._judge_numbers(first, final)
        for number in verdict.explained:
            gap = self._add_gap(number, number, report)
            gap.by, gap.generation = report.exchange, report.number
            self._close_gap(gap, report.at)
        if verdict.unknown:
            found.append(
                msgspec.structs.replace(
                    verdict,
                    fault=GenerationFault.FIRST_GAP,
                    last=last,
                    snapshot=report.event is EventKind.TASK,
                )
            )

    def _judge_gap(self, gap: _Gap, last: int, *, snapshot: bool = False) -> Verdict:
        verdict = self._judge_numbers(gap.first, gap.last)
        examined = range(gap.first, min(gap.last, gap.first + MAX_EXAMINED - 1) + 1)
        if verdict.is_sure:
            certain = [number for number in examined if number not in verdict.explained]
            self.certain = [*self.certain, *certain][-MAX_EXAMINED:]
        return msgspec.structs.replace(verdict, last=last, snapshot=snapshot)

    def _judge_numbers(self, first: int, final: int) -> Verdict:
        """Return the reasons of a run of missing numbers; those without a reason are matched with
        messages."""
        examined = range(first, min(final, first + MAX_EXAMINED - 1) + 1)
        unexplained = [
            number for number in examined if self.reason_of(number)[0] is MissedReason.UNKNOWN
        ]
        # A message may have a number that another stream has passed with its first snapshot, or one
        # that this stream will lack too. The second explains both streams.
        passed = [cursor.last for cursor in self.cursors.values() if first <= cursor.last < final]
        unexplained.sort(key=lambda number: sum(number <= last for last in passed))
        self.messages.add_generations(unexplained)
        reasons = {number: self.reason_of(number) for number in examined}
        lost = tuple(
            number for number, (reason, _) in reasons.items() if reason is MissedReason.EVENT
        )
        explained = {
            number: message for number, (reason, message) in reasons.items() if reason in _EXPLAINED
        }
        unknown = final - first + 1 - len(lost) - len(explained)
        doubtful = self._is_creation_possible(first) and not lost and unknown == 1
        return Verdict(
            GenerationFault.GAP,
            0,
            first,
            final,
            lost,
            tuple(explained),
            tuple(dict.fromkeys(explained.values())),
            unknown,
            is_sure=bool(lost) or (unknown > 0 and self.is_followed and not doubtful),
        )

    @property
    def is_followed(self) -> bool:
        """Whether every message to the task is known: the session has its beginning, and no other
        route is known."""
        return self.from_start and not self.has_other_route

    def _is_creation_possible(self, number: int) -> bool:
        """Whether the number may be that of the message that created the task: an agent may count
        it after creation."""
        return number == 2

    def _remove_received(self, gap: _Gap, report: GenerationReport, found: list[Verdict]) -> None:
        """Remove the numbers that this client has already received on another stream from the
        gap."""
        for first, last in self.received.get(gap.client, ()):
            remove_range(gap.left, first, last)
        if not gap.left:
            gap.generation = gap.last
            self._close_gap(gap, report.at, found)

    def _fill_gaps(self, report: GenerationReport, found: list[Verdict]) -> None:
        number = report.number
        for gap in self.gaps:
            if (
                not gap.healed
                and gap.first <= number <= gap.last
                and gap.is_of_client(report.client)
            ):
                remove_range(gap.left, number, number)
                if not gap.left:
                    self._heal_gap(gap, report, found)

    def _add_gap(self, first: int, last: int, report: GenerationReport) -> _Gap:
        gap = _Gap(first, last, report.at, report.exchange, report.client, [[first, last]])
        if len(self.gaps) >= MAX_MISSED:
            closed = next((index for index, each in enumerate(self.gaps) if each.healed), 0)
            self.open -= not self.gaps.pop(closed).healed
        self.gaps.append(gap)
        self.open += 1
        return gap

    def _heal_gap(self, gap: _Gap, report: GenerationReport, found: list[Verdict]) -> None:
        gap.by, gap.generation = report.exchange, report.number
        self._close_gap(gap, report.at, found)

    def _close_gap(self, gap: _Gap, at: int, found: list[Verdict] | None = None) -> None:
        gap.healed, gap.left = at, []
        self.open -= 1
        if found is not None and not self._is_explained(gap):
            closed = MissedGenerations(
                gap.first, gap.last, gap.at, gap.exchange, at, gap.by, gap.generation, gap.reason
            )
            found.append(Verdict(GenerationFault.HEALED, gap=closed))

    # --- cursors and clients

    def _cursor_of(self, exchange: int) -> _Cursor:
        cursor = self.cursors.get(exchange)
        if cursor is None:
            cursor = self.cursors[exchange] = _Cursor()
            if len(self.cursors) > MAX_CURSORS:
                del self.cursors[next(iter(self.cursors))]
        return cursor

    @staticmethod
    def _advance_cursor(cursor: _Cursor, number: int) -> int:
        """Advance the cursor to a number and return the number that was expected next."""
        first, cursor.last, cursor.blank = cursor.last + 1 + cursor.blank, number, 0
        return first

    def _ranges_of_client(self, client: str) -> list[NumberRange]:
        ranges = self.received.get(client)
        if ranges is None:
            ranges = self.received[client] = []
            if len(self.received) > MAX_CLIENTS:
                del self.received[next(iter(self.received))]
        return ranges


_EXPLAINED = (MissedReason.MESSAGE, MissedReason.SHOWN_MESSAGE)


def _is_repeated(report: GenerationReport, cursor: _Cursor) -> bool:
    digest = cursor.digests.get(report.number)
    return bool(digest) and digest == report.digest


def _are_contradictory(one: _Event, two: _Event) -> bool:
    """Whether two events of one number exclude each other. Progress updates may share it with
    another event."""
    if one.digest == two.digest:
        return False
    status = int(EventKind.STATUS)
    return (one.event == two.event == status and one.state != two.state) or (
        one.is_change and two.is_change
    )


def is_progress(state: int, before: int) -> bool:
    """Whether a status update changes no state."""
    return state == before != TaskState.UNSPECIFIED


def _put_bounded(table: dict[int, Any], number: int, value: Any, room: int) -> None:
    """Put a value under its number, and delete the oldest entry if the table has more than
    `room`."""
    table[number] = value
    if len(table) > room:
        del table[next(iter(table))]
