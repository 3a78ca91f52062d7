"""Tables with aligned columns.

Each column is as wide as its widest cell, the last one unbounded, or all are fitted to a terminal.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from a2a_inspect.widgets.columns import COLUMN_GAP, fit_text

_SAMPLE_ROWS = 200
"""Rows measured before the first is printed. Later cells may be wider and are cut if the width is
bounded."""


class TableLimits(msgspec.Struct, frozen=True):
    """A bounded width and the order in which columns shrink. Columns are named by their heading."""

    width: int
    """Cells of a line."""
    max_widths: dict[str, int]
    """Maximum cells of a column."""
    shrink_order: tuple[tuple[str, int], ...]
    """Columns that shrink, one by one until the rest fits, each with the cells it keeps; 0 removes
    the column."""
    shorten: Mapping[str, Callable[[str, int], str]] = {}
    """Functions that abbreviate a cell of a column to a number of cells, if they can, before its
    end is cut off."""


def table_lines(
    head: Sequence[str], rows: Iterable[Sequence[str]], limits: TableLimits | None = None
) -> Iterator[str]:
    """Yield the lines of a table, heading first. Rows are read one by one, so memory does not
    grow."""
    source = iter(rows)
    first = [row for _, row in zip(range(_SAMPLE_ROWS), source, strict=False)]
    widths = {
        title: max(len(row[index]) for row in [head, *first]) for index, title in enumerate(head)
    }
    if limits is not None:
        widths = _fit_widths(widths, limits)
    visible_columns = [
        (index, widths[title]) for index, title in enumerate(head) if title in widths
    ]
    shorten = (
        {head.index(title): function for title, function in limits.shorten.items()}
        if limits is not None
        else {}
    )
    for row in itertools.chain((head, *first), source):
        yield (
            COLUMN_GAP.join(f"{row[index]:{width}}" for index, width in visible_columns).rstrip()
            if limits is None
            else _fitted_row(row, visible_columns, shorten)
        )


def _fit_widths(widths: dict[str, int], limits: TableLimits) -> dict[str, int]:
    fitted = {
        title: min(width, limits.max_widths.get(title, width)) for title, width in widths.items()
    }
    for title, least in limits.shrink_order:
        excess = sum(fitted.values()) + len(COLUMN_GAP) * (len(fitted) - 1) - limits.width
        if excess <= 0:
            break
        if not least:
            del fitted[title]
        else:
            fitted[title] -= min(excess, max(fitted[title] - least, 0))
    return fitted


def _fitted_row(
    row: Sequence[str],
    layout: Sequence[tuple[int, int]],
    shorten: Mapping[int, Callable[[str, int], str]],
) -> str:
    shorter = (
        (shorten[index](row[index], width) if index in shorten else row[index], width)
        for index, width in layout
    )
    return COLUMN_GAP.join(fit_text(cell, width) for cell, width in shorter).rstrip()
