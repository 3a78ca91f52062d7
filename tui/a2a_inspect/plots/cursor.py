"""Where the cursor of a plot stands, what is chosen, how far it is zoomed. Pure: from one state to the next."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from a2a_inspect.plots.scale import TimeScale


class PlotCursor(msgspec.Struct, frozen=True):
    """Over the steps of a span."""

    at: int = 0
    anchor: int = 0
    """The other end of what is chosen; `at` where it is one step."""
    zooms: tuple[tuple[int, int], ...] = ()
    """The stretches of time (first and last moment, ns) that are zoomed into, the outermost first."""

    @property
    def selected(self) -> tuple[int, int]:
        """First and last step."""
        return min(self.at, self.anchor), max(self.at, self.anchor)

    @property
    def visible_range(self) -> tuple[int, int] | None:
        """The stretch that is shown; None: all."""
        return self.zooms[-1] if self.zooms else None

    def move(self, by: int, scale: TimeScale, *, extend: bool = False) -> PlotCursor:
        """To another step; with `extend` what lies between is chosen too."""
        at = max(0, min(self.at + by, scale.count - 1))
        return replace(self, at=at, anchor=self.anchor if extend else at)

    def zoom(self, scale: TimeScale) -> PlotCursor:
        """Show what is chosen alone."""
        first, last = self.selected
        return PlotCursor(zooms=(*self.zooms, (scale.at(first), scale.at(last + 1) - 1)))

    def widen(self) -> PlotCursor:
        """Show what was shown before."""
        return PlotCursor(zooms=self.zooms[:-1])

    def clip(self, scale: TimeScale) -> PlotCursor:
        """Still within steps that may have become fewer."""
        last = scale.count - 1
        return replace(self, at=min(self.at, last), anchor=min(self.anchor, last))
