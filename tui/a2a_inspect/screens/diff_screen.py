"""Two sides next to each other: what differs, from difference to difference. It reads by connections of its own, in a
worker, so that the screen under it goes on."""

from __future__ import annotations

import time
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.worker import get_current_worker

from a2a_inspect.diff.places import DiffSide, difference
from a2a_inspect.widgets.diff_view import DiffView
from a2a_inspect.widgets.key_line import KeyLine
from a2a_inspect.widgets.pane import PaneTitle
from a2a_proxy.cli.errors import UserError
from a2a_proxy.present.difference.blocks import BlockKind, DifferenceBlock, blocks
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.difference.runs import ComparisonStopped, RunDifference

_TELL = 0.1
"""Seconds between two words about how far it is."""


class DiffScreen(Screen[None]):
    """See the module."""

    DEFAULT_CSS = """
    DiffScreen { background: $background; }
    DiffScreen PaneTitle { background: $primary 35%; color: $foreground; text-style: bold; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Back", id="diff.close", tooltip="back to the recording"),
        Binding("a", "everything", "All fields", id="diff.all", tooltip="show ids, times and the like, or hide them"),
        Binding("s", "swap", "Swap sides", id="diff.swap", tooltip="put left right and right left"),
    ]

    def __init__(self, left: DiffSide, right: DiffSide, where: str = "") -> None:
        """`where` is a filter: only calls that match, of both sides."""
        super().__init__()
        self._where = where
        self._sides = left, right
        self._everything = False
        self._found: RunDifference | None = None
        self._title = PaneTitle()
        self._view = DiffView(id="diff")

    def compose(self) -> ComposeResult:
        """A title, the lines, the keys."""
        yield self._title
        yield self._view
        yield KeyLine()

    def on_mount(self) -> None:
        """Begin."""
        self._view.focus()
        self._compare()

    @work(thread=True, exclusive=True, group="diff", exit_on_error=False)
    def _compare(self) -> None:
        """Work it out, saying how far it is."""
        worker, told = get_current_worker(), time.monotonic()

        def watch(done: int, of: int) -> bool:
            nonlocal told
            if time.monotonic() - told > _TELL and not worker.is_cancelled:
                told = time.monotonic()
                self.app.call_from_thread(self._progress, done, of)
            return not worker.is_cancelled

        try:
            found = difference(*self._sides, self._where, watch)
        except ComparisonStopped:
            return
        except UserError as wrong:
            said = [DifferenceBlock(BlockKind.NOTE, make_visible(line)) for line in (*wrong.message.split("\n"), wrong.hint)]
            if not worker.is_cancelled:
                self.app.call_from_thread(self._show, None, said)
            return
        made = blocks(found, everything=self._everything)
        if not worker.is_cancelled:
            self.app.call_from_thread(self._show, found, made)

    @work(thread=True, exclusive=True, group="diff", exit_on_error=False)
    def _again(self, found: RunDifference) -> None:
        made = blocks(found, everything=self._everything)
        if not get_current_worker().is_cancelled:
            self.app.call_from_thread(self._show, found, made)

    def _progress(self, done: int, of: int) -> None:
        self._title.text = f"{self._named()}  comparing: {100 * done // max(of, 1)} %"

    def _show(self, found: RunDifference | None, made: list[DifferenceBlock]) -> None:
        self._found = found
        self._view.show(made)
        self._retitle()

    @on(DiffView.Moved)
    def _retitle(self) -> None:
        """What is compared, and which difference of how many is under the cursor."""
        self._title.text = self._named()
        fields = "all fields  " if self._everything else ""
        there = self._view.differences
        self._title.remark = f"{fields}{self._view.at or '-'} of {there}" if there else fields.strip()

    def _named(self) -> str:
        left, right = self._sides
        same = left.path == right.path
        names = [f"{'' if same else side.path.name} {side.place}".strip() for side in self._sides]
        where = f"{left.path.name}  " if same else ""
        return make_visible(f"{where}{names[0] or 'all'}  |  {names[1] or 'all'}")

    def action_close(self) -> None:
        """Back; what is being worked out ends."""
        self.workers.cancel_node(self)
        self.dismiss()

    def action_everything(self) -> None:
        """Show canonical fields as well, or hide them."""
        self._everything = not self._everything
        if self._found is not None:
            self._again(self._found)

    def action_swap(self) -> None:
        """The other way round."""
        self._sides = self._sides[1], self._sides[0]
        self._compare()
