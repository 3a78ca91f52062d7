"""Frames as rows of the table `frames`, and back without loss.

What a cassette's line says of a frame goes into the columns of the same names; so words, defaults and their reading are
those of cassettes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from a2a_proxy.archive.schema import COMPRESSION, FRAMES, FRAMES_SCHEMA, LEVEL, ROW_GROUP
from a2a_proxy.model.exchange import Exchange
from a2a_proxy.model.finding import Finding
from a2a_proxy.model.frame import Frame
from a2a_proxy.recording import lines
from a2a_proxy.recording.reader import Recording
from a2a_proxy.recording.rows import FrameRow, key

_KEYS = {"kind": "frame", "time": "at", "octet_start": "start", "octet_end": "end"}
"""Members that have another name in a cassette's line."""
_NAMES = [column.name for column in FRAMES]
_OF_FRAME = [(name, _KEYS.get(name, name)) for name in _NAMES if _KEYS.get(name, name) in lines.MEMBERS["frame"]]
"""Columns that hold a member of a frame's line, each with the name of the member."""
_OF_CALL = ("binding", "dialect", "operation", "method", "target", "streaming", "status")
_SHARED = {"t": "task_id", "c": "context_id"}
"""Columns that a frame has of its call where it names none itself."""
_FALSE = {column.name: False for column in FRAMES if pa.types.is_boolean(column.type)}
_TRACE_DIGITS = 32
_INT64 = range(-(1 << 63), 1 << 63)
_CACHED = 4096
"""Calls that are known while frames are read."""


class Scene(msgspec.Struct, frozen=True):
    """What a frame's row says besides the frame."""

    session: str
    call: dict[str, Any] = {}
    """The cells that are those of its call; see `call_cells`."""
    agent: str | None = None
    findings: list[Finding] = []


def frames_table(rows: Iterable[tuple[FrameRow, Scene]]) -> pa.Table:
    """The table of some frames, in their order."""
    made = [_cells(row, scene) for row, scene in rows]
    columns = zip(*made, strict=True) if made else [()] * len(FRAMES)
    arrays = [pa.array(cells, field.type) for cells, field in zip(columns, FRAMES_SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=FRAMES_SCHEMA)


def write_frames(recording: Recording, rows: Iterable[FrameRow], stream: BinaryIO) -> int:
    """Write frames, with their payloads, as one Parquet file; how many.

    Raises:
        RecordingError: the recording cannot be read.
    """
    scenes, count = Scenes(recording), 0
    with pq.ParquetWriter(stream, FRAMES_SCHEMA, **OPTIONS) as writer:
        batch: list[tuple[FrameRow, Scene]] = []
        for row in rows:
            batch.append((row, scenes.of(row)))
            count += 1
            if len(batch) == ROW_GROUP:
                writer.write_table(frames_table(batch))
                batch.clear()
        if batch:
            writer.write_table(frames_table(batch))
    return count


OPTIONS: dict[str, Any] = {
    "compression": COMPRESSION,
    "compression_level": LEVEL,
    "write_page_index": True,
    "write_page_checksum": True,
    "use_dictionary": True,
}
"""How Parquet is written."""


class Scenes:
    """What is around the frames of a recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._sessions = {row.id: row.facts.uuid for row in recording.sessions()}
        self._calls: dict[int, dict[str, Any]] = {}
        self._agents: dict[int, str | None] = {}
        self._findings: dict[int, dict[tuple[int, int], list[Finding]]] = {}

    def of(self, row: FrameRow) -> Scene:
        """That of one frame. Raises RecordingError."""
        frame = row.frame
        found = self._found(row.session).get((frame.exchange, frame.seq), []) if frame.exchange else []
        return Scene(
            self._sessions[row.session],
            self._call(key(row.session, frame.exchange)) if frame.exchange else {},
            self._agent(key(row.session, frame.connection)),
            found,
        )

    def _call(self, number: int) -> dict[str, Any]:
        if number not in self._calls:
            row = self._recording.exchange(number)
            _keep(self._calls, number, call_cells(row.exchange) if row is not None else {})
        return self._calls[number]

    def _agent(self, number: int) -> str | None:
        if number not in self._agents:
            row = self._recording.connection(number)
            _keep(self._agents, number, sound(row.connection.upstream) if row is not None else None)
        return self._agents[number]

    def _found(self, session: int) -> dict[tuple[int, int], list[Finding]]:
        if session not in self._findings:
            found = self._findings[session] = {}
            for row in self._recording.findings(session):
                if row.finding.seq >= 0:
                    found.setdefault((row.finding.exchange, row.finding.seq), []).append(row.finding)
        return self._findings[session]


def _keep(known: dict[int, Any], number: int, value: Any) -> None:
    known[number] = value
    if len(known) > _CACHED:
        del known[next(iter(known))]


def trace_of(traceparent: str) -> str:
    """The trace id of a W3C `traceparent`; empty where it has none."""
    words = traceparent.split("-")
    trace = words[1].lower() if len(words) > 1 else ""
    return trace if len(trace) == _TRACE_DIGITS and set(trace) <= set("0123456789abcdef") else ""


def fits(value: Any) -> bool:
    """A column can hold it."""
    if isinstance(value, str):
        if value.isascii():
            return True
        try:
            value.encode()
        except UnicodeEncodeError:
            return False
    elif isinstance(value, list):
        return all(map(fits, value))
    elif isinstance(value, int):
        return value in _INT64
    return True


def sound(value: Any) -> Any:
    """The value where it says something and a column can hold it; else None."""
    return value if value and fits(value) else None


def call_cells(call: Exchange) -> dict[str, Any]:
    """What the rows of its frames say of a call."""
    cells = {name: sound(getattr(call, name)) for name in (*_OF_CALL, *_SHARED.values())}
    return {**cells, "streaming": call.streaming, "trace_id": trace_of(call.trace_context) or None}


def _cells(row: FrameRow, scene: Scene) -> tuple[Any, ...]:
    frame = row.frame
    line = lines.write_frame(frame, 0, {})
    own = {name: line[member] for name, member in _OF_FRAME if member in line}
    exact = {name: cell for name, cell in own.items() if not fits(cell)}
    for name in exact:
        own[name] = None
    cells = {**_FALSE, **scene.call, **own}
    cells["session"] = scene.session
    cells["frame"] = row.id
    cells["began"] = frame.began
    cells["agent"] = scene.agent
    cells["sha256"] = frame.sha256 or None
    cells["size"] = None if "size" in exact else frame.size
    cells["payload"] = frame.payload
    if "state" in own:
        cells["state"] = str(own["state"])
    cells["named"] = "".join(letter for letter, name in _SHARED.items() if own.get(name) is not None) or None
    if scene.findings:
        cells["findings"] = [_found(finding) for finding in scene.findings]
    if exact:
        cells["exact"] = json.dumps(exact)
    return tuple(map(cells.get, _NAMES))


def _found(finding: Finding) -> dict[str, Any]:
    severity = finding.severity.name.lower()
    words = {"rule": finding.rule, "confidence": finding.confidence, "summary": finding.summary}
    return {"severity": severity} | {name: sound(word) for name, word in words.items()}


def plain(table: pa.Table) -> pa.Table:
    """Times as numbers: those of Python do not hold ns."""
    for number, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(number, field.name, table.column(number).cast(pa.int64()))
    return table


def read_frames(table: pa.Table) -> Iterator[tuple[str, int, Frame]]:
    """The session, the number in its recording and the frame of each row of a table with all columns.

    Raises:
        ValueError, KeyError, TypeError: the rows make no sense.
    """
    for batch in plain(table).to_batches(max_chunksize=1024):
        for row in batch.to_pylist():
            yield row["session"], row["frame"], _frame(row)


def _frame(row: Mapping[str, Any]) -> Frame:
    line = {member: row[name] for name, member in _OF_FRAME if row[name] is not None}
    for letter, name in _SHARED.items():
        if letter not in (row["named"] or ""):
            line.pop(name, None)
    if "sha256" in line:
        line["sha256"] = line["sha256"].hex()
    state = line.get("state", "")
    if state.lstrip("-").isdecimal():
        line["state"] = int(state)
    exact = json.loads(row["exact"] or "{}")
    line |= {_KEYS.get(name, name): value for name, value in exact.items()}
    return lines.read_frame(line, 0, row["payload"])
