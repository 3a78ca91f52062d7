"""One of the joined recordings: its rows that are new since the last poll."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from a2a_proxy.model.values import Connection, Finding
from a2a_proxy.recording.joined.numbers import Origin
from a2a_proxy.recording.read.cursor import RowCursor
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, FrameRow, SessionRow, make_key, split_key

_REUSED_NUMBER_BASE = 1 << 20
"""More than the number of sessions in any file."""


class JoinedMember:
    """Cursors into a recording. Rows that can still change are returned again until they no longer
    can."""

    def __init__(self, number: int, recording: Recording) -> None:
        self.number = number
        self.recording = recording
        self._version = -1
        self._frames, self._findings = (
            RowCursor(recording, "frame"),
            RowCursor(recording, "finding"),
        )
        self._uuids: dict[int, str] = {}
        self._reused_numbers: dict[int, int] = {}
        """Replacement for the number of a session that was pruned, and whose number was reused."""
        self._exchanges: dict[int, int] = {}
        self._connections: dict[int, int] = {}
        self._open: set[int] = set()
        self._live: set[int] = set()
        self._last_connection: tuple[int, Connection | None] = (0, None)

    @property
    def has_changed(self) -> bool:
        """Whether the file has changed since `begin_look`. True before its first call."""
        return self._version != self.recording.data_version()

    def begin_look(self) -> None:
        """Begin a poll: the current content is about to be copied."""
        self._version = self.recording.data_version()

    def find_origin(self, session: int) -> Origin:
        """Return the origin of a row of this session."""
        return self.number, self._reused_numbers.get(session, session)

    def check_number(self, row: SessionRow) -> None:
        """Start again with this session if its number was reused. Call it for each session of a
        poll."""
        before = self._uuids.get(row.id, row.facts.uuid)
        self._uuids[row.id] = row.facts.uuid
        if before != row.facts.uuid:
            self._reused_numbers[row.id] = _REUSED_NUMBER_BASE + len(self._reused_numbers)
            self._exchanges.pop(row.id, None)
            self._connections.pop(row.id, None)

    def new_exchanges(self, session: int) -> Iterator[ExchangeRow]:
        """Yield new exchanges, by the time of their first byte."""
        for row in self.recording.read_exchanges(
            session, after=self._exchanges.get(session, make_key(session, 0))
        ):
            self._exchanges[session] = row.key
            self.watch_if_open(row)
            yield row

    def open_exchanges(self) -> Iterator[ExchangeRow]:
        """Yield the exchanges that were open at the last poll, in their current state."""
        for number in sorted(self._open):
            row = self.recording.read_exchange(number)
            if row is not None:
                self.watch_if_open(row)
                yield row

    def watch_if_open(self, row: ExchangeRow) -> None:
        """Include the exchange in later polls while it is open."""
        (self._open.discard if row.exchange.closed else self._open.add)(row.key)

    def new_frames(self) -> Iterator[FrameRow]:
        """Yield new frames."""
        for row in self.recording.frames_after(self._frames.begin_look()):
            self._frames.advance_to(row.id, row.session)
            yield row
        self._frames.end_look()

    def new_findings(self, sessions: set[int]) -> Iterator[tuple[Origin, Finding]]:
        """Yield new findings of these sessions."""
        for row in self.recording.read_findings(after=self._findings.begin_look()):
            self._findings.advance_to(row.id, row.session)
            if row.session in sessions:
                yield self.find_origin(row.session), row.finding
        self._findings.end_look()

    def read_connection(self, number: int) -> Connection | None:
        """Return the connection of this key, or None. The most recent one is cached."""
        if self._last_connection[0] != number:
            row = self.recording.read_connection(number)
            self._last_connection = number, row.connection if row is not None else None
        return self._last_connection[1]

    def new_connections(self, session: int) -> Iterator[Connection]:
        """Yield new connections, and those that were open at the last poll."""
        again = [number for number in sorted(self._live) if split_key(number)[0] == session]
        found = (
            row for number in again if (row := self.recording.read_connection(number)) is not None
        )
        new = self.recording.read_connections(session, after=self._connections.get(session, 0))
        for row in itertools.chain(found, new):
            self._connections[session] = max(row.key, self._connections.get(session, 0))
            (self._live.discard if row.connection.closed else self._live.add)(row.key)
            yield row.connection
