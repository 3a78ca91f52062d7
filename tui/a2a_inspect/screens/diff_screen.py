"""The differences of two sides, next to each other. A worker reads both sides on connections of its
own, so that the screen below is not blocked."""

import time
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.worker import get_current_worker

from a2a_inspect.diff.places import DiffSide, compute_difference
from a2a_inspect.widgets.diff_view import DiffView
from a2a_inspect.widgets.key_line import KeyLine
from a2a_inspect.widgets.pane import PaneTitle
from a2a_proxy.model.errors import UserError
from a2a_proxy.present.difference.blocks import BlockKind, DifferenceBlock, difference_blocks
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.difference.runs import ComparisonStopped, RunDifference

_PROGRESS_INTERVAL = 0.1
"""Seconds between two reports of progress."""


class DiffScreen(Screen[None]):
    """See the module."""

    DEFAULT_CSS = """
    DiffScreen { background: $background; }
    DiffScreen PaneTitle { background: $primary 35%; color: $foreground; text-style: bold; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Back", id="diff.close", tooltip="back to the recording"),
        Binding(
            "a",
            "everything",
            "All fields",
            id="diff.all",
            tooltip="show ids, times and the like, or hide them",
        ),
        Binding("s", "swap", "Swap sides", id="diff.swap", tooltip="swap left and right"),
    ]

    def __init__(self, left: DiffSide, right: DiffSide, where: str = "") -> None:
        """`where` is a filter expression: only matching calls of both sides are compared."""
        super().__init__()
        self._where = where
        self._sides = left, right
        self._show_all_fields = False
        self._difference: RunDifference | None = None
        self._title = PaneTitle()
        self._view = DiffView(id="diff")

    def compose(self) -> ComposeResult:
        """Yield the title, the lines, the keys."""
        yield self._title
        yield self._view
        yield KeyLine()

    def on_mount(self) -> None:
        """Start the comparison."""
        self._view.focus()
        self._compute_difference()

    @work(thread=True, exclusive=True, group="diff", exit_on_error=False)
    def _compute_difference(self) -> None:
        """Compare both sides, and report the progress."""
        worker, reported_at = get_current_worker(), time.monotonic()

        def watch(done: int, of: int) -> bool:
            nonlocal reported_at
            if time.monotonic() - reported_at > _PROGRESS_INTERVAL and not worker.is_cancelled:
                reported_at = time.monotonic()
                self.app.call_from_thread(self._show_progress, done, of)
            return not worker.is_cancelled

        try:
            found = compute_difference(*self._sides, self._where, watch)
        except ComparisonStopped:
            return
        except UserError as wrong:
            message_lines = [
                DifferenceBlock(BlockKind.NOTE, make_visible(line))
                for line in (wrong.message, *wrong.details, wrong.hint)
            ]
            if not worker.is_cancelled:
                self.app.call_from_thread(self._show_blocks, None, message_lines)
            return
        blocks = difference_blocks(found, everything=self._show_all_fields)
        if not worker.is_cancelled:
            self.app.call_from_thread(self._show_blocks, found, blocks)

    @work(thread=True, exclusive=True, group="diff", exit_on_error=False)
    def _show_again(self, difference: RunDifference) -> None:
        blocks = difference_blocks(difference, everything=self._show_all_fields)
        if not get_current_worker().is_cancelled:
            self.app.call_from_thread(self._show_blocks, difference, blocks)

    def _show_progress(self, done: int, total: int) -> None:
        self._title.text = f"{self._side_names()}  comparing: {100 * done // max(total, 1)} %"

    def _show_blocks(
        self, difference: RunDifference | None, shown_blocks: list[DifferenceBlock]
    ) -> None:
        self._difference = difference
        self._view.show_blocks(shown_blocks)
        self._update_title()

    @on(DiffView.PositionChanged)
    def _update_title(self) -> None:
        """Show the sides, and the number of the difference under the cursor."""
        self._title.text = self._side_names()
        fields = "all fields  " if self._show_all_fields else ""
        there = self._view.differences
        self._title.remark = (
            f"{fields}{self._view.position or '-'} of {there}" if there else fields.strip()
        )

    def _side_names(self) -> str:
        left, right = self._sides
        same = left.path == right.path
        names = [f"{'' if same else side.path.name} {side.label}".strip() for side in self._sides]
        where = f"{left.path.name}  " if same else ""
        return make_visible(f"{where}{names[0] or 'all'}  |  {names[1] or 'all'}")

    def action_close(self) -> None:
        """Close the screen, and stop the comparison."""
        self.workers.cancel_node(self)
        self.dismiss()

    def action_everything(self) -> None:
        """Show ids, times and the like as well, or hide them."""
        self._show_all_fields = not self._show_all_fields
        if self._difference is not None:
            self._show_again(self._difference)

    def action_swap(self) -> None:
        """Exchange the sides, and compare again."""
        self._sides = self._sides[1], self._sides[0]
        self._compute_difference()
