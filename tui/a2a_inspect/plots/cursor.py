"""Cursor, selection and zoom of a plot. Pure: each method returns a new state."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from a2a_inspect.plots.scale import TimeScale


class PlotCursor(msgspec.Struct, frozen=True):
    """Cursor over the steps of a histogram."""

    at: int = 0
    anchor: int = 0
    """Other end of the selection; equal to `at` if a single step is selected."""
    zooms: tuple[tuple[int, int], ...] = ()
    """Zoomed ranges of time (first and last moment, ns), the outermost first."""

    @property
    def selected(self) -> tuple[int, int]:
        """First and last selected step."""
        return min(self.at, self.anchor), max(self.at, self.anchor)

    @property
    def visible_range(self) -> tuple[int, int] | None:
        """The visible range of time; None: all."""
        return self.zooms[-1] if self.zooms else None

    def move_by(self, by: int, scale: TimeScale, *, extend: bool = False) -> PlotCursor:
        """Move to another step; with `extend` the steps in between are selected."""
        at = max(0, min(self.at + by, scale.count - 1))
        return replace(self, at=at, anchor=self.anchor if extend else at)

    def zoom_in(self, scale: TimeScale) -> PlotCursor:
        """Zoom into the selection."""
        first, last = self.selected
        return PlotCursor(
            zooms=(*self.zooms, (scale.find_start(first), scale.find_start(last + 1) - 1))
        )

    def zoom_out(self) -> PlotCursor:
        """Undo the last zoom."""
        return PlotCursor(zooms=self.zooms[:-1])

    def clip_to_scale(self, scale: TimeScale) -> PlotCursor:
        """Limit the cursor to the steps of `scale`, which may have become fewer."""
        last = scale.count - 1
        return replace(self, at=min(self.at, last), anchor=min(self.anchor, last))
