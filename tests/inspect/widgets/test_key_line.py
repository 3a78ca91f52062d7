"""The last line of the screen: the keys that apply."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_inspect.widgets.key_line import KeyHint, KeyLine, place_hints
from support_inspect import changes, exchange, sample, writer
from support_screen import SMALL, looking

OPEN, QUIT = KeyHint("enter", "enter", "Open"), KeyHint("q", "q", "Quit")


def test_hints_are_not_cut() -> None:
    """What does not fit is left out."""
    assert place_hints((OPEN, QUIT), 20) == [(0, OPEN), (12, QUIT)]
    assert place_hints((OPEN, QUIT), 19) == [(0, OPEN)]
    assert place_hints((OPEN, QUIT), 11) == []


def test_the_page_of_keys_stays() -> None:
    """Those before it give way, down to where not even that one has room."""
    keys = KeyHint("?", "?", "Keys", is_always_shown=True)
    assert place_hints((OPEN, QUIT, keys), 28) == [(0, OPEN), (12, QUIT), (20, keys)]
    assert place_hints((OPEN, QUIT, keys), 27) == [(0, OPEN), (12, keys)]
    assert place_hints((OPEN, QUIT, keys), 19) == place_hints((OPEN, QUIT, keys), 8) == [(0, keys)]
    assert place_hints((OPEN, QUIT, keys), 7) == []


@pytest.mark.parametrize("width", [60, 80])
async def test_hints_of_each_screen_are_complete(tmp_path: Path, width: int) -> None:
    """The lists, a frame, the swimlane, the plots; the replay has its own first."""
    async with looking(sample(tmp_path / "r.db"), (width, 30)) as person:
        await person.sees("OPERATION")
        for way in ((), ("enter",), ("enter",), ("s",), ("escape", "L"), ("escape", "space")):
            await person.types(*way)
            await person.until(
                lambda: "? Keys" in person.lines[-1] and person.lines[-1].endswith("▏ ^p Commands ")
            )
        await person.until(lambda: person.lines[-1].startswith(" space Play  . Next  , Previous "))


async def test_the_key_line_shows_current_keys_and_accepts_clicks(tmp_path: Path) -> None:
    """Those of the list, then those of a frame; a click on a key is a key."""
    async with looking(sample(tmp_path / "r.db"), SMALL) as person:
        await person.sees("OPERATION", "enter Open", "▏ ^p Commands")
        line = person.app.screen.query_one(KeyLine)
        await person.pilot.click(line, offset=(person.lines[-1].index("/ Filter"), 0))
        await person.sees("op:SendMessage slow:>2s")


async def test_the_list_gets_the_focus_once_it_has_rows(tmp_path: Path) -> None:
    """Before that a notice has the focus."""
    made = writer(tmp_path / "r.db")
    async with looking(tmp_path / "r.db", SMALL) as person:
        await person.sees("Waiting for a recording")
        made.write([], changes=changes(exchange(1)))
        await person.sees("OPERATION", "enter Open")
        assert person.app.focused is person.exchanges
    made.close()


async def test_a_list_growing_beyond_its_pane_scrolls(tmp_path: Path) -> None:
    """Where all rows fitted before, there was no scroll bar yet, and nothing was scrolled."""
    made = writer(tmp_path / "r.db")
    made.write([], changes=changes(exchange(1)))
    async with looking(tmp_path / "r.db", SMALL) as person:
        await person.sees("following  1")
        made.write([], changes=changes(*map(exchange, range(2, 101))))
        await person.sees("following  100")
        await person.until(lambda: any(line.split()[1:2] == ["100"] for line in person.lines))
    made.close()
