"""Journals for tests: an event loop that the test advances, and a disk that fails on demand."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from a2a_proxy.capture.journal_reader import JournalReader
from a2a_proxy.capture.loss import LossRecord
from a2a_proxy.model.wire import Chunk, ChunkKind


class Turns:
    """Replaces the event loop's `call_later`."""

    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []

    def __call__(self, seconds: float, callback: Callable[[], None]) -> None:
        self.due.append(callback)

    def turn(self) -> None:
        """Run the callbacks that are due."""
        due, self.due = self.due, []
        for callback in due:
            callback()


class Disk:
    """An `os.write` that can be full or blocked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._room: int | None = None
        self.most: int | None = None
        """Bytes taken by one write at most."""
        self.open = threading.Event()
        self.open.set()

    @property
    def room(self) -> int | None:
        """Bytes that still fit; None: no limit."""
        return self._room

    @room.setter
    def room(self, data: int | None) -> None:
        with self._lock:
            self._room = data

    def __call__(self, fd: int, data: bytes | memoryview) -> int:
        self.open.wait(120)
        most = self.most
        size = len(data) if most is None else min(len(data), most)
        with self._lock:  # the thread of the writer uses the space while the test frees some
            if self._room is not None:
                size = min(size, self._room)
                if size == 0:
                    raise OSError(errno.ENOSPC, "No space left on device")
                self._room -= size
        return os.write(fd, data[:size])


def read_all(folder: Path, max_bytes: int = 1 << 20) -> list[Chunk]:
    """Return the whole content of a journal."""
    reader = JournalReader(folder)
    chunks: list[Chunk] = []
    while more := reader.read(max_bytes):
        chunks += more
    reader.close()
    return chunks


def lost(chunks: list[Chunk]) -> int:
    """Return the number of bytes in LOST records."""
    return sum(
        msgspec.json.decode(chunk.data, type=LossRecord).bytes
        for chunk in chunks
        if chunk.kind is ChunkKind.LOST
    )


def payload(chunks: list[Chunk]) -> int:
    """Return the bytes of the peers and of the proxy."""
    return sum(
        len(chunk.data) for chunk in chunks if chunk.kind in (ChunkKind.DATA, ChunkKind.OURS)
    )
