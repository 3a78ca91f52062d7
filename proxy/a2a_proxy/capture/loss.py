"""Accounting of records that could not be written: payload is counted and dropped, all other
records are kept.

A connection that lost bytes is opaque from there, but its opening, the number of lost bytes and its
closing are still written once there is space again. Works on records, not on files.
"""

import msgspec

from a2a_proxy.capture.record_format import pack_record, unpack_header
from a2a_proxy.model.wire import ChunkKind

PAYLOAD_KINDS = frozenset({int(ChunkKind.DATA), int(ChunkKind.OURS), int(ChunkKind.EDIT)})
"""Kinds whose data is dropped if there is no space. All others are small and are kept."""

MAX_ENTRIES = 50_000
"""Records kept while nothing can be written (about 10 MB); connections that open beyond it are only
counted."""

_OPEN, _CLOSED, _LOST = int(ChunkKind.OPEN), int(ChunkKind.CLOSED), int(ChunkKind.LOST)


class LossRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """`data` of a LOST record."""

    bytes: int
    """Bytes missing in this direction of the connection. On connection 0: bytes of connections
    without any record, because too many opened while nothing could be written."""
    damage: str = ""
    """Set by the reader, on connection 0 only: records could not be read here, so every connection
    open at this point is opaque from here."""
    reason: str = ""
    """Why they could not be written; empty if the disk was too slow."""


def make_lost_record(
    direction: int, connection: int, at: int, count: int, reason: str = ""
) -> list[bytes]:
    """Return a LOST record as pieces; `reason` as in `LossRecord`."""
    return list(
        pack_record(
            _LOST, direction, connection, at, msgspec.json.encode(LossRecord(count, reason=reason))
        )
    )


class _Hole(msgspec.Struct):
    direction: int
    connection: int
    at: int
    reason: str
    count: int = 0


class LossBuffer:
    """Records waiting for space, in order, with each run of dropped payload reduced to one
    count."""

    def __init__(self) -> None:
        self.lost_bytes = 0
        """Bytes of DATA and OURS dropped here so far."""
        self._entries: list[list[bytes] | _Hole] = []
        self._holes: dict[tuple[int, int], _Hole] = {}
        self._dropped_connections: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, pieces: list[bytes], reason: str) -> None:
        """Add records (two pieces each) that were not written, for a `reason` as in
        `LossRecord`."""
        for index in range(0, len(pieces), 2):
            kind, direction, connection, at = unpack_header(pieces[index])
            data = pieces[index + 1]
            if kind in PAYLOAD_KINDS:
                count = len(data) if kind != ChunkKind.EDIT else 0
                self.lost_bytes += count
                self._add_loss(direction, connection, at, count, reason)
            elif kind == _LOST:
                record = msgspec.json.decode(data, type=LossRecord)
                self._add_loss(direction, connection, at, record.bytes, record.reason)
            elif kind == _OPEN and len(self._entries) >= MAX_ENTRIES:
                self._dropped_connections.add(connection)
            elif connection not in self._dropped_connections:
                self._entries.append(pieces[index : index + 2])
            elif kind == _CLOSED:
                self._dropped_connections.discard(connection)

    def _add_loss(self, direction: int, connection: int, at: int, count: int, reason: str) -> None:
        key = (0, 0) if connection in self._dropped_connections else (connection, direction)
        hole = self._holes.get(key)
        if hole is None:
            hole = self._holes[key] = _Hole(key[1], key[0], at, reason)
            self._entries.append(hole)
        hole.count += count

    def take_pieces(self) -> list[bytes]:
        """Return the waiting records as pieces, with a LOST record in place of each run of dropped
        payload, and empty it."""
        pieces: list[bytes] = []
        for entry in self._entries:
            pieces += (
                make_lost_record(
                    entry.direction, entry.connection, entry.at, entry.count, entry.reason
                )
                if isinstance(entry, _Hole)
                else entry
            )
        self._entries, self._holes = [], {}
        return pieces
