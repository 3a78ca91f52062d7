"""The list that reads the pages in sight."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from textual.app import App, ComposeResult

from a2a_inspect.screen.columns import Column
from a2a_inspect.screen.lazy_list import LazyList


class Asked(LazyList):
    """A list whose pages come when the test gives them."""

    def __init__(self) -> None:
        super().__init__([Column("LETTER", 8, str)], id="asked")
        self.waiting: list[asyncio.Future[Sequence[str]]] = []

    async def load(self, page: int) -> Sequence[Any]:
        self.waiting.append(asyncio.get_running_loop().create_future())
        return await self.waiting[-1]


class Lists(App[None]):
    def compose(self) -> ComposeResult:
        yield Asked()


async def test_what_changed_while_a_page_was_on_its_way_is_read_again() -> None:
    """The first page of a list that was told again in the meantime may hold nothing, and was kept so for ever."""
    async with Lists().run_test() as pilot:
        rows = pilot.app.query_one(Asked)
        rows.update(2)
        await pilot.pause()
        rows.update(2)
        rows.waiting[0].set_result([])
        await pilot.pause()
        assert len(rows.waiting) == 2
        rows.waiting[1].set_result(["a", "b"])
        await pilot.pause()
        assert (rows.row, len(rows.waiting)) == ("a", 2)
