"""A histogram over time and a table of latencies as lines of cells. Pure; styles are names of
component classes."""

from collections.abc import Callable, Iterator

from a2a_inspect.plots.cursor import PlotCursor
from a2a_inspect.plots.draw import draw_columns, draw_sparkline
from a2a_inspect.plots.measures import Bucket, CallKind, Histogram
from a2a_inspect.plots.sums import CallStatistics, RecordingTotals
from a2a_inspect.plots.written import findings_words, step_clock
from a2a_inspect.widgets.columns import COLUMN_GAP, ListColumn, columns_for_width, fit_text
from a2a_proxy.model.values import Severity
from a2a_proxy.present import text

StyledLine = list[tuple[str, str]]
"""Text and the name of its style."""

_MIN_TICK_CELLS = 20
"""Minimum cells between two times below the columns."""
_SEVERITY_SIGNS = {
    Severity.ERROR: ("!", "plot--bad"),
    Severity.WARNING: ("*", "plot--warn"),
    Severity.INFO: (".", "plot--dim"),
}
_SCALE_LABELS = ((4, "1ms"), (13, "1s"), (19, "100s"))
"""Bins of `scale.BIN_LIMITS` and the label above the start of each."""

CallRow = tuple[CallKind, CallStatistics]


def plot_lines(
    histogram: Histogram, cursor: PlotCursor, size: tuple[int, int], *, plain: bool
) -> Iterator[StyledLine]:
    """Yield frames and bytes over time, findings, the selection and times, in `size` cells and
    lines."""
    width, lines = size
    low = max((lines - 5) * 3 // 7, 1)
    high = max(lines - 5 - low, 1)
    wide = max(width // max(histogram.scale.count, 1), 1)
    first, last = cursor.selected
    chosen = (first * wide, (last + 1) * wide)
    step = text.format_duration(histogram.scale.step)
    frames = [bucket.frames for bucket in histogram.buckets]
    data = [bucket.bytes for bucket in histogram.buckets]
    yield _title_line("FRAMES", f"at most {max(frames, default=0)} in {step}", width)
    yield from (
        _column_line(line, wide, chosen, width) for line in draw_columns(frames, high, plain=plain)
    )
    yield _title_line("BYTES", f"at most {text.format_size(max(data, default=0))} in {step}", width)
    yield from (
        _column_line(line, wide, chosen, width) for line in draw_columns(data, low, plain=plain)
    )
    yield _severity_line(histogram.buckets, wide, width)
    yield _selection_line(chosen, cursor.at * wide, width, plain=plain)
    yield [(_time_axis(histogram, wide, width), "plot--dim")]


def _title_line(name: str, remark: str, width: int) -> StyledLine:
    return [
        (f"{name}  ", "plot--strong"),
        (fit_text(remark, max(width - len(name) - 2, 0)), "plot--dim"),
    ]


def _column_line(columns: str, wide: int, selected: tuple[int, int], width: int) -> StyledLine:
    cells = "".join(sign * wide for sign in columns).ljust(width)
    first, last = selected
    return [
        (cells[:first], "plot--bar"),
        (cells[first:last], "plot--chosen"),
        (cells[last:], "plot--bar"),
    ]


def _severity_line(buckets: list[Bucket], wide: int, width: int) -> StyledLine:
    """Return the highest severity of each step."""
    line: StyledLine = []
    for bucket in buckets:
        sign, style = (
            _SEVERITY_SIGNS[bucket.highest_severity]
            if bucket.highest_severity is not None
            else (" ", "")
        )
        line.append((sign.ljust(wide), style))
    return [*line, (" " * (width - wide * len(buckets)), "")]


def _selection_line(
    selected: tuple[int, int], cursor: int, width: int, *, plain: bool
) -> StyledLine:
    first, last = selected
    across, point = ("-", "^") if plain else ("─", "▲")
    marks = across * (last - first)
    marks = marks[: cursor - first] + point + marks[cursor - first + 1 :]
    return [(" " * first, ""), (marks, "plot--cursor"), (" " * (width - last), "")]


def _time_axis(histogram: Histogram, wide: int, width: int) -> str:
    """Return the start times of the steps, as many as fit; the last one is right-aligned."""
    each = max(-(-_MIN_TICK_CELLS // wide), 1)
    line = ""
    for number in range(0, histogram.scale.count, each):
        begin = number * wide
        clock = step_clock(histogram.scale.find_start(number), histogram.scale.step)
        if begin + len(clock) <= width:
            line = line.ljust(begin) + clock
    return line.ljust(width)


def step_words(histogram: Histogram, cursor: PlotCursor) -> str:
    """Return a description of the selection."""
    first, last = cursor.selected
    buckets = histogram.buckets[first : last + 1]
    found: dict[Severity, int] = {}
    for bucket in buckets:
        for severity, count in bucket.findings.items():
            found[severity] = found.get(severity, 0) + count
    words = [
        " to ".join(
            step_clock(histogram.scale.find_start(step), histogram.scale.step)
            for step in (first, last + 1)
        ),
        text.format_count(sum(bucket.frames for bucket in buckets), "frame"),
        text.format_size(sum(bucket.bytes for bucket in buckets)),
        f"{text.format_count(sum(bucket.exchanges for bucket in buckets), 'exchange')} began",
        f"findings: {findings_words(Bucket(findings=found))}" if found else "",
    ]
    return "  ".join(word for word in words if word)


def table_lines(totals: RecordingTotals, width: int, *, plain: bool) -> Iterator[StyledLine]:
    """Yield a line for each kind of call: count, latencies, and distribution of durations on a
    scale of 1, 2, 5."""
    layout = columns_for_width(
        [
            ListColumn("OPERATION", 14, lambda row: row[0][0] or "not A2A", grow=1),
            ListColumn("BINDING", 11, lambda row: " ".join(row[0][1:]).strip()),
            ListColumn("CALLS", 5, lambda row: str(row[1].count), right=True),
            ListColumn("FIRST P50", 9, _rank_cell("first", "p50"), right=True, drop=2),
            ListColumn("FIRST P95", 9, _rank_cell("first", "p95"), right=True, drop=4),
            ListColumn("P50", 7, _rank_cell("took", "p50"), right=True),
            ListColumn("P95", 7, _rank_cell("took", "p95"), right=True),
            ListColumn("MAX", 7, _rank_cell("took", "max"), right=True, drop=1),
            ListColumn(
                _scale_title(),
                len(_scale_title()),
                lambda row: draw_sparkline(row[1].bins, plain=plain),
            ),
        ],
        width,
    )
    title = COLUMN_GAP.join(
        fit_text(column.title, cells, right=column.right) for column, cells in layout
    )
    yield [(title, "plot--dim")]
    for row in totals.calls.items():
        cells = (fit_text(column.cell(row), cells, right=column.right) for column, cells in layout)
        yield [(COLUMN_GAP.join(cells), "")]


def _rank_cell(measure: str, rank: str) -> Callable[[CallRow], str]:
    def cell(row: CallRow) -> str:
        times = getattr(row[1], measure)
        return text.format_duration(getattr(times, rank)) if times is not None else ""

    return cell


def _scale_title() -> str:
    line = ""
    for place, label in _SCALE_LABELS:
        line = line.ljust(place) + label
    return line
