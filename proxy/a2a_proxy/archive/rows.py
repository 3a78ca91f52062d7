"""Conversion of frames, with their context, to rows of the table `frames`, and back without loss.

The members of a frame's line in a cassette become columns of the same names, so the words, the
defaults and their decoding are those of cassettes.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from a2a_proxy.archive.schema import (
    COMPRESSION,
    COMPRESSION_LEVEL,
    FRAME_COLUMNS,
    FRAMES_SCHEMA,
    ROW_GROUP_ROWS,
    column_value,
    is_column_value,
    trace_id_of,
)
from a2a_proxy.model.values import Exchange, Finding, Frame
from a2a_proxy.recording.cassette import json_objects
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import FrameRow, make_key

_SHARED_COLUMNS = {"t": "task_id", "c": "context_id"}
"""Columns that take the value of the call if the frame has none."""
_CALL_COLUMNS = (
    "binding",
    "dialect",
    "operation",
    "method",
    "target",
    "status",
    "streaming",
    "trace_id",
)
"""Columns that always take the value of the call."""
_COPIED_COLUMNS = (*_CALL_COLUMNS[:-2], *_SHARED_COLUMNS.values())
_MAX_CACHED = 4096
"""Number of calls that are cached while frames are read."""
_FRAME_FIELDS = {"kind": "frame", "time": "at", "byte_start": "start", "byte_end": "end"}
"""Columns whose member has another name in a cassette's line."""
_COLUMN_NAMES = [column.name for column in FRAME_COLUMNS]
_FRAME_COLUMNS = [
    (name, _FRAME_FIELDS.get(name, name))
    for name in _COLUMN_NAMES
    if _FRAME_FIELDS.get(name, name) in json_objects.MEMBER_NAMES["frame"]
]
"""Columns that hold a member of a frame's line, each with the name of the member."""
_FLAG_COLUMNS = [column.name for column in FRAME_COLUMNS if pa.types.is_boolean(column.type)]
_Columns = dict[str, list[Any]]

_Value = TypeVar("_Value")


class FrameContext(msgspec.Struct, frozen=True):
    """The values in a frame's row that do not come from the frame."""

    session: str
    call: dict[str, Any] = {}
    """Cells copied from its call; see `call_cells`."""
    agent: str | None = None
    findings: list[Finding] = []


def call_cells(call: Exchange) -> dict[str, Any]:
    """Return the cells that a call contributes to the rows of its frames."""
    cells = {name: column_value(getattr(call, name)) for name in _COPIED_COLUMNS}
    return {
        **cells,
        "streaming": call.streaming,
        "trace_id": trace_id_of(call.trace_context) or None,
    }


class FrameContexts:
    """Contexts of the frames of a recording. Frames of one call share the cells of the call."""

    def __init__(self, recording: Recording, calls: dict[int, Exchange] | None = None) -> None:
        """`calls`: the calls that have been read already, by key."""
        self._recording = recording
        self._calls = calls or {}
        self._sessions = {row.id: row.facts.uuid for row in recording.read_sessions()}
        self._contexts: dict[tuple[int, int, int], FrameContext] = {}
        """Contexts of frames without findings, by session, connection and call."""
        self._agents: dict[int, str | None] = {}
        self._findings: dict[int, dict[tuple[int, int], list[Finding]]] = {}

    def context_of(self, row: FrameRow) -> FrameContext:
        """Return the context of one frame. Raises RecordingError."""
        frame = row.frame
        where = row.session, frame.connection, frame.exchange
        plain = self._contexts.get(where) or _cache_value(
            self._contexts, where, self._make_context(*where)
        )
        found = (
            self._findings_of_session(row.session).get((frame.exchange, frame.seq))
            if frame.exchange
            else None
        )
        return msgspec.structs.replace(plain, findings=found) if found else plain

    def _make_context(self, session: int, connection: int, exchange: int) -> FrameContext:
        call = self._find_call(make_key(session, exchange)) if exchange else None
        agent = (
            column_value(call.agent)
            if call is not None
            else self._agent_of_connection(make_key(session, connection))
        )
        return FrameContext(
            self._sessions[session], call_cells(call) if call is not None else {}, agent
        )

    def _find_call(self, number: int) -> Exchange | None:
        if number in self._calls:
            return self._calls[number]
        row = self._recording.read_exchange(number, headers=False)
        return row.exchange if row is not None else None

    def _agent_of_connection(self, number: int) -> str | None:
        if number not in self._agents:
            row = self._recording.read_connection(number)
            return _cache_value(
                self._agents,
                number,
                column_value(row.connection.upstream) if row is not None else None,
            )
        return self._agents[number]

    def _findings_of_session(self, session: int) -> dict[tuple[int, int], list[Finding]]:
        if session not in self._findings:
            found = self._findings[session] = {}
            for row in self._recording.read_findings(session):
                if row.finding.seq >= 0:
                    found.setdefault((row.finding.exchange, row.finding.seq), []).append(
                        row.finding
                    )
        return self._findings[session]


def _cache_value(cache: dict[Any, _Value], name: Any, value: _Value) -> _Value:
    cache[name] = value
    if len(cache) > _MAX_CACHED:
        del cache[next(iter(cache))]
    return value


def frames_table(rows: Iterable[tuple[FrameRow, FrameContext]]) -> pa.Table:
    """Return the Arrow table of the frames, in their order.

    It is built column by column, which is several times as fast as row by row.
    """
    pairs = list(rows)
    frames, contexts = [row.frame for row, _ in pairs], [context for _, context in pairs]
    columns = _context_columns(contexts)
    columns |= _frame_columns(frames, columns)
    columns["frame"] = [row.id for row, _ in pairs]
    columns["sha256"] = [frame.sha256 or None for frame in frames]
    columns["payload"] = [frame.payload for frame in frames]
    for name in _FLAG_COLUMNS:
        columns[name] = list(map(bool, columns[name]))
    arrays = [pa.array(columns[field.name], field.type) for field in FRAMES_SCHEMA]
    return pa.Table.from_arrays(arrays, schema=FRAMES_SCHEMA)


def _context_columns(contexts: list[FrameContext]) -> _Columns:
    """Return the columns whose values do not come from the frames."""
    columns = {
        name: [context.call.get(name) for context in contexts]
        for name in (*_CALL_COLUMNS, *_SHARED_COLUMNS.values())
    }
    columns["session"] = [context.session for context in contexts]
    columns["agent"] = [context.agent for context in contexts]
    columns["findings"] = [
        list(map(_finding_cell, context.findings)) or None for context in contexts
    ]
    return columns


def _frame_columns(frames: list[Frame], context_columns: _Columns) -> _Columns:
    """Return the columns whose values come from the frames. Values that no column can hold go to
    the column `exact`."""
    members = json_objects.frame_members(frames)
    members["size"] = [frame.size for frame in frames]
    members["state"] = [None if state is None else str(state) for state in members["state"]]
    members["redacted"] = [frame.redacted or None for frame in frames]
    named = [
        [letter if cell is not None else "" for cell in members[_SHARED_COLUMNS[letter]]]
        for letter in _SHARED_COLUMNS
    ]
    for name in _SHARED_COLUMNS.values():
        both = zip(members[name], context_columns[name], strict=True)
        members[name] = [shared if own is None else own for own, shared in both]
    exact: dict[int, dict[str, Any]] = {}
    columns = {name: _valid_cells(name, members[member], exact) for name, member in _FRAME_COLUMNS}
    columns["named"] = ["".join(letters) or None for letters in zip(*named, strict=True)]
    columns["exact"] = [
        json.dumps(exact[place]) if place in exact else None for place in range(len(frames))
    ]
    return columns


def _valid_cells(name: str, cells: list[Any], exact: dict[int, dict[str, Any]]) -> list[Any]:
    """Return the cells with None for each cell that the column cannot hold; such cells are added to
    `exact` by row."""
    unfit = {cell for cell in set(cells) if not is_column_value(cell)}
    if not unfit:
        return cells
    for place, cell in enumerate(cells):
        if cell in unfit:
            exact.setdefault(place, {})[name] = cell
    return [None if cell in unfit else cell for cell in cells]


def _finding_cell(finding: Finding) -> dict[str, Any]:
    severity = finding.severity.name.lower()
    words = {"rule": finding.rule, "confidence": finding.confidence, "summary": finding.summary}
    return {"severity": severity} | {name: column_value(word) for name, word in words.items()}


def write_frames(recording: Recording, rows: Iterable[FrameRow], stream: BinaryIO) -> int:
    """Write frames with their payloads to one Parquet file and return their number.

    Raises:
        RecordingError: the recording cannot be read.
    """
    contexts, count = FrameContexts(recording), 0
    with pq.ParquetWriter(stream, FRAMES_SCHEMA, **PARQUET_OPTIONS) as writer:
        batch: list[tuple[FrameRow, FrameContext]] = []
        for row in rows:
            batch.append((row, contexts.context_of(row)))
            count += 1
            if len(batch) == ROW_GROUP_ROWS:
                writer.write_table(frames_table(batch))
                batch.clear()
        if batch:
            writer.write_table(frames_table(batch))
    return count


PARQUET_OPTIONS: dict[str, Any] = {
    "compression": COMPRESSION,
    "compression_level": COMPRESSION_LEVEL,
    "write_page_index": True,
    "write_page_checksum": True,
    "use_dictionary": True,
}
"""Options of every Parquet writer."""


def times_as_numbers(table: pa.Table) -> pa.Table:
    """Return the table with its times as integers (ns), because Python's datetime has no ns."""
    for number, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(number, field.name, table.column(number).cast(pa.int64()))
    return table


def read_frames(table: pa.Table) -> Iterator[tuple[str, int, Frame]]:
    """Yield the session, the number in its recording and the frame of each row of a table that has
    all columns.

    Raises:
        ValueError, KeyError, TypeError: a row is not valid.
    """
    for batch in times_as_numbers(table).to_batches(max_chunksize=1024):
        for row in batch.to_pylist():
            yield row["session"], row["frame"], _frame_of_row(row)


def _frame_of_row(row: Mapping[str, Any]) -> Frame:
    line = {member: row[name] for name, member in _FRAME_COLUMNS if row[name] is not None}
    for letter, name in _SHARED_COLUMNS.items():
        if letter not in (row["named"] or ""):
            line.pop(name, None)
    if "sha256" in line:
        line["sha256"] = line["sha256"].hex()
    state = line.get("state", "")
    if state.lstrip("-").isdecimal():
        line["state"] = int(state)
    exact = json.loads(row["exact"] or "{}")
    line |= {_FRAME_FIELDS.get(name, name): value for name, value in exact.items()}
    return json_objects.read_frame(line, 0, row["payload"])
