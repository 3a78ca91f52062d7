"""Marks on rows."""

from __future__ import annotations

from pathlib import Path

from a2a_inspect.app import InspectApp
from a2a_inspect.screens.main import MainScreen
from a2a_inspect.widgets.marks import Marked, RowMarks, with_mark
from a2a_proxy.recording.read.rows import make_key
from support_inspect import sample
from support_screen import looking


def test_marks_are_kept_in_their_order() -> None:
    """A second time takes it away; an exchange is not its frame."""
    marks = RowMarks()
    for one in (Marked(7), Marked(3, 4), Marked(1), Marked(7)):
        marks.toggle(one)
    assert marks.listed() == [Marked(3, 4), Marked(1)]
    assert (marks.exchange(1), marks.exchange(7), marks.exchange(3), marks.frame(3, 4)) == (True, False, False, True)
    assert (with_mark("12", True), with_mark("12", False)) == ("*12", "12")


async def test_exchanges_and_frames_are_marked(tmp_path: Path) -> None:
    """The sign stands before the number, on the row and in `marked`."""
    async with looking(sample(tmp_path / "r.db")) as person:
        await person.sees("3 exchanges")
        await person.until(lambda: person.exchanges.row is not None)
        await person.types("m", "k", "k", "m")
        await person.sees("*3", "*1")
        await person.types("tab", "j")
        await person.until(lambda: person.frames.row is not None)
        await person.types("m")
        await person.until(lambda: len(screen(person.app).marked()) == 3)
        first, second, third = screen(person.app).marked()
        assert (first, second) == (Marked(make_key(1, 3)), Marked(make_key(1, 1)))
        assert third.exchange == make_key(1, 1)
        assert third.frame == person.frames.row.row.id
        await person.types("m")
        assert len(screen(person.app).marked()) == 2


def screen(app: InspectApp) -> MainScreen:
    found = app.screen
    assert isinstance(found, MainScreen)
    return found
