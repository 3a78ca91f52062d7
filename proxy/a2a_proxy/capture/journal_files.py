"""The journal files, on the writing side: creates, writes and rotates them, and detects a full
disk.

Called by the writer thread only. Never raises because of a full or broken disk: the caller counts
bytes that could not be written.
"""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from a2a_proxy.capture.record_format import (
    SEGMENT_HEADER,
    Position,
    segment_header,
    segment_numbers,
    segment_path,
)
from a2a_proxy.private_files import make_private_folder

Write = Callable[[int, bytes | memoryview], int]

MEBI = 1024 * 1024
GIBI = 1024 * MEBI
UNCOPIED_BYTES = 32 * 1024
"""A piece of at least this size is written without being copied."""
SMALL_MEAN = 1024
"""Pieces that have at most this many bytes on average are all joined."""
MIN_RETRY_SECONDS, MAX_RETRY_SECONDS = 0.25, 4.0
"""Minimum and maximum seconds between attempts while nothing can be written; doubled each time."""


class JournalLimits(msgspec.Struct, frozen=True):
    """Limits of the space that a journal uses."""

    segment_bytes: int = 64 * MEBI
    segment_seconds: float = 60.0
    """A journal file ends when it has this many bytes or is this old (seconds)."""
    max_bytes: int = 4 * GIBI
    """Total size of the journal files not yet deleted."""
    keep_free: int | None = None
    """Bytes of the disk that stay free; None: 1 GiB or 5 % of the disk, whichever is less."""
    queue_bytes: int = 64 * MEBI
    """Bytes that may wait in memory for a slow disk."""


class JournalFiles:
    """Appends records to the current journal file. Folder 0700, files 0600."""

    def __init__(
        self,
        folder: Path,
        limits: JournalLimits,
        *,
        write: Write = os.write,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create the first journal file. Raises OSError if it cannot be created."""
        self._folder = folder
        self._limits = limits
        self._write, self._now = write, now
        self._fd = -1
        self._has_torn_record = False
        self._retry_seconds, self._blocked_until = MIN_RETRY_SECONDS, 0.0
        self.position: Position = ((segment_numbers(folder) or [0])[-1], 0)
        """Position after the last whole record."""
        self.segment_count = 0
        """Number of journal files begun."""
        self.reason = ""
        """Why the last write failed or was not tried; empty if it succeeded."""
        self._bytes_on_disk = self._measure_folder()
        self._begin_segment()

    @property
    def is_blocked(self) -> bool:
        """Whether a write failed recently and it is too early to try again."""
        return self._now() < self._blocked_until

    @property
    def seconds_until_rotation(self) -> float | None:
        """Seconds until the current file must end, or until the next attempt; None while it is
        empty."""
        due = max(self._opened_at + self._limits.segment_seconds, self._blocked_until)
        return None if self._is_empty else max(0.0, due - self._now())

    @property
    def _is_empty(self) -> bool:
        return not self._has_torn_record and self.position[1] <= SEGMENT_HEADER.size

    def rotate_if_due(self) -> None:
        """End the current file if it is old enough, so that it can be deleted even if no more
        records follow."""
        if self.seconds_until_rotation == 0.0 and not self._rotate_file():
            self._delay_retry()

    def write(self, pieces: list[bytes]) -> int:
        """Append records (two pieces each). Return the number of pieces that are whole in the
        journal."""
        size = sum(map(len, pieces))
        self.reason = self._full_reason(size)
        if self.reason:
            self._pause_writing()
            return 0
        done = self._append_pieces(pieces, size)
        if (
            done < len(pieces) and self._rotate_file()
        ):  # the file may be at its size limit while the disk has room
            rest = pieces[done:]
            done += self._append_pieces(rest, sum(map(len, rest)))
        if done < len(pieces):
            self._pause_writing()
        else:
            self._retry_seconds, self.reason = MIN_RETRY_SECONDS, ""
        return done

    def _append_pieces(self, pieces: list[bytes], size: int) -> int:
        if self._needs_rotation() and not self._rotate_file():
            return 0
        written = 0
        for data in join_small_pieces(pieces, size):
            count = self._write_all(self._fd, data)
            written += count
            if count < len(data):
                self._has_torn_record = True
                break
        number, offset = self.position
        done, byte_count = (
            count_whole_records(pieces, written)
            if self._has_torn_record
            else (len(pieces), written)
        )
        self.position = (number, offset + byte_count)
        self._bytes_on_disk += written
        return done

    def _write_all(self, fd: int, data: bytes) -> int:
        """Write `data` in as many calls as needed. Return the number of bytes written."""
        view, written = memoryview(data), 0
        try:
            while written < len(data):
                written += self._write(fd, view[written:])
        except OSError as wrong:
            self.reason = self.reason or _describe_error(wrong)
            return written
        return written

    def _needs_rotation(self) -> bool:
        full = self.position[1] >= self._limits.segment_bytes or self.seconds_until_rotation == 0.0
        return (
            self._has_torn_record or full or not os.fstat(self._fd).st_nlink
        )  # the last: the file was deleted

    def _full_reason(self, size: int) -> str:
        """Return why `size` bytes must not be written, or an empty string if they may."""
        limit = self._limits.max_bytes
        if self._bytes_on_disk + size > limit:
            self._bytes_on_disk = self._measure_folder()
        if self._bytes_on_disk + size > limit:
            return f"it has reached its limit of {limit} bytes"
        try:
            free = self._free_bytes()
        except OSError as wrong:
            return _describe_error(wrong)
        return "" if free - size > 0 else "the disk is almost full"

    def _free_bytes(self) -> int:
        """Return the number of bytes that may still be used. Raises OSError."""
        try:
            disk = os.statvfs(self._folder)
        except FileNotFoundError:
            self._make_folder()
            disk = os.statvfs(self._folder)
        keep = self._limits.keep_free
        if keep is None:
            keep = min(GIBI, disk.f_blocks * disk.f_frsize // 20)
        return disk.f_bavail * disk.f_frsize - keep

    def _measure_folder(self) -> int:
        total = 0
        for number in segment_numbers(self._folder):
            try:
                total += segment_path(self._folder, number).stat().st_size
            except FileNotFoundError:  # the recorder has just deleted it
                continue
        return total

    def _pause_writing(self) -> None:
        if not self._is_empty:
            # so that the reader can delete files it has read, which may free the space needed
            self._rotate_file()
        self._delay_retry()

    def _delay_retry(self) -> None:
        """Schedule the next attempt after a pause that doubles each time."""
        self._blocked_until = self._now() + self._retry_seconds
        self._retry_seconds = min(self._retry_seconds * 2, MAX_RETRY_SECONDS)

    def _make_folder(self) -> None:
        """Create the folder, also in the middle of a session, because a user may have deleted
        it."""
        make_private_folder(self._folder)

    def _rotate_file(self) -> bool:
        try:
            self._begin_segment()
        except OSError as wrong:
            self.reason = self.reason or _describe_error(wrong)
            return False
        return True

    def _begin_segment(self) -> None:
        """Begin the next journal file. It appears under its name only once its header is
        complete."""
        self._make_folder()
        number, end = self.position
        header = segment_header(number + 1, end)
        fresh = self._folder / "next"
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            if self._write_all(fd, header) < len(header):
                raise OSError("no room for a header")
            fresh.rename(segment_path(self._folder, number + 1))
        except OSError:
            os.close(fd)
            fresh.unlink(missing_ok=True)
            raise
        self.close()
        self._fd, self._has_torn_record, self._opened_at = fd, False, self._now()
        self.position = (number + 1, len(header))
        self._bytes_on_disk += len(header)
        self.segment_count += 1

    def close(self) -> None:
        """Close the current file; written records stay."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _describe_error(wrong: OSError) -> str:
    return (wrong.strerror or str(wrong)).lower()


def join_small_pieces(pieces: list[bytes], size: int) -> Iterator[bytes]:
    """Yield the same bytes, `size` in all, in fewer pieces: small ones joined, because a call costs
    more than a copy; large ones as is, unless nearly all are small, because a look at the length of
    each costs more than a copy too."""
    if size <= len(pieces) * SMALL_MEAN:
        yield b"".join(pieces)
        return
    small: list[bytes] = []
    for piece in pieces:
        if len(piece) < UNCOPIED_BYTES:
            small.append(piece)
            continue
        yield b"".join(small)
        yield piece
        small = []
    yield b"".join(small)


def count_whole_records(pieces: list[bytes], written: int) -> tuple[int, int]:
    """Return how many pieces, and how many bytes, belong to records that lie within the first
    `written` bytes."""
    byte_count = 0
    for index in range(0, len(pieces), 2):
        size = len(pieces[index]) + len(pieces[index + 1])
        if byte_count + size > written:
            return index, byte_count
        byte_count += size
    return len(pieces), byte_count
