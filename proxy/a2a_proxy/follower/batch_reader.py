"""Reads the rows of a session after a cursor, in delivery order, with one short read transaction
per batch.

Frames are in storage order, which is wire order. A finding follows the frames of its time, the end
of a segment the time it became clear, the end of an exchange the last of its frames and the
findings about it. Live and finished recordings are read by the same code: only the limits of
batches may differ.

Finds ended segments, interruptions and hand-offs by number, although they do not end in order of
their numbers.

A number is assigned at the beginning, but its row may be stored later: the halves of a unary call
have rows only if it turns out to be more than a unary call. So recent numbers that have not been
seen are queried again.
"""

import sqlite3
from collections.abc import Iterator
from typing import Any

import msgspec

from a2a_proxy.follower.checkpoint import SessionCursor, TableProgress
from a2a_proxy.follower.consumer import RowKind
from a2a_proxy.model.values import Handoff, Interruption, Segment
from a2a_proxy.recording.read.cursor import Fingerprint, read_fingerprint
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import FrameRow, SessionRow, make_key, split_key
from a2a_proxy.recording.store.database import translate_errors

SEEN_WINDOW = 16_384
"""Number of recent numbers that are queried again; a row stored after so many later ones began is
not found."""


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


MAX_FRAMES = 512
"""Maximum frames of a batch."""
MAX_FINDINGS = 4096
"""Maximum findings of a batch."""
_MAX_QUERY_KEYS = 500
"""Maximum keys in one query."""
_LAST_FRAME = "SELECT id FROM frame WHERE session = ? AND exchange = ? ORDER BY seq DESC LIMIT 1"


class FollowedRow(msgspec.Struct):
    """A row to hand over."""

    at: int
    """Its position in the order, ns."""
    kind: RowKind
    row: int
    """Number of the row."""
    value: Any = None
    """The row itself; None if it is read when it is handed over."""


class RowBatch(msgspec.Struct):
    """A batch of rows of a session."""

    session: SessionRow
    items: list[FollowedRow]
    after: SessionCursor
    """The session's cursor after the batch."""
    more: bool
    """Whether further frames are stored already."""


def next_batch(
    recording: Recording, session: int, cursor: SessionCursor, row_kinds: frozenset[RowKind]
) -> RowBatch | None:
    """Return the rows after `cursor`, or None if the session does not exist (any more). Raises
    RecordingError."""
    with translate_errors(recording.path):
        recording.db.execute("BEGIN")
        try:
            row = recording.read_session(session)
            return (
                _BatchReader(recording, row, cursor, row_kinds).read_batch()
                if row is not None
                else None
            )
        finally:
            recording.db.execute("COMMIT")


def read_value(recording: Recording, item: FollowedRow) -> Any:
    """Return the value of the model, or None if the row was deleted. Raises RecordingError."""
    if item.kind is RowKind.FRAME:
        row: FrameRow | None = item.value or recording.read_frame(item.row, payload=False)
        return row and msgspec.structs.replace(row.frame, payload=recording.read_payload(row))
    if item.kind is RowKind.FINDING:
        found = item.value or next(recording.read_findings(after=item.row - 1, limit=1), None)
        return found and found.finding
    if item.kind is RowKind.EXCHANGE:
        over = recording.read_exchange(item.row)
        return over and over.exchange
    return _read_conversation_part(recording, item.kind, item.row)


def _read_conversation_part(
    recording: Recording, kind: RowKind, number: int
) -> Segment | Interruption | Handoff | None:
    session, before = split_key(number)[0], number - 1
    if kind is RowKind.SEGMENT:
        return next(
            (row.segment for row in recording.read_segments(session, after=before, limit=1)), None
        )
    if kind is RowKind.INTERRUPTION:
        return next(
            (
                row.interruption
                for row in recording.read_interruptions(session, after=before, limit=1)
            ),
            None,
        )
    return next(
        (row.handoff for row in recording.read_handoffs(session, after=before, limit=1)), None
    )


class _BatchReader:
    """Reads one batch of one session."""

    def __init__(
        self,
        recording: Recording,
        session: SessionRow,
        cursor: SessionCursor,
        row_kinds: frozenset[RowKind],
    ) -> None:
        self._recording = recording
        self._db: sqlite3.Connection = recording.db
        self._session = session
        self._row_kinds = row_kinds
        self._cursor = cursor
        self._items: list[FollowedRow] = []
        self._last_frame_times: dict[int, int] = {}
        """Position of the last frame of each exchange in this batch."""

    def read_batch(self) -> RowBatch:
        """Read and sort the batch."""
        before = self._cursor
        last = self._last_handled_row("frame", before.frame, before.frame_print, before.own_frame)
        rows = list(
            self._recording.frames_after(last, MAX_FRAMES, session=self._session.id, payloads=False)
        )
        full = len(rows) == MAX_FRAMES
        top = self._add_frames(rows)
        after = SessionCursor(frame=rows[-1].id if full else self._newest_row("frame"), at=top)
        after.own_frame = rows[-1].id if rows else before.own_frame
        after.frame_print = read_fingerprint(self._db, "frame", after.frame)
        after.finding, after.own_finding = self._add_findings(top if full else None)
        after.finding_print = read_fingerprint(self._db, "finding", after.finding)
        for kind in SEGMENT_TABLES.keys() & self._row_kinds:
            after.parts[kind] = self._add_parts(kind, top if full else None, top)
        self._add_exchanges(after, full)
        self._items.sort(key=lambda item: (item.at, item.kind))
        return RowBatch(
            self._session,
            [item for item in self._items if item.kind in self._row_kinds],
            after,
            full,
        )

    def _add_frames(self, rows: list[FrameRow]) -> int:
        top = self._cursor.at
        for row in rows:
            top = max(top, row.frame.at)
            self._items.append(FollowedRow(top, RowKind.FRAME, row.id, row))
            if row.frame.exchange:
                self._last_frame_times[row.frame.exchange] = top
        return top

    def _newest_row(self, table: str) -> int:
        """Return the newest row. Rows of other sessions are skipped with it, or each batch would
        skip them again."""
        return self._db.execute(f"SELECT max(id) FROM {table}").fetchone()[0] or 0

    def _last_handled_row(self, table: str, row: int, last_print: Fingerprint, own_row: int) -> int:
        """Return the row after which rows are new: the last one passed, if it is still the same
        row.

        If the newest rows are pruned, SQLite assigns their numbers to the next ones; then the
        session's own last row counts.
        """
        return row if read_fingerprint(self._db, table, row) == last_print else own_row

    def _add_findings(self, until: int | None) -> tuple[int, int]:
        """Add the findings before `until` (ns, None: all); return the ids of the last finding
        passed and of the last own."""
        before = self._cursor
        last = self._last_handled_row(
            "finding", before.finding, before.finding_print, before.own_finding
        )
        own = before.own_finding
        rows = list(self._recording.read_findings(self._session.id, after=last, limit=MAX_FINDINGS))
        for row in rows:
            if until is not None and row.finding.at >= until:
                return last, own
            self._items.append(
                FollowedRow(max(row.finding.at, self._cursor.at), RowKind.FINDING, row.id, row)
            )
            last = own = row.id
        return (last if len(rows) == MAX_FINDINGS else self._newest_row("finding")), own

    def _add_parts(self, kind: RowKind, until: int | None, top: int) -> TableProgress:
        """Add the parts that ended before `until` (ns, None: all); return the new progress of their
        table."""
        started, before = self._session.facts.started, self._cursor
        limit = None if until is None else until - started
        found, known = ended_segments(
            self._db, kind, self._session.id, before.parts.get(kind, TableProgress()), limit
        )
        for number, at in found:
            self._items.append(FollowedRow(max(before.at, min(started + at, top)), kind, number))
        return known

    def _add_exchanges(self, after: SessionCursor, full: bool) -> None:
        """Add the ends of closed exchanges whose frames are all in this batch or in earlier
        ones."""
        session, before = self._session.id, self._cursor
        highest = (
            make_key(session, max(self._last_frame_times, default=0))
            if full
            else make_key(session + 1, 0) - 1
        )
        lowest = max(before.exchange, make_key(session, 0))
        find = "SELECT id FROM exchange WHERE id > ? AND id <= ? ORDER BY id"
        fresh = [row[0] for row in self._db.execute(find, (lowest, highest))]
        waiting = dict.fromkeys([*before.open, *fresh])
        asked = (
            [each for each in waiting if split_key(each)[1] in self._last_frame_times]
            if full
            else list(waiting)
        )
        for number, closed in self._closed_exchanges(asked):
            exchange = split_key(number)[1]
            if full and self._has_later_frame(exchange, after.frame):
                continue
            place = self._last_frame_times.get(exchange) or max(before.at, min(closed, after.at))
            self._items.append(FollowedRow(place, RowKind.EXCHANGE, number))
            del waiting[number]
        after.exchange = fresh[-1] if fresh else before.exchange
        after.open = list(waiting)

    def _closed_exchanges(self, keys: list[int]) -> list[tuple[int, int]]:
        """Return the closed ones of the exchanges, with their times, ns."""
        found: list[tuple[int, int]] = []
        for start in range(0, len(keys), _MAX_QUERY_KEYS):
            some = keys[start : start + _MAX_QUERY_KEYS]
            query = (
                f"SELECT id, closed FROM exchange WHERE closed IS NOT NULL AND id IN "
                f"({','.join('?' * len(some))})"
            )
            found += [
                (row[0], self._session.facts.started + row[1])
                for row in self._db.execute(query, some)
            ]
        return found

    def _has_later_frame(self, exchange: int, last: int) -> bool:
        row = self._db.execute(_LAST_FRAME, (self._session.id, exchange)).fetchone()
        return row is not None and row[0] > last
