"""`a2a-inspect stats`: a recording summed up. All of it is counted by SQLite, so its length costs no memory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import msgspec

from a2a_inspect.commands.filtered import tell_nothing
from a2a_inspect.commands.ls import state_name
from a2a_inspect.commands.session import session_line
from a2a_inspect.commands.table import columns
from a2a_inspect.plots.measures import KIND, OF_FOUND, Kind, distributions, histogram, kind_of
from a2a_inspect.plots.written import MOST, PLAIN, bins_object, histogram_lines, histogram_object
from a2a_proxy.cli import text
from a2a_proxy.model.finding import Severity
from a2a_proxy.protocol.text import visible
from a2a_proxy.recording.codec import unpack_text
from a2a_proxy.recording.outcome import OUTCOME
from a2a_proxy.recording.query.columns import ZERO
from a2a_proxy.recording.query.sql import Rows
from a2a_proxy.recording.reader import Recording
from a2a_proxy.recording.schema import SESSION_SHIFT

_OUTCOMES = ("ok", "error", "cut", "refused", "live")
_SHOWN = 10
"""Different errors that are told one by one."""

_CALLS = f"""SELECT {KIND}, {OUTCOME} AS outcome,
    count(*), sum(e.events), sum(e.bytes_to_agent), sum(e.bytes_to_client)
  FROM exchange e WHERE {{where}} GROUP BY e.operation, e.binding, e.dialect, outcome"""
_TIMES = f"""SELECT {KIND}, n, c, d FROM (
    SELECT *, row_number() OVER (kind ORDER BY d) AS n, count(*) OVER kind AS c FROM (
      SELECT e.operation, e.binding, e.dialect, max([end] - {ZERO}, 0) AS d
        FROM exchange e WHERE [end] IS NOT NULL AND [which] AND {{where}})
    WINDOW kind AS (PARTITION BY operation, binding, dialect)) e
  WHERE n IN ((c + 1) / 2, (c * 95 + 99) / 100, c)"""
_ERRORS = """SELECT e.error, count(*) AS times FROM exchange e WHERE length(e.error) AND {where}
  GROUP BY e.error ORDER BY times DESC, e.error"""
_FINDINGS = """SELECT (SELECT value FROM text WHERE id = x.rule) AS rule, x.severity, count(*)
  FROM finding x WHERE [of] GROUP BY x.rule, x.severity ORDER BY x.severity DESC, 3 DESC, 1"""
_TASKS = "SELECT t.state, count(*) FROM task t WHERE [of] GROUP BY t.state ORDER BY 2 DESC, 1"
_OF_TASKS = f"""(t.session, t.ident) IN (SELECT e.id >> {SESSION_SHIFT}, e.task FROM exchange e WHERE {{where}})"""
_FRAMES = "SELECT count(*) FROM frame f WHERE {where}"


class Times(msgspec.Struct, frozen=True):
    """How long something took, ns: the nearest ranks, so each is a time that was measured."""

    p50: int
    p95: int
    max: int


class Calls(msgspec.Struct):
    """All exchanges of one kind."""

    outcomes: dict[str, int] = {}
    events: int = 0
    bytes_to_agent: int = 0
    bytes_to_client: int = 0
    first: Times | None = None
    """From the end of the request to the first event; of streams."""
    took: Times | None = None
    """From the end of the request to the end of the exchange; of those that are over."""
    bins: list[int] = []
    """How many of those took how long, see `plots.measures.distributions`."""

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self.outcomes.values())


class Statistics(msgspec.Struct):
    """A recording summed up."""

    frames: int
    calls: dict[Kind, Calls]
    tasks: list[tuple[str, int]]
    """State and how many tasks are in it."""
    errors: list[tuple[str, int]]
    """Each error in words and how often it came, the most frequent first."""
    findings: list[tuple[str, Severity, int]]
    """Rule, severity and how often, the gravest first."""


def statistics(recording: Recording, where: str = "") -> Statistics:
    """Sum `recording` up: all of it, or the exchanges for which an expression of the filter language holds.

    Then also their tasks and findings, and of the frames those that match themselves.

    Raises:
        RecordingError: it cannot be read.
        QueryError: the expression is wrong.
    """
    calls: dict[Kind, Calls] = {}
    narrowed = bool(where.strip())

    def asked(query: str, of: str = "") -> Iterator[tuple[Any, ...]]:
        yield from recording.asked().select(query.replace("[of]", of if narrowed else "{where}"), where, Rows.EXCHANGES)

    for *kind, outcome, count, events, to_agent, to_client in asked(_CALLS):
        of = calls.setdefault(kind_of(kind), Calls())
        of.outcomes[outcome] = count
        of.events += events
        of.bytes_to_agent += to_agent
        of.bytes_to_client += to_client
    for found, times in _times(recording, where, "first_event", "e.flags & 1"):
        calls[found].first = times
    for found, times in _times(recording, where, "closed", "1"):
        calls[found].took = times
    for found, bins in distributions(recording, where).items():
        calls[found].bins = bins
    return Statistics(
        frames=recording.asked().select(_FRAMES, where, Rows.FRAMES)[0][0],
        calls=dict(sorted(calls.items(), key=lambda item: (-item[1].count, item[0]))),
        tasks=[(state_name(state) or "unknown", count) for state, count in asked(_TASKS, _OF_TASKS)],
        errors=[(unpack_text(error), times) for error, times in asked(_ERRORS)],
        findings=[(unpack_text(rule), Severity(grave), count) for rule, grave, count in asked(_FINDINGS, OF_FOUND)],
    )


def _times(recording: Recording, where: str, end: str, which: str) -> Iterator[tuple[Kind, Times]]:
    found: dict[Kind, tuple[int, dict[int, int]]] = {}
    query = _TIMES.replace("[end]", f"e.{end}").replace("[which]", which)
    for *kind, rank, count, length in recording.asked().select(query, where, Rows.EXCHANGES):
        found.setdefault(kind_of(kind), (count, {}))[1][rank] = length
    for of, (count, by_rank) in found.items():
        yield of, Times(by_rank[(count + 1) // 2], by_rank[(count * 95 + 99) // 100], by_rank[count])


class Asked(msgspec.Struct, frozen=True):
    """What to sum up, and how."""

    where: str = ""
    """An expression of the filter language."""
    histogram: bool = False
    """Also what passed when."""
    as_json: bool = False


def show_statistics(recording: Recording, asked: Asked) -> None:
    """Print the sum of a recording; as JSON in one object."""
    known = statistics(recording, asked.where)
    over = histogram(recording, asked.where, MOST) if asked.histogram else None
    if asked.as_json:
        when = {"histogram": histogram_object(over)} if asked.histogram else {}
        print(json.dumps({**_object(recording, known), **when}))
        return
    if asked.where and not known.calls and not known.frames:
        tell_nothing(asked.where)
        return
    for line in _lines(recording, known):
        print(line)
    if over is not None:
        print()
        for line in histogram_lines(over, plain=PLAIN in os.environ):
            print(line)


def _lines(recording: Recording, known: Statistics) -> Iterator[str]:
    yield from (session_line(session) for session in recording.sessions())
    octets = [sum(getattr(each, way) for each in known.calls.values()) for way in ("bytes_to_agent", "bytes_to_client")]
    count = sum(each.count for each in known.calls.values())
    yield (
        f"{text.plural(count, 'exchange')}, {text.plural(known.frames, 'frame')}, "
        f"{text.size(octets[0])} to the agent, {text.size(octets[1])} to the client"
    )
    if known.tasks:
        states = ", ".join(f"{number} {state}" for state, number in known.tasks)
        yield f"{text.plural(sum(number for _, number in known.tasks), 'task')}: {states}"
    if known.calls:
        yield ""
        yield from _table(known)
    if known.errors:
        yield ""
        yield from _counted("ERROR", [(visible(error), number) for error, number in known.errors], _SHOWN)
    if known.findings:
        yield ""
        found = [(f"{severity.name.lower()}  {rule}", number) for rule, severity, number in known.findings]
        yield from _counted("FINDING", found, len(found))


def _table(known: Statistics) -> Iterator[str]:
    outcomes = [name for name in _OUTCOMES if any(name in each.outcomes for each in known.calls.values())]
    measures = [name for name in ("first", "took") if any(getattr(each, name) for each in known.calls.values())]
    titles = [f"{name.upper()} {rank}" for name in measures for rank in ("p50", "p95", "max")]
    rows = []
    for (operation, binding, dialect), each in known.calls.items():
        cells = [visible(operation) or "not A2A", visible(f"{binding} {dialect}".strip()), str(each.count)]
        cells += [str(each.outcomes.get(name, "")) for name in outcomes]
        cells.append(str(each.events))
        for name in measures:
            times = getattr(each, name)
            cells += [text.duration(ns) for ns in (times.p50, times.p95, times.max)] if times else [""] * 3
        rows.append(cells)
    yield from columns(["OPERATION", "BINDING", "CALLS", *map(str.upper, outcomes), "EVENTS", *titles], rows)


def _counted(title: str, counted: list[tuple[str, int]], shown: int) -> Iterator[str]:
    yield from columns(["TIMES", title], [(str(number), what) for what, number in counted[:shown]])
    if rest := counted[shown:]:
        yield f"{sum(number for _, number in rest):<5}  of {text.plural(len(rest), 'other kind')}"


def _object(recording: Recording, known: Statistics) -> dict[str, object]:
    return {
        "sessions": len(recording.sessions()),
        "frames": known.frames,
        "exchanges": sum(each.count for each in known.calls.values()),
        "calls": [
            {
                "operation": operation,
                "binding": binding,
                "dialect": dialect,
                "count": each.count,
                "outcomes": {name: each.outcomes[name] for name in _OUTCOMES if name in each.outcomes},
                "events": each.events,
                "bytes_to_agent": each.bytes_to_agent,
                "bytes_to_client": each.bytes_to_client,
                "first_event_ns": msgspec.to_builtins(each.first),
                "took_ns": msgspec.to_builtins(each.took),
                "took_distribution": bins_object(each.bins),
            }
            for (operation, binding, dialect), each in known.calls.items()
        ],
        "tasks": dict(known.tasks),
        "errors": [{"error": error, "count": count} for error, count in known.errors],
        "findings": [
            {"rule": rule, "severity": severity.name.lower(), "count": count}
            for rule, severity, count in known.findings
        ],
    }
