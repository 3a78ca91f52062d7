"""Rows of a table as strips of cells: selection of the columns that fit, and truncation.
Independent of recordings.

Text of peers passes `make_visible` here, so no control character gets into a strip.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from rich.cells import cell_len, set_cell_size

from a2a_proxy.protocol.text import make_visible

COLUMN_GAP = "  "


class ListColumn(msgspec.Struct, frozen=True):
    """One column of a table of `Any` rows."""

    title: str
    width: int
    """Minimum cells."""
    cell: Callable[[Any], str]
    grow: int = 0
    """Share of the remaining width."""
    right: bool = False
    shorten: Callable[[str, int], str] | None = None
    """Function that abbreviates a text to this number of cells, if it can, before the end is cut
    off."""
    drop: int = 0
    """Columns with the highest number are dropped first if not all fit; 0 is never dropped."""
    style: Callable[[Any], str] | str = ""
    """Name of a component class of the list, or a function of the row that returns one."""


def columns_for_width(columns: Sequence[ListColumn], width: int) -> list[tuple[ListColumn, int]]:
    """Return the columns that fit into `width` cells, each with its width."""
    visible = list(columns)
    while _total_width(visible) > width and any(column.drop for column in visible):
        visible.remove(max(visible, key=lambda column: column.drop))
    spare, shares = max(width - _total_width(visible), 0), sum(column.grow for column in visible)
    widths = []
    for column in visible:
        extra = spare * column.grow // shares if shares else 0
        spare, shares = spare - extra, shares - column.grow
        widths.append((column, column.width + extra))
    return widths


def _total_width(columns: Sequence[ListColumn]) -> int:
    return sum(column.width for column in columns) + len(COLUMN_GAP) * max(len(columns) - 1, 0)


def fit_text(text: str, width: int, *, right: bool = False, tail: bool = False) -> str:
    """Return `text` in exactly `width` cells, with an ellipsis if it was cut."""
    text = make_visible(text)
    length = cell_len(text)
    if length > width:
        if width < 1:
            return ""
        return _fit_end(text, width) if tail else set_cell_size(text, width - 1) + "…"
    space = " " * (width - length)
    return space + text if right else text + space


def _fit_end(text: str, width: int) -> str:
    """Return the last cells of a text that is too long."""
    end = text[1 - width :] if width > 1 else ""
    while cell_len(end) > width - 1:
        end = end[1:]
    return set_cell_size("…" + end, width)
