"""The recorder's side of the journal: reads records from a position on, while they are written or
long after.

Reads and deletes journal files; decodes nothing.
"""

import os
from pathlib import Path

import msgspec

from a2a_proxy.capture.loss import LossRecord
from a2a_proxy.capture.record_format import (
    SEGMENT_HEADER,
    START_POSITION,
    Position,
    previous_segment_end,
    scan_records,
    segment_numbers,
    segment_path,
)
from a2a_proxy.model.wire import Chunk, ChunkKind, Direction


class JournalReader:
    """Follows one journal. Never raises because of a journal file's content."""

    def __init__(self, folder: Path, position: Position = START_POSITION) -> None:
        """Start at `position`, where the next record begins: a former value of the property
        `position`."""
        self._folder = folder
        self._segment, self._offset = position
        self._fd = -1
        self._is_abandoned = False
        self._last_at = 0

    @property
    def position(self) -> Position:
        """Position after the last record returned."""
        return self._segment, self._offset

    @property
    def unread_bytes(self) -> int:
        """Number of bytes written and not yet read."""
        total = -self._offset
        for number in segment_numbers(self._folder):
            if number >= self._segment:
                total += _file_size(segment_path(self._folder, number))
        return max(0, total)

    def read(self, max_bytes: int = 1 << 20, until: Position | None = None) -> list[Chunk]:
        """Return the next records, about `max_bytes` bytes of them, all from one journal file.

        The list is empty if there are no more records now, or none before `until` (a former
        position of a reader).

        Records that cannot be read are replaced by one LOST on connection 0 (`LossRecord.damage`
        says why), and reading continues with the next journal file.
        """
        while True:
            if until is not None and self._segment >= until[0]:
                max_bytes = min(max_bytes, until[1] - self._offset)
                if self.position >= until or max_bytes <= 0:
                    return []
            chunks = self._open_segment()
            if chunks or self._fd < 0:
                return chunks
            ended = segment_path(
                self._folder, self._segment + 1
            ).exists()  # checked before the last read of this file
            chunks = [] if self._is_abandoned else self._read_chunks(max_bytes)
            if chunks or not ended:
                return chunks
            chunks = self._advance_segment()
            if chunks:
                return chunks

    def _read_chunks(self, max_bytes: int) -> list[Chunk]:
        size = max_bytes
        while True:
            buffer = os.pread(self._fd, size, self._offset)
            result = scan_records(buffer)
            if result.chunks or result.damage or len(buffer) < size or result.needed_bytes <= size:
                break
            size = result.needed_bytes
        self._offset += result.end
        if result.chunks:
            self._last_at = result.chunks[-1].at
        elif result.damage:
            return self._abandon_segment(result.damage)
        return result.chunks

    def _open_segment(self) -> list[Chunk]:
        """Open the journal file of the position. If it was deleted, continue with the next existing
        one."""
        if self._fd >= 0:
            return []
        path = segment_path(self._folder, self._segment)
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            later = [number for number in segment_numbers(self._folder) if number > self._segment]
            if not later:
                return []
            damage = self._damage_chunk("the segment is missing")
            self._segment, self._offset = later[0], 0
            return damage
        self._offset = max(self._offset, SEGMENT_HEADER.size)
        if previous_segment_end(os.pread(self._fd, SEGMENT_HEADER.size, 0)) is None:
            return self._abandon_segment("its header is not of this version")
        return []

    def _advance_segment(self) -> list[Chunk]:
        """Continue with the next journal file. Its header says where the current one should end."""
        following = segment_path(self._folder, self._segment + 1)
        end = previous_segment_end(_read_segment_header(following))
        if end is not None and self._offset < end and not self._is_abandoned:
            return self._abandon_segment(f"{end - self._offset} bytes are missing at its end")
        self.close()
        self._segment, self._offset, self._is_abandoned = self._segment + 1, 0, False
        return []

    def _abandon_segment(self, reason: str) -> list[Chunk]:
        self._is_abandoned = True
        return self._damage_chunk(reason)

    def _damage_chunk(self, reason: str) -> list[Chunk]:
        where = f"journal segment {self._segment}, offset {self._offset}: {reason}"
        data = msgspec.json.encode(LossRecord(0, damage=where))
        return [Chunk(0, ChunkKind.LOST, Direction.TO_AGENT, self._last_at, data)]

    def delete_before(self, segment: int) -> None:
        """Delete the journal files with lower numbers."""
        for number in segment_numbers(self._folder):
            if number < segment:
                segment_path(self._folder, number).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file. The reader can be used again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _read_segment_header(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(SEGMENT_HEADER.size)
    except FileNotFoundError:
        return b""
