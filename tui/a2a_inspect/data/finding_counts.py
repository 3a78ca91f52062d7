"""How many findings a row has, and how grave they are: one question for a page of rows, answered from an index."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from a2a_proxy.model.finding import Finding, Severity
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, FrameRow, make_key, split_key
from a2a_proxy.recording.store.schema import SESSION_SHIFT

SEVERITIES = {Severity.ERROR: "list--bad", Severity.WARNING: "list--warn", Severity.INFO: "list--dim"}
"""Names of component classes of the list: how each of them looks."""
_MAX_SHOWN_COUNT = 99
_MAX_LISTED_FINDINGS = 50
"""Of a frame, and of its exchange."""

# The times of findings count from the beginning of their session.
_UNTIL_CONDITION = "AND (?1 = 0 OR at <= ?1 - (SELECT started FROM session s WHERE s.id = finding.session))"
_EXCHANGE_COUNTS = f"""SELECT session, exchange, count(*), max(severity) FROM finding
  WHERE (session, exchange) IN (SELECT value >> {SESSION_SHIFT}, value & {(1 << SESSION_SHIFT) - 1} FROM json_each(?2))
  {_UNTIL_CONDITION} GROUP BY session, exchange"""
_FRAME_COUNTS = f"""SELECT seq, count(*), max(severity) FROM finding
  WHERE session = ?2 AND exchange = ?3 AND seq BETWEEN ?4 AND ?5 {_UNTIL_CONDITION} GROUP BY seq"""


class FindingCounts(msgspec.Struct, frozen=True):
    """The findings about one row, in sum."""

    count: int
    highest_severity: Severity

    def __str__(self) -> str:
        """`!2 E`: two, the gravest an error. W is a warning, I for information."""
        count = str(self.count) if self.count <= _MAX_SHOWN_COUNT else f"{_MAX_SHOWN_COUNT}+"
        return f"!{count:<2}{self.highest_severity.name[0]}"


class ExchangeLine(ExchangeRow, frozen=True):
    """An exchange as the list shows it."""

    finding_counts: FindingCounts | None = None
    """About the call and all its frames."""


def find_findings(recording: Recording, row: ExchangeRow, seq: int | None, until: int = 0) -> tuple[list[Finding], int]:
    """The first findings of an exchange, and those about one of its frames first of all; how many there are in all."""
    own = recording.findings(exchange=row.key, seq=seq, limit=_MAX_LISTED_FINDINGS) if seq is not None else ()
    ids = {each.id: each.finding for each in (*own, *recording.findings(exchange=row.key, limit=_MAX_LISTED_FINDINGS))}
    there = [each for each in ids.values() if not until or each.at <= until]
    (line,) = exchange_lines(recording, [row], until)
    return there, 0 if line.finding_counts is None else line.finding_counts.count


def exchange_lines(recording: Recording, rows: Sequence[ExchangeRow], until: int = 0) -> list[ExchangeLine]:
    """These exchanges with what was found about them, up to this time, ns since the epoch; 0: at any time."""
    keys = json.dumps([row.key for row in rows])
    asked = recording.db.execute(_EXCHANGE_COUNTS, (until, keys)).fetchall() if rows else []
    found = {
        make_key(session, number): FindingCounts(count, Severity(worst)) for session, number, count, worst in asked
    }
    return [ExchangeLine(row.key, row.session, row.exchange, found.get(row.key)) for row in rows]


def count_by_frame(recording: Recording, rows: Sequence[FrameRow], until: int = 0) -> dict[int, FindingCounts]:
    """What was found about frames of one exchange that follow each other, by `seq`; `until` as in `exchange_lines`."""
    if not rows:
        return {}
    session, exchange = split_key(rows[0].exchange_key)
    asked = recording.db.execute(
        _FRAME_COUNTS, (until, session, exchange, rows[0].frame.seq, rows[-1].frame.seq)
    ).fetchall()
    return {seq: FindingCounts(count, Severity(worst)) for seq, count, worst in asked}
