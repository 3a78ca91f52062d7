"""The last line of the screen: which keys mean something here."""

from __future__ import annotations

from pathlib import Path

from a2a_inspect.screen.key_line import Hint, KeyLine, placed
from support_inspect import changes, exchange, sample, writer
from support_screen import SMALL, looking

OPEN, QUIT = Hint("enter", "enter", "Open"), Hint("q", "q", "Quit")


def test_no_hint_is_cut() -> None:
    """What does not fit is left out."""
    assert placed((OPEN, QUIT), 20) == [(0, OPEN), (12, QUIT)]
    assert placed((OPEN, QUIT), 19) == [(0, OPEN)]
    assert placed((OPEN, QUIT), 11) == []


async def test_it_tells_the_keys_of_the_place_and_a_click_presses_one(tmp_path: Path) -> None:
    """Those of the list, then those of a frame; a click on a key is a key."""
    async with looking(sample(tmp_path / "r.db"), SMALL) as person:
        await person.sees("OPERATION", "enter Open", "▏ ^p Commands")
        line = person.app.screen.query_one(KeyLine)
        x = person.lines[-1].index("? Keys") if "? Keys" in person.lines[-1] else person.lines[-1].index("/ Filter")
        await person.pilot.click(line, offset=(x, 0))
        await person.sees("op:SendMessage slow:>2s")


async def test_the_list_gets_the_keys_when_there_is_something_in_it(tmp_path: Path) -> None:
    """A notice stands there before; it takes the focus from the list."""
    made = writer(tmp_path / "r.db")
    async with looking(tmp_path / "r.db", SMALL) as person:
        await person.sees("Waiting for a recording")
        made.write([], changes=changes(exchange(1)))
        await person.sees("OPERATION", "enter Open")
        assert person.app.focused is person.exchanges
    made.close()


async def test_a_list_that_grows_beyond_its_pane_shows_its_end(tmp_path: Path) -> None:
    """Where all rows fitted before, there was no scroll bar yet, and nothing was scrolled."""
    made = writer(tmp_path / "r.db")
    made.write([], changes=changes(exchange(1)))
    async with looking(tmp_path / "r.db", SMALL) as person:
        await person.sees("following  1")
        made.write([], changes=changes(*map(exchange, range(2, 101))))
        await person.sees("following  100")
        await person.until(lambda: any(line.split()[1:2] == ["100"] for line in person.lines))
    made.close()
