"""One file of a `Recording`, with the lookups between its rows."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.api.exchange import Exchange, Frame
from a2a_proxy.api.session import Session
from a2a_proxy.recording.read.multi_reader import MultiReaderFile
from a2a_proxy.recording.read.rows import ExchangeRow, FrameRow, SessionRow, make_key

_MAX_CACHED_EXCHANGES = 1024
"""Maximum number of exchanges, and of connections, cached for the frames that refer to them."""


class RecordingFile:
    """Creates objects from a file's rows."""

    def __init__(self, member: MultiReaderFile) -> None:
        self.member = member
        self.reader = member.recording
        self._exchanges: dict[int, Exchange | None] = {}
        self._agents: dict[int, tuple[str, str]] = {}

    @property
    def path(self) -> str:
        """The path as given by the caller."""
        return self.reader.path

    def session(self, row: SessionRow) -> Session:
        """Return a session."""
        return Session(self, row)

    def exchange(self, row: ExchangeRow) -> Exchange:
        """Return an exchange."""
        return Exchange(self, row)

    def frame(self, row: FrameRow, exchange: Exchange | None = None) -> Frame:
        """Return a frame, of a known exchange or of one that is read on first use."""
        return Frame(self, row, exchange)

    def exchange_of(self, row: FrameRow) -> Exchange | None:
        """Return the exchange that a frame belongs to; None for a frame of the connection itself."""
        number = row.exchange_key
        if number not in self._exchanges:
            found = self.reader.exchange(number) if number else None
            if len(self._exchanges) >= _MAX_CACHED_EXCHANGES:
                self._exchanges.clear()
            self._exchanges[number] = self.exchange(found) if found is not None else None
        return self._exchanges[number]

    def peer_addresses(self, row: ExchangeRow) -> tuple[str, str]:
        """Return the addresses of the client and the agent; empty if the connection is unknown."""
        number = make_key(row.session, row.exchange.connection)
        if number not in self._agents:
            found = self.reader.connection(number)
            if found is None:
                return "", ""
            if len(self._agents) >= _MAX_CACHED_EXCHANGES:
                self._agents.clear()
            self._agents[number] = found.connection.client, found.connection.upstream
        return self._agents[number]

    def exchanges_numbered(self, session: int, numbers: tuple[int, ...]) -> Iterator[Exchange]:
        """Yield the exchanges of a session with these numbers that the file contains."""
        rows = (self.reader.exchange(make_key(session, number)) for number in numbers)
        return (self.exchange(row) for row in rows if row is not None)
