"""Conversion of segments, interruptions and hand-offs to rows and back."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
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
from a2a_proxy.recording.store.row_types import Row, absolute_time, check_row, json_reader

TABLES = ("segment", "interruption", "handoff")
_WIDTHS = {"segment": 22, "interruption": 16, "handoff": 16}
_INSERT = {
    table: f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * width)})"
    for table, width in _WIDTHS.items()
}
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

    def write(self, changes: Changes) -> None:
        """Store snapshots. Each replaces the earlier row of the same object."""
        if changes.segments:
            self._replace_row("segment", changes.segments, self._segment_row)
        if changes.interruptions:
            self._replace_row("interruption", changes.interruptions, self._interruption_row)
        if changes.handoffs:
            self._replace_row("handoff", changes.handoffs, self._handoff_row)

    def _replace_row(self, table: str, values: Sequence[Any], row: Any) -> None:
        idents = {name for value in values for name in (value.task_id, value.context_id)}
        idents.update(value.to_task for value in values if table == "handoff")
        self._idents.learn_values(idents)
        self._db.executemany(_INSERT[table], [row(value) for value in values])

    def _relative_time(self, at: int) -> int | None:
        return at - self._started if at else None

    def _owner_columns(self, value: Segment | Interruption | Handoff) -> tuple[int, int, int]:
        ids = self._idents.ids
        return self._words.row_number(value.agent), ids[value.task_id], ids[value.context_id]

    def _segment_row(self, value: Segment) -> tuple[Column, ...]:
        start, end = value.start, value.end
        return (
            make_key(self._session, value.id),
            *self._owner_columns(value),
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

    def _interruption_row(self, value: Interruption) -> tuple[Column, ...]:
        word, time = self._words.row_number, self._relative_time
        return (
            make_key(self._session, value.id),
            *self._owner_columns(value),
            word(value.kind),
            value.segment,
            value.exchange,
            value.seq,
            value.at - self._started,
            time(value.ended),
            word(value.outcome),
            value.residual_frames,
            value.residual_bytes,
            time(value.last_residual),
            value.wasted,
            time(value.reaction),
        )

    def _handoff_row(self, value: Handoff) -> tuple[Column, ...]:
        word, time = self._words.row_number, self._relative_time
        return (
            make_key(self._session, value.id),
            word(value.kind),
            word(value.evidence),
            *self._owner_columns(value),
            value.segment,
            word(value.to_agent),
            self._idents.ids[value.to_task],
            value.to_exchange,
            value.exchange,
            value.seq,
            value.at - self._started,
            time(value.ended),
            time(value.first_output),
            value.briefing,
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

    def _split_row_key(self, row_key: int) -> tuple[int, int, int]:
        session, number = split_key(row_key)
        return session, number, self._start(session)

    def _owner_texts(self, agent: int, task: int, context: int) -> tuple[str, str, str]:
        return self._words[agent], self._idents[task], self._idents[context]

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
            *self._owner_texts(agent, task, context),
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
        row_key, agent, task, context, kind, segment, exchange, seq, at, ended, outcome, *rest = row
        frames, size, last, wasted, reaction = rest
        session, number, zero = self._split_row_key(row_key)
        value = Interruption(
            number,
            *self._owner_texts(agent, task, context),
            self._words[kind],
            segment,
            exchange,
            seq,
            absolute_time(zero, at),
            absolute_time(zero, ended),
            self._words[outcome],
            frames,
            size,
            absolute_time(zero, last),
            wasted,
            absolute_time(zero, reaction),
        )
        return InterruptionRow(row_key, session, value)

    @check_row("handoff")
    def decode_handoff(self, row: Row) -> HandoffRow:
        """Build a value from a row of `handoff`."""
        (
            row_key,
            kind,
            evidence,
            agent,
            task,
            context,
            segment,
            to_agent,
            to_task,
            to_exchange,
            *rest,
        ) = row
        exchange, seq, at, ended, first_output, briefing = rest
        session, number, zero = self._split_row_key(row_key)
        value = Handoff(
            number,
            self._words[kind],
            self._words[evidence],
            *self._owner_texts(agent, task, context),
            segment,
            self._words[to_agent],
            self._idents[to_task],
            to_exchange,
            exchange,
            seq,
            absolute_time(zero, at),
            absolute_time(zero, ended),
            absolute_time(zero, first_output),
            briefing,
        )
        return HandoffRow(row_key, session, value)
