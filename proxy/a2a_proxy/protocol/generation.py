"""The generation line of one task: what was told of it, what a stream left out, and what made that good.

Every stream has a cursor of its own: the same number on two streams is one event told twice. A jump on one stream is a
gap of that stream; the numbers in it are made good for its client by a snapshot of the task at least as new, or by
the events themselves, late or on another stream. The first number of a stream, and a GetTask answer, is a baseline.

How numbers are followed is in manual/protocol.md "Generation tracking".

Rules judge the same numbers (`rules.families.gen.tracker`), with what they know of contents; a test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.task import MissedGenerations, Support, Task

MAX_RANGES = 64
"""Ranges of numbers told, of a task or to one client of it: the lowest is forgotten first."""
MAX_MISSED = 64
"""Runs of numbers that were left out: of those made good, else of all, the oldest is forgotten first."""
MAX_CURSORS = 64
"""Streams of a task; the one that began first is forgotten first."""
MAX_CLIENTS = 16
MAX_TOLD = 16
"""Events of a stream that are known again."""

Range = list[int]
"""First and last number."""

_NO_NUMBER = re.compile(rb'"generation"\s*:\s*(?:"0"|0|null)\s*[,}]')


class _Cursor(msgspec.Struct, gc=False):
    """One stream."""

    last: int = 0
    """0 before the first number, from which the others are counted."""
    told: dict[int, int] = {}
    """Number -> hash of the event that had it, of the last few."""
    again: int = 0
    """A number below the last one, from which the agent counts anew; 0 where it does not."""
    blank: int = 0
    """Events since that had no number that can be read and may have had one."""
    off: bool = False
    """Its numbers mean nothing any more: two events have one, or an event has none."""


class _Gap(msgspec.Struct):
    """A run of numbers that a stream left out."""

    first: int
    last: int
    at: int
    exchange: int
    client: str
    left: list[Range]
    """Those that nothing has made good yet."""
    healed: int = 0
    by: int = 0
    generation: int = 0

    @classmethod
    def of(cls, known: MissedGenerations) -> _Gap:
        """As a recording has it. Whose stream it was is not known there: any client's reading makes it good."""
        left = [] if known.healed else [[known.first, known.last]]
        said = (known.healed, known.by, known.generation)
        return cls(known.first, known.last, known.at, known.exchange, "", left, *said)

    def of_client(self, client: str) -> bool:
        """The stream of this client left them out, as far as is known."""
        return self.client in (client, "")

    def missed(self) -> MissedGenerations:
        """As the model has it."""
        return MissedGenerations(self.first, self.last, self.at, self.exchange, self.healed, self.by, self.generation)


class GenerationReport(msgspec.Struct, frozen=True, gc=False):
    """One frame that tells a number, and who told whom."""

    number: int
    at: int
    exchange: int
    client: str
    streams: bool
    """Its exchange is a stream."""
    digest: int = 0
    """Hash of what it says; 0 for a snapshot."""
    progress: bool = False
    """A status update in the state that its stream has shown last: the draft gives it no number of its own."""


class TaskGenerations(msgspec.Struct):
    """The generations of one task."""

    highest: int = 0
    seen: list[Range] = []
    """What any frame told, snapshots too."""
    told: dict[str, list[Range]] = {}
    """Client -> what events told it."""
    gaps: list[_Gap] = []
    open: int = 0
    """Gaps that nothing has made good."""
    cursors: dict[int, _Cursor] = {}
    support: Support = Support.YES

    @classmethod
    def of(cls, task: Task) -> TaskGenerations | None:
        """What a recording knows of a task; its streams count from where they go on. None: it has no numbers."""
        if not task.generation:
            return None
        gaps = [_Gap.of(each) for each in task.missed]
        seen = [[first, last] for first, last in task.seen]
        unhealed = sum(not each.healed for each in gaps)
        return cls(task.generation, seen, gaps=gaps, open=unhealed, support=task.support)

    def tell(self, told: GenerationReport, healed: Callable[[MissedGenerations], None]) -> None:
        """Learn a number from 1 on; `healed` is called for each gap that it closes."""
        number = told.number
        _add(self.seen, number)
        self.highest = max(self.highest, number)
        if told.streams and self._cursor(told.exchange).off:
            return
        if not told.digest:
            self._snapshot(told, healed)
            return
        if told.streams:
            self._event(told, healed)
        if self.open:
            self._fill(told, healed)
        _add(self._told(told.client), number)

    def blank(self, exchange: int, payload: bytes, *, progress: bool) -> None:
        """An event of this stream has no number from 1 on."""
        cursor = self._cursor(exchange)
        unreadable = b'"generation"' in payload and not _NO_NUMBER.search(payload)
        if progress or unreadable:
            cursor.blank += 1
        else:
            cursor.off = True

    def missed(self) -> tuple[MissedGenerations, ...]:
        """What streams left out, in the order in which it was noticed."""
        return tuple(gap.missed() for gap in self.gaps)

    def _snapshot(self, told: GenerationReport, healed: Callable[[MissedGenerations], None]) -> None:
        number = told.number
        if self.open:
            for gap in self.gaps:
                if not gap.healed and gap.last <= number and gap.of_client(told.client):
                    self._heal(gap, told, healed)
        if not told.streams:
            return
        cursor = self._cursor(told.exchange)
        if number >= cursor.last:
            first = self._advance(cursor, number)
            if number >= first:
                self._heal(self._gap(first, number, told), told, healed)

    def _event(self, told: GenerationReport, healed: Callable[[MissedGenerations], None]) -> None:
        cursor = self._cursor(told.exchange)
        number, last = told.number, cursor.last
        if number > last:
            first = self._advance(cursor, number)
            if first < number:
                self._elsewhere(self._gap(first, number - 1, told), told, healed)
        elif cursor.again and number == cursor.again + 1:
            cursor.again = number if number < last else 0
        elif number == last:
            before = cursor.told.get(number)
            if before is not None and before != told.digest and not told.progress:
                cursor.off, self.support = True, Support.NO
        elif cursor.told.get(number) != told.digest and not self._late(told, cursor):
            cursor.again = number
        if not told.progress or number not in cursor.told:
            _remember(cursor.told, number, told.digest)

    def _late(self, told: GenerationReport, cursor: _Cursor) -> bool:
        """The event fills a gap of its own stream."""
        number = told.number
        return number not in cursor.told and any(
            gap.exchange == told.exchange and gap.first <= number <= gap.last for gap in self.gaps
        )

    def _cursor(self, exchange: int) -> _Cursor:
        cursor = self.cursors.get(exchange)
        if cursor is None:
            cursor = self.cursors[exchange] = _Cursor()
            if len(self.cursors) > MAX_CURSORS:
                del self.cursors[next(iter(self.cursors))]
        return cursor

    @staticmethod
    def _advance(cursor: _Cursor, number: int) -> int:
        """Go on to a number; the one that had to come next. The first number of a stream is never a jump."""
        last, cursor.last = cursor.last, number
        if not last:
            return number + 1
        first, cursor.blank = last + 1 + cursor.blank, 0
        return first

    def _gap(self, first: int, last: int, told: GenerationReport) -> _Gap:
        gap = _Gap(first, last, told.at, told.exchange, told.client, [[first, last]])
        if len(self.gaps) >= MAX_MISSED:
            closed = next((index for index, each in enumerate(self.gaps) if each.healed), 0)
            self.open -= not self.gaps.pop(closed).healed
        self.gaps.append(gap)
        self.open += 1
        return gap

    def _elsewhere(self, gap: _Gap, told: GenerationReport, healed: Callable[[MissedGenerations], None]) -> None:
        """What another stream has told this client already is not lost to it."""
        for first, last in self.told.get(gap.client, ()):
            _remove(gap.left, first, last)
        if not gap.left:
            gap.generation = gap.last
            self._close(gap, told.at, healed)

    def _fill(self, told: GenerationReport, healed: Callable[[MissedGenerations], None]) -> None:
        number = told.number
        for gap in self.gaps:
            if not gap.healed and gap.first <= number <= gap.last and gap.of_client(told.client):
                _remove(gap.left, number, number)
                if not gap.left:
                    self._heal(gap, told, healed)

    def _heal(self, gap: _Gap, told: GenerationReport, healed: Callable[[MissedGenerations], None]) -> None:
        gap.by, gap.generation = told.exchange, told.number
        self._close(gap, told.at, healed)

    def _close(self, gap: _Gap, at: int, healed: Callable[[MissedGenerations], None]) -> None:
        gap.healed, gap.left = at, []
        self.open -= 1
        healed(gap.missed())

    def _told(self, client: str) -> list[Range]:
        ranges = self.told.get(client)
        if ranges is None:
            ranges = self.told[client] = []
            if len(self.told) > MAX_CLIENTS:
                del self.told[next(iter(self.told))]
        return ranges


def _remember(told: dict[int, int], number: int, digest: int) -> None:
    told[number] = digest
    if len(told) > MAX_TOLD:
        del told[next(iter(told))]


def is_progress(state: int, before: int) -> bool:
    """A status update that changes no state: whether it counts is open (Q-04)."""
    return state == before != TaskState.UNSPECIFIED


def _add(ranges: list[Range], number: int) -> None:
    """Put a number into ascending ranges that do not touch."""
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


def _remove(ranges: list[Range], first: int, last: int) -> None:
    """Take a range of numbers out."""
    rest: list[Range] = []
    for low, high in ranges:
        if low < first:
            rest.append([low, min(high, first - 1)])
        if high > last:
            rest.append([max(low, last + 1), high])
    ranges[:] = rest


def union(one: tuple[tuple[int, int], ...], two: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Both, as ascending ranges that do not touch."""
    made: list[Range] = []
    for first, last in sorted((*one, *two)):
        if made and first <= made[-1][1] + 1:
            made[-1][1] = max(made[-1][1], last)
        else:
            made.append([first, last])
    return tuple((first, last) for first, last in made[-MAX_RANGES:])
