"""The relay's side of the journal: take a record, never wait.

Runs on the event loop's thread; the files are the writer thread's.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from a2a_proxy.capture.journal_files import JournalFiles, JournalLimits, Write
from a2a_proxy.capture.journal_writer import JournalWriter, WriteBatch
from a2a_proxy.capture.loss import LossBuffer
from a2a_proxy.capture.record_format import RECORD, Position, pack
from a2a_proxy.model.chunk import ChunkKind, Direction

FLUSH_SECONDS = 0.004
"""Longest time a record waits for others before it is handed to the writer. A batch costs the event loop as much as ten
records, and a change of threads."""
FLUSH_BYTES = 256 * 1024
RETRY_SECONDS = 0.25

CallLater = Callable[[float, Callable[[], None]], object]


class JournalStats(msgspec.Struct, frozen=True):
    """The books. All numbers only grow."""

    appended: int
    """Octets of DATA and OURS that were appended."""
    lost: int
    """Octets of those that are not in the journal."""
    segments: int
    position: Position
    """After the last record written."""
    queued: int
    """Octets handed over and not yet taken by the writer (this one also shrinks)."""
    reason: str = ""
    """Why the disk takes nothing now; empty where it does, or is slow only."""
    lost_reason: str = ""
    """Why bytes were lost last, though the disk may take others by now; empty where it was too slow."""


class Journal:
    """Append records of one session to its journal."""

    def __init__(
        self,
        folder: Path,
        call_later: CallLater,
        limits: JournalLimits = JournalLimits(),  # noqa: B008 (frozen)
        *,
        wake_fd: int | None = None,
        write: Write = os.write,
    ) -> None:
        """`call_later` is the event loop's. Raises OSError where `folder` cannot be written at all."""
        self._writer = JournalWriter(JournalFiles(folder, limits, write=write))
        self._writer.wake_by(wake_fd)
        self._call_later = call_later
        self._queue_bytes = limits.queue_bytes
        self._pending: list[bytes] = []
        self._size = self._handed = self._appended = 0
        self._timer_runs = False
        self._gap = LossBuffer()

    def append(self, kind: ChunkKind, direction: Direction, connection: int, at: int, data: bytes) -> None:
        """Take one record; `at` in ns since the epoch. Never blocks, never raises for a disk."""
        self._pending += pack(kind, direction, connection, at, data)
        self._size += len(data) + RECORD.size
        if kind is _DATA or kind is _OURS:
            self._appended += len(data)
        if self._size >= FLUSH_BYTES:
            self.flush()
        elif not self._timer_runs:
            self._call_again(FLUSH_SECONDS)

    def _on_timer(self) -> None:
        self._timer_runs = False
        self.flush()

    def flush(self) -> None:
        """Hand over what is pending now."""
        pieces, size = self._pending, self._size
        if not pieces and not self._gap:
            return
        self._pending, self._size = [], 0
        queued = self._handed - self._writer.taken
        if queued and queued + size > self._queue_bytes:
            self._gap.add(pieces)
            self._writer.lost_reason = self._writer.segments.reason
            self._call_again(RETRY_SECONDS)
            return
        holes = bool(self._gap)
        if holes:
            told = self._gap.take()
            pieces, size = told + pieces, size + sum(map(len, told))
        self._handed += size
        self._writer.put(WriteBatch(pieces, size, holes))

    def _call_again(self, seconds: float) -> None:
        if not self._timer_runs:
            self._timer_runs = True
            self._call_later(seconds, self._on_timer)

    def wake_by(self, fd: int | None) -> None:
        """Wake the reader by one octet to `fd` after each batch (None: stop that). A duplicate is kept: close yours."""
        self._writer.wake_by(fd)

    def stats(self) -> JournalStats:
        """How much was taken, lost and written so far."""
        writer, segments = self._writer, self._writer.segments
        lost = self._gap.lost + writer.gap.lost + writer.late
        queued = self._handed - writer.taken
        about = (segments.begun, segments.position, queued, segments.reason, writer.lost_reason)
        return JournalStats(self._appended, lost, *about)

    def end(self, at: int) -> None:
        """Hand over all that is pending, and END; nothing can be appended after it. Never blocks."""
        self.flush()
        pieces = self._gap.take()
        pieces += pack(ChunkKind.END, Direction.TO_AGENT, 0, at, b"")
        self._writer.put(WriteBatch(pieces, 0, holes=True))
        self._writer.finish()

    def settled(self, timeout: float | None = None) -> bool:
        """Wait until all is written after `end`; False where `timeout` seconds were not enough."""
        return self._writer.wait(timeout)

    def close(self, at: int, timeout: float | None = None) -> bool:
        """`end` and `settled` in one."""
        self.end(at)
        return self.settled(timeout)


_DATA, _OURS = ChunkKind.DATA, ChunkKind.OURS
