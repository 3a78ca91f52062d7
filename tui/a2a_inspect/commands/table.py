"""Columns that line up: as wide as their widest cell, the last one as long as it likes; or fitted to a terminal."""

from __future__ import annotations

import itertools
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from a2a_inspect.widgets.columns import COLUMN_GAP, fit_text

_SAMPLE_ROWS = 200
"""Rows looked at before the first is printed; later ones may be wider, and are cut where the width is bounded."""


class TableLimits(msgspec.Struct, frozen=True):
    """A bounded width, and what gives way first. Columns are named by their heading."""

    width: int
    """Cells of a line."""
    max_widths: dict[str, int]
    """The most that a column takes."""
    shrink_order: tuple[tuple[str, int], ...]
    """Columns that give way, one by one until the rest fits, each with the cells it keeps; with 0 it goes."""
    keep_end_columns: tuple[str, ...] = ()
    """Columns that lose their beginning instead of their end."""


def terminal_width() -> int:
    """Cells of the terminal on stdout; 0 where there is none: then nothing is cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def table_lines(head: Sequence[str], rows: Iterable[Sequence[str]], limits: TableLimits | None = None) -> Iterator[str]:
    """Lines of a table, heading first; rows are taken as they come, so a long table needs no memory."""
    source = iter(rows)
    first = [row for _, row in zip(range(_SAMPLE_ROWS), source, strict=False)]
    widths = {title: max(len(row[index]) for row in [head, *first]) for index, title in enumerate(head)}
    if limits is not None:
        widths = _fit_widths(widths, limits)
    kept = [(index, widths[title]) for index, title in enumerate(head) if title in widths]
    tails = {head.index(title) for title in limits.keep_end_columns} if limits is not None else set()
    for row in itertools.chain((head, *first), source):
        yield _table_row(row, kept) if limits is None else _fitted_row(row, kept, tails)


def _fit_widths(widths: dict[str, int], limits: TableLimits) -> dict[str, int]:
    fitted = {title: min(width, limits.max_widths.get(title, width)) for title, width in widths.items()}
    for title, least in limits.shrink_order:
        excess = sum(fitted.values()) + len(COLUMN_GAP) * (len(fitted) - 1) - limits.width
        if excess <= 0:
            break
        if not least:
            del fitted[title]
        else:
            fitted[title] -= min(excess, max(fitted[title] - least, 0))
    return fitted


def _table_row(row: Sequence[str], layout: Sequence[tuple[int, int]]) -> str:
    return COLUMN_GAP.join(f"{row[index]:{width}}" for index, width in layout).rstrip()


def _fitted_row(row: Sequence[str], layout: Sequence[tuple[int, int]], keep_end_indexes: set[int]) -> str:
    return COLUMN_GAP.join(
        fit_text(row[index], width, tail=index in keep_end_indexes) for index, width in layout
    ).rstrip()
