"""Endings of the calls of a recording, computed when they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from a2a_proxy.model.values import Connection, Exchange, Frame, Task
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, SessionRow, make_key
from a2a_proxy.rules.endings.call_facts import SessionCalls
from a2a_proxy.rules.endings.ending import Ending
from a2a_proxy.rules.endings.evaluate import find_endings


class EndingReader:
    """The endings of the calls of a recording. What is read of a session is kept for its next
    calls."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._sessions: dict[int, SessionCalls] = {}

    def read(self, row: ExchangeRow) -> Ending | None:
        """Return the ending of a call; None if nothing shows that it did not end well."""
        calls = self._sessions.get(row.session)
        if calls is None:
            session = self._recording.read_session(row.session)
            assert session is not None
            calls = self._sessions[row.session] = _read_calls(self._recording, session)
        return next(find_endings(calls, [row.exchange]), None)


def session_endings(recording: Recording, session: SessionRow) -> Iterator[Ending]:
    """Yield the endings of the calls of a session."""
    calls = _read_calls(recording, session)
    return find_endings(calls, calls.source.read_exchanges())


def _read_calls(recording: Recording, session: SessionRow) -> SessionCalls:
    return SessionCalls(_StoredCalls(recording, session))


class _StoredCalls:
    """Facts of a recorded session, read when they are asked for."""

    def __init__(self, recording: Recording, session: SessionRow) -> None:
        self._recording = recording
        self._session = session

    @cached_property
    def ended(self) -> int:
        """End of the session; of one that is still recorded, the last time known of it."""
        ends = (max(each.started, each.closed, each.last_event) for each in self.read_exchanges())
        return self._session.ended or max(ends, default=self._session.facts.started)

    def read_exchanges(self) -> Iterable[Exchange]:
        """Return all exchanges in order, without their headers."""
        rows = self._recording.read_exchanges(self._session.id, headers=False)
        return (row.exchange for row in rows)

    def read_exchange(self, number: int) -> Exchange:
        """Return an exchange with its headers."""
        row = self._recording.read_exchange(make_key(self._session.id, number))
        assert row is not None
        return row.exchange

    def read_frames(self, number: int) -> Sequence[Frame]:
        """Return the frames of an exchange without their payloads."""
        rows = self._recording.read_frames(make_key(self._session.id, number), payloads=False)
        return [row.frame for row in rows]

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
        """Return the task of this id of an agent, or of another one if this one has none."""
        rows = self._recording.read_task(task_id, session=self._session.id) if task_id else []
        tasks = [row.task for row in rows]
        return next((each for each in tasks if each.agent == agent), tasks[-1] if tasks else None)
