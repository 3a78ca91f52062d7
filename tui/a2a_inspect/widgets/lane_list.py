"""The list of a swimlane's rows: what `lanes.layout` paints, with the cursor and the paging of every list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from a2a_inspect.lanes.layout import LaneGeometry, lane_head, make_geometry, paint_row
from a2a_inspect.lanes.model import LaneRow, PartyLane
from a2a_inspect.widgets.lazy_list import LazyList


class LaneList(LazyList):
    """See the module."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "mark(1)", "Next mark", id="lanes.next-mark", tooltip="next finding, interruption or wait"),
        Binding("E", "mark(-1)", "Previous mark", show=False, id="lanes.previous-mark"),
    ]

    class Sought(Message):
        """The user wants the next mark after the cursor (`by` 1), or the one before (-1)."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    def __init__(self, load_page: Callable[[int], Awaitable[Sequence[LaneRow]]], *, id: str) -> None:
        super().__init__([], id=id)
        self._load_page = load_page
        self._lanes: tuple[PartyLane, ...] = ()
        self._geometry = make_geometry(0, ())

    def show(self, lanes: Sequence[PartyLane], total: int) -> None:
        """A conversation, or the same as it is now."""
        self._lanes = tuple(lanes)
        self.update_total(total)

    async def load_page(self, page: int) -> Sequence[LaneRow]:
        """One page."""
        return await self._load_page(page)

    def column_titles(self) -> Strip:
        """The names of the lanes."""
        style = self.style("list--strong")
        return Strip([Segment(f" {lane_head(self._current_geometry)}", style)]).adjust_cell_length(
            self.size.width, style
        )

    @property
    def _current_geometry(self) -> LaneGeometry:
        width = self.size.width - 2  # the cursor's mark, the scroll bar
        if (self._geometry.width, self._geometry.lanes) != (width, self._lanes):
            self._geometry = make_geometry(width, self._lanes)
        return self._geometry

    def row_segments(self, row: Any, style: tuple[str, ...]) -> list[Segment]:
        """What is painted at the row's place in each lane."""
        painted = paint_row(row, self._current_geometry)
        return [Segment(said, self.style(*style, name) if name else self.style(*style)) for said, name in painted]

    def action_mark(self, by: int) -> None:
        """To the next mark, or the one before."""
        self.post_message(self.Sought(by))
