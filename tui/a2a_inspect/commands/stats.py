"""`a2a-inspect stats`: a recording summed up. All of it is counted by SQLite, so its length costs no memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from a2a_inspect.commands.ls import state_name
from a2a_inspect.commands.session import session_line
from a2a_inspect.commands.table import columns
from a2a_proxy.cli import text
from a2a_proxy.model.finding import Severity
from a2a_proxy.protocol.text import visible
from a2a_proxy.recording.codec import unpack_text
from a2a_proxy.recording.outcome import OUTCOME
from a2a_proxy.recording.reader import Recording

_OUTCOMES = ("ok", "error", "cut", "refused", "live")
_SHOWN = 10
"""Different errors that are told one by one."""

_WORD = "coalesce((SELECT value FROM text WHERE id = e.{0}), '') AS {0}"
_KIND = ", ".join(_WORD.format(name) for name in ("operation", "binding", "dialect"))
_CALLS = f"""SELECT {_KIND}, {OUTCOME} AS outcome,
    count(*), sum(e.events), sum(e.bytes_to_agent), sum(e.bytes_to_client)
  FROM exchange e GROUP BY e.operation, e.binding, e.dialect, outcome"""
_TIMES = f"""SELECT {_KIND}, n, c, d FROM (
    SELECT *, row_number() OVER (kind ORDER BY d) AS n, count(*) OVER kind AS c FROM (
      SELECT operation, binding, dialect, max({{end}} - coalesce(request_ended, started), 0) AS d
        FROM exchange WHERE {{end}} IS NOT NULL AND {{which}})
    WINDOW kind AS (PARTITION BY operation, binding, dialect)) e
  WHERE n IN ((c + 1) / 2, (c * 95 + 99) / 100, c)"""
_ERRORS = "SELECT error, count(*) AS times FROM exchange WHERE length(error) GROUP BY error ORDER BY times DESC, error"
_FINDINGS = """SELECT (SELECT value FROM text WHERE id = rule) AS rule, severity, count(*)
  FROM finding GROUP BY rule, severity ORDER BY severity DESC, 3 DESC, 1"""
_TASKS = "SELECT state, count(*) FROM task GROUP BY state ORDER BY 2 DESC, 1"

Kind = tuple[str, str, str]
"""Operation (empty for what is not A2A), binding, dialect."""


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


def statistics(recording: Recording) -> Statistics:
    """Sum `recording` up.

    Raises:
        RecordingError: it cannot be read.
    """
    db = recording.db
    calls: dict[Kind, Calls] = {}
    for *kind, outcome, count, events, to_agent, to_client in db.execute(_CALLS):
        of = calls.setdefault(_kind(kind), Calls())
        of.outcomes[outcome] = count
        of.events += events
        of.bytes_to_agent += to_agent
        of.bytes_to_client += to_client
    for kind_of, times in _times(recording, "first_event", "flags & 1"):
        calls[kind_of].first = times
    for kind_of, times in _times(recording, "closed", "1"):
        calls[kind_of].took = times
    return Statistics(
        frames=recording.counts().frames,
        calls=dict(sorted(calls.items(), key=lambda item: (-item[1].count, item[0]))),
        tasks=[(state_name(state) or "unknown", count) for state, count in db.execute(_TASKS)],
        errors=[(unpack_text(error), times) for error, times in db.execute(_ERRORS)],
        findings=[(unpack_text(rule), Severity(severity), count) for rule, severity, count in db.execute(_FINDINGS)],
    )


def _kind(values: list[Any]) -> Kind:
    operation, binding, dialect = (unpack_text(value) for value in values)
    return operation, binding, dialect


def _times(recording: Recording, end: str, which: str) -> Iterator[tuple[Kind, Times]]:
    found: dict[Kind, tuple[int, dict[int, int]]] = {}
    for *kind, rank, count, length in recording.db.execute(_TIMES.format(end=end, which=which)):
        found.setdefault(_kind(kind), (count, {}))[1][rank] = length
    for of, (count, by_rank) in found.items():
        yield of, Times(by_rank[(count + 1) // 2], by_rank[(count * 95 + 99) // 100], by_rank[count])


def show_statistics(recording: Recording, *, as_json: bool) -> None:
    """Print the sum of a recording; with `as_json` as one object."""
    known = statistics(recording)
    if as_json:
        print(json.dumps(_object(recording, known)))
        return
    for line in _lines(recording, known):
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
