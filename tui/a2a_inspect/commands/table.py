"""Columns that line up: as wide as their widest cell, the last one as long as it likes; or fitted to a terminal."""

from __future__ import annotations

import itertools
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from a2a_inspect.widgets.columns import GAP, fit

_SAMPLE = 200
"""Rows looked at before the first is printed; later ones may be wider, and are cut where the width is bounded."""


class Room(msgspec.Struct, frozen=True):
    """A bounded width, and what gives way first. Columns are named by their heading."""

    width: int
    """Cells of a line."""
    caps: dict[str, int]
    """The most that a column takes."""
    gives: tuple[tuple[str, int], ...]
    """Columns that give way, one by one until the rest fits, each with the cells it keeps; with 0 it goes."""
    tails: tuple[str, ...] = ()
    """Columns that lose their beginning instead of their end."""


def terminal_width() -> int:
    """Cells of the terminal on stdout; 0 where there is none: then nothing is cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def columns(head: Sequence[str], rows: Iterable[Sequence[str]], room: Room | None = None) -> Iterator[str]:
    """Lines of a table, heading first; rows are taken as they come, so a long table needs no memory."""
    source = iter(rows)
    first = [row for _, row in zip(range(_SAMPLE), source, strict=False)]
    widths = {title: max(len(row[index]) for row in [head, *first]) for index, title in enumerate(head)}
    if room is not None:
        widths = _fitted(widths, room)
    kept = [(index, widths[title]) for index, title in enumerate(head) if title in widths]
    tails = {head.index(title) for title in room.tails} if room is not None else set()
    for row in itertools.chain((head, *first), source):
        yield _line(row, kept) if room is None else _cut_line(row, kept, tails)


def _fitted(widths: dict[str, int], room: Room) -> dict[str, int]:
    fitted = {title: min(width, room.caps.get(title, width)) for title, width in widths.items()}
    for title, least in room.gives:
        excess = sum(fitted.values()) + len(GAP) * (len(fitted) - 1) - room.width
        if excess <= 0:
            break
        if not least:
            del fitted[title]
        else:
            fitted[title] -= min(excess, max(fitted[title] - least, 0))
    return fitted


def _line(row: Sequence[str], kept: Sequence[tuple[int, int]]) -> str:
    return GAP.join(f"{row[index]:{width}}" for index, width in kept).rstrip()


def _cut_line(row: Sequence[str], kept: Sequence[tuple[int, int]], tails: set[int]) -> str:
    return GAP.join(fit(row[index], width, tail=index in tails) for index, width in kept).rstrip()
