"""Numbers as characters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from a2a_inspect.plots.draw import draw_bar, draw_columns, draw_sparkline

VALUES = st.lists(st.integers(0, 10**12), max_size=40)


def test_columns_and_bars() -> None:
    assert draw_columns([0, 1, 8, 16], 2) == ["   █", " ▁██"]
    assert draw_columns([0, 1, 8, 16], 2, plain=True) == ["   |", " .||"]
    assert draw_columns([0, 0], 1) == ["  "]
    assert (draw_bar(16, 16, 4), draw_bar(9, 16, 4), draw_bar(0, 16, 4), draw_bar(1, 1000, 4)) == (
        "████",
        "██▎",
        "",
        "▏",
    )
    assert (draw_bar(16, 16, 4, plain=True), draw_bar(1, 1000, 4, plain=True)) == ("####", "#")
    assert draw_sparkline([0, 1, 1000]) == " ▁█"


@given(VALUES, st.integers(1, 6), st.booleans())
def test_every_value_above_zero_is_visible_and_zero_is_not(
    values: list[int], height: int, plain: bool
) -> None:
    """Whatever the others are; nothing shows nothing; a higher value is never lower; all lines are
    as wide."""
    lines = draw_columns(values, height, plain=plain)
    assert {len(line) for line in lines} == {len(values)}
    signs = " .:|" if plain else " ▁▂▃▄▅▆▇█"
    heights = [sum(signs.index(line[n]) for line in lines) for n in range(len(values))]
    assert [height > 0 for height in heights] == [value > 0 for value in values]
    ordered = [each for _, each in sorted(zip(values, heights, strict=True))]
    assert ordered == sorted(ordered)
    assert all(line.isascii() for line in lines) or not plain
