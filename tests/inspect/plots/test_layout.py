"""Plots as lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_inspect.plots.cursor import PlotCursor
from a2a_inspect.plots.layout import plot_lines, step_words, table_lines
from a2a_inspect.plots.measures import Bucket, Histogram
from a2a_inspect.plots.scale import BIN_LIMITS, TimeScale
from a2a_inspect.plots.sums import CallStatistics, DurationRanks, RecordingTotals
from a2a_proxy.model.values import Severity

MS = 1_000_000
BUCKETS = [
    Bucket(1, 100, 1),
    Bucket(0, 0),
    Bucket(4, 2000, 0, {Severity.INFO: 2, Severity.ERROR: 1}),
]
SHOWN = Histogram(TimeScale(1_795_300_256_000 * MS, 1000 * MS, 3), BUCKETS)


def drawn(width: int, cursor: PlotCursor, *, plain: bool = False) -> list[str]:
    return [
        "".join(cell for cell, _ in line).rstrip()
        for line in plot_lines(SHOWN, cursor, (width, 8), plain=plain)
    ]


def test_a_plot() -> None:
    """Columns as wide as there is room for; the gravest finding; what is chosen; when it is."""
    lines = drawn(30, PlotCursor(2, 1))
    assert lines[0] == "FRAMES  at most 4 in 1.0 s"
    assert lines[1:3] == [f"{'':20}██████████", "▄▄▄▄▄▄▄▄▄▄          ██████████"]
    assert lines[3].startswith("BYTES  at most 2.0 KiB")
    assert lines[5] == f"{'':20}!"
    assert lines[6] == f"{'':10}──────────▲─────────"
    assert len(lines[7].split()) == 2


def test_plain_characters() -> None:
    assert all(line.isascii() for line in drawn(60, PlotCursor(2, 1), plain=True))


def test_the_selected_step_is_described() -> None:
    words = step_words(SHOWN, PlotCursor(2, 0))
    assert words.endswith("5 frames  2.1 KiB  1 exchange began  findings: 1 error, 2 info")


@given(
    st.integers(10, 120), st.integers(7, 30), st.integers(0, 2), st.integers(0, 2), st.booleans()
)
def test_every_line_fits(width: int, lines: int, at: int, anchor: int, plain: bool) -> None:
    """Exactly so many lines, none wider than the screen."""
    plotted = list(plot_lines(SHOWN, PlotCursor(at, anchor), (width, lines), plain=plain))
    assert len(plotted) == lines
    assert all(
        len("".join(cell for cell, _ in line)) <= width for line in plotted[1:3] + plotted[-3:]
    )


@pytest.mark.parametrize(("width", "there"), [(77, "CALLS  "), (157, "FIRST P95")])
def test_the_table_always_has_binding_and_distribution(width: int, there: str) -> None:
    """Binding and distribution are always there; a narrow screen has fewer measures."""
    bins = [0] * (len(BIN_LIMITS) + 1)
    bins[10] = 3
    calls = CallStatistics({"ok": 3}, took=DurationRanks(MS, 2 * MS, 3 * MS, 3 * MS), bins=bins)
    known = RecordingTotals(9, {("SendMessage", "jsonrpc", "1.0"): calls}, [], [])
    head, row = (
        "".join(cell for cell, _ in line) for line in table_lines(known, width, plain=False)
    )
    assert there in head
    assert "1ms      1s    100s" in head
    assert row.split()[:3] == ["SendMessage", "jsonrpc", "1.0"]
    assert row[head.index("1ms") + 6] == "█"
