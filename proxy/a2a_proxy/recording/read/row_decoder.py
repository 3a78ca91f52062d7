"""Conversion of rows to values: the inverse of `frame_writer` and `state_writer`. Runs only
look-ups by row number.

Every method raises RecordingError if the row is not valid, or if a row that it refers to does not
exist.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, get_origin

import msgspec

from a2a_proxy.model.fields import Encoding
from a2a_proxy.model.values import (
    ArtifactState,
    Connection,
    EventKind,
    Exchange,
    Finding,
    Frame,
    FrameKind,
    Handoff,
    Interruption,
    MissedGenerations,
    MissedReason,
    Segment,
    Task,
)
from a2a_proxy.model.wire import Direction
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.rows import (
    ConnectionRow,
    ExchangeRow,
    FindingRow,
    FrameRow,
    HandoffRow,
    InterruptionRow,
    SegmentRow,
    SessionFacts,
    SessionRow,
    TaskRow,
    split_key,
)
from a2a_proxy.recording.store.codec import unpack_headers, unpack_ident, unpack_int, unpack_text
from a2a_proxy.recording.store.columns import stored_fields
from a2a_proxy.recording.store.payloads import Payloads
from a2a_proxy.recording.store.row_types import (
    DAMAGED_HINT,
    ROW_ERRORS,
    Row,
    absolute_time,
    check_row,
    check_time,
    declared_types,
    json_reader,
)
from a2a_proxy.recording.store.schema import LIVE_PAYLOADS
from a2a_proxy.recording.store.value_rows import row_unpacker
from a2a_proxy.recording.write.frame_writer import Extra

_MAX_CACHED_VALUES = 65_536
_SESSION_LISTS = tuple(
    field.name for field in msgspec.structs.fields(SessionFacts) if get_origin(field.type) is tuple
)
"""Columns of `session` that hold lists of texts."""
_Keyed = TypeVar("_Keyed", ConnectionRow, SegmentRow, InterruptionRow, HandoffRow)
_DIRECTIONS = tuple(Direction)
_IDENT_PLACES = [
    place for place, field in enumerate(stored_fields(Exchange)) if field.encoding is Encoding.IDENT
]
"""Columns of `exchange` that hold identifiers."""
_extra_decoder = msgspec.json.Decoder(Extra)
_decode_texts = json_reader(tuple[str, ...])
_decode_pairs = json_reader(tuple[tuple[int, int], ...])
_decode_runs = json_reader(
    tuple[tuple[int, int, int, int, int | None, int, int, MissedReason, int], ...]
)


class InternLookup:
    """Cached values of an interned table by row number."""

    def __init__(self, db: sqlite3.Connection, table: str, unpack: Callable[[Any], Any]) -> None:
        self._db = db
        self._find = f"SELECT id, value FROM {table} WHERE id = ?"
        self._unpack = unpack
        self._cache: dict[int, Any] = {0: ""}

    def learn(self, numbers: set[int]) -> None:
        """Read these values at once: one by one takes three times as long."""
        find = self._find.replace("= ?", "IN (SELECT value FROM json_each(?))")
        missing = json.dumps([number for number in numbers if number not in self._cache])
        if len(self._cache) > _MAX_CACHED_VALUES:
            self._cache = {0: ""}
        for number, value in self._db.execute(find, (missing,)):
            self._cache[number] = self._unpack(value)

    def __getitem__(self, number: int) -> Any:
        """Return the value. A negative number is the value itself (see `pack_decimal`)."""
        value = self._cache.get(number)
        if value is None:
            if number < 0:
                return str(-1 - number)
            if len(self._cache) > _MAX_CACHED_VALUES:
                self._cache = {0: ""}
            row = self._db.execute(self._find, (number,)).fetchone()
            value = self._cache[number] = self._unpack(row[1] if row else None)
        return value


class FrameShape(msgspec.Struct, frozen=True, gc=False):
    """A decoded row of `shape`."""

    direction: Direction
    kind: FrameKind
    event: EventKind
    state: int
    flags: int
    schema: str
    framing: str
    note: str
    error: int
    redacted: tuple[str, ...]


class RowDecoder:
    """Builds values from rows. One instance per connection to the file."""

    def __init__(self, db: sqlite3.Connection, payloads: Payloads) -> None:
        self._db = db
        self._payloads = payloads
        self._words = InternLookup(db, "text", unpack_text)
        self._idents = InternLookup(db, "ident", unpack_ident)
        self._shapes: dict[int, FrameShape] = {}
        self._started: dict[int, int] = {}
        texts = (self._words, self._idents)
        self._exchanges = row_unpacker(Exchange, *texts)
        self._tasks = row_unpacker(Task, *texts, states=_unpack_states, missed=_unpack_missed)
        self._artifacts = row_unpacker(ArtifactState, *texts)
        self._findings = row_unpacker(Finding, *texts)
        self.decode_connection = self._keyed_decoder(Connection, ConnectionRow)
        self.decode_segment = self._keyed_decoder(Segment, SegmentRow)
        self.decode_interruption = self._keyed_decoder(Interruption, InterruptionRow)
        self.decode_handoff = self._keyed_decoder(Handoff, HandoffRow)

    @check_row("session")
    def decode_session(self, row: Row) -> SessionRow:
        """Build a value from a row of `session`."""
        columns = dict(zip(declared_types()["session"], row, strict=True))
        start = self._started[columns["id"]] = check_time(columns["started"])
        for name in _SESSION_LISTS:
            columns[name] = _decode_texts(columns[name])
        columns["ended"] = absolute_time(start, columns["ended"])
        if columns["segment"] is None:
            columns["position"] = None
        else:
            columns["position"] = (columns["segment"], columns["position"])
        return msgspec.convert({**columns, "facts": columns}, SessionRow)

    @check_row("frame")
    def decode_frame(self, row: Row, *, payload: bool = True, ids: bool = True) -> FrameRow:
        """Build a value from a row of `frame`, with or without its payload; without `ids` also
        without ids other than that of the artifact, each of which is read by itself."""
        (
            number,
            session,
            exchange,
            connection,
            seq,
            shape_id,
            at,
            took,
            start,
            span,
            block,
            offset,
            size,
            *rest,
        ) = row
        task, context, message, artifact, generation, rpc, extra = rest
        shape = self._shapes.get(shape_id) or self._load_shape(shape_id)
        idents, flags = self._idents, shape.flags
        if not ids:
            task = context = rpc = 0
            message = ""
        at = absolute_time(self._session_start(session), at)
        pieces = bool(flags & 32)
        data = b""
        if payload or message.__class__ is int:
            data = self._payloads.read(block, offset, size)
        if payload and pieces:
            data = self._payloads.read_whole(number, data)
        more = _extra_decoder.decode(extra) if extra else None
        length = (
            self._payload_length(number, size or 0, data, pieces, payload)
            if more is None or more.size < 0
            else more.size
        )
        frame = Frame(
            connection,
            exchange,
            seq,
            shape.direction,
            shape.kind,
            absolute_time(at, -took),
            at,
            start,
            start + span,
            data if payload else b"",
            length,
            bytes.fromhex(more.sha256) if more else b"",
            bool(flags & 8),
            shape.schema,
            shape.framing,
            shape.event,
            idents[task],
            idents[task + context],
            data[message : message + 36].decode()
            if message.__class__ is int
            else unpack_ident(message),
            idents[artifact],
            shape.state,
            unpack_int(generation),
            bool(flags & 1),
            bool(flags & 2),
            bool(flags & 4),
            shape.error,
            idents[rpc],
            shape.note,
            bool(flags & 16),
            shape.redacted,
        )
        return FrameRow(number, session, frame, block or 0, offset or 0, size or 0, pieces)

    def learn_idents(self, rows: list[Row]) -> None:
        """Read the identifiers in these rows of `exchange` at once."""
        with suppress(*ROW_ERRORS):  # the row that is not valid is reported when it is decoded
            self._idents.learn({row[place] for row in rows for place in _IDENT_PLACES})

    @check_row("exchange")
    def decode_exchange(self, row: Row, *, headers: bool = True) -> ExchangeRow:
        """Build a value from a row of `exchange`. Its headers and trailers take three times as long
        as the rest."""
        *columns, flags, block, offset, size = row
        session = split_key(row[0])[0]
        heads = (
            unpack_headers(self._payloads.read(block, offset, size))
            if block and headers
            else ((), (), ())
        )
        value = self._exchanges(
            columns,
            self._session_start(session),
            request_headers=heads[0],
            response_headers=heads[1],
            trailers=heads[2],
            streaming=bool(flags & 1),
            ours=bool(flags & 2),
            live_payload=LIVE_PAYLOADS[flags >> 2 & 3],
        )
        return ExchangeRow(row[0], session, value)

    @check_row("task")
    def decode_task(self, row: Row, artifacts: list[Row]) -> TaskRow:
        """Build a value from a row of `task` with its rows of `artifact` in order."""
        number, session, *columns = row
        start = self._session_start(session)
        made = tuple(self._make_artifact(artifact, start) for artifact in artifacts)
        return TaskRow(number, session, self._tasks(columns, start, artifacts=made))

    @check_row("finding")
    def decode_finding(self, row: Row) -> FindingRow:
        """Build a value from a row of `finding`."""
        number, session, *columns = row
        value = self._findings(columns, self._session_start(session))
        return FindingRow(number, session, value)

    @check_row("artifact")
    def _make_artifact(self, row: Row, start: int) -> ArtifactState:
        return self._artifacts(row[2:], start)

    def _keyed_decoder(
        self, kind: type[msgspec.Struct], make: Callable[[int, int, Any], _Keyed]
    ) -> Callable[[Row], _Keyed]:
        """Return a function that builds values of a kind whose key holds its session."""
        unpack = row_unpacker(kind, self._words, self._idents)

        @check_row(kind.__name__.lower())
        def decode(self: RowDecoder, row: Row) -> _Keyed:
            session = split_key(row[0])[0]
            return make(row[0], session, unpack(row, self._session_start(session)))

        return partial(decode, self)

    def _payload_length(
        self, number: int, size: int, data: bytes, pieces: bool, loaded: bool
    ) -> int:
        """Return the length of the stored payload in bytes."""
        if not pieces:
            return size
        if loaded:
            return len(data)
        find = "SELECT sum(blob.size) FROM piece JOIN blob ON blob.id = piece.blob WHERE frame = ?"
        return size + int(self._db.execute(find, (number,)).fetchone()[0] or 0)

    def _load_shape(self, number: int) -> FrameShape:
        row = self._db.execute("SELECT * FROM shape WHERE id = ?", (number,)).fetchone()
        _, direction, kind, event, state, flags, schema, framing, note, error, redacted = row
        word = self._words
        if len(self._shapes) > _MAX_CACHED_VALUES:
            self._shapes = {}
        shape = self._shapes[number] = FrameShape(
            _DIRECTIONS[direction],
            FrameKind(kind),
            EventKind(event),
            unpack_int(state),
            flags,
            word[schema],
            word[framing],
            word[note],
            unpack_int(error),
            _decode_texts(word[redacted]),
        )
        return shape

    def _session_start(self, session: int) -> int:
        """Return the start of a session, in ns since the epoch."""
        start = self._started.get(session)
        if start is None:
            row = self._db.execute(
                "SELECT started FROM session WHERE id = ?", (session,)
            ).fetchone()
            if row is None or not isinstance(row[0], int):
                raise RecordingError(f"session {session} of the recording is missing", DAMAGED_HINT)
            start = self._started[session] = check_time(row[0])
        return start


def _unpack_states(text: str, start: int) -> tuple[tuple[int, int], ...]:
    return tuple((absolute_time(start, at), entered) for at, entered in _decode_pairs(text))


def _unpack_missed(text: str, start: int) -> tuple[MissedGenerations, ...]:
    return tuple(_make_missed(run, start) for run in _decode_runs(text))


def _make_missed(run: tuple[Any, ...], start: int) -> MissedGenerations:
    first, last, at, exchange, healed, *rest = run
    return MissedGenerations(
        first, last, absolute_time(start, at), exchange, absolute_time(start, healed), *rest
    )
