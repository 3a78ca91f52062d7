"""Conversion of segments, interruptions and hand-offs to rows and back."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import msgspec

from a2a_proxy.model.observation import Changes
from a2a_proxy.model.segment import AGENT, CLIENT, Handoff, Interruption, Segment
from a2a_proxy.recording.read.rows import (
    HandoffRow,
    InterruptionRow,
    SegmentRow,
    make_key,
    split_key,
)
from a2a_proxy.recording.store.codec import Column
from a2a_proxy.recording.store.intern import Interner
from a2a_proxy.recording.store.row_types import (
    Row,
    absolute_time,
    check_row,
    json_reader,
)
from a2a_proxy.recording.store.value_rows import RowPacker, insert_sql, row_unpacker

TABLES = ("segment", "interruption", "handoff")
_EXTRA = ("idle", "activity_end", "closed", "generation_first", "generation_last", "author")
"""Fields that few segments have. The two times among them are relative to `end`."""
_TIMES = ("activity_end", "closed")


class _Extra(TypedDict, total=False):
    idle: int
    activity_end: int
    closed: int
    generation_first: int
    generation_last: int
    author: str


_decode_extra = json_reader(_Extra)


class SegmentWriter:
    """Stores segments, interruptions and hand-offs of one session. Use inside a write
    transaction."""

    def __init__(
        self, db: sqlite3.Connection, session: int, started: int, words: Interner, idents: Interner
    ) -> None:
        self._db = db
        self._session = session
        self._started = started
        self._words = words
        self._idents = idents
        self._interruptions = RowPacker(Interruption, session, started, words, idents)
        self._handoffs = RowPacker(Handoff, session, started, words, idents)

    def write(self, changes: Changes) -> None:
        """Store snapshots. Each replaces the earlier row of the same object."""
        if changes.segments:
            self._replace_rows("segment", changes.segments, self._segment_row)
        if changes.interruptions:
            self._replace_rows("interruption", changes.interruptions, self._interruptions.pack)
        if changes.handoffs:
            self._replace_rows("handoff", changes.handoffs, self._handoffs.pack)

    def _replace_rows(
        self, table: str, values: Sequence[Any], pack: Callable[[Any], Sequence[Column]]
    ) -> None:
        idents = {name for value in values for name in (value.task_id, value.context_id)}
        self._idents.learn_values(idents)
        self._db.executemany(f"INSERT OR REPLACE {insert_sql(table)}", map(pack, values))

    def _segment_row(self, value: Segment) -> tuple[Column, ...]:
        start, end, ids = value.start, value.end, self._idents.ids
        return (
            make_key(self._session, value.id),
            self._words.row_number(value.agent),
            ids[value.task_id],
            ids[value.context_id],
            int(value.speaker == AGENT),
            value.turn,
            value.exchange,
            value.seq,
            value.last_exchange - value.exchange,
            value.last_seq,
            value.began - self._started,
            start - value.began,
            end - start,
            value.ended - end if value.ended else None,
            self._words.row_number(value.reason),
            value.frames,
            value.bytes,
            value.outputs,
            value.first_output - start if value.first_output else None,
            end - value.last_output if value.last_output else None,
            value.gap,
            _pack_extra(value),
        )


def _pack_extra(value: Segment) -> str | None:
    extra: dict[str, object] = {}
    for name in _EXTRA:
        member = getattr(value, name)
        if member:
            extra[name] = member - value.end if name in _TIMES else member
    return msgspec.json.encode(extra).decode() if extra else None


class SegmentDecoder:
    """Builds values from rows: the inverse of `SegmentWriter`.

    `words` and `idents` map row numbers to texts; `start` returns the start of a session in ns.
    """

    def __init__(self, words: Any, idents: Any, start: Any) -> None:
        self._words = words
        self._idents = idents
        self._start = start
        self._interruptions = row_unpacker(Interruption, words, idents)
        self._handoffs = row_unpacker(Handoff, words, idents)

    def _split_row_key(self, row_key: int) -> tuple[int, int, int]:
        session, number = split_key(row_key)
        return session, number, self._start(session)

    @check_row("segment")
    def decode_segment(self, row: Row) -> SegmentRow:
        """Build a value from a row of `segment`."""
        (
            row_key,
            agent,
            task,
            context,
            speaker,
            turn,
            exchange,
            seq,
            exchanges,
            last_seq,
            began_at,
            *rest,
        ) = row
        start, end, ended, reason, frames, size, outputs, first_output, last_output, gap, extra = (
            rest
        )
        session, number, zero = self._split_row_key(row_key)
        began_at = absolute_time(zero, began_at)
        start = absolute_time(began_at, start)
        end = absolute_time(start, end)
        more = _decode_extra(extra) if extra else {}
        for name in _TIMES:
            if name in more:
                more[name] = absolute_time(end, more[name])
        value = Segment(
            number,
            self._words[agent],
            self._idents[task],
            self._idents[context],
            AGENT if speaker else CLIENT,
            turn,
            exchange,
            seq,
            exchange + exchanges,
            last_seq,
            began_at,
            start,
            end,
            ended=absolute_time(end, ended),
            reason=self._words[reason],
            frames=frames,
            bytes=size,
            outputs=outputs,
            first_output=absolute_time(start, first_output),
            last_output=0 if last_output is None else absolute_time(end, -last_output),
            gap=gap,
            **more,
        )
        return SegmentRow(row_key, session, value)

    @check_row("interruption")
    def decode_interruption(self, row: Row) -> InterruptionRow:
        """Build a value from a row of `interruption`."""
        session, _, zero = self._split_row_key(row[0])
        value = self._interruptions(row, zero)
        return InterruptionRow(row[0], session, value)

    @check_row("handoff")
    def decode_handoff(self, row: Row) -> HandoffRow:
        """Build a value from a row of `handoff`."""
        session, _, zero = self._split_row_key(row[0])
        return HandoffRow(row[0], session, self._handoffs(row, zero))
