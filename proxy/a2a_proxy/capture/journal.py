"""The relay's side of the journal: takes records without ever waiting.

Runs on the event loop's thread; the files belong to the writer thread.

The thread that writes the journal, so that a slow disk never delays the event loop.

Only this thread decides where bytes are missing: records after a failed write are filtered here, in
order, so that no byte of a connection follows missing ones as if nothing were lost.
"""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue

import msgspec

from a2a_proxy.capture.journal_files import MIN_RETRY_SECONDS, JournalFiles, JournalLimits, Write
from a2a_proxy.capture.loss import PAYLOAD_KINDS, LossBuffer, make_lost_record
from a2a_proxy.capture.record_format import RECORD_HEADER, Position, pack_record, unpack_header
from a2a_proxy.model.wire import ChunkKind, Direction

FLUSH_SECONDS = 0.004
"""Maximum seconds a record waits for others before it is handed to the writer. A batch costs the
event loop as much as ten records, and a thread switch."""
FLUSH_BYTES = 256 * 1024
RETRY_SECONDS = 0.25

CallLater = Callable[[float, Callable[[], None]], object]


class WriteBatch(msgspec.Struct):
    """Records handed over together."""

    pieces: list[bytes]
    size: int
    has_holes: bool = False
    """Whether some records are LOST: their connections are opaque from there."""


class JournalWriter:
    """Owns the thread, the journal files and the accounting of lost bytes."""

    def __init__(self, segments: JournalFiles) -> None:
        self.segments = segments
        self.consumed_bytes = 0
        """Bytes taken from the queue; the event loop's thread reads it to compute the queue's fill
        level."""
        self.opaque_bytes_dropped = 0
        """Bytes of opaque connections that were dropped."""
        self.lost_reason = ""
        """Why records were last dropped; empty if the disk was too slow for the queue."""
        self.losses = LossBuffer()
        self._opaque: dict[int, list[int]] = {}
        self._queue: SimpleQueue[WriteBatch | None] = SimpleQueue()
        self._wake_lock = threading.Lock()
        self._wake_fd = -1
        self._thread = threading.Thread(target=self._write_batches, name="journal", daemon=True)
        self._thread.start()

    def queue_batch(self, batch: WriteBatch) -> None:
        """Queue a batch. Never blocks."""
        self._queue.put(batch)

    def finish(self) -> None:
        """End the thread after everything queued is written. Never blocks."""
        self._queue.put(None)

    def wait_for_end(self, timeout: float | None) -> bool:
        """Wait for the thread's end; return False if it took longer than `timeout` seconds."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def set_wake_fd(self, fd: int | None) -> None:
        """Write one byte to a duplicate of `fd` (made non-blocking) after each batch; None stops
        that."""
        fresh = -1
        if fd is not None:
            fresh = os.dup(fd)
            os.set_blocking(fresh, False)
        with self._wake_lock:
            old, self._wake_fd = self._wake_fd, fresh
        if old >= 0:
            os.close(old)

    def _write_batches(self) -> None:
        while True:
            try:
                batch = self._queue.get(
                    timeout=MIN_RETRY_SECONDS
                    if self.losses
                    else self.segments.seconds_until_rotation
                )
            except Empty:
                self._handle_idle()
                continue
            if batch is None:
                break
            self._write_or_drop(batch)
            self.consumed_bytes += batch.size
        if self.losses:
            self._append_pieces(self.losses.take_pieces())
        self.segments.close()
        self._wake_reader()
        self.set_wake_fd(None)

    def _handle_idle(self) -> None:
        self.segments.rotate_if_due()
        if self.losses and not self.segments.is_blocked:
            self._append_pieces(self.losses.take_pieces())

    def _write_or_drop(self, batch: WriteBatch) -> None:
        """Write a batch, or count its bytes as lost."""
        pieces = batch.pieces
        if batch.has_holes:
            self._mark_opaque(pieces)
        if self._opaque:
            pieces = self._filter_opaque(pieces)
        if self.segments.is_blocked:
            self._drop_pieces(pieces)
        else:
            self._append_pieces(self.losses.take_pieces() + pieces if self.losses else pieces)

    def _append_pieces(self, pieces: list[bytes]) -> None:
        done = self.segments.write(pieces)
        if done:
            self._wake_reader()
        if done < len(pieces):
            self._drop_pieces(pieces[done:])

    def _drop_pieces(self, pieces: list[bytes]) -> None:
        self.lost_reason = self.segments.reason
        self.losses.add(pieces, self.lost_reason)
        for header in pieces[::2]:
            kind, _, connection, _ = unpack_header(header)
            if kind in PAYLOAD_KINDS:
                self._opaque.setdefault(connection, [0, 0])
            elif kind == ChunkKind.CLOSED:
                self._opaque.pop(connection, None)

    def _mark_opaque(self, pieces: list[bytes]) -> None:
        for header in pieces[::2]:
            kind, _, connection, _ = unpack_header(header)
            if kind == ChunkKind.LOST:
                self._opaque.setdefault(connection, [0, 0])

    def _filter_opaque(self, pieces: list[bytes]) -> list[bytes]:
        """Remove payload of opaque connections from the batch. Their lost bytes are reported before
        they close."""
        remaining: list[bytes] = []
        for index in range(0, len(pieces), 2):
            kind, direction, connection, at = unpack_header(pieces[index])
            if kind in PAYLOAD_KINDS and connection in self._opaque:
                count = len(pieces[index + 1]) if kind != ChunkKind.EDIT else 0
                self._opaque[connection][direction] += count
                self.opaque_bytes_dropped += count
                continue
            if kind == ChunkKind.CLOSED:
                remaining += self._loss_records(connection, at)
            elif kind == ChunkKind.END:
                for number in list(self._opaque):
                    remaining += self._loss_records(number, at)
            remaining += pieces[index : index + 2]
        return remaining

    def _loss_records(self, connection: int, at: int) -> list[bytes]:
        pieces: list[bytes] = []
        for direction, count in enumerate(self._opaque.pop(connection, ())):
            if count:
                pieces += make_lost_record(direction, connection, at, count, self.lost_reason)
        return pieces

    def _wake_reader(self) -> None:
        with self._wake_lock:
            if self._wake_fd >= 0:
                try:
                    os.write(self._wake_fd, b"\0")
                except OSError:
                    # Full: the reader is awake. Broken: it has exited, and the journal keeps all.
                    return


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
