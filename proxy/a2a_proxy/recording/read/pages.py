"""Paged queries of a recording: no transaction is held while the caller processes rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from a2a_proxy.recording.read.rows import make_key
from a2a_proxy.recording.store.database import translate_errors
from a2a_proxy.recording.store.row_types import Row

PAGE_ROWS = 512
"""Rows fetched at a time."""

_Value = TypeVar("_Value")


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
    ) -> Iterator[_Value]:
        """Yield values in order. `after` and the page size are the last two parameters of the
        query."""
        remaining = limit
        while remaining is None or remaining > 0:
            size = PAGE_ROWS if remaining is None else min(PAGE_ROWS, remaining)
            rows = self.fetch_all(query, (*fixed, after, size))
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
    ) -> Iterator[_Value]:
        """Yield values with a key greater than `after`, of one session or of all. The key contains
        the session."""
        before = 1 << 62
        if session is not None:
            after, before = max(after, make_key(session, 0) - 1), make_key(session + 1, 0)
        query = f"SELECT * FROM {table} WHERE id < ? AND id > ? ORDER BY id LIMIT ?"
        return self.by_keyset(query, (before,), after, lambda value: value.key, make, limit)

    def by_ids(
        self, table: str, ids: Iterator[int], make: Callable[[Row], _Value]
    ) -> Iterator[_Value]:
        """Yield values of these ids, each as soon as it is read."""
        for number in ids:
            row = self.fetch_one(f"SELECT * FROM {table} WHERE id = ?", (number,))
            if row is not None:
                yield make(row)
