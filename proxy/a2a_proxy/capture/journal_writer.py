"""The thread that writes the journal, so that a slow disk never delays the event loop.

Only this thread decides where bytes are missing: records after a failed write are filtered here, in
order, so that no byte of a connection follows missing ones as if nothing were lost.
"""

from __future__ import annotations

import os
import threading
from queue import Empty, SimpleQueue

import msgspec

from a2a_proxy.capture.journal_files import MIN_RETRY_SECONDS, JournalFiles
from a2a_proxy.capture.loss import PAYLOAD_KINDS, LossBuffer, make_lost_record
from a2a_proxy.capture.record_format import unpack_header
from a2a_proxy.model.chunk import ChunkKind


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
