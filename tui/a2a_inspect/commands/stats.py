"""`a2a-inspect stats`: print statistics of recordings."""

import os
from collections.abc import Iterator

import msgspec

from a2a_inspect.commands.filters import print_no_match
from a2a_inspect.data.session_lines import member_lines
from a2a_inspect.plots.measures import read_histogram
from a2a_inspect.plots.sums import (
    RecordingTotals,
    TaskStateCounts,
    compute_totals,
    count_task_states,
    distinct_parts,
)
from a2a_inspect.plots.written import (
    MAX_STEPS,
    PLAIN_VARIABLE,
    bins_object,
    histogram_lines,
    histogram_object,
)
from a2a_inspect.widgets.table import table_lines
from a2a_proxy.present import text
from a2a_proxy.present.output import print_json, print_line
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.read.multi_reader import MultiReader

_OUTCOMES = ("ok", "error", "cut", "refused", "live")
_MAX_LISTED_ERRORS = 10
"""Different errors that are listed individually."""


class StatsOptions(msgspec.Struct, frozen=True):
    """Options of the stats command."""

    where: str = ""
    """Filter expression."""
    histogram: bool = False
    """Whether to print the traffic over time as well."""
    as_json: bool = False


def show_statistics(several: MultiReader, options: StatsOptions) -> None:
    """Print the statistics; as JSON in one object."""
    parts = distinct_parts(several)
    totals, tasks = compute_totals(parts, options.where), count_task_states(several, options.where)
    over = read_histogram(parts, options.where, MAX_STEPS) if options.histogram else None
    if options.as_json:
        when = {"histogram": histogram_object(over)} if options.histogram else {}
        print_json(
            {
                "sessions": len(several.read_sessions()),
                "frames": totals.frames,
                "exchanges": sum(each.count for each in totals.calls.values()),
                "calls": [
                    {
                        "operation": operation,
                        "binding": binding,
                        "dialect": dialect,
                        "count": each.count,
                        "outcomes": {
                            name: each.outcomes[name] for name in _OUTCOMES if name in each.outcomes
                        },
                        "events": each.events,
                        "bytes_to_agent": each.bytes_to_agent,
                        "bytes_to_client": each.bytes_to_client,
                        "first_event_ns": msgspec.to_builtins(each.first),
                        "took_ns": msgspec.to_builtins(each.took),
                        "took_distribution": bins_object(each.bins),
                    }
                    for (operation, binding, dialect), each in totals.calls.items()
                ],
                "tasks": dict(tasks),
                "errors": [{"error": error, "count": count} for error, count in totals.errors],
                "findings": [
                    {"rule": rule, "severity": severity.name.lower(), "count": count}
                    for rule, severity, count in totals.findings
                ],
                **when,
            }
        )
        return
    if options.where and not totals.calls and not totals.frames:
        print_no_match(options.where)
        return
    for line in _statistics_lines(several, totals, tasks):
        print_line(line)
    if over is not None:
        print_line()
        for line in histogram_lines(over, plain=PLAIN_VARIABLE in os.environ):
            print_line(line)


def _statistics_lines(
    several: MultiReader, totals: RecordingTotals, tasks: TaskStateCounts
) -> Iterator[str]:
    yield from member_lines(several)
    data = [
        sum(getattr(each, way) for each in totals.calls.values())
        for way in ("bytes_to_agent", "bytes_to_client")
    ]
    count = sum(each.count for each in totals.calls.values())
    yield (
        f"{text.format_count(count, 'exchange')}, {text.format_count(totals.frames, 'frame')}, "
        f"{text.format_size(data[0])} to the agent, {text.format_size(data[1])} to the client"
    )
    if tasks:
        states = ", ".join(f"{number} {state}" for state, number in tasks)
        yield f"{text.format_count(sum(number for _, number in tasks), 'task')}: {states}"
    if totals.calls:
        yield ""
        yield from _call_table_lines(totals)
    if totals.errors:
        yield ""
        yield from _count_table_lines(
            "ERROR",
            [(make_visible(error), number) for error, number in totals.errors],
            _MAX_LISTED_ERRORS,
        )
    if totals.findings:
        yield ""
        found = [
            (f"{severity.name.lower()}  {make_visible(rule)}", number)
            for rule, severity, number in totals.findings
        ]
        yield from _count_table_lines("FINDING", found, len(found))


def _call_table_lines(totals: RecordingTotals) -> Iterator[str]:
    outcomes = [
        name for name in _OUTCOMES if any(name in each.outcomes for each in totals.calls.values())
    ]
    measures = [
        name
        for name in ("first", "took")
        if any(getattr(each, name) for each in totals.calls.values())
    ]
    titles = [f"{name.upper()} {rank}" for name in measures for rank in ("p50", "p95", "max")]
    rows = []
    for (operation, binding, dialect), each in totals.calls.items():
        cells = [
            make_visible(operation) or "not A2A",
            make_visible(f"{binding} {dialect}".strip()),
            str(each.count),
        ]
        cells += [str(each.outcomes.get(name, "")) for name in outcomes]
        cells.append(str(each.events))
        for name in measures:
            times = getattr(each, name)
            cells += (
                [text.format_duration(ns) for ns in (times.p50, times.p95, times.max)]
                if times
                else [""] * 3
            )
        rows.append(cells)
    yield from table_lines(
        ["OPERATION", "BINDING", "CALLS", *map(str.upper, outcomes), "EVENTS", *titles], rows
    )


def _count_table_lines(title: str, counts: list[tuple[str, int]], max_rows: int) -> Iterator[str]:
    yield from table_lines(
        ["TIMES", title], [(str(number), what) for what, number in counts[:max_rows]]
    )
    if rest := counts[max_rows:]:
        yield (
            f"{sum(number for _, number in rest):<5}  of "
            f"{text.format_count(len(rest), 'other kind')}"
        )
