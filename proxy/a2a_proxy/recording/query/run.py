"""Execution of filter expressions, in windows of rows.

No transaction is held between windows, and a long search can be watched. Filters have no index:
columns hold small numbers, so testing a frame takes 0.1 us, which costs less than an index would
cost each recording in bytes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from a2a_proxy.recording.query.conditions import Sql, join_conditions, where_one_of
from a2a_proxy.recording.query.errors import QueryError, SearchStopped
from a2a_proxy.recording.query.functions import QueryFunctions
from a2a_proxy.recording.query.parser import parse_expression
from a2a_proxy.recording.query.payload_tests import MAX_PATTERN_SECONDS, TooSlow
from a2a_proxy.recording.query.sql import Rows, make_condition, node_cost, own_condition
from a2a_proxy.recording.query.tree import Node, to_text
from a2a_proxy.recording.read.rows import key_bounds
from a2a_proxy.recording.store.codec import Column
from a2a_proxy.recording.store.database import translate_errors
from a2a_proxy.recording.store.schema import SESSION_SHIFT

_TABLES = {Rows.FRAMES: "frame", Rows.EXCHANGES: "exchange"}
_WINDOWS = {Rows.FRAMES: (1 << 17, 4096, 256), Rows.EXCHANGES: (1 << 17, 512, 32)}
"""Rows of the first window by cost: columns only, payloads read, payloads parsed. A window takes 10
to 50 ms, then the watcher is called.

If payloads are read each window is twice the previous one, up to _GROWTH times the first, because
conditions on other tables are evaluated once for each window. _MAX_WINDOW limits the number of ids
in memory.
"""
_GROWTH, _MAX_WINDOW = 8, 1 << 17
_FIRST_WINDOW = 512
"""Rows of the first window if another table is scanned for all rows at once. Row by row these take
10 ms, the scan takes 0.1 us for each row of the other table, and the first results need not wait
for it.
"""
_FEW = 250
"""Ids in one query. With the values of the longest expression they stay below SQLite's limit of 999
parameters."""

Watch = Callable[[int, int], bool]
"""Called between windows with the number of rows examined and the total number. Returning False
ends the search."""


class Explained(msgspec.Struct, frozen=True):
    """The SQL of an expression, and SQLite's query plan."""

    text: str
    """The expression in its canonical spelling."""
    sql: str
    params: tuple[Column, ...]
    plan: tuple[str, ...]


class QueryableRecording:
    """A recording with the filter language. One instance for each connection to it."""

    def __init__(self, db: sqlite3.Connection, name: str, functions: QueryFunctions) -> None:
        self._db = db
        self._name = name
        self._functions = functions

    def select_ids(
        self,
        expression: str | Node,
        rows: Rows,
        *,
        session: int | None = None,
        limit: int | None = None,
        watch: Watch | None = None,
    ) -> Iterator[int]:
        """Yield the ids of the matching rows, in order.

        Raises:
            QueryError: the expression is wrong, or a regular expression takes too long.
            SearchStopped: `watch` returned False.
        """
        self._functions.start_query()
        node = parse_expression(expression) if isinstance(expression, str) else expression
        whole, each = (
            self._build_query(node, rows, session),
            self._build_query(node, rows, session, few=True),
        )
        plan = _Plan(whole, _window_size(node, rows), each, _FIRST_WINDOW if each != whole else 0)
        return self._search_windows(plan, _RowRange(rows, session, limit), watch)

    def early_exchanges(self, expression: str | Node) -> list[int]:
        """Return some of the matching exchanges, in order: those that match by their own columns.

        The list is empty unless `select_ids` would begin with a scan of all frames.

        Raises:
            QueryError: as for `select_ids`.
        """
        node = parse_expression(expression) if isinstance(expression, str) else expression
        condition = own_condition(node) if node_cost(node) == 0 else None
        if condition is None or make_condition(node, Rows.EXCHANGES) == make_condition(
            node, Rows.EXCHANGES, few=True
        ):
            return []
        return [
            row[0]
            for row in self._fetch_all(
                f"SELECT e.id FROM exchange e WHERE {condition.text} ORDER BY e.id",
                condition.params,
            )
        ]

    def filter_ids(self, expression: str | Node, rows: Rows, ids: Sequence[int]) -> list[int]:
        """Return the matching ids of these, in order. Takes no time for other rows of the
        recording.

        Raises:
            QueryError: as for `select_ids`.
        """
        self._functions.start_query()
        node = parse_expression(expression) if isinstance(expression, str) else expression
        condition, alias = make_condition(node, rows, few=True), rows.value
        found: list[int] = []
        for begin in range(0, len(ids), _FEW):
            one = where_one_of(f"{alias}.id", tuple(ids[begin : begin + _FEW]))
            query = (
                f"SELECT {alias}.id FROM {_TABLES[rows]} {alias} WHERE {one.text} AND "
                f"{condition.text}"
            )
            found += (row[0] for row in self._fetch_all(query, (*one.params, *condition.params)))
        return sorted(found)

    def select_rows(self, query: str, expression: str | Node, rows: Rows) -> list[tuple[Any, ...]]:
        """Return the rows of the caller's query.

        `{where}` in it is replaced by the condition on `frame f` or `exchange e`.

        Raises:
            QueryError: as for `select_ids`.
        """
        node = parse_expression(expression) if isinstance(expression, str) else expression
        condition = make_condition(node, rows)
        return self._fetch_all(
            query.replace("{where}", f"({condition.text})"),
            condition.params * query.count("{where}"),
        )

    def explain_expression(self, expression: str | Node, rows: Rows) -> Explained:
        """Return the SQL for one window with its query plan. Raises QueryError."""
        node = parse_expression(expression) if isinstance(expression, str) else expression
        query, params = self._build_query(node, rows, None)
        values = (*params, 0, _window_size(node, rows), -1)
        with translate_errors(self._name):
            plan = self._db.execute(f"EXPLAIN QUERY PLAN {query}", values).fetchall()
        return Explained(to_text(node), query, values, tuple(_indent_plan(plan)))

    def _build_query(
        self, node: Node, rows: Rows, session: int | None, *, few: bool = False
    ) -> tuple[str, tuple[Column, ...]]:
        """Return a query whose last parameters are the lowest id (excluded), the highest id and the
        limit.

        `few` as for `where`.
        """
        alias = rows.value
        condition = make_condition(node, rows, few=few)
        if session is not None:
            column = "+f.session" if rows is Rows.FRAMES else f"e.id >> {SESSION_SHIFT}"
            condition = join_conditions("AND", Sql(f"{column} = ?", (session,)), condition)
        ids = f"{alias}.id > ? AND {alias}.id <= ?"
        query = f"SELECT {alias}.id FROM {_TABLES[rows]} {alias} WHERE {condition.text} AND {ids}"
        query += f" ORDER BY {alias}.id LIMIT ?"
        return query, condition.params

    def _search_windows(self, plan: _Plan, place: _RowRange, watch: Watch | None) -> Iterator[int]:
        looked, total, after, left = 0, 0, place.first, place.limit
        window, most = plan.window, max(plan.window, min(_GROWTH * plan.window, _MAX_WINDOW))
        while left is None or left > 0:
            first = plan.first and not looked
            query, params = plan.row_query if first else plan.bulk_query
            count, upto = self._fetch_one(
                place.next_window, (after, plan.first if first else window)
            )
            if not count:
                return
            found = self._fetch_all(query, (*params, after, upto, -1 if left is None else left))
            yield from (row[0] for row in found)
            if left is not None:
                left -= len(found)
            after, looked = upto, looked + count
            window = window if first else min(2 * window, most)
            if watch is not None:
                total = total or looked + self._fetch_one(place.count_query, (after,))[0]
                if not watch(looked, max(total, looked)):
                    raise SearchStopped

    def _fetch_one(self, query: str, params: tuple[Column, ...]) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self._fetch_all(query, params)[0]
        return found

    def _fetch_all(self, query: str, params: tuple[Column, ...]) -> list[tuple[Any, ...]]:
        self._functions.trouble = None
        with translate_errors(self._name):
            try:
                return self._db.execute(query, params).fetchall()
            except sqlite3.OperationalError:
                trouble = self._functions.trouble
                if isinstance(trouble, TooSlow):
                    raise _too_slow_error(str(trouble)) from None
                if trouble is not None:
                    raise trouble from None
                raise


class _Plan(msgspec.Struct, frozen=True):
    """Queries of the windows. A query is SQL with its values except the last three."""

    bulk_query: tuple[str, tuple[Column, ...]]
    window: int
    """Rows of the first window of `bulk_query`."""
    row_query: tuple[str, tuple[Column, ...]]
    """Query of a preceding window of `first` rows, unless `first` is 0."""
    first: int


class _RowRange(msgspec.Struct, frozen=True):
    """A range of rows of a table."""

    rows: Rows
    session: int | None
    limit: int | None

    @property
    def first(self) -> int:
        """The id before the first window. The ids of a session's exchanges are contiguous."""
        return 0 if self._id_span is None else self._id_span[0] - 1

    @property
    def next_window(self) -> str:
        """SQL for the number of rows in the next window, and the id of its last row."""
        table = _TABLES[self.rows]
        return (
            f"SELECT count(*), max(id) FROM (SELECT id FROM {table} WHERE id > ?{self._id_bound} "
            f"ORDER BY id LIMIT ?)"
        )

    @property
    def count_query(self) -> str:
        """SQL for the number of rows after an id."""
        return f"SELECT count(*) FROM {_TABLES[self.rows]} WHERE id > ?{self._id_bound}"

    @property
    def _id_span(self) -> tuple[int, int] | None:
        """The ids of a session's exchanges, or None if the ids do not depend on the session."""
        if self.session is None or self.rows is Rows.FRAMES:
            return None
        return key_bounds(self.session)

    @property
    def _id_bound(self) -> str:
        return "" if self._id_span is None else f" AND id < {self._id_span[1]}"


def _window_size(node: Node, rows: Rows) -> int:
    return _WINDOWS[rows][node_cost(node)]


def _too_slow_error(pattern: str) -> QueryError:
    return QueryError(
        f"the regular expression takes longer than {MAX_PATTERN_SECONDS:g} s on one text: "
        f"{pattern}",
        pattern,
        hint="avoid nested repetitions such as (a+)+",
    )


def _indent_plan(plan: list[tuple[int, int, int, str]]) -> Iterator[str]:
    depth = {0: -1}
    for number, parent, _, text in plan:
        depth[number] = depth.get(parent, -1) + 1
        yield "  " * depth[number] + text
