"""The list that reads the pages in sight."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from textual._compositor import Compositor, ReflowResult
from textual.app import App, ComposeResult
from textual.geometry import Size
from textual.pilot import Pilot
from textual.widget import Widget

from a2a_inspect.widgets.columns import ListColumn
from a2a_inspect.widgets.lazy_list import LazyList
from support_inspect import sample
from support_screen import PATIENCE, SMALL, looking


class Asked(LazyList):
    """A list whose pages come when the test gives them."""

    def __init__(self) -> None:
        super().__init__([ListColumn("LETTER", 8, str)], id="asked")
        self.waiting: list[asyncio.Future[Sequence[str]]] = []

    async def load_page(self, page: int) -> Sequence[Any]:
        self.waiting.append(asyncio.get_running_loop().create_future())
        return await self.waiting[-1]


class Lists(App[None]):
    def compose(self) -> ComposeResult:
        yield Asked()


async def until(pilot: Pilot[None], true: Callable[[], bool]) -> None:
    """Wait for as long as PATIENCE lasts."""
    async with asyncio.timeout(PATIENCE):
        while not true():
            await pilot.pause()


async def test_changes_during_a_page_read_are_read_again() -> None:
    """A first page read before a reset of the list may be empty and was kept forever."""
    async with Lists().run_test() as pilot:
        rows = pilot.app.query_one(Asked)
        rows.update_total(2)
        await until(pilot, lambda: len(rows.waiting) == 1)
        rows.update_total(2)
        rows.waiting[0].set_result([])
        await until(pilot, lambda: len(rows.waiting) == 2)
        rows.waiting[1].set_result(["a", "b"])
        await until(pilot, lambda: rows.current_row == "a")
        assert len(rows.waiting) == 2


async def test_the_scroll_bar_stays_until_the_row_count_is_known() -> None:
    """Each change of the scroll bar lays out the whole screen again. The size may change
    meanwhile."""
    async with Lists().run_test(size=(80, 24)) as pilot:
        rows = pilot.app.query_one(Asked)
        rows.update_total(1000)
        await until(pilot, lambda: rows.show_vertical_scrollbar)
        rows.clear_rows(follow=False)
        await pilot.resize_terminal(80, 20)
        await pilot.pause()
        assert rows.show_vertical_scrollbar
        rows.update_total(2)
        await until(pilot, lambda: not rows.show_vertical_scrollbar)


async def test_a_list_without_a_resize_event_lays_itself_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Textual tells it only where a layout finds news, and not where it was asked in between what
    stands where."""
    reflow = Compositor.reflow

    def asked_before(self: Compositor, parent: Widget, size: Size) -> ReflowResult:
        self._full_map_invalidated = True
        assert self.full_map is not None
        return reflow(self, parent, size)

    async with looking(sample(tmp_path / "r.db"), SMALL) as person:
        await person.sees("3 exchanges")
        monkeypatch.setattr(Compositor, "reflow", asked_before)
        await person.types("enter")
        await person.sees("KIND", "request")
