"""`a2a-inspect stats`: recordings summed up."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import msgspec

from a2a_inspect.commands.filters import tell_nothing
from a2a_inspect.commands.session import member_lines
from a2a_inspect.commands.table import columns
from a2a_inspect.plots.measures import histogram
from a2a_inspect.plots.sums import Sums, Tasks, parts_of, sums, task_states
from a2a_inspect.plots.written import MOST, PLAIN, bins_object, histogram_lines, histogram_object
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.read.multi_reader import MultiReader

_OUTCOMES = ("ok", "error", "cut", "refused", "live")
_SHOWN = 10
"""Different errors that are told one by one."""


class StatsOptions(msgspec.Struct, frozen=True):
    """What to sum up, and how."""

    where: str = ""
    """An expression of the filter language."""
    histogram: bool = False
    """Also what passed when."""
    as_json: bool = False


def show_statistics(several: MultiReader, wanted: StatsOptions) -> None:
    """Print the sum of recordings; as JSON in one object."""
    parts = parts_of(several)
    known, tasks = sums(parts, wanted.where), task_states(several, wanted.where)
    over = histogram(parts, wanted.where, MOST) if wanted.histogram else None
    if wanted.as_json:
        when = {"histogram": histogram_object(over)} if wanted.histogram else {}
        print(json.dumps({**_object(several, known, tasks), **when}))
        return
    if wanted.where and not known.calls and not known.frames:
        tell_nothing(wanted.where)
        return
    for line in _lines(several, known, tasks):
        print(line)
    if over is not None:
        print()
        for line in histogram_lines(over, plain=PLAIN in os.environ):
            print(line)


def _lines(several: MultiReader, known: Sums, tasks: Tasks) -> Iterator[str]:
    yield from member_lines(several)
    octets = [sum(getattr(each, way) for each in known.calls.values()) for way in ("bytes_to_agent", "bytes_to_client")]
    count = sum(each.count for each in known.calls.values())
    yield (
        f"{text.plural(count, 'exchange')}, {text.plural(known.frames, 'frame')}, "
        f"{text.size(octets[0])} to the agent, {text.size(octets[1])} to the client"
    )
    if tasks:
        states = ", ".join(f"{number} {state}" for state, number in tasks)
        yield f"{text.plural(sum(number for _, number in tasks), 'task')}: {states}"
    if known.calls:
        yield ""
        yield from _table(known)
    if known.errors:
        yield ""
        yield from _counted("ERROR", [(make_visible(error), number) for error, number in known.errors], _SHOWN)
    if known.findings:
        yield ""
        found = [(f"{severity.name.lower()}  {make_visible(rule)}", number) for rule, severity, number in known.findings]
        yield from _counted("FINDING", found, len(found))


def _table(known: Sums) -> Iterator[str]:
    outcomes = [name for name in _OUTCOMES if any(name in each.outcomes for each in known.calls.values())]
    measures = [name for name in ("first", "took") if any(getattr(each, name) for each in known.calls.values())]
    titles = [f"{name.upper()} {rank}" for name in measures for rank in ("p50", "p95", "max")]
    rows = []
    for (operation, binding, dialect), each in known.calls.items():
        cells = [make_visible(operation) or "not A2A", make_visible(f"{binding} {dialect}".strip()), str(each.count)]
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


def _object(several: MultiReader, known: Sums, tasks: Tasks) -> dict[str, object]:
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
                "took_distribution": bins_object(each.bins),
            }
            for (operation, binding, dialect), each in known.calls.items()
        ],
        "tasks": dict(tasks),
        "errors": [{"error": error, "count": count} for error, count in known.errors],
        "findings": [
            {"rule": rule, "severity": severity.name.lower(), "count": count}
            for rule, severity, count in known.findings
        ],
    }
