"""The segment files of one journal, written side: begin, write, rotate, and know when there is no room.

Called by the writer thread only. Never raises for a full or broken disk: what could not be written is the caller's to
count.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from a2a_proxy.capture.record_format import SEGMENT, Position, segment_header, segment_numbers, segment_path

Write = Callable[[int, bytes | memoryview], int]

MEBI = 1024 * 1024
GIBI = 1024 * MEBI
LARGE = 32 * 1024
"""A piece of this size is written without being copied."""
SHORTEST_PAUSE, LONGEST_PAUSE = 0.25, 4.0
"""Seconds between attempts while nothing can be written; doubled each time."""


class JournalLimits(msgspec.Struct, frozen=True):
    """How much a journal may take."""

    segment_bytes: int = 64 * MEBI
    segment_seconds: float = 60.0
    """A segment ends when it has this many octets or is this old."""
    max_bytes: int = 4 * GIBI
    """Of segments not yet deleted, together."""
    keep_free: int | None = None
    """Octets of the disk that stay free; None: 1 GiB or 5 % of the disk, whichever is less."""
    queue_bytes: int = 64 * MEBI
    """Octets that may wait in memory for a slow disk."""


class JournalFiles:
    """Appends records to the current segment. Folder 0700, files 0600."""

    def __init__(
        self,
        folder: Path,
        limits: JournalLimits,
        *,
        write: Write = os.write,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises OSError where the first segment cannot be made."""
        self._folder = folder
        self._limits = limits
        self._write, self._now = write, now
        self._fd = -1
        self._torn = False
        self._pause, self._blocked_until = SHORTEST_PAUSE, 0.0
        self.position: Position = ((segment_numbers(folder) or [0])[-1], 0)
        """After the last whole record."""
        self.begun = 0
        """Segments begun."""
        self.reason = ""
        """Why the last write failed, or was not tried; empty where it did not fail."""
        self._on_disk = self._measure()
        self._begin()

    @property
    def blocked(self) -> bool:
        """Nothing could be written lately and it is too early to try again."""
        return self._now() < self._blocked_until

    @property
    def patience(self) -> float | None:
        """Seconds until the current segment must end, or may be tried to; None while it is empty."""
        due = max(self._opened + self._limits.segment_seconds, self._blocked_until)
        return None if self._empty else max(0.0, due - self._now())

    @property
    def _empty(self) -> bool:
        return not self._torn and self.position[1] <= SEGMENT.size

    def rest(self) -> None:
        """End the current segment where its time is over, so that it can be deleted though nothing more comes."""
        if self.patience == 0.0 and not self._rotate():
            self._wait()

    def write(self, pieces: list[bytes]) -> int:
        """Append records (three pieces each). Returns how many pieces lie whole in the journal."""
        self.reason = self._no_room(sum(map(len, pieces)))
        if self.reason:
            self._block()
            return 0
        done = self._write_some(pieces)
        if done < len(pieces) and self._rotate():  # a file may be at its limit where the disk is not
            done += self._write_some(pieces[done:])
        if done < len(pieces):
            self._block()
        else:
            self._pause, self.reason = SHORTEST_PAUSE, ""
        return done

    def _write_some(self, pieces: list[bytes]) -> int:
        if self._is_due() and not self._rotate():
            return 0
        written = 0
        for data in runs(pieces):
            count = self._write_to(self._fd, data)
            written += count
            if count < len(data):
                self._torn = True
                break
        number, offset = self.position
        done, octets = whole_records(pieces, written) if self._torn else (len(pieces), written)
        self.position = (number, offset + octets)
        self._on_disk += written
        return done

    def _write_to(self, fd: int, data: bytes) -> int:
        """Write all of it, in as many calls as it takes. Returns how much could be written."""
        view, written = memoryview(data), 0
        try:
            while written < len(data):
                written += self._write(fd, view[written:])
        except OSError as wrong:
            self.reason = self.reason or _words(wrong)
            return written
        return written

    def _is_due(self) -> bool:
        full = self.position[1] >= self._limits.segment_bytes or self.patience == 0.0
        return self._torn or full or not os.fstat(self._fd).st_nlink  # somebody has deleted it

    def _no_room(self, size: int) -> str:
        """Why so many octets may not be written; empty where they may."""
        limit = self._limits.max_bytes
        if self._on_disk + size > limit:
            self._on_disk = self._measure()
        if self._on_disk + size > limit:
            return f"it has reached its limit of {limit} octets"
        try:
            free = self._free()
        except OSError as wrong:
            return _words(wrong)
        return "" if free - size > 0 else "the disk is almost full"

    def _free(self) -> int:
        """Octets that may still be used. Raises OSError."""
        try:
            disk = os.statvfs(self._folder)
        except FileNotFoundError:
            self._make_folder()
            disk = os.statvfs(self._folder)
        keep = self._limits.keep_free
        if keep is None:
            keep = min(GIBI, disk.f_blocks * disk.f_frsize // 20)
        return disk.f_bavail * disk.f_frsize - keep

    def _measure(self) -> int:
        total = 0
        for number in segment_numbers(self._folder):
            try:
                total += segment_path(self._folder, number).stat().st_size
            except FileNotFoundError:  # the recorder has just deleted it
                continue
        return total

    def _block(self) -> None:
        if not self._empty:
            self._rotate()  # so that the reader can delete what it has read, which may be what makes room
        self._wait()

    def _wait(self) -> None:
        """Nothing can be written now: try again after a pause, each longer than the one before."""
        self._blocked_until = self._now() + self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE)

    def _make_folder(self) -> None:
        """Also in mid-session: somebody may have deleted it."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _rotate(self) -> bool:
        try:
            self._begin()
        except OSError as wrong:
            self.reason = self.reason or _words(wrong)
            return False
        return True

    def _begin(self) -> None:
        """The next segment appears under its name only when its header is whole."""
        self._make_folder()
        number, end = self.position
        header = segment_header(number + 1, end)
        fresh = self._folder / "next"
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            if self._write_to(fd, header) < len(header):
                raise OSError("no room for a header")
            fresh.rename(segment_path(self._folder, number + 1))
        except OSError:
            os.close(fd)
            fresh.unlink(missing_ok=True)
            raise
        self.close()
        self._fd, self._torn, self._opened = fd, False, self._now()
        self.position = (number + 1, len(header))
        self._on_disk += len(header)
        self.begun += 1

    def close(self) -> None:
        """Close the current file; what is written stays."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _words(wrong: OSError) -> str:
    return (wrong.strerror or str(wrong)).lower()


def runs(pieces: list[bytes]) -> Iterator[bytes]:
    """The same octets in few pieces: small ones joined, for a call costs more than a copy, large ones as they are."""
    if max(map(len, pieces), default=0) < LARGE:
        yield b"".join(pieces)
        return
    small: list[bytes] = []
    for piece in pieces:
        if len(piece) < LARGE:
            small.append(piece)
            continue
        yield b"".join(small)
        yield piece
        small = []
    yield b"".join(small)


def whole_records(pieces: list[bytes], written: int) -> tuple[int, int]:
    """How many pieces, and octets of them, belong to records that lie within the first `written` octets."""
    octets = 0
    for index in range(0, len(pieces), 3):
        size = sum(map(len, pieces[index : index + 3]))
        if octets + size > written:
            return index, octets
        octets += size
    return len(pieces), octets
