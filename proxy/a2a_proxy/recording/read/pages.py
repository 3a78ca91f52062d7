"""Rows of a recording page by page: no transaction is held while a caller works through them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from a2a_proxy.recording.read.rows import key
from a2a_proxy.recording.store.database import translated
from a2a_proxy.recording.store.row_types import Row

PAGE = 512
"""Rows fetched at a time."""

_Value = TypeVar("_Value")


class PagedQuery:
    """Asks one connection. SQLite's errors become RecordingError with the name of the file."""

    def __init__(self, db: sqlite3.Connection, name: str) -> None:
        self._db = db
        self._name = name

    def all(self, query: str, parameters: tuple[Any, ...] = ()) -> list[Row]:
        """All rows of an answer."""
        with translated(self._name):
            return self._db.execute(query, parameters).fetchall()

    def one(self, query: str, parameters: tuple[Any, ...] = ()) -> Row | None:
        """The first row of an answer."""
        return next(iter(self.all(query, parameters)), None)

    def by_keyset(
        self,
        query: str,
        fixed: tuple[Any, ...],
        after: int,
        position: Callable[[Any], int],
        make: Callable[[Row], _Value],
        limit: int | None,
    ) -> Iterator[_Value]:
        """Values in order: `after` and the page's size are the last two parameters of the query."""
        left = limit
        while left is None or left > 0:
            size = PAGE if left is None else min(PAGE, left)
            rows = self.all(query, (*fixed, after, size))
            for row in rows:
                value = make(row)
                after = position(value)
                yield value
            if len(rows) < size:
                return
            left = None if left is None else left - size

    def of_session(
        self,
        table: str,
        make: Callable[[Row], _Value],
        session: int | None,
        after: int = 0,
        limit: int | None = None,
    ) -> Iterator[_Value]:
        """Values of a table whose key holds the session, of one or of all, those with a key greater than `after`."""
        before = 1 << 62
        if session is not None:
            after, before = max(after, key(session, 0) - 1), key(session + 1, 0)
        query = f"SELECT * FROM {table} WHERE id < ? AND id > ? ORDER BY id LIMIT ?"
        return self.by_keyset(query, (before,), after, lambda value: value.key, make, limit)

    def chosen(self, table: str, ids: Iterator[int], make: Callable[[Row], _Value]) -> Iterator[_Value]:
        """Values of these ids; the first one does not wait for the others."""
        for number in ids:
            row = self.one(f"SELECT * FROM {table} WHERE id = ?", (number,))
            if row is not None:
                yield make(row)
