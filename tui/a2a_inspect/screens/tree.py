"""The screen's layout: the tree beside the lists, one pane alone, and the way from frame to frame of a task."""

from __future__ import annotations

import time
from typing import ClassVar

import msgspec
from textual import on, work
from textual.binding import Binding, BindingType

from a2a_inspect.data.next_places import next_frame_of_task
from a2a_inspect.data.source import RecordingSnapshot, RecordingSource
from a2a_inspect.data.tree import TreeLevel
from a2a_inspect.screens.actions import ActionScreen
from a2a_inspect.screens.browse import PANES
from a2a_inspect.widgets.recording_tree import RecordingTree

LAYOUTS = ("tree", "plain", "columns")
"""With the tree at the left; without it; the exchanges at the left of the frames."""
_MIN_WIDTH_WITH_TREE = 180
"""Cells from which the tree takes nothing that the lists need."""
_TREE_INTERVAL = 1.0
"""Seconds between two looks at a growing recording's tree."""


class TreeScreen(ActionScreen):
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
        self._selected_layout = ""
        """What the user chose; else it depends on the width."""
        self._is_zoomed = False
        self._tree_read_at = 0.0
        self._is_tree_stale = True
        """The recording has grown since the tree was read."""

    def _apply_layout(self, width: int) -> None:
        """One pane or all, with the tree where it was asked for or there is room."""
        chosen = self._selected_layout or ("tree" if width >= _MIN_WIDTH_WITH_TREE else "plain")
        layouts = {f"-layout-{name}": name == chosen and not self.is_small for name in LAYOUTS}
        self.switch_classes({**layouts, "-single": self.is_small or self._is_zoomed})
        self._update_titles()

    def _is_tree_shown(self) -> bool:
        return self.has_class("-at-tree") or (self.has_class("-layout-tree") and not self._is_zoomed)

    def action_layout(self) -> None:
        """The next way to lie the panes out."""
        if self.is_small:
            self.show_message("one pane at a time here: Tab goes to the next, t to the tree")
            return
        now = next(name for name in LAYOUTS if self.has_class(f"-layout-{name}"))
        self._selected_layout = LAYOUTS[(LAYOUTS.index(now) + 1) % len(LAYOUTS)]
        self._is_zoomed = False
        if self._selected_layout != "tree" and self.has_class("-at-tree"):
            self._focus_pane("exchanges")
        self._apply_layout(self.size.width)

    def action_zoom(self) -> None:
        """The pane with the focus alone, or all of them."""
        self._is_zoomed = not self._is_zoomed
        self._apply_layout(self.size.width)

    def action_tree(self) -> None:
        """To the tree, and from it back."""
        if self.has_class("-at-tree"):
            self._focus_pane("exchanges")
            return
        if not self.is_small and not self._is_zoomed:
            self._selected_layout = "tree"
        self._focus_pane("tree")
        self._apply_layout(self.size.width)

    def tab_panes(self) -> list[str]:
        """The panes that Tab goes through."""
        return ["tree", *PANES] if self._is_tree_shown() or self.has_class("-single") else list(PANES)

    # The tree.

    def _show_exchanges(self, before: RecordingSnapshot, now: RecordingSnapshot) -> None:
        super()._show_exchanges(before, now)
        self._is_tree_stale = True

    def _start_poll(self) -> None:
        super()._start_poll()
        if self._is_tree_stale and self._is_tree_shown() and time.monotonic() > self._tree_read_at + _TREE_INTERVAL:
            self._is_tree_stale, self._tree_read_at = False, time.monotonic()
            self._tree.reread_open_branches()

    @on(RecordingTree.Chosen)
    def _narrow_to_branch(self, message: RecordingTree.Chosen) -> None:
        branch = message.branch
        several = len(self._snapshot.sessions) > 1
        self.narrow(
            msgspec.structs.replace(
                self._filter,
                session=branch.session if several else 0,
                context=branch.context_id if branch.level >= TreeLevel.CONTEXT else None,
                task=branch.task_id if branch.level >= TreeLevel.TASK else None,
            )
        )
        if branch.level >= TreeLevel.EXCHANGE:
            self._exchanges.follow = False
            self.go_to_when_found(branch.exchange, branch.seq)
        if self.is_small or self._is_zoomed:
            self._focus_pane("frames" if branch.level is TreeLevel.FRAME else "exchanges")

    # The task.

    @work(group="hop", exclusive=True)
    async def action_of_task(self, by: int) -> None:
        """The next frame of the same task, in whichever exchange it is."""
        at = self._current_position(by)
        place = await self._await_answer("task", self._source.ask(lambda r: next_frame_of_task(r, at, by), None), None)
        if place is None or await self._list_index(place[0]) is None:
            self.show_message("no more of this task")
        else:
            self._go_to_position(place)
