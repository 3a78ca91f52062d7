"""Moving over a plot."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from a2a_inspect.plots.cursor import PlotCursor
from a2a_inspect.plots.scale import TimeScale

SPAN = TimeScale(1_000_000, 1000, 10)


def test_choosing_and_zooming() -> None:
    """Shift goes on choosing, a move begins anew; a zoom is what was chosen, and can be taken
    back."""
    cursor = PlotCursor().move_by(3, SPAN).move_by(-2, SPAN, extend=True)
    assert cursor.selected == (1, 3)
    assert cursor.move_by(1, SPAN).selected == (2, 2)
    inner = cursor.zoom_in(SPAN)
    assert inner.visible_range == (1_001_000, 1_003_999)
    assert (
        inner.zoom_in(TimeScale(1_001_000, 100, 30)).zoom_out().visible_range == inner.visible_range
    )
    assert inner.zoom_out().zoom_out().visible_range is None


@given(st.lists(st.tuples(st.integers(-20, 20), st.booleans())))
def test_the_cursor_stays_within_the_span(moves: list[tuple[int, bool]]) -> None:
    """Also where the span becomes shorter."""
    cursor = PlotCursor()
    for by, extend in moves:
        cursor = cursor.move_by(by, SPAN, extend=extend)
        first, last = cursor.selected
        assert 0 <= first <= cursor.at <= last < SPAN.count or first <= last
    assert max(cursor.clip_to_scale(TimeScale(0, 1, 2)).selected) < 2
