"""The search for a word in the text of a frame."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from textual.widgets import Input

from a2a_inspect.widgets.text_view import TextSearch, split_at_spans
from support_inspect import sample
from support_screen import LARGE, looking

LINES = ["one two", "nothing", "Two, TWO"]
PLACES = [(0, 4), (2, 0), (2, 5)]


def test_the_search_wraps_around() -> None:
    """Whatever the case; from the last place to the first, and back."""
    sought, at = TextSearch("two"), (0, -1)
    there = [at := sought.next_position(LINES, at, 1) or (-1, -1) for _ in range(4)]
    assert there == [*PLACES, PLACES[0]]
    back = [at := sought.next_position(LINES, at, -1) or (-1, -1) for _ in range(3)]
    assert back == PLACES[::-1]
    assert TextSearch("(").next_position(LINES, (0, 0), 1) is None
    assert TextSearch("two").next_position([], (0, 0), 1) is None
    assert TextSearch("").match_spans("one") == []


@given(st.text(alphabet="ab", max_size=30), st.integers(0, 30), st.integers(0, 30))
def test_a_piece_is_cut_where_the_word_begins_and_ends(line: str, begin: int, end: int) -> None:
    """Nothing is lost, nothing is there twice, and just what is found is marked."""
    end = min(end, len(line))
    spans = TextSearch("ab").match_spans(line)
    pieces = split_at_spans(begin, end, spans)
    assert "".join(line[a:b] for a, b, _ in pieces) == line[begin:end]
    marked = {at for a, b, found in pieces if found for at in range(a, b)}
    assert marked == {at for a, b in spans for at in range(a, b) if begin <= at < end}


async def test_a_word_is_searched_in_a_frame(tmp_path: Path) -> None:
    """`/` in the frame pane searches there, n and N continue; in a list and over bytes it is the
    filter."""
    async with looking(sample(tmp_path / "r.db"), LARGE) as person:
        await person.sees("OPERATION", '"text": "Question 3"')
        await person.types("enter", "enter", "slash")
        await person.until(lambda: isinstance(person.app.focused, Input))
        await person.types(*"ROLE", "enter")
        view = person.app.screen_stack[0].query_one("#decoded")
        await person.until(lambda: person.app.focused is view and view._search_position is not None)
        first = view._search_position
        await person.types("n")
        await person.until(lambda: view._search_position not in (None, first))
        await person.types("N")
        await person.until(lambda: view._search_position == first)
        await person.types("slash")
        await person.until(lambda: isinstance(person.app.focused, Input))
        await person.types(*["backspace"] * 4, *"zyx", "enter")
        await person.await_notice("not found: zyx")
        await person.types("2", "slash")
        await person.sees("op:SendMessage slow:>2s")
