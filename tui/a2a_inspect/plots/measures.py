"""What SQLite sums up over time and over durations. No row of a recording is fetched here, only sums."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from a2a_inspect.plots.scale import LIMITS, TimeScale, span
from a2a_proxy.model.finding import Severity
from a2a_proxy.recording.query.columns import ZERO
from a2a_proxy.recording.query.sql import Rows
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.store.codec import unpack_text
from a2a_proxy.recording.store.schema import SESSION_SHIFT

Part = tuple[Recording, Collection[int]]
"""A file, and the sessions of it that count."""

Kind = tuple[str, str, str]
"""Operation (empty for what is not A2A), binding, dialect."""

_WORD = "coalesce((SELECT value FROM text WHERE id = e.{0}), '') AS {0}"
KIND = ", ".join(_WORD.format(name) for name in ("operation", "binding", "dialect"))
"""SQL: the kind of `exchange e`."""

_ENDS = "SELECT f.session, min(f.at), max(f.at) FROM frame f WHERE {where} GROUP BY f.session"
_FRAMES = """SELECT (s.started + f.at - {start}) / {step} AS n, count(*), sum(f.span)
  FROM frame f JOIN session s ON s.id = +f.session
  WHERE s.started + f.at >= {start} AND s.started + f.at < {end} AND {where} GROUP BY n"""
_CALLS = f"""SELECT (s.started + e.started - {{start}}) / {{step}} AS n, count(*)
  FROM exchange e JOIN session s ON s.id = e.id >> {SESSION_SHIFT}
  WHERE s.started + e.started >= {{start}} AND s.started + e.started < {{end}} AND {{where}} GROUP BY n"""
OF_FOUND = f"""(x.session << {SESSION_SHIFT} | x.exchange) IN (SELECT e.id FROM exchange e WHERE {{where}})"""
"""SQL: `x` belongs to an exchange that matches."""
_FINDINGS = """SELECT (s.started + x.at - {start}) / {step} AS n, x.severity, count(*)
  FROM finding x JOIN session s ON s.id = x.session
  WHERE x.session IN ({own}) AND s.started + x.at >= {start} AND s.started + x.at < {end} AND [of]
  GROUP BY n, x.severity"""
_BINS = " ".join(f"WHEN d < {limit} THEN {number}" for number, limit in enumerate(LIMITS))
_TOOK = f"""SELECT {KIND}, CASE {_BINS} ELSE {len(LIMITS)} END AS bin, count(*) FROM (
    SELECT e.operation, e.binding, e.dialect, max(e.closed - {ZERO}, 0) AS d
      FROM exchange e WHERE e.closed IS NOT NULL AND {{where}}) e
  GROUP BY e.operation, e.binding, e.dialect, bin"""


class Bucket(msgspec.Struct):
    """What passed in one step."""

    frames: int = 0
    bytes: int = 0
    """Octets of these frames, framing included."""
    exchanges: int = 0
    """Those that began."""
    findings: dict[Severity, int] = {}

    @property
    def worst(self) -> Severity | None:
        """The gravest finding; None where there is none."""
        return max(self.findings, default=None)


class Histogram(msgspec.Struct, frozen=True):
    """A stretch of time and what passed in each of its steps."""

    span: TimeScale
    buckets: list[Bucket]

    @property
    def frames(self) -> int:
        """In all."""
        return sum(bucket.frames for bucket in self.buckets)


def histogram(parts: Sequence[Part], where: str, most: int, within: tuple[int, int] | None = None) -> Histogram | None:
    """What passed when, in at most so many steps: frames that match an expression, exchanges that do, their findings.

    `within` is the first and the last moment, ns; without it all that matches. None where nothing does.

    Raises:
        RecordingError: a file cannot be read.
        QueryError: the expression is wrong.
    """
    ends = within if within is not None else _ends(parts, where)
    if ends is None:
        return None
    over = span(*ends, most)
    buckets = [Bucket() for _ in range(over.count)]
    of = OF_FOUND if where.strip() else "1"  # without a filter also those of connections
    for part in parts:
        for number, frames, octets in asked(part, _over(_FRAMES, over), where, Rows.FRAMES):
            buckets[number].frames += frames
            buckets[number].bytes += octets
        for number, exchanges in asked(part, _over(_CALLS, over), where, Rows.EXCHANGES):
            buckets[number].exchanges += exchanges
        query = _over(_FINDINGS, over).replace("[of]", of)
        for number, severity, count in asked(part, query, where, Rows.EXCHANGES):
            found = buckets[number].findings
            found[Severity(severity)] = found.get(Severity(severity), 0) + count
    return Histogram(over, buckets)


def distributions(parts: Sequence[Part], where: str = "") -> dict[Kind, list[int]]:
    """By kind of call how many took how long: a number for each bin of `scale.LIMITS`, and one for longer."""
    found: dict[Kind, list[int]] = {}
    for part in parts:
        for *kind, number, count in asked(part, _TOOK, where, Rows.EXCHANGES):
            found.setdefault(kind_of(kind), [0] * (len(LIMITS) + 1))[number] += count
    return found


def kind_of(values: list[Any]) -> Kind:
    """Three columns of KIND."""
    operation, binding, dialect = (unpack_text(value) for value in values)
    return operation, binding, dialect


def asked(part: Part, query: str, where: str, rows: Rows) -> list[tuple[Any, ...]]:
    """Rows of a query in which `{where}` stands for an expression, and `{own}` for the sessions that count.

    Raises as `histogram`.
    """
    recording, sessions = part
    own = ", ".join(map(str, sorted(sessions)))
    # With the index of sessions SQLite would look each frame up by itself: `+` keeps it from that.
    of = f"+f.session IN ({own})" if rows is Rows.FRAMES else f"e.id >> {SESSION_SHIFT} IN ({own})"
    query = query.replace("{own}", own).replace("{where}", f"({of} AND {{where}})")
    return recording.queryable().select(query, where, rows)


def _ends(parts: Sequence[Part], where: str) -> tuple[int, int] | None:
    spans: list[tuple[int, int]] = []
    for recording, sessions in parts:
        started = {row.id: row.facts.started for row in recording.sessions()}
        for session, first, last in asked((recording, sessions), _ENDS, where, Rows.FRAMES):
            spans.append((started[session] + first, started[session] + last))
    return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None


def _over(query: str, over: TimeScale) -> str:
    """A query about a stretch of time."""
    for name, value in (("start", over.start), ("step", over.step), ("end", over.end)):
        query = query.replace(f"{{{name}}}", str(value))
    return query
