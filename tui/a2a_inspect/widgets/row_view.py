"""Rows of a list as lines of cells: column titles, the columns that fit, and the mark of the
cursor's row."""

from collections.abc import Sequence
from typing import Any, ClassVar

from msgspec.structs import replace
from rich.segment import Segment
from textual.strip import Strip

from a2a_inspect.widgets.columns import COLUMN_GAP, ListColumn, columns_for_width, fit_text
from a2a_inspect.widgets.long_view import LongView

_CURSOR = "▌"


class RowView(LongView):
    """The base class. Subclasses provide the rows."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *("list--head", "list--cursor", "list--mark", "list--dim", "list--strong"),
        *("list--good", "list--bad", "list--warn", "list--live", "list--out", "list--in"),
    }

    DEFAULT_CSS = """
    RowView {
        height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; scrollbar-gutter: stable;
        background: $background; color: $foreground;
        &> .list--head { color: $text-muted; }
        &> .list--cursor { background: $foreground 8%; }
        &:focus > .list--cursor { background: $primary 25%; }
        &> .list--mark { color: $foreground 30%; }
        &:focus > .list--mark { color: $accent; }
        &> .list--dim { color: $text-muted; }
        &> .list--strong { text-style: bold; }
        &> .list--good { color: $text-success; }
        &> .list--bad { color: $text-error; text-style: bold; }
        &> .list--warn { color: $text-warning; text-style: bold; }
        &> .list--live { color: $text-accent; text-style: bold; }
        &> .list--out { color: $text-primary; }
        &> .list--in { color: $text-success; }
    }
    """

    def __init__(self, columns: Sequence[ListColumn], *, id: str) -> None:
        super().__init__(id=id)
        self._columns = columns
        self._layout: list[tuple[ListColumn, int]] = []

    def set_columns(self, columns: Sequence[ListColumn]) -> None:
        """Set other columns."""
        self._columns = columns
        self.fit_columns()

    def widen_column(self, title: str, width: int) -> None:
        """Set a new minimum width of a column."""
        wider = [c.width < width and c.title == title for c in self._columns]
        if any(wider):
            pairs = zip(self._columns, wider, strict=True)
            self._columns = [
                replace(column, width=width) if yes else column for column, yes in pairs
            ]
            self.fit_columns()

    def fit_columns(self) -> None:
        """Choose the columns for the current width."""
        self._layout = columns_for_width(self._columns, self.size.width - 2)
        self.refresh()

    def column_title_strip(self) -> Strip:
        """Return the titles of the columns, for a line above the rows."""
        style = self.combine_styles("list--head")
        cells = COLUMN_GAP.join(
            fit_text(column.title, width, right=column.right) for column, width in self._layout
        )
        return Strip([Segment(f" {cells}", style)]).adjust_cell_length(self.size.width, style)

    def row_strip(self, row: Any, *, is_cursor: bool) -> Strip:
        """Return one row, with the cursor's mark if `is_cursor`; a row that is not loaded has no
        cells."""
        under = ("list--cursor",) if is_cursor else ()
        mark = Segment(_CURSOR if is_cursor else " ", self.combine_styles(*under, "list--mark"))
        cells = [] if row is None else self.row_segments(row, under)
        return Strip([mark, *cells]).adjust_cell_length(
            self.size.width, self.combine_styles(*under)
        )

    def row_segments(self, row: Any, style: tuple[str, ...]) -> list[Segment]:
        """Return the cells of a row in `style`."""
        cells: list[Segment] = []
        gap = Segment(COLUMN_GAP, self.combine_styles(*style))
        for column, width in self._layout:
            name = column.style if isinstance(column.style, str) else column.style(row)
            text = column.cell(row)
            if column.shorten is not None:
                text = column.shorten(text, width)
            text = fit_text(text, width, right=column.right)
            cells += (Segment(text, self.combine_styles(*style, name) if name else gap.style), gap)
        return cells[:-1]
