"""Values in a row of the table `frames` that do not come from the frame: its call, its agent, its findings."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from a2a_proxy.archive.cell_values import column_value, trace_id_of
from a2a_proxy.model.exchange import Exchange
from a2a_proxy.model.finding import Finding
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import FrameRow, make_key

SHARED_COLUMNS = {"t": "task_id", "c": "context_id"}
"""Columns that take the value of the call if the frame has none."""
CALL_COLUMNS = ("binding", "dialect", "operation", "method", "target", "status", "streaming", "trace_id")
"""Columns that always take the value of the call."""
_COPIED_COLUMNS = (*CALL_COLUMNS[:-2], *SHARED_COLUMNS.values())
_MAX_CACHED = 4096
"""Number of calls that are cached while frames are read."""

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
    return {**cells, "streaming": call.streaming, "trace_id": trace_id_of(call.trace_context) or None}


class FrameContexts:
    """Contexts of the frames of a recording. Frames of one call share the cells of the call."""

    def __init__(self, recording: Recording, calls: dict[int, Exchange] | None = None) -> None:
        """`calls`: the calls that have been read already, by key."""
        self._recording = recording
        self._calls = calls or {}
        self._sessions = {row.id: row.facts.uuid for row in recording.sessions()}
        self._contexts: dict[tuple[int, int, int], FrameContext] = {}
        """Contexts of frames without findings, by session, connection and call."""
        self._agents: dict[int, str | None] = {}
        self._findings: dict[int, dict[tuple[int, int], list[Finding]]] = {}

    def context_of(self, row: FrameRow) -> FrameContext:
        """Return the context of one frame. Raises RecordingError."""
        frame = row.frame
        where = row.session, frame.connection, frame.exchange
        plain = self._contexts.get(where) or _cache_value(self._contexts, where, self._make_context(*where))
        found = self._findings_of_session(row.session).get((frame.exchange, frame.seq)) if frame.exchange else None
        return msgspec.structs.replace(plain, findings=found) if found else plain

    def _make_context(self, session: int, connection: int, exchange: int) -> FrameContext:
        call = self._find_call(make_key(session, exchange)) if exchange else None
        agent = self._agent_of_connection(make_key(session, connection))
        return FrameContext(self._sessions[session], call_cells(call) if call is not None else {}, agent)

    def _find_call(self, number: int) -> Exchange | None:
        if number in self._calls:
            return self._calls[number]
        row = self._recording.exchange(number, headers=False)
        return row.exchange if row is not None else None

    def _agent_of_connection(self, number: int) -> str | None:
        if number not in self._agents:
            row = self._recording.connection(number)
            return _cache_value(
                self._agents, number, column_value(row.connection.upstream) if row is not None else None
            )
        return self._agents[number]

    def _findings_of_session(self, session: int) -> dict[tuple[int, int], list[Finding]]:
        if session not in self._findings:
            found = self._findings[session] = {}
            for row in self._recording.findings(session):
                if row.finding.seq >= 0:
                    found.setdefault((row.finding.exchange, row.finding.seq), []).append(row.finding)
        return self._findings[session]


def _cache_value(cache: dict[Any, _Value], name: Any, value: _Value) -> _Value:
    cache[name] = value
    if len(cache) > _MAX_CACHED:
        del cache[next(iter(cache))]
    return value
