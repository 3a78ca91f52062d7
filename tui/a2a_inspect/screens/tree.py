"""The tree of a recording: read again while the recording grows, and used to narrow the list."""

import time

import msgspec

from a2a_inspect.data.tree import TreeBranch, TreeLevel
from a2a_inspect.screens.filter import FilterController
from a2a_inspect.screens.main_controller import MainController, MainParts
from a2a_inspect.screens.panes import Panes

_READ_INTERVAL = 1.0
"""Seconds between two reads of the tree of a growing recording."""


class TreeController(MainController):
    """Keeps the tree current, and applies the branch that the user chooses."""

    def __init__(self, parts: MainParts, panes: Panes, list_filter: FilterController) -> None:
        super().__init__(parts)
        self._panes = panes
        self._filter = list_filter
        self._read_at = 0.0
        self.is_stale = True
        """The recording has grown since the tree was read."""

    def reread_if_stale(self) -> None:
        """Read the open branches again if the tree is shown and the recording has grown."""
        if (
            self.is_stale
            and self._panes.is_tree_shown()
            and time.monotonic() > self._read_at + _READ_INTERVAL
        ):
            self.is_stale, self._read_at = False, time.monotonic()
            self._widgets.tree.reread_open_branches()

    def narrow_to_branch(self, branch: TreeBranch) -> None:
        """Narrow the list to the branch that was chosen, and go to its exchange or frame."""
        several = len(self._state.snapshot.sessions) > 1
        self._filter.apply_filter(
            msgspec.structs.replace(
                self._filter.current,
                session=branch.session if several else 0,
                context=branch.context_id if branch.level >= TreeLevel.CONTEXT else None,
                task=branch.task_id if branch.level >= TreeLevel.TASK else None,
            )
        )
        if branch.level >= TreeLevel.EXCHANGE:
            self._widgets.exchanges.follow = False
            self._filter.go_to_when_found(branch.exchange, branch.seq)
        if self._panes.is_small or self._panes.is_zoomed:
            self._panes.focus_pane("frames" if branch.level is TreeLevel.FRAME else "exchanges")
