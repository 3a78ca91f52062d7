"""Rows of the swimlane as text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from a2a_inspect.lanes.layout import (
    MARGIN,
    MIN_LANE_WIDTH,
    format_elapsed,
    lane_head,
    make_geometry,
    paint_row,
)
from a2a_inspect.lanes.model import LaneRow, LaneRowKind, PartyLane, PartyRole
from a2a_proxy.model.values import FrameKind, Severity

LANES = [
    PartyLane("client", PartyRole.CLIENT),
    *(PartyLane(f"agent:{n}", PartyRole.AGENT) for n in range(1, 7)),
]


def row(source: int = 0, target: int = 1, text: str = "hello", **more: Any) -> LaneRow:
    values: dict[str, Any] = {
        "what": LaneRowKind.FRAME,
        "at": 0,
        "since_start": 1_500_000_000,
        "since_before": 12_000_000,
    }
    values |= {
        "source": source,
        "target": target,
        "text": text,
        "session": 1,
        "exchange": 1,
        "seq": 0,
    }
    return LaneRow(**{**values, "kind": FrameKind.EVENT, **more})


def drawn(width: int, lanes: int, of: LaneRow) -> str:
    """Without the times."""
    return "".join(cell for cell, _ in paint_row(of, make_geometry(width, LANES[:lanes])))[MARGIN:]


def test_arrows_go_between_lanes() -> None:
    """To the right and back, over lanes between; the others' lines go on."""
    assert drawn(61, 3, row(0, 1)) == "├─ hello ──────────▶│                   │"
    assert drawn(61, 3, row(1, 0)) == "│◀─ hello ──────────┤                   │"
    assert drawn(61, 3, row(1, 2)) == "│                   ├─ hello ──────────▶│"
    assert drawn(61, 3, row(2, 0)) == "│◀─ hello ──────────────────────────────┤"
    assert drawn(61, 3, row(0, 1, text="")) == "├──────────────────▶│                   │"


def test_ends_are_faint_and_cuts_do_not_arrive() -> None:
    assert drawn(41, 2, row(1, 0, kind=FrameKind.END)) == "│◀╌ hello ╌╌╌╌╌╌╌╌╌╌│"
    assert drawn(41, 2, row(1, 0, kind=FrameKind.CUT)) == "│✕─ hello ──────────┤"


def test_long_words_are_cut() -> None:
    assert (
        drawn(41, 2, row(text="a very long message indeed"))
        == "├─ a very long me… ─▶│"[:2] + " a very long m… ─▶│"
    )


def test_long_words_are_cut_before_the_generation() -> None:
    """The swimlane is the screen that shows their order."""
    long = row(text='artifact plan "Morning: the castle before the crowds" [generation 3]')
    assert drawn(71, 2, long) == '├─ artifact plan "Morning: the…" [generation 3] ─▶│'
    unquoted = row(text="task e85543d1 submitted with many words [generation 31, final]")
    assert drawn(71, 2, unquoted) == "├─ task e85543d1 submit… [generation 31, final] ─▶│"
    assert drawn(41, 2, long) == "├─ artifact plan… ─▶│"


def test_lanes_that_do_not_fit_share_the_last_column() -> None:
    """Their names stand before the words; what they say to one another is a dot."""
    places = make_geometry(MARGIN + 2 * MIN_LANE_WIDTH + 1, LANES)
    assert (len(places.columns), places.folded_count) == (3, 5)
    assert lane_head(places).split()[2:] == ["client", "agent:1", "+5", "others"]
    wide = MARGIN + 41
    assert drawn(wide, 7, row(0, 1)).startswith("├─ hello")
    assert "[agent:6] hello" in drawn(99, 7, row(0, 6))
    assert drawn(99, 7, row(5, 6, text="x")).endswith(" agent:5 → agent:6: x ●")


def test_marks_are_drawn_between_the_lanes() -> None:
    """With a sign in the margin and on the lane that they are about."""
    found = row(
        1, 1, "error  A2A-GEN-001", what=LaneRowKind.FINDING, severity=Severity.ERROR, kind=None
    )
    painted = paint_row(found, make_geometry(61, LANES[:2]))
    assert ("error  A2A-GEN-001", "list--bad") in painted
    line = "".join(cell for cell, _ in painted)
    assert line.split() == ["!", "│", "error", "A2A-GEN-001", "!"]
    assert drawn(
        61, 2, row(what=LaneRowKind.PAUSE, since_before=4_200_000_000, text="")
    ).split() == [
        "┊",
        *["4.2", "s", "of", "silence"],
        "┊",
    ]


def test_the_times_of_a_row() -> None:
    """Since the start, and since the frame before; where that is too long a pause above says it."""
    places = make_geometry(61, LANES[:2])
    assert paint_row(row(), places)[0][0] == "   +1.500   +12 ms  "
    assert paint_row(row(since_before=200_000_000_000), places)[0][0].split() == ["+1.500"]
    assert paint_row(row(since_start=0), places)[0][0].split() == ["+0.000"]
    assert format_elapsed(36_000_000_000_000) == "+10:00:00"


@pytest.mark.parametrize("what", list(LaneRowKind))
@given(
    width=st.integers(0, 200),
    count=st.integers(1, 7),
    ends=st.tuples(st.integers(0, 6), st.integers(0, 6)),
    text=st.text(st.characters(), max_size=60),
    kind=st.sampled_from(FrameKind),
)
def test_every_row_has_the_same_width(
    what: LaneRowKind, width: int, count: int, ends: tuple[int, int], text: str, kind: FrameKind
) -> None:
    """Whatever it says, in any script, between any lanes; and nothing that could act on a terminal
    gets through."""
    places = make_geometry(width, LANES[:count])
    source, target = (min(end, count - 1) for end in ends)
    line = "".join(
        cell for cell, _ in paint_row(row(source, target, text, what=what, kind=kind), places)
    )
    assert cell_len(line) == places.end
    assert line.isprintable()


def test_wide_drawings_name_the_frame() -> None:
    """Two streams may tell the same event."""
    places = make_geometry(100, LANES[:2])
    assert lane_head(places).split()[:3] == ["SECONDS", "AFTER", "FRAME"]
    assert paint_row(row(exchange=14, seq=3), places)[0][0] == "   +1.500   +12 ms  #14.3   "
    assert "FRAME" not in lane_head(make_geometry(99, LANES[:2]))
