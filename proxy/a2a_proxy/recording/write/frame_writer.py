"""Conversion of frames to rows: the hot path of the recorder."""

import sqlite3
from collections.abc import Sequence
from itertools import chain

import msgspec

from a2a_proxy.model.values import Frame
from a2a_proxy.recording.store.blocks import Address, Blobs, Blocks
from a2a_proxy.recording.store.codec import Column, pack_ident, pack_int
from a2a_proxy.recording.store.intern import Interner, ShapeInterner
from a2a_proxy.recording.store.long_runs import MIN_PIECE_BYTES, find_long_runs, remove_spans

_INSERT = f"INSERT INTO frame VALUES ({', '.join('?' * 19)}, NULL)"
_INSERT_EXTRA = f"INSERT INTO frame VALUES ({', '.join('?' * 20)})"
"""Used only for rows that have `extra`: binding a NULL costs as much as a quarter of a row."""
_NO_ADDRESS = (None, None, None)


class Extra(msgspec.Struct, omit_defaults=True):
    """The content of `frame.extra`, as JSON: fields that few frames have."""

    size: int = -1
    """Size of the complete payload in bytes, if the stored payload has another size."""
    sha256: str = ""
    """SHA-256 of the complete payload, hexadecimal."""


class FrameWriter:
    """Stores frames of one session. Use inside a write transaction."""

    def __init__(
        self,
        db: sqlite3.Connection,
        session: int,
        started: int,
        idents: Interner,
        shapes: ShapeInterner,
        blocks: Blocks,
    ) -> None:
        self._db = db
        self._session = session
        self._started = started
        self._idents = idents
        self._shapes = shapes
        self._blocks = blocks
        self._blobs = Blobs(db)

    def write(self, frames: Sequence[Frame]) -> None:
        """Store frames in this order."""
        if not frames:
            return
        self._learn_idents(frames)
        last = self._db.execute("SELECT coalesce(max(id), 0) FROM frame").fetchone()[0]
        self._db.executemany(_INSERT, self._frame_rows(frames, last))

    def _learn_idents(self, frames: Sequence[Frame]) -> None:
        """Give row numbers to the identifiers of these frames: first the tasks, each followed by
        its context (see `frame.context` in `schema`)."""
        known = self._idents.ids
        strange = [
            each
            for each in frames
            if each.task_id not in known
            or each.context_id not in known
            or each.artifact_id not in known
            or each.rpc_id not in known
        ]
        if not strange:
            return
        if self._idents.is_full:
            strange = list(frames)  # a new epoch keeps only the values that it is given
        idents = dict.fromkeys(
            chain.from_iterable([(each.task_id, each.context_id) for each in strange])
        )
        idents.update(dict.fromkeys([each.artifact_id for each in strange]))
        idents.update(dict.fromkeys([each.rpc_id for each in strange]))
        self._idents.learn_values(idents)

    def _frame_rows(self, frames: Sequence[Frame], last: int) -> list[tuple[Column, ...]]:
        """Return rows without `frame.extra`.

        A row that has `extra` is stored here, after the rows before it, because rows that are
        inserted out of order leave pages half empty.
        """
        ids, shapes = self._idents.ids, self._shapes
        known_shape = shapes.ids.get
        session, started, put = self._session, self._started, self._blocks.store_bytes
        rows: list[tuple[Column, ...]] = []
        for number, frame in enumerate(frames, last + 1):
            payload = frame.payload
            size = len(payload)
            pieces = size >= MIN_PIECE_BYTES
            block, offset, stored = (
                self._store_pieces(number, payload)
                if pieces
                else put(payload)
                if payload
                else _NO_ADDRESS
            )
            generation, at, start = frame.generation, frame.at, frame.start
            # The properties that a frame shares with others. Written out, because `attrgetter`
            # takes five times as long.
            shape = (
                frame.direction,
                frame.kind,
                frame.event,
                frame.state,
                frame.append,
                frame.last_chunk,
                frame.final,
                frame.truncated,
                frame.ours,
                frame.schema,
                frame.framing,
                frame.note,
                frame.error_code,
                frame.redacted,
                pieces,
            )
            row = (
                number,
                session,
                frame.exchange,
                frame.connection,
                frame.seq,
                known_shape(shape) or shapes.row_number(shape),
                at - started,
                at - frame.began,
                start,
                frame.end - start,
                block,  # not `*address`, which would build a list and convert it
                offset,
                stored,
                task := ids[frame.task_id],
                ids[frame.context_id] - task,
                _message_column(frame.message_id, payload) if frame.message_id else None,
                ids[frame.artifact_id],
                pack_int(generation) if generation else 0,
                ids[frame.rpc_id],
            )
            if frame.sha256 or frame.size != size:
                self._db.executemany(_INSERT, rows)
                self._db.execute(_INSERT_EXTRA, (*row, _encode_extra(frame)))
                rows.clear()
            else:
                rows.append(row)
        return rows

    def _store_pieces(self, number: int, payload: bytes) -> Address | tuple[None, None, None]:
        """Store a large payload as blobs. A small remainder goes to the block."""
        spans = find_long_runs(payload)
        rest = remove_spans(payload, spans) if spans else payload
        pieces: list[tuple[int | None, bytes]] = [
            (start, payload[start:end]) for start, end in spans
        ]
        address: Address | tuple[None, None, None] = _NO_ADDRESS
        if len(rest) >= MIN_PIECE_BYTES:
            pieces.append((None, rest))
        elif rest:
            address = self._blocks.store_bytes(rest)
        rows = [
            (number, position, at, self._blobs.store_bytes(data))
            for position, (at, data) in enumerate(pieces)
        ]
        self._db.executemany("INSERT INTO piece VALUES (?, ?, ?, ?)", rows)
        return address


def _message_column(ident: str, payload: bytes) -> Column:
    """Return the offset of a UUID in the payload, or the packed id.

    A new UUID in each frame would double the size of the row.
    """
    if len(ident) == 36 and len(payload) < MIN_PIECE_BYTES and ident.isascii():
        at = payload.find(ident.encode())
        if at >= 0:
            return at
    return pack_ident(ident)


def _encode_extra(frame: Frame) -> str:
    size = frame.size if frame.size != len(frame.payload) else -1
    return msgspec.json.encode(Extra(size=size, sha256=frame.sha256.hex())).decode()
