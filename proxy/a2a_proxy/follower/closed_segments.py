"""Finds ended segments, interruptions and hand-offs by number, although they do not end in order of
their numbers.

A number is assigned at the beginning, but its row may be stored later: the halves of a unary call
have rows only if it turns out to be more than a unary call. So recent numbers that have not been
seen are queried again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import msgspec

from a2a_proxy.follower.checkpoint import TableProgress
from a2a_proxy.follower.consumer import RowKind
from a2a_proxy.recording.read.rows import make_key, split_key

SEEN_WINDOW = 16_384
"""Number of recent numbers that are queried again; a row stored after so many later ones began is
not found."""
_MAX_QUERY_KEYS = 500


class _SegmentTable(msgspec.Struct, frozen=True):
    name: str
    began: str
    """The column of its beginning."""


SEGMENT_TABLES = {
    RowKind.SEGMENT: _SegmentTable("segment", "began"),
    RowKind.INTERRUPTION: _SegmentTable("interruption", "at"),
    RowKind.HANDOFF: _SegmentTable("handoff", "at"),
}


def ended_segments(
    db: sqlite3.Connection, kind: RowKind, session: int, progress: TableProgress, until: int | None
) -> tuple[list[tuple[int, int]], TableProgress]:
    """Return the keys of the ended rows, each with its time (ns from the start of the session), and
    the new progress.

    With `until` (ns), only rows that began and ended before it.
    """
    table = SEGMENT_TABLES[kind]
    fresh = list(_new_numbers(db, table, session, progress, until))
    found: list[tuple[int, int]] = []
    waiting = dict.fromkeys([*progress.open, *fresh])
    for number, at in _ended_numbers(db, table, session, list(waiting)):
        if until is None or at < until:
            found.append((make_key(session, number), at))
            del waiting[number]
    return found, _next_progress(progress, fresh, list(waiting))


def _new_numbers(
    db: sqlite3.Connection,
    table: _SegmentTable,
    session: int,
    progress: TableProgress,
    until: int | None,
) -> Iterator[int]:
    seen = int.from_bytes(progress.seen)
    lowest = make_key(session, max(progress.top - SEEN_WINDOW, 0))
    query = f"SELECT id, {table.began} FROM {table.name} WHERE id > ? AND id < ? ORDER BY id"
    for row, began in db.execute(query, (lowest, make_key(session + 1, 0))):
        number = split_key(row)[1]
        if until is not None and began >= until:
            return
        if number > progress.top or not seen >> (progress.top - number) & 1:
            yield number


def _ended_numbers(
    db: sqlite3.Connection, table: _SegmentTable, session: int, numbers: list[int]
) -> Iterator[tuple[int, int]]:
    for start in range(0, len(numbers), _MAX_QUERY_KEYS):
        some = [make_key(session, number) for number in numbers[start : start + _MAX_QUERY_KEYS]]
        marks = ",".join("?" * len(some))
        ended = f"SELECT id, ended FROM {table.name} WHERE ended IS NOT NULL AND id IN ({marks})"
        for row, at in db.execute(f"{ended} ORDER BY id", some):
            yield split_key(row)[1], at


def _next_progress(progress: TableProgress, fresh: list[int], waiting: list[int]) -> TableProgress:
    top = max(progress.top, max(fresh, default=0))
    seen = int.from_bytes(progress.seen) << (top - progress.top)
    for number in fresh:
        seen |= 1 << (top - number)
    seen &= (1 << SEEN_WINDOW) - 1
    return TableProgress(top, seen.to_bytes((seen.bit_length() + 7) // 8), waiting)
