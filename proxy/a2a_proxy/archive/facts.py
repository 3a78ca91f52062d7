"""Rows of the table `facts`: everything that is recorded besides frames."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from a2a_proxy.archive.schema import FACT_COLUMNS, FACTS_SCHEMA, is_column_value, trace_id_of
from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Connection, Exchange, Task
from a2a_proxy.recording.cassette import json_objects
from a2a_proxy.recording.cassette.json_objects import Line
from a2a_proxy.recording.read.rows import FindingRow, SessionFacts

Fact = dict[str, Any]
"""Values by column name. A missing column is null."""


class FactsTable:
    """Builds the rows of one session."""

    def __init__(self, session: SessionFacts) -> None:
        self._session = session.uuid
        self._start = session.started

    def session_row(self, line: Line, ended: int) -> Fact:
        """Return the row of the session itself."""
        upstreams = line.get("upstreams", ())
        agent = upstreams[0] if len(upstreams) == 1 else None
        return self._make_row("session", 0, self._start, line, ended=ended, agent=agent)

    def connection_row(self, value: Connection) -> Fact:
        """Return the row of a connection."""
        line = json_objects.write_line(value, self._start)
        return self._make_row(
            "connection", value.id, value.opened, line, ended=value.closed, agent=value.upstream
        )

    def exchange_row(self, value: Exchange) -> Fact:
        """Return the row of an exchange."""
        return self._make_row(
            "exchange",
            value.id,
            value.started,
            json_objects.write_line(value, self._start),
            ended=value.closed,
            agent=value.agent,
            exchange=value.id,
            task_id=value.task_id,
            context_id=value.context_id,
            trace_id=trace_id_of(value.trace_context),
            binding=str(value.binding),
            operation=value.operation,
        )

    def task_row(self, value: Task) -> Fact:
        """Return the row of a task."""
        known = value.state in TaskState._value2member_map_ and value.state
        return self._make_row(
            "task",
            None,
            value.first,
            json_objects.write_line(value, self._start),
            ended=value.last,
            agent=value.agent,
            task_id=value.task_id,
            context_id=value.context_id,
            state=TaskState(value.state).label if known else "",
            missed=len(value.gaps),
        )

    def finding_row(self, row: FindingRow, agent: str) -> Fact:
        """Return the row of a finding."""
        value = row.finding
        return self._make_row(
            "finding",
            row.id,
            value.at,
            json_objects.write_line(value, self._start),
            agent=agent,
            exchange=value.exchange,
            task_id=value.task_id,
            rule=value.rule,
            severity=value.severity.name.lower(),
            summary=value.summary,
        )

    def _make_row(self, kind: str, number: int | None, at: int, line: Line, **cells: Any) -> Fact:
        plain = {name: cell for name, cell in cells.items() if cell and is_column_value(cell)}
        return {
            "session": self._session,
            "kind": kind,
            "number": number,
            "time": at,
            "line": json.dumps(line),
            **plain,
        }


def facts_table(facts: Iterable[Fact]) -> pa.Table:
    """Return the Arrow table of the facts, in their order."""
    rows = list(facts)
    arrays = [
        pa.array([row.get(column.name) for row in rows], field.type)
        for column, field in zip(FACT_COLUMNS, FACTS_SCHEMA, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=FACTS_SCHEMA)
