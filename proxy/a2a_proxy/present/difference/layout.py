"""Lay out blocks in rows of a width: side by side if there is room, else in one column with marks
in front."""

from collections.abc import Iterator, Sequence

import msgspec
from rich.cells import cell_len, chop_cells

from a2a_proxy.present.difference.blocks import BlockKind, DifferenceBlock

MIN_TWO_COLUMN_WIDTH = 120
"""Cells of width from which both sides are shown side by side."""
_INDENT = {BlockKind.NOTE: 0, BlockKind.TITLE: 0, BlockKind.HEAD: 2, BlockKind.VALUE: 4}


class LayoutRow(msgspec.Struct, frozen=True):
    """One row of the layout."""

    text: str
    block: int
    """Index of its block."""
    middle: int = 0
    """Index at which the right column begins; 0 if there is one column."""
    right: bool = False
    """Whether a row in one column belongs to the right side."""


def layout_rows(blocks: Sequence[DifferenceBlock], width: int) -> Iterator[LayoutRow]:
    """Yield all rows; with a width of 0 each value in one row, however long."""
    for number, block in enumerate(blocks):
        if width >= MIN_TWO_COLUMN_WIDTH and block.right is not None:
            yield from _two_column_rows(number, block, width)
        else:
            yield from (
                LayoutRow(text, number, right=right) for text, right in _stacked_rows(block, width)
            )


def _two_column_rows(number: int, block: DifferenceBlock, width: int) -> Iterator[LayoutRow]:
    """Yield rows as `left   ~  right`."""
    half = (width - 5) // 2
    indent = " " * _INDENT[block.kind]
    left, right = (_wrap_text(side or "", half - len(indent)) for side in (block.left, block.right))
    for row in range(max(len(left), len(right), 1)):
        one = indent + (left[row] if row < len(left) else "")
        other = indent + (right[row] if row < len(right) else "")
        mark = block.mark if row == 0 else " "
        gap = " " * (half - cell_len(one))
        yield LayoutRow(f"{one}{gap}  {mark}  {other}".rstrip(), number, len(one) + len(gap) + 5)


def _stacked_rows(block: DifferenceBlock, width: int) -> Iterator[tuple[str, bool]]:
    """Yield the left side with a minus and the right side with a plus; each row with whether it
    belongs to the right.
    """
    indent, mark = " " * _INDENT[block.kind], block.mark
    left, right = block.left, block.right or ""
    if block.kind is BlockKind.NOTE:
        yield from _indented_rows(indent, left, width, False)
    elif block.kind is not BlockKind.VALUE:
        if left or not right:
            yield from _indented_rows(f"{indent}{mark} ", left, width, False)
        if right and right != left:
            yield from _indented_rows(f"{indent}{'|' if left else mark} ", right, width, True)
    else:
        yield from _indented_rows(f"{indent}- ", left, width, False)
        yield from _indented_rows(f"{indent}+ ", right, width, True)


def _indented_rows(head: str, value: str, width: int, right: bool) -> Iterator[tuple[str, bool]]:
    """Yield the rows of a value, the further ones indented like the first."""
    for number, row in enumerate(_wrap_text(value, width - len(head)) or [""]):
        yield ((head if not number else " " * len(head)) + row).rstrip(), right


def _wrap_text(value: str, width: int) -> list[str]:
    if width <= 8 or cell_len(value) <= width:
        return [value] if value else []
    rows: list[str] = []
    row = ""
    for word in value.split(" "):
        longer = f"{row} {word}" if row else word
        if cell_len(longer) <= width:
            row = longer
            continue
        if row:
            rows.append(row)
        *whole, row = chop_cells(word, width) or [""]
        rows += whole
    return [*rows, row]
