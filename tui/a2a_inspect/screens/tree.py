"""The screen's layout: the tree beside the lists, one pane alone, and the way from frame to frame of a task."""

from __future__ import annotations

import time
from typing import ClassVar

import msgspec
from textual import on, work
from textual.binding import Binding, BindingType

from a2a_inspect.data.next_places import next_of_task
from a2a_inspect.data.source import RecordingSnapshot, RecordingSource
from a2a_inspect.data.tree import TreeLevel
from a2a_inspect.screens.actions import Acting
from a2a_inspect.screens.browse import PANES
from a2a_inspect.widgets.recording_tree import RecordingTree

LAYOUTS = ("tree", "plain", "columns")
"""With the tree at the left; without it; the exchanges at the left of the frames."""
_TREE_WIDTH = 180
"""Cells from which the tree takes nothing that the lists need."""
_RENEWED = 1.0
"""Seconds between two looks at a growing recording's tree."""


class Treed(Acting):
    """See the module."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "tree", "Tree", show=False, id="pane.tree", tooltip="session, context, task, exchange, frame"),
        Binding("minus", "layout", "Layout", show=False, id="view.layout", tooltip="with the tree, without, columns"),
        Binding("z", "zoom", "Zoom", show=False, id="view.zoom", tooltip="one pane alone, or all"),
        Binding("{", "of_task(-1)", "Previous of task", show=False, id="task.previous", tooltip="previous of the task"),
        Binding("}", "of_task(1)", "Next of task", show=False, id="task.next", tooltip="the task's next frame"),
    ]

    def __init__(self, source: RecordingSource) -> None:
        super().__init__(source)
        self._wanted_layout = ""
        """What the user chose; else it depends on the width."""
        self._zoomed = False
        self._renewed = 0.0
        self._tree_behind = True
        """The recording has grown since the tree was read."""

    def _lay_out(self, width: int) -> None:
        """One pane or all, with the tree where it was asked for or there is room."""
        chosen = self._wanted_layout or ("tree" if width >= _TREE_WIDTH else "plain")
        layouts = {f"-layout-{name}": name == chosen and not self.small for name in LAYOUTS}
        self.classed({**layouts, "-single": self.small or self._zoomed})
        self._retitle()

    def _tree_shown(self) -> bool:
        return self.has_class("-at-tree") or (self.has_class("-layout-tree") and not self._zoomed)

    def action_layout(self) -> None:
        """The next way to lie the panes out."""
        if self.small:
            self.say("one pane at a time here: Tab goes to the next, t to the tree")
            return
        now = next(name for name in LAYOUTS if self.has_class(f"-layout-{name}"))
        self._wanted_layout = LAYOUTS[(LAYOUTS.index(now) + 1) % len(LAYOUTS)]
        self._zoomed = False
        if self._wanted_layout != "tree" and self.has_class("-at-tree"):
            self._enter("exchanges")
        self._lay_out(self.size.width)

    def action_zoom(self) -> None:
        """The pane with the focus alone, or all of them."""
        self._zoomed = not self._zoomed
        self._lay_out(self.size.width)

    def action_tree(self) -> None:
        """To the tree, and from it back."""
        if self.has_class("-at-tree"):
            self._enter("exchanges")
            return
        if not self.small and not self._zoomed:
            self._wanted_layout = "tree"
        self._enter("tree")
        self._lay_out(self.size.width)

    def panes(self) -> list[str]:
        """The panes that Tab goes through."""
        return ["tree", *PANES] if self._tree_shown() or self.has_class("-single") else list(PANES)

    # The tree.

    def _grown(self, before: RecordingSnapshot, now: RecordingSnapshot) -> None:
        super()._grown(before, now)
        self._tree_behind = True

    def _tick(self) -> None:
        super()._tick()
        if self._tree_behind and self._tree_shown() and time.monotonic() > self._renewed + _RENEWED:
            self._tree_behind, self._renewed = False, time.monotonic()
            self._tree.renew()

    @on(RecordingTree.Chosen)
    def _branch_chosen(self, message: RecordingTree.Chosen) -> None:
        branch = message.branch
        several = len(self._shown.sessions) > 1
        self.narrow(
            msgspec.structs.replace(
                self._narrowing,
                session=branch.session if several else 0,
                context=branch.context_id if branch.level >= TreeLevel.CONTEXT else None,
                task=branch.task_id if branch.level >= TreeLevel.TASK else None,
            )
        )
        if branch.level >= TreeLevel.EXCHANGE:
            self._exchanges.follow = False
            self.go_when_found(branch.exchange, branch.seq)
        if self.small or self._zoomed:
            self._enter("frames" if branch.level is TreeLevel.FRAME else "exchanges")

    # The task.

    @work(group="hop", exclusive=True)
    async def action_of_task(self, by: int) -> None:
        """The next frame of the same task, in whichever exchange it is."""
        at = self._at(by)
        place = await self._asked("task", self._source.ask(lambda r: next_of_task(r, at, by), None), None)
        if place is None or await self._index(place[0]) is None:
            self.say("no more of this task")
        else:
            self._hop_to(place)
