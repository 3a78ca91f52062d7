"""Several threads, one journal: what passes is noted before it is forwarded and written down after.

Noting takes no longer than remembering. An answer that another thread sees while the request is still being written
has its place behind the request, for that was noted first.
"""

from __future__ import annotations

import threading
from typing import Protocol

from a2a_proxy.model.chunk import ChunkKind, Direction
from a2a_proxy.relay.clock import Clock


class JournalAppender(Protocol):
    """What a tape needs of a journal (`capture.append.Journal`)."""

    def append(self, kind: ChunkKind, direction: Direction, connection: int, at: int, data: bytes) -> None:
        """Take one record."""

    def flush(self) -> None:
        """Hand over what was taken."""


class JournalBuffer:
    """The records of one connection, number 1, from any thread."""

    def __init__(self, journal: JournalAppender, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self._lock = threading.Lock()
        self._records: list[tuple[ChunkKind, Direction, int, bytes]] = []
        self._is_closed = False

    def note(self, kind: ChunkKind, direction: Direction, data: bytes = b"") -> None:
        """Remember one record and the time it has. Nothing follows CLOSED."""
        with self._lock:
            if not self._is_closed:
                self._records.append((kind, direction, self._clock(), data))
            self._is_closed = self._is_closed or kind is ChunkKind.CLOSED

    def write(self) -> None:
        """Hand everything noted to the journal."""
        with self._lock:
            noted, self._records = self._records, []
            for kind, direction, at, data in noted:
                self._journal.append(kind, direction, 1, at, data)
            self._journal.flush()
