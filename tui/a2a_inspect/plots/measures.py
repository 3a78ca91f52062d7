"""Aggregates over time and over durations, computed by SQLite. No rows of the recording are
fetched."""

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from a2a_inspect.plots.scale import BIN_LIMITS, TimeScale, fit_scale
from a2a_proxy.model.values import Severity
from a2a_proxy.recording.query.columns import ZERO
from a2a_proxy.recording.query.sql import Rows
from a2a_proxy.recording.read.outcome_sql import COUNTED_FINDING
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.store.codec import unpack_text
from a2a_proxy.recording.store.schema import SESSION_SHIFT

SessionSelection = tuple[Recording, Collection[int]]
"""A file and its sessions to count."""

CallKind = tuple[str, str, str]
"""Operation (empty for traffic that is not A2A), binding, dialect."""

_TEXT_COLUMN = "coalesce((SELECT value FROM text WHERE id = e.{0}), '') AS {0}"
KIND_COLUMNS = ", ".join(_TEXT_COLUMN.format(name) for name in ("operation", "binding", "dialect"))
"""SQL: the kind of `exchange e`."""

_TIME_RANGE = "SELECT f.session, min(f.at), max(f.at) FROM frame f WHERE {where} GROUP BY f.session"
_FRAMES_PER_STEP = """SELECT (s.started + f.at - {start}) / {step} AS n, count(*), sum(f.span)
  FROM frame f JOIN session s ON s.id = +f.session
  WHERE s.started + f.at >= {start} AND s.started + f.at < {end} AND {where} GROUP BY n"""
_CALLS_PER_STEP = f"""SELECT (s.started + e.started - {{start}}) / {{step}} AS n, count(*)
  FROM exchange e JOIN session s ON s.id = e.id >> {SESSION_SHIFT}
  WHERE s.started + e.started >= {{start}} AND s.started + e.started < {{end}} AND {{where}}
  GROUP BY n"""
FINDING_MATCHES = f"""(x.session << {SESSION_SHIFT} | x.exchange) IN (
  SELECT e.id FROM exchange e WHERE {{where}})"""
"""SQL: `x` belongs to an exchange that matches."""
_FINDINGS_PER_STEP = f"""SELECT (s.started + x.at - {{start}}) / {{step}} AS n, x.severity, count(*)
  FROM finding x JOIN session s ON s.id = x.session
  WHERE x.session IN ({{own}}) AND s.started + x.at >= {{start}} AND s.started + x.at < {{end}}
    AND {COUNTED_FINDING} AND [of]
  GROUP BY n, x.severity"""
_BIN_CASES = " ".join(f"WHEN d < {limit} THEN {number}" for number, limit in enumerate(BIN_LIMITS))
_CALLS_PER_BIN = f"""SELECT {KIND_COLUMNS},
    CASE {_BIN_CASES} ELSE {len(BIN_LIMITS)} END AS bin, count(*)
  FROM (
    SELECT e.operation, e.binding, e.dialect, max(e.closed - {ZERO}, 0) AS d
      FROM exchange e WHERE e.closed IS NOT NULL AND {{where}}) e
  GROUP BY e.operation, e.binding, e.dialect, bin"""


class Bucket(msgspec.Struct):
    """Traffic of one step."""

    frames: int = 0
    bytes: int = 0
    """Bytes of these frames, including framing."""
    exchanges: int = 0
    """Exchanges that began."""
    findings: dict[Severity, int] = {}

    @property
    def highest_severity(self) -> Severity | None:
        """Highest severity of the findings; None without findings."""
        return max(self.findings, default=None)


class Histogram(msgspec.Struct, frozen=True):
    """A range of time with the traffic of each of its steps."""

    scale: TimeScale
    buckets: list[Bucket]

    @property
    def frames(self) -> int:
        """Number of frames in all steps."""
        return sum(bucket.frames for bucket in self.buckets)


def read_histogram(
    parts: Sequence[SessionSelection],
    where: str,
    max_steps: int,
    within: tuple[int, int] | None = None,
) -> Histogram | None:
    """Return the traffic over time in at most `max_steps` steps: matching frames, exchanges and
    their findings.

    `within` is the first and the last moment, ns; without it all matches are counted. Returns None
    without matches.

    Raises:
        RecordingError: a file cannot be read.
        QueryError: the expression is not valid.
    """
    ends = within if within is not None else _time_range(parts, where)
    if ends is None:
        return None
    over = fit_scale(*ends, max_steps)
    buckets = [Bucket() for _ in range(over.count)]
    of = (
        FINDING_MATCHES if where.strip() else "1"
    )  # without a filter, findings about connections are counted too
    for part in parts:
        for number, frames, data in query_rows(
            part, _bind_scale(_FRAMES_PER_STEP, over), where, Rows.FRAMES
        ):
            buckets[number].frames += frames
            buckets[number].bytes += data
        for number, exchanges in query_rows(
            part, _bind_scale(_CALLS_PER_STEP, over), where, Rows.EXCHANGES
        ):
            buckets[number].exchanges += exchanges
        query = _bind_scale(_FINDINGS_PER_STEP, over).replace("[of]", of)
        for number, severity, count in query_rows(part, query, where, Rows.EXCHANGES):
            found = buckets[number].findings
            found[Severity(severity)] = found.get(Severity(severity), 0) + count
    return Histogram(over, buckets)


def read_distributions(
    parts: Sequence[SessionSelection], where: str = ""
) -> dict[CallKind, list[int]]:
    """Return durations by kind of call: the number of calls in each bin of `scale.BIN_LIMITS`, and
    of longer calls."""
    found: dict[CallKind, list[int]] = {}
    for part in parts:
        for *kind, number, count in query_rows(part, _CALLS_PER_BIN, where, Rows.EXCHANGES):
            found.setdefault(call_kind(kind), [0] * (len(BIN_LIMITS) + 1))[number] += count
    return found


def call_kind(values: list[Any]) -> CallKind:
    """Return the kind of call from the three columns KIND_COLUMNS."""
    operation, binding, dialect = (unpack_text(value) for value in values)
    return operation, binding, dialect


def query_rows(part: SessionSelection, query: str, where: str, rows: Rows) -> list[tuple[Any, ...]]:
    """Return the rows of a query in which `{where}` stands for an expression and `{own}` for the
    counted sessions.

    Raises as `read_histogram`.
    """
    recording, sessions = part
    own = ", ".join(map(str, sorted(sessions)))
    # The `+` keeps SQLite from using the session index, with which it would look up each frame
    # individually.
    of = f"+f.session IN ({own})" if rows is Rows.FRAMES else f"e.id >> {SESSION_SHIFT} IN ({own})"
    query = query.replace("{own}", own).replace("{where}", f"({of} AND {{where}})")
    return recording.get_queryable().select_rows(query, where, rows)


def _time_range(parts: Sequence[SessionSelection], where: str) -> tuple[int, int] | None:
    spans: list[tuple[int, int]] = []
    for recording, sessions in parts:
        started = {row.id: row.facts.started for row in recording.read_sessions()}
        for session, first, last in query_rows(
            (recording, sessions), _TIME_RANGE, where, Rows.FRAMES
        ):
            spans.append((started[session] + first, started[session] + last))
    return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None


def _bind_scale(query: str, scale: TimeScale) -> str:
    """Insert the scale into a query about a range of time."""
    for name, value in (("start", scale.start), ("step", scale.step), ("end", scale.end)):
        query = query.replace(f"{{{name}}}", str(value))
    return query
