"""Conversion of connections, exchanges, tasks and findings to rows.

A snapshot replaces the earlier row of the same object.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from a2a_proxy.model.eviction import keys_to_evict
from a2a_proxy.model.exchange import Connection, Exchange
from a2a_proxy.model.finding import Finding
from a2a_proxy.model.observation import Changes
from a2a_proxy.model.task import ArtifactState, MissedGenerations, Task
from a2a_proxy.model.wire import Headers
from a2a_proxy.recording.read.row_decoder import RowDecoder
from a2a_proxy.recording.read.rows import make_key
from a2a_proxy.recording.store.blocks import Address, Blocks
from a2a_proxy.recording.store.codec import Column, pack_headers, pack_int, pack_json, pack_text
from a2a_proxy.recording.store.intern import Interner
from a2a_proxy.recording.store.payloads import Payloads
from a2a_proxy.recording.store.row_types import declared_types
from a2a_proxy.recording.store.schema import LIVE_PAYLOADS
from a2a_proxy.recording.write.task_merge import merge_tasks

_MAX_CACHED_ROWS = 4096
_Heads = tuple[Headers, Headers, Headers]
_NO_HEADS: _Heads = ((), (), ())


def _replace_sql(table: str) -> str:
    return (
        f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * len(declared_types()[table]))})"
    )


_REPLACE_CONNECTION = _replace_sql("connection")
_REPLACE_EXCHANGE = _replace_sql("exchange")
_REPLACE_ARTIFACT = _replace_sql("artifact")
_INSERT_FINDING = f"INSERT INTO finding VALUES (NULL, {', '.join('?' * 11)})"
_TASK_COLUMNS = (
    *("context", "tenant", "state", "states", "first", "last"),
    *("generation", "missed", "messages", "exchanges", "seen", "support"),
)
_REPLACE_TASK = (
    f"INSERT INTO task (session, agent, ident, {', '.join(_TASK_COLUMNS)}) VALUES "
    f"({', '.join('?' * 15)})"
    f" ON CONFLICT (session, agent, ident) DO UPDATE SET "
    f"{', '.join(f'{c} = excluded.{c}' for c in _TASK_COLUMNS)}"
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


def _int_or_null(value: int | None) -> Column:
    return None if value is None else pack_int(value)


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
        self._db.executemany(
            _REPLACE_CONNECTION, [self._connection_row(value) for value in changes.connections]
        )
        self._learn_values(changes, findings)
        self._db.executemany(
            _REPLACE_EXCHANGE, [self._exchange_row(value) for value in changes.exchanges]
        )
        for task in changes.tasks:
            self._write_task(task)
        self._db.executemany(_INSERT_FINDING, [self._finding_row(value) for value in findings])
        self._store_titles(findings)

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

    def intern_list(self, values: tuple[str, ...] | tuple[int, ...]) -> int:
        """Return the row number of a list as JSON text, or 0 for the empty list."""
        return self._words.row_number(pack_json(values)) if values else 0

    def _learn_values(self, changes: Changes, findings: Sequence[Finding]) -> None:
        idents = {finding.task_id for finding in findings}
        for exchange in changes.exchanges:
            idents.update((exchange.task_id, exchange.context_id, exchange.rpc_id))
        for task in changes.tasks:
            idents.update((task.task_id, task.context_id))
            known = self._tasks.get((task.agent, task.task_id))
            idents.update(artifact.artifact_id for _, artifact in _changed_artifacts(known, task))
        self._idents.learn_values(idents)

    def _relative_time(self, at: int) -> int | None:
        return at - self._started if at else None

    def _connection_row(self, value: Connection) -> tuple[Column, ...]:
        time = self._relative_time
        return (
            make_key(self._session, value.id),
            *map(pack_text, (value.client, value.listen, value.upstream, value.peer, value.kind)),
            value.opened - self._started,
            time(value.dialed),
            time(value.closed),
            pack_text(value.how),
            value.bytes_to_agent,
            value.bytes_to_client,
            value.lost_bytes,
            pack_json(value.counters),
            None if value.client_process is None else pack_json(value.client_process),
            None if value.tls is None else pack_json(value.tls),
        )

    def _exchange_row(self, value: Exchange) -> tuple[Column, ...]:
        time, word, ids = self._relative_time, self._words.row_number, self._idents.ids
        return (
            make_key(self._session, value.id),
            value.connection,
            value.stream,
            word(value.binding),
            word(value.dialect),
            word(value.operation),
            word(value.method),
            pack_text(value.target),
            word(value.authority),
            word(value.http_version),
            value.streaming | value.ours << 1 | LIVE_PAYLOADS.index(value.live_payload) << 2,
            ids[value.rpc_id],
            *self._store_headers(value),
            self.intern_list(value.informational),
            value.started - self._started,
            time(value.request_ended),
            time(value.response_started),
            time(value.first_event),
            time(value.last_event),
            time(value.closed),
            pack_int(value.status),
            pack_int(value.grpc_status),
            pack_int(value.error_code),
            pack_text(value.error),
            word(value.how),
            word(value.half_close),
            ids[value.task_id],
            ids[value.context_id],
            self.intern_list(value.states),
            value.requests,
            value.events,
            value.bytes_to_agent,
            value.bytes_to_client,
            pack_text(value.traceparent),
            word(value.version_header),
            word(value.extensions),
            self.intern_list(value.redacted),
            _int_or_null(value.current_generation),
            _int_or_null(value.generation_match),
            pack_int(value.generation),
            pack_text(value.sent_traceparent),
            pack_json(value.card_signatures) if value.card_signatures else None,
            word(value.agent),
        )

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
        self._db.execute(_REPLACE_TASK, self._task_row(value))
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

    def _task_row(self, value: Task) -> tuple[Column, ...]:
        ident, word, started = self._idents.row_number, self._words.row_number, self._started
        return (
            self._session,
            word(value.agent),
            ident(value.task_id),
            ident(value.context_id),
            word(value.tenant),
            value.state,
            pack_json([(at - started, state) for at, state in value.states]),
            value.first - started,
            value.last - started,
            pack_int(value.generation),
            pack_json([self._missed_values(each) for each in value.missed]),
            value.messages,
            pack_json(value.exchanges),
            pack_json(value.seen),
            int(value.support),
        )

    def _missed_values(self, value: MissedGenerations) -> list[int | None]:
        at, healed = value.at - self._started, self._relative_time(value.healed)
        closed = (value.by, value.generation, int(value.reason), value.message)
        return [value.first, value.last, at, value.exchange, healed, *closed]

    def _write_artifacts(self, task: Task, changed: list[tuple[int, ArtifactState]]) -> None:
        find = "SELECT id FROM task WHERE session = ? AND agent = ? AND ident = ?"
        ident = self._idents.row_number
        row = self._db.execute(
            find, (self._session, self._words.row_number(task.agent), ident(task.task_id))
        ).fetchone()[0]
        started = self._started
        for n, a in changed:
            state = (ident(a.artifact_id), pack_text(a.name), a.chunks, a.parts, a.size, a.complete)
            self._db.execute(
                _REPLACE_ARTIFACT, (row, n, *state, a.first - started, a.last - started)
            )
        self._db.execute(
            "DELETE FROM artifact WHERE task = ? AND position >= ?", (row, len(task.artifacts))
        )

    def _finding_row(self, value: Finding) -> tuple[Column, ...]:
        word = self._words.row_number
        return (
            self._session,
            word(value.rule),
            int(value.severity),
            value.at - self._started,
            pack_text(value.summary),
            value.connection,
            value.exchange,
            value.seq,
            self._idents.row_number(value.task_id),
            word(value.confidence),
            pack_json(value.evidence),
        )
