"""The journal's format: packs and unpacks records and file headers. Uses neither files nor threads.

A journal is a folder of journal files (segments in the code) `000001.a2aj`, `000002.a2aj`, ...
Bytes once written are never changed: if a write fails in the middle of a record, the writer begins
a new file, whose header holds the end of the last whole record in the previous one.
"""

import struct
from pathlib import Path
from zlib import crc32

import msgspec

from a2a_proxy.model.wire import Chunk, ChunkKind, Direction

RECORD_HEADER = struct.Struct("<IIBBHIQ")
"""Payload length, CRC-32 of everything after it, kind, direction, flags (0), connection, time in
ns; then payload."""

SEGMENT_HEADER = struct.Struct("<8sIIQ")
"""Magic, version, number of the journal file, offset at which the records of the previous file
end."""

MAGIC = b"A2AJRNL\n"
VERSION = 1
MAX_PAYLOAD = 64 * 1024 * 1024
"""A length above this is damage, because the relay reads at most 256 KiB at a time."""

Position = tuple[int, int]
"""Number of the journal file (from 1) and offset in it at which the next record begins."""

START_POSITION: Position = (1, 0)

_pack_front = struct.Struct("<II").pack
_pack_head = struct.Struct("<BBHIQ").pack
_KINDS: tuple[ChunkKind | None, ...] = (None, *ChunkKind)
_DIRECTIONS = tuple(Direction)

Record = tuple[bytes, bytes]
"""Header and payload: two pieces, so that the payload is not copied."""


def pack_record(kind: int, direction: int, connection: int, at: int, data: bytes) -> Record:
    """Return one record as its two pieces."""
    head = _pack_head(kind, direction, 0, connection, at)
    return _pack_front(len(data), crc32(data, crc32(head))) + head, data


def unpack_header(header: bytes) -> tuple[int, int, int, int]:
    """Return kind, direction, connection and time from the first piece of a record."""
    _, _, kind, direction, _, connection, at = RECORD_HEADER.unpack(header)
    return kind, direction, connection, at


class RecordScan(msgspec.Struct):
    """Records found in a buffer."""

    chunks: list[Chunk]
    end: int
    """Offset after the last whole record."""
    needed_bytes: int = 0
    """Known number of bytes from `end` on that the next record needs; 0 if `damage` is set."""
    damage: str = ""
    """Why the bytes at `end` are not a record; empty if the buffer just ends in the middle of
    one."""


def scan_records(buffer: bytes, start: int = 0) -> RecordScan:
    """Read whole records from `start` on. An incomplete last record is not an error, because more
    bytes may follow."""
    chunks: list[Chunk] = []
    add, unpack, view, size, header = (
        chunks.append,
        RECORD_HEADER.unpack_from,
        memoryview(buffer),
        len(buffer),
        RECORD_HEADER.size,
    )
    at = start
    while size - at >= header:
        length, check, kind, direction, _, connection, time = unpack(buffer, at)
        end = at + header + length
        if length > MAX_PAYLOAD:
            return RecordScan(chunks, at, damage=f"a length of {length} bytes")
        if end > size:
            return RecordScan(chunks, at, needed_bytes=end - at)
        if crc32(view[at + 8 : end]) != check:
            return RecordScan(chunks, at, damage="a wrong checksum")
        if not 0 < kind < len(_KINDS) or direction > 1:
            return RecordScan(chunks, at, damage=f"an unknown kind {kind} or direction {direction}")
        known = _KINDS[kind]
        assert known is not None
        add(Chunk(connection, known, _DIRECTIONS[direction], time, buffer[at + header : end]))
        at = end
    return RecordScan(chunks, at, needed_bytes=header)


def segment_header(number: int, previous_end: int) -> bytes:
    """Return the header of a journal file. `previous_end` is 0 for the first file."""
    return SEGMENT_HEADER.pack(MAGIC, VERSION, number, previous_end)


def previous_segment_end(header: bytes) -> int | None:
    """Return the end of the previous file's records, or None if `header` is not that of a journal
    file of this version."""
    if len(header) < SEGMENT_HEADER.size:
        return None
    magic, version, _, end = SEGMENT_HEADER.unpack_from(header)
    return int(end) if magic == MAGIC and version == VERSION else None


def segment_path(folder: Path, number: int) -> Path:
    """Return the path of a journal file."""
    return folder / f"{number:06d}.a2aj"


def segment_numbers(folder: Path) -> list[int]:
    """Return the numbers of the existing journal files, in order."""
    try:
        return sorted(
            int(path.stem)
            for path in folder.iterdir()
            if path.suffix == ".a2aj" and path.stem.isdigit()
        )
    except FileNotFoundError:  # a recorder deletes its journal when it has finished
        return []


def bytes_after(folder: Path, position: Position) -> int:
    """Return the number of journal bytes after this position."""
    segment, offset = position
    sizes = {
        number: _measure_file(segment_path(folder, number))
        for number in segment_numbers(folder)
        if number >= segment
    }
    return max(sum(sizes.values()) - (offset if segment in sizes else 0), 0)


def _measure_file(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # deleted, because its records are in the recording
