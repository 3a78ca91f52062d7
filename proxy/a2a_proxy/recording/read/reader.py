"""Reading of a recording, also while it is written. Returns the model's values as they were stored.

No transaction is held between calls, nor while a caller processes an iterator: rows are fetched
page by page.

Paged queries of a recording: no transaction is held while the caller processes rows.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from a2a_proxy.model.values import Finding, Frame, Task
from a2a_proxy.protocol.finding_totals import follows_ending, is_total
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.row_decoder import RowDecoder
from a2a_proxy.recording.read.rows import (
    ConnectionRow,
    Counts,
    ExchangeRow,
    FindingRow,
    FrameRow,
    HandoffRow,
    InterruptionRow,
    NoteRow,
    SegmentRow,
    SessionRow,
    TaskRow,
    key_bounds,
    make_key,
    split_key,
)
from a2a_proxy.recording.store.codec import pack_decimal, pack_ident, pack_text
from a2a_proxy.recording.store.database import (
    has_log,
    open_readable,
    remove_empty_log,
    translate_errors,
)
from a2a_proxy.recording.store.notes import read_notes
from a2a_proxy.recording.store.payloads import Payloads
from a2a_proxy.recording.store.row_types import Row
from a2a_proxy.recording.store.sql_functions import register_functions

if TYPE_CHECKING:
    from a2a_proxy.recording.query.run import QueryableRecording
    from a2a_proxy.recording.query.tree import Node


PAGE_ROWS = 512
"""Rows fetched at a time."""
_TASK_AGENTS = """WITH RECURSIVE found(agent) AS (
    SELECT min(agent) FROM task WHERE session = ?
    UNION ALL SELECT (SELECT min(agent) FROM task WHERE session = ? AND agent > found.agent)
      FROM found WHERE agent NOTNULL)
  SELECT agent FROM found WHERE agent NOTNULL"""
"""The agents of the tasks of a session, each found by the index of tasks, which begins with session
and agent."""


class PagedQuery:
    """Queries on one connection. SQLite's errors become RecordingError with the name of the
    file."""

    def __init__(self, db: sqlite3.Connection, name: str) -> None:
        self._db = db
        self._name = name

    def fetch_all(self, query: str, parameters: tuple[Any, ...] = ()) -> list[Row]:
        """Return all rows of the result."""
        with translate_errors(self._name):
            return self._db.execute(query, parameters).fetchall()

    def fetch_one(self, query: str, parameters: tuple[Any, ...] = ()) -> Row | None:
        """Return the first row of the result, or None."""
        return next(iter(self.fetch_all(query, parameters)), None)

    def by_keyset(
        self,
        query: str,
        fixed: tuple[Any, ...],
        after: int,
        position: Callable[[Any], int],
        make: Callable[[Row], _Value],
        limit: int | None,
        learn: Callable[[list[Row]], None] = lambda _: None,
    ) -> Iterator[_Value]:
        """Yield values in order. `after` and the page size are the last two parameters of the
        query. `learn` gets the rows of a page before `make` gets each."""
        remaining = limit
        while remaining is None or remaining > 0:
            size = PAGE_ROWS if remaining is None else min(PAGE_ROWS, remaining)
            rows = self.fetch_all(query, (*fixed, after, size))
            learn(rows)
            for row in rows:
                value = make(row)
                after = position(value)
                yield value
            if len(rows) < size:
                return
            remaining = None if remaining is None else remaining - size

    def by_session(
        self,
        table: str,
        make: Callable[[Row], _Value],
        session: int | None,
        after: int = 0,
        limit: int | None = None,
        learn: Callable[[list[Row]], None] = lambda _: None,
    ) -> Iterator[_Value]:
        """Yield values with a key greater than `after`, of one session or of all. The key contains
        the session. `learn` as for `by_keyset`."""
        before = 1 << 62
        if session is not None:
            after, before = max(after, make_key(session, 0) - 1), make_key(session + 1, 0)
        query = f"SELECT * FROM {table} WHERE id < ? AND id > ? ORDER BY id LIMIT ?"
        return self.by_keyset(query, (before,), after, lambda value: value.key, make, limit, learn)

    def by_ids(
        self, table: str, ids: Iterator[int], make: Callable[[Row], _Value]
    ) -> Iterator[_Value]:
        """Yield values of these ids, each as soon as it is read."""
        for number in ids:
            row = self.fetch_one(f"SELECT * FROM {table} WHERE id = ?", (number,))
            if row is not None:
                yield make(row)


_Value = TypeVar("_Value")


class Recording:
    """One recording, open for reading. Not for two threads at once.

    Raises RecordingError on opening, and when the file turns out to be damaged or locked.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        finished = not has_log(path)
        self._attach_file(os.fspath(path), open_readable(path))
        self.lacks_log = finished

    @classmethod
    def from_connection(cls, db: sqlite3.Connection, name: str) -> Recording:
        """Return a recording on an open connection (see `database.open_private`)."""
        recording = cls.__new__(cls)
        recording._attach_file(name, db)
        return recording

    def _attach_file(self, path: str, db: sqlite3.Connection) -> None:
        self.path = path
        self.lacks_log = False
        """Whether it is a file that had no write-ahead log before it was opened."""
        self.find_end: Callable[[SessionRow], int] = lambda _: 0
        """Returns the time until which a session without an end is observed, in ns; 0 if only its
        calls show it. A program that knows which sessions are being recorded replaces it."""
        self.db = db
        """For the caller's own queries. The functions of `recording.store.sql_functions` are
        registered."""
        self._pages = PagedQuery(db, path)
        self._payloads = Payloads(db)
        self._decode = RowDecoder(db, self._payloads)
        register_functions(db, self._payloads)
        self._queryable: QueryableRecording | None = None

    def close(self) -> None:
        """Close the file and remove the write-ahead log if this reader created it."""
        self.db.close()
        if self.lacks_log:
            remove_empty_log(self.path)

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def data_version(self) -> int:
        """Return a number that changes when another connection commits. Takes microseconds."""
        return int(self._pages.fetch_all("PRAGMA data_version")[0][0])

    def count_rows(self, session: int | None = None) -> Counts:
        """Return the numbers of rows, of the whole file or of one session."""
        if session is None:
            names = ("session", "connection", "exchange", "frame", "task", "finding")
            return Counts(
                *(self._pages.fetch_all(f"SELECT count(*) FROM {name}")[0][0] for name in names)
            )
        keys = key_bounds(session)
        span = "SELECT count(*) FROM {} WHERE id >= ? AND id < ?"
        of = "SELECT count(*) FROM {} WHERE session = ?"
        numbers = [
            self._pages.fetch_all(span.format(name), keys)[0][0]
            for name in ("connection", "exchange")
        ]
        numbers += [
            self._pages.fetch_all(of.format(name), (session,))[0][0]
            for name in ("frame", "task", "finding")
        ]
        return Counts(1, *numbers)

    def read_sessions(self) -> list[SessionRow]:
        """Return all sessions in order of their start in this file."""
        return [
            self._decode.decode_session(row)
            for row in self._pages.fetch_all("SELECT * FROM session ORDER BY id")
        ]

    def read_session(self, number: int) -> SessionRow | None:
        """Return one session, or None."""
        row = self._pages.fetch_one("SELECT * FROM session WHERE id = ?", (number,))
        return self._decode.decode_session(row) if row is not None else None

    def read_connections(
        self, session: int | None = None, *, after: int = 0
    ) -> Iterator[ConnectionRow]:
        """Yield connections by session and number, with a key greater than `after`."""
        return self._pages.by_session("connection", self._decode.decode_connection, session, after)

    def read_connection(self, row_key: int) -> ConnectionRow | None:
        """Return one connection, or None."""
        row = self._pages.fetch_one("SELECT * FROM connection WHERE id = ?", (row_key,))
        return self._decode.decode_connection(row) if row is not None else None

    def read_exchanges(
        self,
        session: int | None = None,
        *,
        after: int = 0,
        limit: int | None = None,
        headers: bool = True,
    ) -> Iterator[ExchangeRow]:
        """Yield exchanges by session and number (order of first byte), with a key greater than
        `after`."""
        make = partial(self._decode.decode_exchange, headers=headers)
        learn = self._decode.learn_idents
        return self._pages.by_session("exchange", make, session, after, limit, learn)

    def read_exchange(self, row_key: int, *, headers: bool = True) -> ExchangeRow | None:
        """Return one exchange, or None."""
        row = self._pages.fetch_one("SELECT * FROM exchange WHERE id = ?", (row_key,))
        return self._decode.decode_exchange(row, headers=headers) if row is not None else None

    def exchanges_of(self, session: int, numbers: Iterable[int]) -> Iterator[ExchangeRow]:
        """Yield the exchanges of a session that have these numbers, in order."""
        query = "SELECT * FROM exchange WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
        remaining = iter(numbers)
        while page := list(islice(remaining, PAGE_ROWS)):
            keys = json.dumps([make_key(session, number) for number in page])
            rows = self._pages.fetch_all(query, (keys,))
            self._decode.learn_idents(rows)
            yield from map(self._decode.decode_exchange, rows)

    def frames_by_exchange(self, session: int, numbers: Sequence[int]) -> dict[int, list[Frame]]:
        """Return the frames of exchanges of a session by number, without payloads and without ids
        other than that of the artifact."""
        query = (
            "SELECT * FROM frame WHERE session = ? AND exchange IN (SELECT value FROM "
            "json_each(?)) ORDER BY exchange, seq"
        )
        found: dict[int, list[Frame]] = {number: [] for number in numbers}
        for row in self._pages.fetch_all(query, (session, json.dumps(numbers))):
            frame = self._decode.decode_frame(row, payload=False, ids=False).frame
            found[frame.exchange].append(frame)
        return found

    def tasks_by_exchange(
        self, session: int, numbers: Sequence[int]
    ) -> dict[tuple[str, str], Task]:
        """Return the tasks of exchanges of a session, without artifacts, by agent and id."""
        query = (
            "SELECT task.* FROM exchange e CROSS JOIN task ON task.session = ? AND "
            "task.agent = e.agent AND task.ident = e.task WHERE e.id IN "
            "(SELECT value FROM json_each(?))"
        )
        keys = json.dumps([make_key(session, number) for number in numbers])
        rows = self._pages.fetch_all(query, (session, keys))
        tasks = (self._decode.decode_task(row, []).task for row in rows)
        return {(task.agent, task.task_id): task for task in tasks}

    def read_frames(
        self, exchange_key: int, *, after: int = -1, limit: int | None = None, payloads: bool = True
    ) -> Iterator[FrameRow]:
        """Yield frames of an exchange by `seq`, with a `seq` greater than `after`."""
        session, number = split_key(exchange_key)
        query = (
            "SELECT * FROM frame WHERE session = ? AND exchange = ? AND seq > ? ORDER BY seq LIMIT "
            "?"
        )
        make = self._frame_maker(payloads)
        return self._pages.by_keyset(
            query, (session, number), after, lambda value: value.frame.seq, make, limit
        )

    def connection_frames(self, connection_key: int) -> Iterator[FrameRow]:
        """Yield frames of the connection itself (SETTINGS, GOAWAY, opaque bytes) in order."""
        session, number = split_key(connection_key)
        query = (
            "SELECT * FROM frame WHERE session = ? AND exchange = 0 AND connection = ? AND seq > ? "
            "ORDER BY seq LIMIT ?"
        )
        return self._pages.by_keyset(
            query,
            (session, number),
            -1,
            lambda value: value.frame.seq,
            self._frame_maker(payloads=True),
            None,
        )

    def read_frame(self, number: int, *, payload: bool = True) -> FrameRow | None:
        """Return one frame by its id, or None."""
        row = self._pages.fetch_one("SELECT * FROM frame WHERE id = ?", (number,))
        return self._decode.decode_frame(row, payload=payload) if row is not None else None

    def frames_of(self, numbers: Sequence[int]) -> list[FrameRow]:
        """Return the existing frames of these ids, in order of storing, without their payloads."""
        query = "SELECT * FROM frame WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
        return [
            self._decode.decode_frame(row, payload=False)
            for row in self._pages.fetch_all(query, (json.dumps(numbers),))
        ]

    def frames_after(
        self,
        number: int,
        limit: int | None = None,
        *,
        session: int | None = None,
        payloads: bool = True,
    ) -> Iterator[FrameRow]:
        """Yield frames stored after this id, in order of storing: the cursor of a follower."""
        # The `+` prevents SQLite from using the index of sessions, which would sort all frames of
        # the session for each page.
        of = "" if session is None else "+session = ? AND "
        fixed = () if session is None else (session,)
        query = f"SELECT * FROM frame WHERE {of}id > ? ORDER BY id LIMIT ?"
        return self._pages.by_keyset(
            query, fixed, number, lambda value: value.id, self._frame_maker(payloads), limit
        )

    def find_exchanges(
        self,
        expression: str | Node,
        session: int | None = None,
        *,
        limit: int | None = None,
    ) -> Iterator[ExchangeRow]:
        """Yield exchanges that match an expression of the filter language, as `read_exchanges`
        does.

        Raises QueryError immediately if the expression is wrong, and during the search if a regular
        expression takes too long.
        """
        from a2a_proxy.recording.query.sql import Rows

        ids = self.get_queryable().select_ids(
            expression, Rows.EXCHANGES, session=session, limit=limit
        )
        return self._pages.by_ids("exchange", ids, self._decode.decode_exchange)

    def find_frames(
        self,
        expression: str | Node,
        session: int | None = None,
        *,
        payloads: bool = True,
    ) -> Iterator[FrameRow]:
        """Yield frames that match an expression of the filter language, in order of storing; see
        `find_exchanges`."""
        from a2a_proxy.recording.query.sql import Rows

        ids = self.get_queryable().select_ids(expression, Rows.FRAMES, session=session)
        return self._pages.by_ids("frame", ids, self._frame_maker(payloads))

    def get_queryable(self) -> QueryableRecording:
        """Return the object that runs filter expressions on this recording. It is imported and
        created on first use."""
        if self._queryable is None:
            from a2a_proxy.recording.query.functions import QueryFunctions
            from a2a_proxy.recording.query.run import QueryableRecording
            from a2a_proxy.recording.read.endings import EndingReader

            with translate_errors(self.path):
                self._queryable = QueryableRecording(
                    self.db,
                    self.path,
                    QueryFunctions(self.db, self._payloads, lambda: EndingReader(self).read_cause),
                )
        return self._queryable

    def read_payload(self, row: FrameRow) -> bytes:
        """Return the stored payload of a frame, byte for byte."""
        with translate_errors(self.path):
            rest = self._payloads.read(row.block, row.offset, row.size)
            return self._payloads.read_whole(row.id, rest) if row.pieces else rest

    def read_tasks(self, session: int | None = None) -> Iterator[TaskRow]:
        """Yield tasks in order of their first appearance."""
        of = "" if session is None else "session = ? AND "
        fixed = () if session is None else (session,)
        query = f"SELECT * FROM task WHERE {of}id > ? ORDER BY id LIMIT ?"
        return self._pages.by_keyset(query, fixed, 0, lambda value: value.id, self._make_task, None)

    def read_task(
        self, task_id: str, agent: str | None = None, *, session: int | None = None
    ) -> list[TaskRow]:
        """Return the task of this id in each session of the file or in one, of one agent or of all.

        With a session an index is used.
        """
        number = self._ident_number(task_id)
        if number is None:
            return []
        query = "SELECT * FROM task WHERE ident = ?"
        fixed: list[int | str | bytes] = [number]
        if session is not None:
            query += " AND session = ?"
            fixed.append(session)
        if agent is not None and session is not None:
            query += " AND agent = (SELECT id FROM text WHERE value = ?)"
            fixed.append(pack_text(agent))
        elif session is not None:
            query += f" AND agent IN ({_TASK_AGENTS})"
            fixed += [session, session]
        rows = self._pages.fetch_all(f"{query} ORDER BY id", tuple(fixed))
        values = [self._make_task(row) for row in rows]
        return [value for value in values if agent is None or value.task.agent == agent]

    def first_exchange(self, task_id: str, session: int) -> int:
        """Return the number of the first exchange of a session that has this task, or 0.

        Scans all exchanges of the session.
        """
        query = "SELECT min(id) FROM exchange WHERE id >= ? AND id < ? AND task = ?"
        found = self._pages.fetch_one(query, (*key_bounds(session), self._ident_number(task_id)))
        return split_key(found[0])[1] if found is not None and found[0] is not None else 0

    def task_row(self, number: int) -> TaskRow | None:
        """Return one task by the id of its row, or None."""
        row = self._pages.fetch_one("SELECT * FROM task WHERE id = ?", (number,))
        return self._make_task(row) if row is not None else None

    def read_findings(
        self,
        session: int | None = None,
        *,
        exchange: int | None = None,
        seq: int | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> Iterator[FindingRow]:
        """Yield findings with an id greater than `after`, in order: of a session, of an exchange,
        or of one frame.

        `exchange` is the key of the exchange, `seq` the number of the frame in it.
        """
        where, fixed = ["1"], []
        if exchange is not None:
            session, number = split_key(exchange)
            where, fixed = ["exchange = ?"], [number]
        if session is not None:
            where.append("session = ?")
            fixed.append(session)
        if seq is not None:
            where.append("seq = ?")
            fixed.append(seq)
        query = f"SELECT * FROM finding WHERE {' AND '.join(where)} AND id > ? ORDER BY id LIMIT ?"
        return self._pages.by_keyset(
            query, tuple(fixed), after, lambda value: value.id, self._decode.decode_finding, limit
        )

    def finding_totals(self, session: int) -> Iterator[Finding]:
        """Yield the totals of a session that count. Each stands for findings of one kind that are
        not rows by themselves, see `finding_totals.count_occurrences`.
        """
        found = (row.finding for row in self.read_findings(exchange=make_key(session, 0)))
        return (each for each in found if is_total(each) and not follows_ending(each))

    def read_notes(self, session: int | None = None) -> list[NoteRow]:
        """Return the notes and bookmarks of a session or of all, by session, exchange and frame."""
        with translate_errors(self.path):
            return read_notes(self.db, session)

    def read_segments(
        self, session: int | None = None, *, after: int = 0, limit: int | None = None
    ) -> Iterator[SegmentRow]:
        """Yield segments in their stored state, by session and number, with a key greater than
        `after`.

        Turns of one unary call have no segments (see `schema`).
        """
        return self._pages.by_session("segment", self._decode.decode_segment, session, after, limit)

    def read_interruptions(
        self, session: int | None = None, *, after: int = 0, limit: int | None = None
    ) -> Iterator[InterruptionRow]:
        """Yield interruptions in their stored state, by session and number, with a key greater than
        `after`."""
        return self._pages.by_session(
            "interruption", self._decode.decode_interruption, session, after, limit
        )

    def read_handoffs(
        self, session: int | None = None, *, after: int = 0, limit: int | None = None
    ) -> Iterator[HandoffRow]:
        """Yield hand-offs in their stored state, by session and number, with a key greater than
        `after`."""
        return self._pages.by_session("handoff", self._decode.decode_handoff, session, after, limit)

    def _ident_number(self, text: str) -> int | None:
        """Return the number of an identifier, or None if no row has it."""
        number = pack_decimal(text)
        if number is None:
            found = self._pages.fetch_one(
                "SELECT id FROM ident WHERE value = ?", (pack_ident(text),)
            )
            number = found[0] if found is not None else None
        return number

    def _frame_maker(self, payloads: bool) -> Callable[[Row], FrameRow]:
        return lambda row: self._decode.decode_frame(row, payload=payloads)

    def _make_task(self, row: Row) -> TaskRow:
        artifacts = self._pages.fetch_all(
            "SELECT * FROM artifact WHERE task = ? ORDER BY position", (row[0],)
        )
        return self._decode.decode_task(row, artifacts)


def reopen_recording(path: str) -> Recording | None:
    """Open the file that the path leads to now; return None while it is being created."""
    try:
        return Recording(path)
    except RecordingError:
        return None
