"""`a2a-inspect stats`: recordings summed up."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from a2a_inspect.commands.ls import state_name
from a2a_inspect.commands.session import member_lines
from a2a_inspect.commands.table import columns
from a2a_proxy.cli import text
from a2a_proxy.model.finding import Severity
from a2a_proxy.protocol.text import visible
from a2a_proxy.recording.codec import unpack_text
from a2a_proxy.recording.database import translated
from a2a_proxy.recording.outcome import OUTCOME
from a2a_proxy.recording.reader import Recording
from a2a_proxy.recording.schema import SESSION_SHIFT
from a2a_proxy.recording.several import Several

_OUTCOMES = ("ok", "error", "cut", "refused", "live")
_SHOWN = 10
"""Different errors that are told one by one."""

_WORD = "coalesce((SELECT value FROM text WHERE id = e.{0}), '') AS {0}"
_KIND = ", ".join(_WORD.format(name) for name in ("operation", "binding", "dialect"))
_OF = f"e.id >> {SESSION_SHIFT} IN ({{own}})"
_CALLS = f"""SELECT {_KIND}, {OUTCOME} AS outcome,
    count(*), sum(e.events), sum(e.bytes_to_agent), sum(e.bytes_to_client)
  FROM exchange e WHERE {_OF} GROUP BY e.operation, e.binding, e.dialect, outcome"""
_KINDS = f"""SELECT e.operation, e.binding, e.dialect, {_KIND}
  FROM (SELECT DISTINCT operation, binding, dialect FROM exchange) e"""
_TIMES = f"""SELECT operation, binding, dialect, max({{end}} - coalesce(request_ended, started), 0)
  FROM exchange e WHERE {{end}} IS NOT NULL AND {{which}} AND {_OF}"""
_ERRORS = f"SELECT error, count(*) FROM exchange e WHERE length(error) AND {_OF} GROUP BY error"
_FINDINGS = """SELECT (SELECT value FROM text WHERE id = rule) AS rule, severity, count(*)
  FROM finding WHERE session IN ({own}) GROUP BY rule, severity"""

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


def statistics(several: Several) -> Statistics:
    """Sum recordings up, a session that two of them hold once. Times take 8 octets an exchange while it is done.

    Raises:
        RecordingError: one cannot be read.
    """
    calls: dict[Kind, Calls] = {}
    frames = 0
    errors: Counter[str] = Counter()
    findings: Counter[tuple[str, Severity]] = Counter()
    first, took = _Durations("first_event", "flags & 1"), _Durations("closed", "1")
    for member, sessions in zip(several.members, several.own(), strict=True):
        recording, own = member.recording, ", ".join(map(str, sessions))
        with translated(recording.path):
            _count_calls(recording, own, calls)
            first.add(recording, own)
            took.add(recording, own)
            errors.update({unpack_text(error): n for error, n in recording.db.execute(_ERRORS.format(own=own))})
            found = recording.db.execute(_FINDINGS.format(own=own))
            findings.update({(unpack_text(rule), Severity(severity)): n for rule, severity, n in found})
            frames += sum(recording.counts(session).frames for session in sessions)
    for kind, each in calls.items():
        each.first, each.took = first.ranks(kind), took.ranks(kind)
    states = sorted(several.task_states().items(), key=lambda item: (-item[1], item[0]))
    return Statistics(
        frames=frames,
        calls=dict(sorted(calls.items(), key=lambda item: (-item[1].count, item[0]))),
        tasks=[
            (state_name(state) or "unknown", n) for state, n in sorted(states, key=lambda item: (-item[1], item[0]))
        ],
        errors=sorted(errors.items(), key=lambda item: (-item[1], item[0])),
        findings=sorted(((*what, n) for what, n in findings.items()), key=lambda each: (-each[1], -each[2], each[0])),
    )


def _count_calls(recording: Recording, own: str, calls: dict[Kind, Calls]) -> None:
    for *kind, outcome, count, events, to_agent, to_client in recording.db.execute(_CALLS.format(own=own)):
        of = calls.setdefault(_kind(kind), Calls())
        of.outcomes[outcome] = of.outcomes.get(outcome, 0) + count
        of.events += events
        of.bytes_to_agent += to_agent
        of.bytes_to_client += to_client


def _kind(values: list[Any]) -> Kind:
    operation, binding, dialect = (unpack_text(value) for value in values)
    return operation, binding, dialect


class _Durations:
    """How long something took in each call, ns, by the kind of the call: for ranks all of them are needed."""

    def __init__(self, end: str, which: str) -> None:
        self._query = _TIMES.format(end=end, which=which, own="{own}")
        self._of: dict[Kind, array[int]] = {}

    def add(self, recording: Recording, own: str) -> None:
        """Those of the calls of one file."""
        names = {tuple(row[:3]): _kind(row[3:]) for row in map(list, recording.db.execute(_KINDS))}
        for operation, binding, dialect, length in recording.db.execute(self._query.format(own=own)):
            kind = names[operation, binding, dialect]
            self._of.setdefault(kind, array("q")).append(length)

    def ranks(self, kind: Kind) -> Times | None:
        """The nearest ranks; None where there was no such call."""
        lengths = sorted(self._of.pop(kind, ()))
        count = len(lengths)
        if not count:
            return None
        return Times(lengths[(count + 1) // 2 - 1], lengths[(count * 95 + 99) // 100 - 1], lengths[-1])


def show_statistics(several: Several, *, as_json: bool) -> None:
    """Print the sum of recordings; with `as_json` as one object."""
    known = statistics(several)
    if as_json:
        print(json.dumps(_object(several, known)))
        return
    for line in _lines(several, known):
        print(line)


def _lines(several: Several, known: Statistics) -> Iterator[str]:
    yield from member_lines(several)
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
        found = [(f"{severity.name.lower()}  {visible(rule)}", number) for rule, severity, number in known.findings]
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


def _object(several: Several, known: Statistics) -> dict[str, object]:
    return {
        "sessions": len(several.sessions()),
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
