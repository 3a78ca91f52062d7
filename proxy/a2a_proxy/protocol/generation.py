"""Generations of one task: the numbers received, the gaps of each stream, and the events that closed them.

Every stream has its own cursor: the same number on two streams is one event. A jump on one stream is a gap of that
stream; it is closed for its client by a snapshot of the task that is at least as new, or by the missing events, late or
on another stream. The first number of a stream and a GetTask answer are baselines.

The algorithm is described in manual/protocol.md "Generation tracking".

The rules follow the same numbers (`rules.families.gen.tracker`) with knowledge of the contents; a test compares the
two.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.task import MissedGenerations, Support, Task

MAX_RANGES = 64
"""Ranges of received numbers, per task and per client of a task: the lowest is forgotten first."""
MAX_MISSED = 64
"""Gaps of a task. The oldest closed gap is forgotten first, then the oldest open one."""
MAX_CURSORS = 64
"""Streams of a task; the first to begin is forgotten first."""
MAX_CLIENTS = 16
MAX_KNOWN_EVENTS = 16
"""Events of a stream that are recognised if repeated."""

NumberRange = list[int]
"""First and last number, both included."""

_ZERO_GENERATION = re.compile(rb'"generation"\s*:\s*(?:"0"|0|null)\s*[,}]')


class _Cursor(msgspec.Struct, gc=False):
    """Position of one stream."""

    last: int = 0
    """Highest number; 0 before the first one, which is the baseline."""
    told: dict[int, int] = {}
    """Number -> hash of its event, for the last few events."""
    again: int = 0
    """Number below the last one from which the agent counts again; 0 if it does not."""
    blank: int = 0
    """Events since the last number that had no readable number but may have had one of their own."""
    off: bool = False
    """Whether the stream's numbers are ignored from now on: two events share a number, or an event has none."""


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

    @classmethod
    def from_recording(cls, known: MissedGenerations) -> _Gap:
        """Return a gap from a recording. The client of its stream is not recorded, so any client can close it."""
        left = [] if known.healed else [[known.first, known.last]]
        said = (known.healed, known.by, known.generation)
        return cls(known.first, known.last, known.at, known.exchange, "", left, *said)

    def is_of_client(self, client: str) -> bool:
        """Whether the stream belongs to this client, as far as is known."""
        return self.client in (client, "")

    def snapshot(self) -> MissedGenerations:
        """Return the gap as a value of the model."""
        return MissedGenerations(self.first, self.last, self.at, self.exchange, self.healed, self.by, self.generation)


class GenerationReport(msgspec.Struct, frozen=True, gc=False):
    """One frame with a number, and its exchange and client."""

    number: int
    at: int
    exchange: int
    client: str
    streams: bool
    """Whether the exchange is a stream."""
    digest: int = 0
    """Hash of the event's payload; 0 for a snapshot."""
    progress: bool = False
    """Whether it is a status update in the state that its stream has shown last: the draft gives it no number of its
    own."""


class TaskGenerations(msgspec.Struct):
    """Generations of one task."""

    highest: int = 0
    seen: list[NumberRange] = []
    """Numbers received in any frame, snapshots included."""
    told: dict[str, list[NumberRange]] = {}
    """Client -> numbers received by it in events."""
    gaps: list[_Gap] = []
    open: int = 0
    """Number of gaps that are not closed."""
    cursors: dict[int, _Cursor] = {}
    support: Support = Support.YES

    @classmethod
    def from_task(cls, task: Task) -> TaskGenerations | None:
        """Return the generations of a recorded task, or None if it has none; its streams continue from their next
        number."""
        if not task.generation:
            return None
        gaps = [_Gap.from_recording(each) for each in task.missed]
        seen = [[first, last] for first, last in task.seen]
        unhealed = sum(not each.healed for each in gaps)
        return cls(task.generation, seen, gaps=gaps, open=unhealed, support=task.support)

    def apply_report(self, report: GenerationReport, on_healed: Callable[[MissedGenerations], None]) -> None:
        """Apply a number of at least 1; `on_healed` is called for each gap that it closes."""
        number = report.number
        _add_number(self.seen, number)
        self.highest = max(self.highest, number)
        if report.streams and self._cursor_of(report.exchange).off:
            return
        if not report.digest:
            self._apply_snapshot(report, on_healed)
            return
        if report.streams:
            self._apply_event(report, on_healed)
        if self.open:
            self._fill_gaps(report, on_healed)
        _add_number(self._ranges_of_client(report.client), number)

    def apply_unnumbered(self, exchange: int, payload: bytes, *, progress: bool) -> None:
        """Apply an event of this stream without a number of at least 1."""
        cursor = self._cursor_of(exchange)
        unreadable = b'"generation"' in payload and not _ZERO_GENERATION.search(payload)
        if progress or unreadable:
            cursor.blank += 1
        else:
            cursor.off = True

    def missed_runs(self) -> tuple[MissedGenerations, ...]:
        """Return the gaps of all streams, in the order of detection."""
        return tuple(gap.snapshot() for gap in self.gaps)

    def _apply_snapshot(self, report: GenerationReport, on_healed: Callable[[MissedGenerations], None]) -> None:
        number = report.number
        if self.open:
            for gap in self.gaps:
                if not gap.healed and gap.last <= number and gap.is_of_client(report.client):
                    self._heal_gap(gap, report, on_healed)
        if not report.streams:
            return
        cursor = self._cursor_of(report.exchange)
        if number >= cursor.last:
            first = self._advance_cursor(cursor, number)
            if number >= first:
                self._heal_gap(self._add_gap(first, number, report), report, on_healed)

    def _apply_event(self, report: GenerationReport, on_healed: Callable[[MissedGenerations], None]) -> None:
        cursor = self._cursor_of(report.exchange)
        number, last = report.number, cursor.last
        if number > last:
            first = self._advance_cursor(cursor, number)
            if first < number:
                self._remove_known(self._add_gap(first, number - 1, report), report, on_healed)
        elif cursor.again and number == cursor.again + 1:
            cursor.again = number if number < last else 0
        elif number == last:
            before = cursor.told.get(number)
            if before is not None and before != report.digest and not report.progress:
                cursor.off, self.support = True, Support.NO
        elif cursor.told.get(number) != report.digest and not self._is_late(report, cursor):
            cursor.again = number
        if not report.progress or number not in cursor.told:
            _remember_digest(cursor.told, number, report.digest)

    def _is_late(self, report: GenerationReport, cursor: _Cursor) -> bool:
        """Whether the event fills a gap of its own stream."""
        number = report.number
        return number not in cursor.told and any(
            gap.exchange == report.exchange and gap.first <= number <= gap.last for gap in self.gaps
        )

    def _cursor_of(self, exchange: int) -> _Cursor:
        cursor = self.cursors.get(exchange)
        if cursor is None:
            cursor = self.cursors[exchange] = _Cursor()
            if len(self.cursors) > MAX_CURSORS:
                del self.cursors[next(iter(self.cursors))]
        return cursor

    @staticmethod
    def _advance_cursor(cursor: _Cursor, number: int) -> int:
        """Advance the cursor to a number and return the number that was expected next. The first number of a stream is
        never a jump."""
        last, cursor.last = cursor.last, number
        if not last:
            return number + 1
        first, cursor.blank = last + 1 + cursor.blank, 0
        return first

    def _add_gap(self, first: int, last: int, report: GenerationReport) -> _Gap:
        gap = _Gap(first, last, report.at, report.exchange, report.client, [[first, last]])
        if len(self.gaps) >= MAX_MISSED:
            closed = next((index for index, each in enumerate(self.gaps) if each.healed), 0)
            self.open -= not self.gaps.pop(closed).healed
        self.gaps.append(gap)
        self.open += 1
        return gap

    def _remove_known(
        self, gap: _Gap, report: GenerationReport, on_healed: Callable[[MissedGenerations], None]
    ) -> None:
        """Remove the numbers that this client has already received on another stream from the gap."""
        for first, last in self.told.get(gap.client, ()):
            _remove_range(gap.left, first, last)
        if not gap.left:
            gap.generation = gap.last
            self._close_gap(gap, report.at, on_healed)

    def _fill_gaps(self, report: GenerationReport, on_healed: Callable[[MissedGenerations], None]) -> None:
        number = report.number
        for gap in self.gaps:
            if not gap.healed and gap.first <= number <= gap.last and gap.is_of_client(report.client):
                _remove_range(gap.left, number, number)
                if not gap.left:
                    self._heal_gap(gap, report, on_healed)

    def _heal_gap(self, gap: _Gap, report: GenerationReport, on_healed: Callable[[MissedGenerations], None]) -> None:
        gap.by, gap.generation = report.exchange, report.number
        self._close_gap(gap, report.at, on_healed)

    def _close_gap(self, gap: _Gap, at: int, on_healed: Callable[[MissedGenerations], None]) -> None:
        gap.healed, gap.left = at, []
        self.open -= 1
        on_healed(gap.snapshot())

    def _ranges_of_client(self, client: str) -> list[NumberRange]:
        ranges = self.told.get(client)
        if ranges is None:
            ranges = self.told[client] = []
            if len(self.told) > MAX_CLIENTS:
                del self.told[next(iter(self.told))]
        return ranges


def _remember_digest(digests: dict[int, int], number: int, digest: int) -> None:
    digests[number] = digest
    if len(digests) > MAX_KNOWN_EVENTS:
        del digests[next(iter(digests))]


def is_progress(state: int, before: int) -> bool:
    """Whether a status update changes no state. It is open whether such an update is numbered (Q-04)."""
    return state == before != TaskState.UNSPECIFIED


def _add_number(ranges: list[NumberRange], number: int) -> None:
    """Add a number to ascending ranges that do not touch."""
    if not ranges or number > ranges[-1][1] + 1:
        ranges.append([number, number])
        if len(ranges) > MAX_RANGES:
            del ranges[0]
        return
    if number == ranges[-1][1] + 1:
        ranges[-1][1] = number
        return
    if number >= ranges[-1][0]:
        return
    place = next(index for index, each in enumerate(ranges) if number <= each[1] + 1)
    found = ranges[place]
    if number < found[0] - 1:
        ranges.insert(place, [number, number])
        if len(ranges) > MAX_RANGES:
            del ranges[0]
        return
    found[0], found[1] = min(found[0], number), max(found[1], number)
    if place + 1 < len(ranges) and ranges[place + 1][0] == found[1] + 1:
        found[1] = ranges.pop(place + 1)[1]


def _remove_range(ranges: list[NumberRange], first: int, last: int) -> None:
    """Remove a range of numbers."""
    rest: list[NumberRange] = []
    for low, high in ranges:
        if low < first:
            rest.append([low, min(high, first - 1)])
        if high > last:
            rest.append([max(low, last + 1), high])
    ranges[:] = rest


def union_of_ranges(one: tuple[tuple[int, int], ...], two: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Return the union as ascending ranges that do not touch; at most the `MAX_RANGES` highest."""
    made: list[NumberRange] = []
    for first, last in sorted((*one, *two)):
        if made and first <= made[-1][1] + 1:
            made[-1][1] = max(made[-1][1], last)
        else:
            made.append([first, last])
    return tuple((first, last) for first, last in made[-MAX_RANGES:])
