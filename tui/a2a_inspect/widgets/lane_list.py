"""The list of a swimlane's rows, painted by `lanes.layout`, with cursor and paging as in every
list."""

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
    """The list of rows."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "e",
            "mark(1)",
            "Next mark",
            id="lanes.next-mark",
            tooltip="next finding, interruption or wait",
        ),
        Binding("E", "mark(-1)", "Previous mark", show=False, id="lanes.previous-mark"),
    ]

    class MarkSearch(Message):
        """Posted when the user wants the next mark after the cursor (`by` 1), or the previous one
        (-1)."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    def __init__(
        self, load_page: Callable[[int], Awaitable[Sequence[LaneRow]]], *, id: str
    ) -> None:
        super().__init__([], id=id)
        self._load_page = load_page
        self._lanes: tuple[PartyLane, ...] = ()
        self._geometry = make_geometry(0, ())

    def show_lanes(self, lanes: Sequence[PartyLane], total: int) -> None:
        """Show a conversation, or a new state of the same one."""
        self._lanes = tuple(lanes)
        self.update_total(total)

    async def load_page(self, page: int) -> Sequence[LaneRow]:
        """Return one page."""
        return await self._load_page(page)

    def column_titles(self) -> Strip:
        """Return the names of the lanes."""
        style = self.combine_styles("list--strong")
        return Strip([Segment(f" {lane_head(self._current_geometry)}", style)]).adjust_cell_length(
            self.size.width, style
        )

    @property
    def _current_geometry(self) -> LaneGeometry:
        width = self.size.width - 2  # minus the cursor's mark and the scroll bar
        if (self._geometry.width, self._geometry.lanes) != (width, self._lanes):
            self._geometry = make_geometry(width, self._lanes)
        return self._geometry

    def row_segments(self, row: Any, style: tuple[str, ...]) -> list[Segment]:
        """Return the cells of the row in each lane."""
        cells = paint_row(row, self._current_geometry)
        return [
            Segment(
                words, self.combine_styles(*style, name) if name else self.combine_styles(*style)
            )
            for words, name in cells
        ]

    def action_mark(self, by: int) -> None:
        """Go to the next or previous mark."""
        self.post_message(self.MarkSearch(by))
