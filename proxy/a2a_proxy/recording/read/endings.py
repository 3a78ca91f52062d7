"""Endings of the calls of a recording, computed when they are read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from a2a_proxy.model.values import Connection, Exchange, Frame
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionRow, make_key
from a2a_proxy.rules.endings.call_facts import SessionCalls
from a2a_proxy.rules.endings.ending import Ending
from a2a_proxy.rules.endings.evaluate import find_endings

_MAX_CACHED = 1000


def session_endings(
    recording: Recording, session: SessionRow, numbers: Iterable[int] | None = None
) -> dict[int, Ending]:
    """Return the endings of the calls of a session by exchange, of all or of `numbers`."""
    return find_endings(_read_calls(recording, session), numbers)


class EndingReader:
    """The endings of a session, each computed when it is asked for."""

    def __init__(self, recording: Recording, session: SessionRow) -> None:
        self._recording = recording
        self._session = session

    @cached_property
    def _calls(self) -> SessionCalls:
        return _read_calls(self._recording, self._session)

    def read(self, number: int) -> Ending | None:
        """Return the ending of a call; None if nothing shows that it did not end well."""
        return find_endings(self._calls, [number]).get(number)


def _read_calls(recording: Recording, session: SessionRow) -> SessionCalls:
    """Return the calls of a session. The end of a session that is still recorded is the last thing
    known of it."""
    exchanges = [row.exchange for row in recording.read_exchanges(session.id, headers=False)]
    tasks = [row.task for row in recording.read_tasks(session.id)]
    ends = (max(each.started, each.closed, each.last_event) for each in exchanges)
    ended = session.ended or max(ends, default=session.facts.started)
    return SessionCalls(exchanges, tasks, ended, _StoredCalls(recording, session.id))


class _StoredCalls:
    """Facts of a recorded session, read when they are asked for."""

    def __init__(self, recording: Recording, session: int) -> None:
        self._recording = recording
        self._session = session
        self._frames: dict[int, list[Frame]] = {}

    def read_exchange(self, number: int) -> Exchange:
        """Return an exchange with its headers."""
        row = self._recording.read_exchange(make_key(self._session, number))
        assert row is not None
        return row.exchange

    def read_frames(self, number: int) -> Sequence[Frame]:
        """Return the frames of an exchange without their payloads."""
        found = self._frames.get(number)
        if found is None:
            rows = self._recording.read_frames(make_key(self._session, number), payloads=False)
            found = self._frames[number] = [row.frame for row in rows]
            if len(self._frames) > _MAX_CACHED:
                del self._frames[next(iter(self._frames))]
        return found

    def read_payload(self, number: int, seq: int) -> bytes:
        """Return the payload of a frame."""
        key = make_key(self._session, number)
        rows = self._recording.read_frames(key, after=seq - 1, limit=1)
        return next((row.frame.payload for row in rows), b"")

    def read_connection(self, number: int) -> Connection | None:
        """Return a connection, or None if it was not recorded."""
        row = self._recording.read_connection(make_key(self._session, number))
        return row.connection if row is not None else None
