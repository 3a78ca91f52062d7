"""The filter box: the line that shows an error under the expression."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from a2a_inspect.data.list_filter import INVALID, FilterCheck
from a2a_inspect.dialogs.filter_box import error_with_caret


@given(st.text(max_size=30), st.integers(0, 200), st.integers(0, 200))
def test_the_caret_stands_under_what_is_wrong(message: str, at: int, width: int) -> None:
    """Or is left out; nothing is wider than the line."""
    line = error_with_caret(
        FilterCheck(
            INVALID, "there is " + message.replace("^", "") if message.isprintable() else "x", at
        ),
        2,
        width,
    )
    assert "^" not in line or line.index("^") == 2 + at
    if line.isascii():
        assert len(line) <= max(width, 0)
