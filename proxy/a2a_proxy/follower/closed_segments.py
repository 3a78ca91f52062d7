"""Segments, interruptions and hand-offs that are over: found by number, though not in the order of their numbers.

A number is given when a thing begins, but its row may come later: the halves of a unary call have rows only where it
turns out to be more than that. So those of the last numbers that have not been seen are looked for again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import msgspec

from a2a_proxy.follower.checkpoint import TableProgress
from a2a_proxy.follower.consumer import RowKind
from a2a_proxy.recording.read.rows import make_key, split_key

WINDOW = 16_384
"""Numbers that are looked for again: a row that comes after so many others have begun is not found."""
_ASKED = 500


class _SegmentTable(msgspec.Struct, frozen=True):
    name: str
    began: str
    ended: str
    """Both as SQL, ns from the start of the session."""


TABLES = {
    RowKind.SEGMENT: _SegmentTable("segment", "began", 'began + start + "end" + ended'),
    RowKind.INTERRUPTION: _SegmentTable("interruption", "at", "ended"),
    RowKind.HANDOFF: _SegmentTable("handoff", "at", "ended"),
}


def ended(
    db: sqlite3.Connection, kind: RowKind, session: int, known: TableProgress, until: int | None
) -> tuple[list[tuple[int, int]], TableProgress]:
    """Keys of those that have ended, each with the time, ns from the start of the session; and what is known then.

    With `until` (ns) only what began and ended before.
    """
    table = TABLES[kind]
    fresh = list(_fresh(db, table, session, known, until))
    found: list[tuple[int, int]] = []
    waiting = dict.fromkeys([*known.open, *fresh])
    for number, at in _over(db, table, session, list(waiting)):
        if until is None or at < until:
            found.append((make_key(session, number), at))
            del waiting[number]
    return found, _learned(known, fresh, list(waiting))


def tables(db: sqlite3.Connection) -> frozenset[RowKind]:
    """Those that the recording has: old ones have none."""
    names = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return frozenset(kind for kind, table in TABLES.items() if table.name in names)


def _fresh(
    db: sqlite3.Connection, table: _SegmentTable, session: int, known: TableProgress, until: int | None
) -> Iterator[int]:
    seen = int.from_bytes(known.seen)
    lowest = make_key(session, max(known.top - WINDOW, 0))
    query = f"SELECT id, {table.began} FROM {table.name} WHERE id > ? AND id < ? ORDER BY id"
    for row, began in db.execute(query, (lowest, make_key(session + 1, 0))):
        number = split_key(row)[1]
        if until is not None and began >= until:
            return
        if number > known.top or not seen >> (known.top - number) & 1:
            yield number


def _over(db: sqlite3.Connection, table: _SegmentTable, session: int, numbers: list[int]) -> Iterator[tuple[int, int]]:
    for start in range(0, len(numbers), _ASKED):
        some = [make_key(session, number) for number in numbers[start : start + _ASKED]]
        marks = ",".join("?" * len(some))
        query = f"SELECT id, {table.ended} FROM {table.name} WHERE ended IS NOT NULL AND id IN ({marks}) ORDER BY id"
        for row, at in db.execute(query, some):
            yield split_key(row)[1], at


def _learned(known: TableProgress, fresh: list[int], waiting: list[int]) -> TableProgress:
    top = max(known.top, max(fresh, default=0))
    seen = int.from_bytes(known.seen) << (top - known.top)
    for number in fresh:
        seen |= 1 << (top - number)
    seen &= (1 << WINDOW) - 1
    return TableProgress(top, seen.to_bytes((seen.bit_length() + 7) // 8), waiting)
