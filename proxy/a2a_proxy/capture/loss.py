"""What could not be written: payload is counted and forgotten, the story around it is kept.

A connection that lost bytes is opaque from there, but that it opened, lost so much, and closed is still told once
there is room again. Knows records, not files.
"""

from __future__ import annotations

import msgspec

from a2a_proxy.capture.record_format import pack_record, unpack_head
from a2a_proxy.model.chunk import ChunkKind

PAYLOAD_KINDS = frozenset({int(ChunkKind.DATA), int(ChunkKind.OURS), int(ChunkKind.EDIT)})
"""Kinds whose data is dropped where there is no room. All others are small and are kept."""

MAX_ENTRIES = 50_000
"""Records kept while nothing can be written (some 10 MB); connections that open beyond it are only counted."""

_OPEN, _CLOSED, _LOST = int(ChunkKind.OPEN), int(ChunkKind.CLOSED), int(ChunkKind.LOST)


class LossRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """`data` of a LOST record."""

    bytes: int
    """Bytes missing in this direction of the connection. On connection 0: of connections that are not told of at all,
    for too many opened while nothing could be written."""
    damage: str = ""
    """Only on connection 0, made by the reader: records could not be read here, so that every connection open at this
    point is opaque from it."""


def make_lost_record(direction: int, connection: int, at: int, count: int) -> list[bytes]:
    """A LOST record as pieces."""
    return list(pack_record(_LOST, direction, connection, at, msgspec.json.encode(LossRecord(count))))


class _Hole(msgspec.Struct):
    direction: int
    connection: int
    at: int
    count: int = 0


class LossBuffer:
    """Records waiting for room, in order, each run of dropped payload shrunk to one count."""

    def __init__(self) -> None:
        self.lost_bytes = 0
        """Bytes of DATA and OURS dropped here since the beginning."""
        self._entries: list[list[bytes] | _Hole] = []
        self._holes: dict[tuple[int, int], _Hole] = {}
        self._dropped_connections: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, pieces: list[bytes]) -> None:
        """Take records (three pieces each) that were not written."""
        for index in range(0, len(pieces), 3):
            kind, direction, connection, at = unpack_head(pieces[index + 1])
            data = pieces[index + 2]
            if kind in PAYLOAD_KINDS:
                count = len(data) if kind != ChunkKind.EDIT else 0
                self.lost_bytes += count
                self._add_loss(direction, connection, at, count)
            elif kind == _LOST:
                self._add_loss(direction, connection, at, msgspec.json.decode(data, type=LossRecord).bytes)
            elif kind == _OPEN and len(self._entries) >= MAX_ENTRIES:
                self._dropped_connections.add(connection)
            elif connection not in self._dropped_connections:
                self._entries.append(pieces[index : index + 3])
            elif kind == _CLOSED:
                self._dropped_connections.discard(connection)

    def _add_loss(self, direction: int, connection: int, at: int, count: int) -> None:
        key = (0, 0) if connection in self._dropped_connections else (connection, direction)
        hole = self._holes.get(key)
        if hole is None:
            hole = self._holes[key] = _Hole(key[1], key[0], at)
            self._entries.append(hole)
        hole.count += count

    def take(self) -> list[bytes]:
        """The waiting records as pieces, with a LOST record at the place of each hole. The gap is empty after it."""
        pieces: list[bytes] = []
        for entry in self._entries:
            pieces += (
                make_lost_record(entry.direction, entry.connection, entry.at, entry.count)
                if isinstance(entry, _Hole)
                else entry
            )
        self._entries, self._holes = [], {}
        return pieces
