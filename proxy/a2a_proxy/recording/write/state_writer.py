"""Conversion of connections, exchanges, tasks, findings and segments to rows.

A snapshot replaces the earlier row of the same object.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from a2a_proxy.model.eviction import keys_to_evict
from a2a_proxy.model.values import (
    ArtifactState,
    Changes,
    Connection,
    Exchange,
    Finding,
    Handoff,
    Interruption,
    MissedGenerations,
    Segment,
    Task,
)
from a2a_proxy.model.wire import Headers
from a2a_proxy.recording.read.row_decoder import RowDecoder
from a2a_proxy.recording.store.blocks import Address, Blocks
from a2a_proxy.recording.store.codec import Column, pack_headers, pack_json
from a2a_proxy.recording.store.columns import stored_fields
from a2a_proxy.recording.store.intern import Interner
from a2a_proxy.recording.store.payloads import Payloads
from a2a_proxy.recording.store.schema import LIVE_PAYLOADS
from a2a_proxy.recording.store.value_rows import RowPacker, insert_sql
from a2a_proxy.recording.write.task_merge import merge_tasks

_MAX_CACHED_ROWS = 4096
_Heads = tuple[Headers, Headers, Headers]
_NO_HEADS: _Heads = ((), (), ())


_REPLACE_ARTIFACT = f"INSERT OR REPLACE {insert_sql('artifact')}"
_INSERT_FINDING = f"INSERT {insert_sql('finding')}"
_REPLACE_TASK = (
    f"INSERT {insert_sql('task')} ON CONFLICT (session, agent, ident) DO UPDATE SET "
    f"{', '.join(f'{c.column} = excluded.{c.column}' for c in stored_fields(Task))}"
)


def _changed_artifacts(known: Task | None, task: Task) -> list[tuple[int, ArtifactState]]:
    """Return the artifacts of a task that are new or changed, with their positions."""
    before = known.artifacts if known is not None else ()
    same = len(before)
    return [
        (n, a)
        for n, a in enumerate(task.artifacts)
        if n >= same or (before[n] is not a and before[n] != a)
    ]


_IS_PRIVATE = "SELECT file = '' FROM pragma_database_list WHERE name = 'main'"
"""Whether the database has no file. The name itself is not read, because it may not be valid
UTF-8."""


class StateWriter:
    """Stores snapshots and findings of one session. Use inside a write transaction."""

    def __init__(
        self,
        db: sqlite3.Connection,
        session: int,
        started: int,
        words: Interner,
        idents: Interner,
        blocks: Blocks,
    ) -> None:
        self._db = db
        self._session = session
        self._started = started
        self._words = words
        self._idents = idents
        self._blocks = blocks
        of_session = (session, started, words, idents)
        self._connections = RowPacker(Connection, *of_session)
        self._exchanges = RowPacker(Exchange, *of_session)
        self._artifacts = RowPacker(ArtifactState, *of_session)
        self._findings = RowPacker(Finding, *of_session)
        self._segments = RowPacker(Segment, *of_session)
        self._interruptions = RowPacker(Interruption, *of_session)
        self._handoffs = RowPacker(Handoff, *of_session)
        self._task_rows = RowPacker(
            Task, *of_session, states=self._pack_states, missed=self._pack_missed
        )
        self._heads: dict[int, tuple[_Heads, Address]] = {}
        self._titled: set[str] = set()
        """Rules whose titles were stored."""
        self._private = db.execute(_IS_PRIVATE).fetchone()[0]
        self._tasks: dict[tuple[str, str], Task] = {}
        """The most recently written tasks, as stored in the file."""

    def clear_caches(self) -> None:
        """Discard the caches, because the transaction was rolled back."""
        self._heads = {}
        self._titled = set()
        self._tasks = {}

    def write(self, changes: Changes, findings: Sequence[Finding]) -> None:
        """Store snapshots and findings."""
        self._learn_idents(changes, findings)
        self._replace_rows("connection", changes.connections, self._connections.pack)
        self._replace_rows("exchange", changes.exchanges, self._exchange_row)
        for task in changes.tasks:
            self._write_task(task)
        self._db.executemany(
            _INSERT_FINDING,
            [(None, self._session, *self._findings.pack(value)) for value in findings],
        )
        self._store_titles(findings)
        self._replace_rows("segment", changes.segments, self._segments.pack)
        self._replace_rows("interruption", changes.interruptions, self._interruptions.pack)
        self._replace_rows("handoff", changes.handoffs, self._handoffs.pack)

    def _replace_rows(
        self, table: str, values: Sequence[Any], pack: Callable[[Any], Sequence[Column]]
    ) -> None:
        if values:
            self._db.executemany(f"INSERT OR REPLACE {insert_sql(table)}", map(pack, values))

    def _store_titles(self, findings: Sequence[Finding]) -> None:
        """Store the titles of rules for SQL users. Findings of decoders have none."""
        new = {
            finding.rule for finding in findings if finding.rule.startswith("A2A-")
        } - self._titled
        # A database in memory (a cassette that is only read) has no SQL users.
        if self._private or not new:
            return
        # Loading the catalogue takes 0.4 s, but the recorder has already loaded it.
        from a2a_proxy.rules.define.catalogue import all_rules

        known = all_rules()
        titles = [
            (self._words.row_number(name), known[name].title) for name in new if name in known
        ]
        self._db.executemany("INSERT OR REPLACE INTO rule VALUES (?, ?)", titles)
        self._titled |= new

    def _learn_idents(self, changes: Changes, findings: Sequence[Finding]) -> None:
        artifacts = [
            artifact
            for task in changes.tasks
            for _, artifact in _changed_artifacts(self._tasks.get((task.agent, task.task_id)), task)
        ]
        idents = set(self._findings.idents_of(findings))
        idents.update(self._exchanges.idents_of(changes.exchanges))
        idents.update(self._task_rows.idents_of(changes.tasks))
        idents.update(self._artifacts.idents_of(artifacts))
        idents.update(self._segments.idents_of(changes.segments))
        idents.update(self._interruptions.idents_of(changes.interruptions))
        idents.update(self._handoffs.idents_of(changes.handoffs))
        self._idents.learn_values(idents)

    def _exchange_row(self, value: Exchange) -> tuple[Column, ...]:
        flags = value.streaming | value.ours << 1 | LIVE_PAYLOADS.index(value.live_payload) << 2
        return (*self._exchanges.pack(value), flags, *self._store_headers(value))

    def _store_headers(self, value: Exchange) -> Address | tuple[None, None, None]:
        """Store header lists in the payload blocks. They are written again only if one of them has
        changed."""
        heads = (value.request_headers, value.response_headers, value.trailers)
        if heads == _NO_HEADS:
            return (None, None, None)
        known = self._heads.pop(value.id, None)
        if known is None or known[0] != heads:
            known = (heads, self._blocks.store_bytes(pack_headers(heads)))
        if not value.closed:
            self._heads[value.id] = known
            for oldest in keys_to_evict(self._heads, _MAX_CACHED_ROWS):
                del self._heads[oldest]
        return known[1]

    def _write_task(self, value: Task) -> None:
        name = (value.agent, value.task_id)
        known = self._tasks.pop(name, None) or self._read_task(value)
        if (
            known is not None and known.first < value.first
        ):  # the task was dropped from memory and seen again
            value = merge_tasks(known, value)
        self._db.execute(_REPLACE_TASK, (None, self._session, *self._task_rows.pack(value)))
        changed = _changed_artifacts(known, value)
        if changed or (known is not None and len(known.artifacts) > len(value.artifacts)):
            self._write_artifacts(value, changed)
        self._tasks[name] = value
        for oldest in keys_to_evict(self._tasks, _MAX_CACHED_ROWS):
            del self._tasks[oldest]

    def _read_task(self, value: Task) -> Task | None:
        """Return this task as stored in the file, or None."""
        find = "SELECT * FROM task WHERE session = ? AND agent = ? AND ident = ?"
        row = self._db.execute(
            find,
            (
                self._session,
                self._words.row_number(value.agent),
                self._idents.row_number(value.task_id),
            ),
        ).fetchone()
        if row is None:
            return None
        artifacts = self._db.execute(
            "SELECT * FROM artifact WHERE task = ? ORDER BY position", (row[0],)
        ).fetchall()
        return RowDecoder(self._db, Payloads(self._db)).decode_task(row, artifacts).task

    def _pack_states(self, states: Sequence[tuple[int, int]]) -> Column:
        return pack_json([(at - self._started, state) for at, state in states])

    def _pack_missed(self, missed: Sequence[MissedGenerations]) -> Column:
        return pack_json([self._missed_values(each) for each in missed])

    def _missed_values(self, value: MissedGenerations) -> list[int | None]:
        at = value.at - self._started
        healed = value.healed - self._started if value.healed else None
        closed = (value.by, value.generation, int(value.reason), value.message)
        return [value.first, value.last, at, value.exchange, healed, *closed]

    def _write_artifacts(self, task: Task, changed: list[tuple[int, ArtifactState]]) -> None:
        find = "SELECT id FROM task WHERE session = ? AND agent = ? AND ident = ?"
        ident = self._idents.row_number
        row = self._db.execute(
            find, (self._session, self._words.row_number(task.agent), ident(task.task_id))
        ).fetchone()[0]
        for n, artifact in changed:
            self._db.execute(_REPLACE_ARTIFACT, (row, n, *self._artifacts.pack(artifact)))
        self._db.execute(
            "DELETE FROM artifact WHERE task = ? AND position >= ?", (row, len(task.artifacts))
        )
