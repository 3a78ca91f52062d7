"""The thread that writes the journal, so that a slow disk never holds up the event loop.

It alone decides what a hole is: records behind a failed write are filtered here, in order, so that no octet of a
connection follows a hole as if nothing were missing.
"""

from __future__ import annotations

import os
import threading
from queue import Empty, SimpleQueue

import msgspec

from a2a_proxy.capture.journal_files import SHORTEST_PAUSE, JournalFiles
from a2a_proxy.capture.loss import PAYLOAD_KINDS, LossBuffer, lost_record
from a2a_proxy.capture.record_format import unpack_head
from a2a_proxy.model.chunk import ChunkKind


class WriteBatch(msgspec.Struct):
    """Records handed over at once."""

    pieces: list[bytes]
    size: int
    holes: bool = False
    """Some of the records are LOST: their connections are opaque from there."""


class JournalWriter:
    """Owns the thread, the segments and the books of what was lost."""

    def __init__(self, segments: JournalFiles) -> None:
        self.segments = segments
        self.taken = 0
        """Octets taken from the queue; read by the event loop's thread to know how full it is."""
        self.late = 0
        """Octets of opaque connections that were dropped."""
        self.lost_reason = ""
        """Why records were dropped last; empty where the disk was too slow for the queue."""
        self.gap = LossBuffer()
        self._opaque: dict[int, list[int]] = {}
        self._queue: SimpleQueue[WriteBatch | None] = SimpleQueue()
        self._wake_lock = threading.Lock()
        self._wake = -1
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def put(self, batch: WriteBatch) -> None:
        """Hand over; never blocks."""
        self._queue.put(batch)

    def finish(self) -> None:
        """End when all that is queued is written. Never blocks."""
        self._queue.put(None)

    def wait(self, timeout: float | None) -> bool:
        """Wait for the end; False where that took longer than `timeout` seconds."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def wake_by(self, fd: int | None) -> None:
        """Write one octet to a duplicate of `fd` (made non-blocking) after each batch; None to stop it."""
        fresh = -1
        if fd is not None:
            fresh = os.dup(fd)
            os.set_blocking(fresh, False)
        with self._wake_lock:
            old, self._wake = self._wake, fresh
        if old >= 0:
            os.close(old)

    def _run(self) -> None:
        while True:
            try:
                batch = self._queue.get(timeout=SHORTEST_PAUSE if self.gap else self.segments.patience)
            except Empty:
                self._idle()
                continue
            if batch is None:
                break
            self._settle(batch)
            self.taken += batch.size
        if self.gap:
            self._store(self.gap.take())
        self.segments.close()
        self._ring()
        self.wake_by(None)

    def _idle(self) -> None:
        self.segments.rest()
        if self.gap and not self.segments.blocked:
            self._store(self.gap.take())

    def _settle(self, batch: WriteBatch) -> None:
        """Write a batch, or count it."""
        pieces = batch.pieces
        if batch.holes:
            self._mark(pieces)
        if self._opaque:
            pieces = self._without_opaque(pieces)
        if self.segments.blocked:
            self._drop(pieces)
        else:
            self._store(self.gap.take() + pieces if self.gap else pieces)

    def _store(self, pieces: list[bytes]) -> None:
        done = self.segments.write(pieces)
        if done:
            self._ring()
        if done < len(pieces):
            self._drop(pieces[done:])

    def _drop(self, pieces: list[bytes]) -> None:
        self.gap.add(pieces)
        self.lost_reason = self.segments.reason
        for index in range(0, len(pieces), 3):
            kind, _, connection, _ = unpack_head(pieces[index + 1])
            if kind in PAYLOAD_KINDS:
                self._opaque.setdefault(connection, [0, 0])
            elif kind == ChunkKind.CLOSED:
                self._opaque.pop(connection, None)

    def _mark(self, pieces: list[bytes]) -> None:
        for head in pieces[1::3]:
            kind, _, connection, _ = unpack_head(head)
            if kind == ChunkKind.LOST:
                self._opaque.setdefault(connection, [0, 0])

    def _without_opaque(self, pieces: list[bytes]) -> list[bytes]:
        """The batch without payload of opaque connections. What they lost meanwhile is told before they close."""
        kept: list[bytes] = []
        for index in range(0, len(pieces), 3):
            kind, direction, connection, at = unpack_head(pieces[index + 1])
            if kind in PAYLOAD_KINDS and connection in self._opaque:
                count = len(pieces[index + 2]) if kind != ChunkKind.EDIT else 0
                self._opaque[connection][direction] += count
                self.late += count
                continue
            if kind == ChunkKind.CLOSED:
                kept += self._told(connection, at)
            elif kind == ChunkKind.END:
                for number in list(self._opaque):
                    kept += self._told(number, at)
            kept += pieces[index : index + 3]
        return kept

    def _told(self, connection: int, at: int) -> list[bytes]:
        pieces: list[bytes] = []
        for direction, count in enumerate(self._opaque.pop(connection, ())):
            if count:
                pieces += lost_record(direction, connection, at, count)
        return pieces

    def _ring(self) -> None:
        with self._wake_lock:
            if self._wake >= 0:
                try:
                    os.write(self._wake, b"\0")
                except OSError:  # full: the reader is awake; broken: it is gone, and the journal is the queue
                    return
