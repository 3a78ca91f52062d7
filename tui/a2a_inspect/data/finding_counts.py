"""Number and highest severity of the findings of each row: one indexed query per page of rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from a2a_proxy.model.values import Finding, Severity
from a2a_proxy.present import text
from a2a_proxy.recording.read.outcome_sql import COUNTED_FINDING
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, FrameRow, make_key, split_key
from a2a_proxy.recording.store.schema import SESSION_SHIFT

if TYPE_CHECKING:
    from a2a_proxy.recording.read.endings import EndingReader
    from a2a_proxy.rules.endings.ending import Ending

SEVERITIES = {
    Severity.ERROR: "list--bad",
    Severity.WARNING: "list--warn",
    Severity.INFO: "list--dim",
}
"""Component classes of the list for each severity."""
_MAX_SHOWN_COUNT = 99
_MAX_LISTED_FINDINGS = 50
"""Findings listed for a frame and its exchange."""

# Times of findings are relative to the start of their session.
_UNTIL_CONDITION = (
    "AND (?1 = 0 OR at <= ?1 - (SELECT started FROM session s WHERE s.id = finding.session))"
)
_EXCHANGE_COUNTS = f"""SELECT session, exchange, count(*), max(severity) FROM finding
  WHERE (session, exchange) IN (
    SELECT value >> {SESSION_SHIFT}, value & {(1 << SESSION_SHIFT) - 1} FROM json_each(?2))
  {_UNTIL_CONDITION} AND {COUNTED_FINDING} GROUP BY session, exchange"""
_EXCHANGE_TOTAL = f"""SELECT count(*) FROM finding WHERE session = ?2 AND exchange = ?3
  {_UNTIL_CONDITION}"""
_FRAME_COUNTS = f"""SELECT seq, count(*), max(severity) FROM finding
  WHERE session = ?2 AND exchange = ?3 AND seq BETWEEN ?4 AND ?5 {_UNTIL_CONDITION}
  AND {COUNTED_FINDING} GROUP BY seq"""


class FindingCounts(msgspec.Struct, frozen=True):
    """Number and highest severity of the findings about one row. One that follows from the ending
    of a call is not counted beside the ending's own."""

    count: int
    highest_severity: Severity

    def __str__(self) -> str:
        """Return `!2 E`: two findings, the most severe an error. W is a warning, I is
        information."""
        count = str(self.count) if self.count <= _MAX_SHOWN_COUNT else f"{_MAX_SHOWN_COUNT}+"
        return f"!{count:<2}{self.highest_severity.name[0]}"


class ExchangeLine(ExchangeRow, frozen=True):
    """An exchange as displayed in the list."""

    finding_counts: FindingCounts | None = None
    """Findings about the exchange and all its frames."""
    cells: tuple[str, ...] = ()
    """Cells of the columns that the user chose."""
    ending: Ending | None = None
    """Why it did not end well, if the list shows it."""


def ending_words(row: ExchangeRow, ending: Ending | None) -> str:
    """Return why the call did not end well, in one line."""
    if ending is None:
        return text.ending_words(row.exchange)
    return text.ending_words(row.exchange, ending.cause, ending.summary)


def find_findings(
    recording: Recording, row: ExchangeRow, seq: int | None, until: int = 0
) -> tuple[list[Finding], int]:
    """Return the first findings of an exchange, those about one frame first, and the total number
    of its findings."""
    own = (
        recording.read_findings(exchange=row.key, seq=seq, limit=_MAX_LISTED_FINDINGS)
        if seq is not None
        else ()
    )
    ids = {
        each.id: each.finding
        for each in (*own, *recording.read_findings(exchange=row.key, limit=_MAX_LISTED_FINDINGS))
    }
    there = [each for each in ids.values() if not until or each.at <= until]
    total = recording.db.execute(_EXCHANGE_TOTAL, (until, *split_key(row.key))).fetchone()[0]
    return there, total


def exchange_lines(
    recording: Recording,
    rows: Sequence[ExchangeRow],
    until: int = 0,
    endings: EndingReader | None = None,
) -> list[ExchangeLine]:
    """Return these exchanges with their findings up to `until`, ns since the epoch; 0: up to now;
    and with their endings, if there is a reader for them."""
    keys = json.dumps([row.key for row in rows])
    count_rows = recording.db.execute(_EXCHANGE_COUNTS, (until, keys)).fetchall() if rows else []
    found = {
        make_key(session, number): FindingCounts(count, Severity(worst))
        for session, number, count, worst in count_rows
    }
    known = endings.read_all(rows) if endings is not None else {}
    return [
        ExchangeLine(
            row.key,
            row.session,
            row.exchange,
            found.get(row.key),
            ending=known.get(row.key),
        )
        for row in rows
    ]


def count_by_frame(
    recording: Recording, rows: Sequence[FrameRow], until: int = 0
) -> dict[int, FindingCounts]:
    """Return the findings of consecutive frames of one exchange, by `seq`; `until` as in
    `exchange_lines`."""
    if not rows:
        return {}
    session, exchange = split_key(rows[0].exchange_key)
    count_rows = recording.db.execute(
        _FRAME_COUNTS, (until, session, exchange, rows[0].frame.seq, rows[-1].frame.seq)
    ).fetchall()
    return {seq: FindingCounts(count, Severity(worst)) for seq, count, worst in count_rows}
