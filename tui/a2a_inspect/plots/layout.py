"""A histogram over time and a table of latencies as lines of cells. Pure; styles are names of component classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from a2a_inspect.plots.cursor import PlotCursor
from a2a_inspect.plots.draw import columns, spark
from a2a_inspect.plots.measures import Bucket, Histogram, Kind
from a2a_inspect.plots.sums import CallStatistics, Sums
from a2a_inspect.plots.written import findings_words, step_clock
from a2a_inspect.widgets.columns import GAP, ListColumn, fit, fitting
from a2a_proxy.model.finding import Severity
from a2a_proxy.present import text

Line = list[tuple[str, str]]
"""Text and the name of its style."""

_TICK = 20
"""Cells between two times under the columns, at least."""
_FOUND = {Severity.ERROR: ("!", "plot--bad"), Severity.WARNING: ("*", "plot--warn"), Severity.INFO: (".", "plot--dim")}
_SCALE = ((4, "1ms"), (13, "1s"), (19, "100s"))
"""Bins of `scale.LIMITS` and what stands over their beginning."""

Row = tuple[Kind, CallStatistics]


def plot_lines(of: Histogram, cursor: PlotCursor, size: tuple[int, int], *, plain: bool) -> Iterator[Line]:
    """Frames and octets over time, findings, what is chosen, times; in so many cells and lines."""
    width, lines = size
    low = max((lines - 5) * 3 // 7, 1)
    high = max(lines - 5 - low, 1)
    wide = max(width // max(of.span.count, 1), 1)
    first, last = cursor.chosen
    chosen = (first * wide, (last + 1) * wide)
    step = text.duration(of.span.step)
    frames = [bucket.frames for bucket in of.buckets]
    octets = [bucket.bytes for bucket in of.buckets]
    yield _titled("FRAMES", f"at most {max(frames, default=0)} in {step}", width)
    yield from (_column_line(line, wide, chosen, width) for line in columns(frames, high, plain=plain))
    yield _titled("OCTETS", f"at most {text.size(max(octets, default=0))} in {step}", width)
    yield from (_column_line(line, wide, chosen, width) for line in columns(octets, low, plain=plain))
    yield _found_line(of.buckets, wide, width)
    yield _chosen_line(chosen, cursor.at * wide, width, plain=plain)
    yield [(_times(of, wide, width), "plot--dim")]


def _titled(name: str, remark: str, width: int) -> Line:
    return [(f"{name}  ", "plot--strong"), (fit(remark, max(width - len(name) - 2, 0)), "plot--dim")]


def _column_line(line: str, wide: int, chosen: tuple[int, int], width: int) -> Line:
    cells = "".join(sign * wide for sign in line).ljust(width)
    first, last = chosen
    return [(cells[:first], "plot--bar"), (cells[first:last], "plot--chosen"), (cells[last:], "plot--bar")]


def _found_line(buckets: list[Bucket], wide: int, width: int) -> Line:
    """The gravest finding of each step."""
    line: Line = []
    for bucket in buckets:
        sign, style = _FOUND[bucket.worst] if bucket.worst is not None else (" ", "")
        line.append((sign.ljust(wide), style))
    return [*line, (" " * (width - wide * len(buckets)), "")]


def _chosen_line(chosen: tuple[int, int], at: int, width: int, *, plain: bool) -> Line:
    first, last = chosen
    across, point = ("-", "^") if plain else ("─", "▲")
    marks = across * (last - first)
    marks = marks[: at - first] + point + marks[at - first + 1 :]
    return [(" " * first, ""), (marks, "plot--cursor"), (" " * (width - last), "")]


def _times(of: Histogram, wide: int, width: int) -> str:
    """When steps begin, as many as there is room for; the last one ends at the right."""
    each = max(-(-_TICK // wide), 1)
    line = ""
    for number in range(0, of.span.count, each):
        begin = number * wide
        clock = step_clock(of.span.at(number), of.span.step)
        if begin + len(clock) <= width:
            line = line.ljust(begin) + clock
    return line.ljust(width)


def step_words(of: Histogram, cursor: PlotCursor) -> str:
    """What is chosen, in words."""
    first, last = cursor.chosen
    chosen = of.buckets[first : last + 1]
    found: dict[Severity, int] = {}
    for bucket in chosen:
        for severity, count in bucket.findings.items():
            found[severity] = found.get(severity, 0) + count
    words = [
        f"{step_clock(of.span.at(first), of.span.step)} to {step_clock(of.span.at(last + 1), of.span.step)}",
        text.plural(sum(bucket.frames for bucket in chosen), "frame"),
        text.size(sum(bucket.bytes for bucket in chosen)),
        f"{text.plural(sum(bucket.exchanges for bucket in chosen), 'exchange')} began",
        f"findings: {findings_words(Bucket(findings=found))}" if found else "",
    ]
    return "  ".join(word for word in words if word)


def table_lines(known: Sums, width: int, *, plain: bool) -> Iterator[Line]:
    """A line for each kind of call: how many, how fast, and how their durations are spread on a scale of 1, 2, 5."""
    layout = fitting(_columns(plain), width)
    title = GAP.join(fit(column.title, cells, right=column.right) for column, cells in layout)
    yield [(title, "plot--dim")]
    for row in known.calls.items():
        cells = (fit(column.cell(row), cells, right=column.right) for column, cells in layout)
        yield [(GAP.join(cells), "")]


def _columns(plain: bool) -> list[ListColumn]:
    return [
        ListColumn("OPERATION", 14, lambda row: row[0][0] or "not A2A", grow=1),
        ListColumn("BINDING", 11, lambda row: " ".join(row[0][1:]).strip()),
        ListColumn("CALLS", 5, lambda row: str(row[1].count), right=True),
        ListColumn("FIRST P50", 9, _rank("first", "p50"), right=True, drop=2),
        ListColumn("FIRST P95", 9, _rank("first", "p95"), right=True, drop=4),
        ListColumn("P50", 7, _rank("took", "p50"), right=True),
        ListColumn("P95", 7, _rank("took", "p95"), right=True),
        ListColumn("MAX", 7, _rank("took", "max"), right=True, drop=1),
        ListColumn(_scale(), len(_scale()), lambda row: spark(row[1].bins, plain=plain)),
    ]


def _rank(measure: str, rank: str) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        times = getattr(row[1], measure)
        return text.duration(getattr(times, rank)) if times is not None else ""

    return cell


def _scale() -> str:
    line = ""
    for place, label in _SCALE:
        line = line.ljust(place) + label
    return line
