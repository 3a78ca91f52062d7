"""The list of a swimlane's rows: what `lanes.layout` paints, with the cursor and the paging of every list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from a2a_inspect.lanes.layout import Geometry, geometry, head, paint
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

    def __init__(self, load: Callable[[int], Awaitable[Sequence[LaneRow]]], *, id: str) -> None:
        super().__init__([], id=id)
        self._load = load
        self._lanes: tuple[PartyLane, ...] = ()
        self._geometry = geometry(0, ())

    def show(self, lanes: Sequence[PartyLane], total: int) -> None:
        """A conversation, or the same as it is now."""
        self._lanes = tuple(lanes)
        self.update(total)

    async def load(self, page: int) -> Sequence[LaneRow]:
        """One page."""
        return await self._load(page)

    def head(self) -> Strip:
        """The names of the lanes."""
        style = self.style("list--strong")
        return Strip([Segment(f" {head(self._places)}", style)]).adjust_cell_length(self.size.width, style)

    @property
    def _places(self) -> Geometry:
        width = self.size.width - 2  # the cursor's mark, the scroll bar
        if (self._geometry.width, self._geometry.lanes) != (width, self._lanes):
            self._geometry = geometry(width, self._lanes)
        return self._geometry

    def cells(self, row: Any, under: tuple[str, ...]) -> list[Segment]:
        """What is painted at the row's place in each lane."""
        painted = paint(row, self._places)
        return [Segment(said, self.style(*under, name) if name else self.style(*under)) for said, name in painted]

    def action_mark(self, by: int) -> None:
        """To the next mark, or the one before."""
        self.post_message(self.Sought(by))
