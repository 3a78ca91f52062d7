"""Marks on rows."""

from __future__ import annotations

from pathlib import Path

from a2a_inspect.app import InspectApp
from a2a_inspect.screens.main import MainScreen
from a2a_inspect.widgets.marks import MarkedRow, RowMarks, with_signs
from a2a_proxy.recording.read.rows import make_key
from support_inspect import sample
from support_screen import looking


def test_marks_are_kept_in_their_order() -> None:
    """A second time takes it away; an exchange is not its frame."""
    marks = RowMarks()
    for one in (MarkedRow(7), MarkedRow(3, 4), MarkedRow(1), MarkedRow(7)):
        marks.toggle_mark(one)
    assert marks.marked_rows() == [MarkedRow(3, 4), MarkedRow(1)]
    assert (
        marks.is_exchange_marked(1),
        marks.is_exchange_marked(7),
        marks.is_exchange_marked(3),
        marks.is_frame_marked(3, 4),
    ) == (True, False, False, True)
    assert (with_signs("12", True), with_signs("12", False)) == ("*12", "12")


async def test_exchanges_and_frames_are_marked(tmp_path: Path) -> None:
    """The sign stands before the number, on the row and in `marked`."""
    async with looking(sample(tmp_path / "r.db")) as person:
        await person.sees("3 exchanges")
        await person.until(lambda: person.exchanges.current_row is not None)
        await person.types("m", "k", "k", "m")
        await person.sees("*3", "*1")
        await person.types("tab", "j")
        await person.until(lambda: person.frames.current_row is not None)
        await person.types("m")
        await person.until(lambda: len(screen(person.app).widgets.marks.marked_rows()) == 3)
        first, second, third = screen(person.app).widgets.marks.marked_rows()
        assert (first, second) == (MarkedRow(make_key(1, 3)), MarkedRow(make_key(1, 1)))
        assert third.exchange == make_key(1, 1)
        assert third.frame == person.frames.current_row.row.id
        await person.types("m")
        assert len(screen(person.app).widgets.marks.marked_rows()) == 2


def screen(app: InspectApp) -> MainScreen:
    found = app.screen
    assert isinstance(found, MainScreen)
    return found
