"""The relay's side of the journal: takes records without ever waiting.

Runs on the event loop's thread; the files belong to the writer thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from a2a_proxy.capture.journal_files import JournalFiles, JournalLimits, Write
from a2a_proxy.capture.journal_writer import JournalWriter, WriteBatch
from a2a_proxy.capture.loss import LossBuffer
from a2a_proxy.capture.record_format import RECORD_HEADER, Position, pack_record
from a2a_proxy.model.chunk import ChunkKind, Direction

FLUSH_SECONDS = 0.004
"""Maximum seconds a record waits for others before it is handed to the writer. A batch costs the
event loop as much as ten records, and a thread switch."""
FLUSH_BYTES = 256 * 1024
RETRY_SECONDS = 0.25

CallLater = Callable[[float, Callable[[], None]], object]


class JournalStats(msgspec.Struct, frozen=True):
    """Counters of a journal. All numbers only grow, except `queued`."""

    appended: int
    """Bytes of DATA and OURS that were appended."""
    lost: int
    """Bytes of DATA and OURS that are not in the journal."""
    segments: int
    position: Position
    """Position after the last record written."""
    queued: int
    """Bytes handed over and not yet taken by the writer."""
    reason: str = ""
    """Why nothing can be written to the disk now; empty if it can, or if the disk is only slow."""
    lost_reason: str = ""
    """Why bytes were last lost, even if writing works again; empty if the disk was too slow."""


class Journal:
    """Appends the records of one session to its journal."""

    def __init__(
        self,
        folder: Path,
        call_later: CallLater,
        limits: JournalLimits = JournalLimits(),  # noqa: B008 (frozen)
        *,
        wake_fd: int | None = None,
        write: Write = os.write,
    ) -> None:
        """Open the journal. `call_later` is the event loop's. Raises OSError if `folder` cannot be
        written at all."""
        self._writer = JournalWriter(JournalFiles(folder, limits, write=write))
        self._writer.set_wake_fd(wake_fd)
        self._call_later = call_later
        self._queue_bytes = limits.queue_bytes
        self._pending: list[bytes] = []
        self._pending_bytes = self._bytes_handed_over = self._bytes_appended = 0
        self._timer_runs = False
        self._losses = LossBuffer()

    def append(
        self, kind: ChunkKind, direction: Direction, connection: int, at: int, data: bytes
    ) -> None:
        """Append one record; `at` in ns since the epoch. Never blocks, never raises because of a
        disk."""
        self._pending += pack_record(kind, direction, connection, at, data)
        size = len(data)
        if kind is _DATA or kind is _OURS:
            self._bytes_appended += size
        self._pending_bytes = pending = self._pending_bytes + size + _HEADER_SIZE
        if pending >= FLUSH_BYTES:
            self.flush()
        elif not self._timer_runs:
            self._schedule_flush(FLUSH_SECONDS)

    def _on_timer(self) -> None:
        self._timer_runs = False
        self.flush()

    def flush(self) -> None:
        """Hand over the pending records now."""
        pieces, size = self._pending, self._pending_bytes
        if not pieces and not self._losses:
            return
        self._pending, self._pending_bytes = [], 0
        queued = self._bytes_handed_over - self._writer.consumed_bytes
        if queued and queued + size > self._queue_bytes:
            self._writer.lost_reason = self._writer.segments.reason
            self._losses.add(pieces, self._writer.lost_reason)
            self._schedule_flush(RETRY_SECONDS)
            return
        holes = bool(self._losses)
        if holes:
            loss_pieces = self._losses.take_pieces()
            pieces, size = loss_pieces + pieces, size + sum(map(len, loss_pieces))
        self._bytes_handed_over += size
        self._writer.queue_batch(WriteBatch(pieces, size, holes))

    def _schedule_flush(self, seconds: float) -> None:
        if not self._timer_runs:
            self._timer_runs = True
            self._call_later(seconds, self._on_timer)

    def set_wake_fd(self, fd: int | None) -> None:
        """Write one byte to a duplicate of `fd` after each batch to wake the reader; None stops
        that.

        Close your own `fd`.
        """
        self._writer.set_wake_fd(fd)

    def get_stats(self) -> JournalStats:
        """Return how many bytes were appended, lost and written so far."""
        writer, segments = self._writer, self._writer.segments
        lost = self._losses.lost_bytes + writer.losses.lost_bytes + writer.opaque_bytes_dropped
        queued = self._bytes_handed_over - writer.consumed_bytes
        about = (
            segments.segment_count,
            segments.position,
            queued,
            segments.reason,
            writer.lost_reason,
        )
        return JournalStats(self._bytes_appended, lost, *about)

    def append_end(self, at: int) -> None:
        """Hand over all pending records and END; no record can be appended after it. Never
        blocks."""
        self.flush()
        pieces = self._losses.take_pieces()
        pieces += pack_record(ChunkKind.END, Direction.TO_AGENT, 0, at, b"")
        self._writer.queue_batch(WriteBatch(pieces, 0, has_holes=True))
        self._writer.finish()

    def wait_until_written(self, timeout: float | None = None) -> bool:
        """Wait until everything is written after `append_end`; return False if `timeout` seconds
        were not enough."""
        return self._writer.wait_for_end(timeout)

    def close(self, at: int, timeout: float | None = None) -> bool:
        """Call `append_end` and `wait_until_written`."""
        self.append_end(at)
        return self.wait_until_written(timeout)


_DATA, _OURS = ChunkKind.DATA, ChunkKind.OURS
_HEADER_SIZE = RECORD_HEADER.size
