"""Journal records of several threads: each is noted before its bytes are forwarded and written
afterwards.

`note_record()` only appends in memory; `write()` flushes. The response to a request that another
thread is still writing is recorded after the request, because the request was noted first.
"""

import threading
from typing import Protocol

from a2a_proxy.model.wire import ChunkKind, Direction
from a2a_proxy.relay.clock import Clock


class JournalAppender(Protocol):
    """The methods of a journal that a buffer uses (`capture.append.Journal`)."""

    def append(
        self, kind: ChunkKind, direction: Direction, connection: int, at: int, data: bytes
    ) -> None:
        """Append one record."""

    def flush(self) -> None:
        """Flush the appended records."""


class JournalBuffer:
    """Records of one connection, number 1, from any thread."""

    def __init__(self, journal: JournalAppender, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self._lock = threading.Lock()
        self._records: list[tuple[ChunkKind, Direction, int, bytes]] = []
        self._is_closed = False

    def note_record(self, kind: ChunkKind, direction: Direction, data: bytes = b"") -> None:
        """Note one record with the current time. Records after CLOSED are ignored."""
        with self._lock:
            if not self._is_closed:
                self._records.append((kind, direction, self._clock(), data))
            self._is_closed = self._is_closed or kind is ChunkKind.CLOSED

    def write(self) -> None:
        """Write all noted records to the journal."""
        with self._lock:
            noted, self._records = self._records, []
            for kind, direction, at, data in noted:
                self._journal.append(kind, direction, 1, at, data)
            self._journal.flush()
