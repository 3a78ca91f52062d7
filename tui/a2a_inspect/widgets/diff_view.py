"""The lines of a difference: two columns if they fit, and a cursor that moves between differences.

A worker creates the lines; only visible lines are rendered. The marks repeat the meaning of the
colours.
"""

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events, work
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.worker import get_current_worker

from a2a_inspect.widgets.long_view import LongView
from a2a_proxy.present.difference.blocks import BlockKind, DifferenceBlock
from a2a_proxy.present.difference.layout import LayoutRow, layout_rows

_CURSOR = "▌"
_LEFT_MARKS, _RIGHT_MARKS = ("-", "~"), ("+", "~")


class DiffView(LongView):
    """The view of a difference."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(
            "diff--left",
            "diff--right",
            "diff--head",
            "diff--title",
            "diff--note",
            "diff--ignored",
            "diff--cursor",
        ),
    }

    DEFAULT_CSS = """
    DiffView {
        height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; scrollbar-gutter: stable;
        background: $background; color: $foreground;
        &> .diff--left { color: $text-error; }
        &> .diff--right { color: $text-success; }
        &> .diff--head { color: $text-primary; }
        &> .diff--title { text-style: bold; }
        &> .diff--note { color: $foreground; }
        &> .diff--ignored { color: $text-muted; }
        &> .diff--cursor { color: $accent; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "next(1)", "Next", id="diff.next", tooltip="the next difference"),
        Binding("N", "next(-1)", "Previous", id="diff.previous", tooltip="the previous difference"),
        Binding("j,down", "scroll_down", "Down", show=False, id="diff.down"),
        Binding("k,up", "scroll_up", "Up", show=False, id="diff.up"),
        Binding("pagedown,ctrl+d", "page_down", "Page down", show=False, id="diff.pagedown"),
        Binding("pageup,ctrl+u", "page_up", "Page up", show=False, id="diff.pageup"),
        Binding("home,g", "scroll_home", "Top", show=False, id="diff.top"),
        Binding("G,end", "scroll_end", "End", show=False, id="diff.end"),
    ]

    class PositionChanged(Message):
        """Posted when the cursor moved to another difference, or the differences changed."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._blocks: Sequence[DifferenceBlock] = ()
        self._lines: list[LayoutRow] = []
        self._anchors: list[int] = []
        self._position = -1

    @property
    def differences(self) -> int:
        """Number of differences."""
        return len(self._anchors)

    @property
    def position(self) -> int:
        """Number of the difference under the cursor, from 1; 0 before the first."""
        return self._position + 1

    def show_blocks(self, blocks: Sequence[DifferenceBlock]) -> None:
        """Show these blocks from their beginning."""
        self._blocks = blocks
        self._position = -1
        self.scroll_to(y=0, animate=False)
        self._make_layout(self.size.width)

    def on_resize(self, event: events.Resize) -> None:
        """Lay the lines out again, with the same difference under the cursor."""
        self._make_layout(event.size.width)

    @work(thread=True, exclusive=True, group="layout", exit_on_error=False)
    def _make_layout(self, width: int) -> None:
        rows = list(layout_rows(self._blocks, max(width - 3, 20)))
        if not get_current_worker().is_cancelled:
            self.app.call_from_thread(self._set_layout, rows)

    def _set_layout(self, rows: list[LayoutRow]) -> None:
        self._lines = rows
        first: dict[int, int] = {}
        for number, line in enumerate(rows):
            first.setdefault(line.block, number)
        self._anchors = [at for block, at in first.items() if self._blocks[block].anchor]
        self._position = min(self._position, len(self._anchors) - 1)
        self.set_row_count(len(rows))
        self.refresh()
        self.post_message(self.PositionChanged())

    def action_next(self, by: int) -> None:
        """Go to another difference; after the last one to the first."""
        if self._anchors:
            self._position = (
                (self._position + by) % len(self._anchors)
                if self._position >= 0 or by > 0
                else len(self._anchors) - 1
            )
            self.scroll_to(
                y=max(self._anchors[self._position] - self.size.height // 3, 0), animate=False
            )
            self.refresh()
            self.post_message(self.PositionChanged())

    def render_line(self, y: int) -> Strip:
        """Render one row."""
        base, index = self.combine_styles(), self.scroll_offset.y + y
        if index >= len(self._lines):
            return Strip.blank(self.size.width, base)
        line = self._lines[index]
        here = self._position >= 0 and index == self._anchors[self._position]
        segments = [
            Segment(_CURSOR if here else " ", self._named_style("diff--cursor") if here else base)
        ]
        segments += self._row_segments(line, self._blocks[line.block])
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def _row_segments(self, line: LayoutRow, block: DifferenceBlock) -> list[Segment]:
        if block.ignored:
            return [Segment(line.text, self._named_style("diff--ignored"))]
        if block.kind is BlockKind.VALUE or (block.right is not None and block.mark in "-+"):
            if line.middle:
                left = self._named_style("diff--left" if block.mark in _LEFT_MARKS else "")
                right = self._named_style("diff--right" if block.mark in _RIGHT_MARKS else "")
                return [
                    Segment(line.text[: line.middle], left),
                    Segment(line.text[line.middle :], right),
                ]
            return [
                Segment(line.text, self._named_style("diff--right" if line.right else "diff--left"))
            ]
        return [Segment(line.text, self._named_style(f"diff--{block.kind.value}"))]

    def _named_style(self, name: str) -> Style:
        return self.combine_styles(name) if name else self.combine_styles()
