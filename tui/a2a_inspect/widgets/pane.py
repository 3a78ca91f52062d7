"""A pane: a title line with a remark at its right, then the content. No borders."""

from rich.cells import cell_len
from rich.segment import Segment
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from a2a_inspect.widgets.columns import fit_text
from a2a_inspect.widgets.lazy_list import LazyList


class PaneTitle(Widget):
    """The first line of a pane. The focused pane has a mark in addition to another colour."""

    DEFAULT_CSS = "PaneTitle { height: 1; background: $surface; color: $text-muted; }"

    text: reactive[str] = reactive("")
    remark: reactive[str] = reactive("")

    def render_line(self, y: int) -> Strip:  # noqa: ARG002 - one line only
        """Return `▸ title             remark`."""
        mark = "▸ " if self.parent is not None and self.parent.has_class("-focused") else "  "
        width = self.size.width
        remark = fit_text(self.remark, min(cell_len(self.remark), max(width - 12, 0)))
        left = fit_text(mark + self.text, max(width - cell_len(remark) - 2, 0))
        return Strip([Segment(f"{left} {remark} ", self.rich_style)]).adjust_cell_length(
            width, self.rich_style
        )


class ListHead(Widget):
    """The titles of a list's columns."""

    DEFAULT_CSS = "ListHead { height: 1; background: $background; }"

    def __init__(self, rows: LazyList) -> None:
        super().__init__()
        self._list = rows

    def render_line(self, y: int) -> Strip:  # noqa: ARG002 - one line only
        """Render the titles as wide as the list."""
        return self._list.column_titles().adjust_cell_length(self.size.width, self.rich_style)


class Pane(Vertical):
    """A title and a content."""

    DEFAULT_CSS = (
        "Pane.-focused > PaneTitle { background: $primary 35%; color: $foreground; text-style: "
        "bold; }"
    )

    def __init__(self, *content: Widget, id: str) -> None:
        super().__init__(id=id)
        self._content = content
        self.title = PaneTitle()

    def compose(self) -> ComposeResult:
        """Return the title and the content."""
        yield self.title
        yield from self._content

    def on_descendant_focus(self) -> None:
        """Mark the title."""
        self.add_class("-focused")
        self.title.refresh()

    def on_descendant_blur(self) -> None:
        """Remove the mark."""
        self.remove_class("-focused")
        self.title.refresh()
