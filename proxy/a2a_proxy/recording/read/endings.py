"""Endings of the calls of a recording, computed when they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import groupby, islice
from operator import attrgetter
from typing import NamedTuple, Protocol

import msgspec

from a2a_proxy.model.values import Connection, Exchange, Finding, Frame, Task
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.rows import (
    ConnectionRow,
    ExchangeRow,
    FindingRow,
    FrameRow,
    SessionRow,
    TaskRow,
    make_key,
)
from a2a_proxy.rules.endings.call_facts import SessionCalls
from a2a_proxy.rules.endings.ending import Ending
from a2a_proxy.rules.endings.evaluate import FollowingFindings, find_ending, may_have_failed
from a2a_proxy.rules.run.repeat_limit import RepeatLimit

_PAGE = 200
"""Calls that are read at once."""
_MAX_LOADED_FRAMES = 20_000
_COMPARED = 200
"""Calls with which one is compared that has just ended."""


class _SessionReader(Protocol):
    """What is read of a recording, which knows this module: it filters by endings."""

    @property
    def find_end(self) -> Callable[[SessionRow], int]: ...

    def read_session(self, number: int) -> SessionRow | None: ...

    def read_sessions(self) -> list[SessionRow]: ...

    def read_exchanges(
        self, session: int | None = None, *, after: int = 0, headers: bool = True
    ) -> Iterator[ExchangeRow]: ...

    def read_exchange(self, row_key: int, *, headers: bool = True) -> ExchangeRow | None: ...

    def exchanges_of(self, session: int, numbers: Iterable[int]) -> Iterator[ExchangeRow]: ...

    def frames_by_exchange(
        self, session: int, numbers: Sequence[int]
    ) -> dict[int, list[Frame]]: ...

    def tasks_by_exchange(
        self, session: int, numbers: Sequence[int]
    ) -> dict[tuple[str, str], Task]: ...

    def read_frames(
        self, exchange_key: int, *, after: int = -1, limit: int | None = None, payloads: bool = True
    ) -> Iterator[FrameRow]: ...

    def read_connection(self, row_key: int) -> ConnectionRow | None: ...

    def read_task(
        self, task_id: str, agent: str | None = None, *, session: int | None = None
    ) -> list[TaskRow]: ...

    def read_findings(self, session: int | None = None) -> Iterator[FindingRow]: ...


class EndingReader:
    """The endings of the calls of a recording, for everything that shows them. What is read of a
    session is kept for its next calls."""

    def __init__(self, recording: _SessionReader) -> None:
        self._recording = recording
        self._sessions: dict[int, SessionCalls] = {}

    def read(self, row: ExchangeRow) -> Ending | None:
        """Return the ending of a call; None if nothing shows that it did not end well, if it is
        open without a failure, or if later traffic explains it."""
        return self.read_all((row,)).get(row.key)

    def read_all(self, rows: Iterable[ExchangeRow]) -> dict[int, Ending]:
        """Return the same of many calls by their keys: much faster than one by one."""
        found = self.explain_all(rows)
        return {key: ending for key, ending in found.items() if ending.is_worth_reading}

    def explain_all(self, rows: Iterable[ExchangeRow]) -> dict[int, Ending]:
        """Return the endings by the keys of their calls, also of open calls and of calls that later
        traffic explains."""
        found = {}
        for number, members in groupby(rows, attrgetter("session")):
            calls = self._read_session(number)
            for ending in _find_endings(calls, (each.exchange for each in members)):
                found[make_key(number, ending.exchange)] = ending
        return found

    def prepare(self, count: int) -> bool:
        """Index at most so many calls more, which all calls are compared with; return whether all
        are indexed. Otherwise the first call that needs the index waits for it."""
        sessions = self._recording.read_sessions()
        return all(self._read_session(each.id).prepare(count) for each in sessions)

    def _read_session(self, number: int) -> SessionCalls:
        if number not in self._sessions:
            session = self._recording.read_session(number)
            assert session is not None
            ended = session.ended or self._recording.find_end(session)
            session = msgspec.structs.replace(session, ended=ended)
            self._sessions[number] = SessionCalls(_StoredCalls(self._recording, session))
        return self._sessions[number]

    def read_cause(self, key: int) -> str:
        """Return the name of the cause of a call's ending; empty if there is none that is worth
        reading."""
        row = self._recording.read_exchange(key, headers=False)
        ending = self.read(row) if row is not None else None
        return ending.cause if ending is not None else ""


def _find_endings(calls: SessionCalls, exchanges: Iterable[Exchange]) -> Iterator[Ending]:
    """Yield the endings of these calls, which are read many at once."""
    remaining = iter(exchanges)
    while page := list(islice(remaining, _PAGE)):
        calls.source.load([each for each in page if may_have_failed(each)])
        for each in page:
            with suppress(RecordingError):  # what the recording has of this call is damaged
                ending = find_ending(calls, each)
                if ending is not None:
                    yield ending


class Failures(NamedTuple):
    """What the recorder stores of the endings of a session."""

    findings: list[Finding]
    """Of many alike the first ones and a total."""
    operations: dict[int, str]
    """The operations of their exchanges."""
    explained: dict[int, Finding]
    """Findings that follow from one, which their evidence names now, by the ids of their rows."""


NO_FAILURES = Failures([], {}, {})


def report_failures(
    recording: _SessionReader,
    session: SessionRow,
    ended: int,
    doubtful: Iterable[int] | None = None,
) -> Failures:
    """Return the failures of a session that ends now, `ended` in ns. Only the `doubtful` calls are
    judged; None for all."""
    limit, findings, operations = RepeatLimit(), [], {}
    source = _StoredCalls(recording, msgspec.structs.replace(session, ended=ended))
    calls = SessionCalls(source, is_brief=True)
    stored = recording.read_findings(session.id)
    following = FollowingFindings((row.id, row.finding) for row in stored)
    for ending in _find_endings(calls, source.read_exchanges(doubtful)):
        if ending.severity is not None:
            following.mark(ending)
            kind = (ending.rule, int(ending.severity), ending.agent, -1, ending.operation)
            if limit.count_finding(kind, {}, (ending.exchange, -1)):
                findings.append(ending.to_finding())
                operations[ending.exchange] = ending.operation
    following.mark_totals()
    return Failures([*findings, *limit.make_totals(ended)], operations, following.marked)


def endings_of(
    recording: _SessionReader, session: SessionRow, ended: int, numbers: Sequence[int]
) -> dict[int, Ending]:
    """Return why these calls of a running session did not end well, as far as it is known at
    `ended` (ns), by number. They are compared with the calls shortly before only."""
    source = _StoredCalls(
        recording,
        msgspec.structs.replace(session, ended=ended),
        after=max(min(numbers) - _COMPARED, 0),
    )
    calls = SessionCalls(source)
    found = _find_endings(calls, source.read_exchanges(numbers))
    return {each.exchange: each for each in found if each.is_worth_reading}


class _StoredCalls:
    """Facts of a recorded session, read when they are asked for."""

    def __init__(self, recording: _SessionReader, session: SessionRow, *, after: int = 0) -> None:
        """All calls are those after the one with the number `after`."""
        self._recording = recording
        self._session = session
        self._after = after
        self._frames: dict[int, list[Frame]] = {}
        self._tasks: dict[tuple[str, str], Task] = {}

    @cached_property
    def ended(self) -> int:
        """End of the session; while it is recorded, the last time known of it."""
        ends = (max(each.started, each.closed, each.last_event) for each in self.read_exchanges())
        return self._session.ended or max(ends, default=self._session.facts.started)

    def read_exchanges(self, numbers: Iterable[int] | None = None) -> Iterable[Exchange]:
        """Return these exchanges, or all in order, without their headers."""
        if numbers is None:
            after = make_key(self._session.id, self._after)
            rows = self._recording.read_exchanges(self._session.id, after=after, headers=False)
            return (row.exchange for row in rows)
        rows = self._recording.exchanges_of(self._session.id, numbers)
        return (row.exchange for row in rows)

    def read_exchange(self, number: int) -> Exchange:
        """Return an exchange with its headers."""
        row = self._recording.read_exchange(make_key(self._session.id, number))
        assert row is not None
        return row.exchange

    def read_frames(self, number: int, *, ids: bool = False) -> Sequence[Frame]:
        """Return the frames of an exchange without their payloads; without `ids` also without ids
        other than that of the artifact."""
        if not ids and number in self._frames:
            return self._frames[number]
        rows = self._recording.read_frames(make_key(self._session.id, number), payloads=False)
        return [row.frame for row in rows]

    def load(self, exchanges: Sequence[Exchange]) -> None:
        """Read the frames and the tasks of these calls at once, for what is read next."""
        self._frames, self._tasks = {}, {}
        numbers, room = [], _MAX_LOADED_FRAMES
        for each in exchanges:
            room -= each.events
            if room > 0:
                numbers.append(each.id)
        with suppress(RecordingError):  # each call is read by itself
            self._frames = self._recording.frames_by_exchange(self._session.id, numbers)
            self._tasks = self._recording.tasks_by_exchange(self._session.id, numbers)

    def read_payload(self, number: int, seq: int) -> bytes:
        """Return the payload of a frame."""
        key = make_key(self._session.id, number)
        rows = self._recording.read_frames(key, after=seq - 1, limit=1)
        return next((row.frame.payload for row in rows), b"")

    def read_connection(self, number: int) -> Connection | None:
        """Return a connection, or None if it was not recorded."""
        row = self._recording.read_connection(make_key(self._session.id, number))
        return row.connection if row is not None else None

    def read_task(self, agent: str, task_id: str) -> Task | None:
        """Return the task of this id of an agent, or of another one if this one has none, without
        its artifacts."""
        if (agent, task_id) in self._tasks:
            return self._tasks[agent, task_id]
        rows = self._recording.read_task(task_id, session=self._session.id) if task_id else []
        tasks = [row.task for row in rows]
        return next((each for each in tasks if each.agent == agent), tasks[-1] if tasks else None)
