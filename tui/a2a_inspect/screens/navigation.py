"""Navigation from frame to frame: the next of the exchange or the task, the next finding or error,
the next match."""

import asyncio
from collections.abc import Callable

from a2a_inspect.data.filtered_source import ExchangeSearch
from a2a_inspect.data.next_places import (
    FramePosition,
    next_error,
    next_finding,
    next_frame_of_task,
    next_match,
)
from a2a_inspect.data.source import FrameLine
from a2a_inspect.screens.controller import run_in_background
from a2a_inspect.screens.filter import FilterController
from a2a_inspect.screens.main_controller import MainController, MainParts
from a2a_inspect.screens.panes import Panes
from a2a_inspect.screens.reader import POLL_INTERVAL
from a2a_inspect.widgets.tab_line import TABS

_OUTSIDE_FRAMES = {1: -1, -1: 1 << 40}
"""By direction: a number before all frames of an exchange, and one after them."""


class Navigation(MainController):
    """Moves the cursors. No move hides a row."""

    def __init__(self, parts: MainParts, panes: Panes, list_filter: FilterController) -> None:
        super().__init__(parts)
        self._panes = panes
        self._filter = list_filter
        self._last_target: FramePosition | None = None
        """The frame to which the last move led."""

    # The exchange.

    def step_frame(self, by: int) -> None:
        """Go to another frame of the same exchange, from any pane."""
        self._widgets.frames.action_move(by)

    def show_tab(self, tab: int) -> None:
        """Show a tab of the frame, from any pane."""
        self._widgets.detail.action_tab(tab)

    # The task.

    @run_in_background("hop", exclusive=True)
    async def step_in_task(self, by: int) -> None:
        """Go to the next frame of the same task, in any exchange."""
        start = self._current_position(by)
        place = await self._reader.run_query(
            "task", lambda recording: next_frame_of_task(recording, start, by), None
        )
        if place is None or await self._filter.list_index(place[0]) is None:
            self.show_message("no more frames of this task")
        else:
            self._go_to_position(place)

    # Findings.

    @run_in_background("hop", exclusive=True)
    async def step_finding(self, by: int) -> None:
        """Go to the next finding in the list."""
        start, is_listed = self._current_position(by), self._list_test()
        place = await self._reader.run_query(
            "finding", lambda recording: next_finding(recording, start, by, is_listed), None
        )
        if place is None:
            self.show_message(
                "no later finding; E goes to the previous one"
                if by > 0
                else "no earlier finding; e goes to the next one"
            )
        else:
            self._go_to_position(place)
            self._widgets.detail.action_tab(TABS.index("Findings"))

    @run_in_background("hop", exclusive=True)
    async def next_error(self) -> None:
        """Go to the next error in the list: a finding, or the place where a call failed."""
        start, is_listed = self._current_position(1), self._list_test()
        found = await self._reader.run_query(
            "finding", lambda recording: next_error(recording, start, is_listed), None
        )
        if found is None:
            self.show_message("no later error; E goes to the previous finding")
            return
        place, is_finding = found
        self._go_to_position(place)
        if is_finding:
            self._widgets.detail.action_tab(TABS.index("Findings"))

    def _list_test(self) -> Callable[[int], bool]:
        """Return the function that tells whether the list has an exchange."""
        search = self._filter.search
        return lambda key: search is None or search.is_match(key)

    # Matches.

    def find_typed(self, text: str) -> None:
        """Go to the first match of the typed expression, without hiding an exchange."""
        if self._filter.find_typed(text):
            self.step_match(1)

    def step_match(self, by: int) -> None:
        """Go to the next frame that matches the typed expression, or else the filter."""
        search = self._filter.match_search or self._filter.search
        if search is None:
            self._filter.open_box()
        else:
            self._go_to_match(search, by)

    @run_in_background("hop", exclusive=True)
    async def _go_to_match(self, search: ExchangeSearch, by: int) -> None:
        place = (
            await self._next_match_in_exchange(search, self._current_position(by), by)
            if search.is_match(self._state.selected_exchange)
            else None
        )
        key = self._state.selected_exchange
        while place is None:
            following = await self._next_matching_exchange(search, key, by)
            if following is None:
                self.show_message("no match")
                return
            key = following
            place = await self._next_match_in_exchange(search, (key, _OUTSIDE_FRAMES[by]), by) or (
                key,
                -1,
            )
        self._go_to_position(place)

    async def _next_match_in_exchange(
        self, search: ExchangeSearch, start: FramePosition, by: int
    ) -> FramePosition | None:
        return await self._reader.run_query(
            "match", lambda recording: next_match(recording, search.node, start, by), None
        )

    async def _next_matching_exchange(
        self, search: ExchangeSearch, key: int, by: int
    ) -> int | None:
        """Return the next listed exchange that matches, the first one after the last. Waits for the
        search."""
        while not (search.is_done or search.searched_until > key):
            await asyncio.sleep(POLL_INTERVAL)
        start = search.find_index(key + 1) if by > 0 else search.find_index(key) - 1
        listed = self._filter.search
        for step in range(len(search.keys)):
            at = start + step * by
            if at in (-1, len(search.keys)):
                self.show_message(
                    "continued from the beginning" if by > 0 else "continued from the end"
                )
            found = search.keys[at % len(search.keys)]
            if listed is None or listed.is_match(found):
                return found
        return None

    # Positions.

    def _current_position(self, by: int) -> FramePosition:
        """Return the position to start from: the frame under the cursor; in the list a place
        outside all frames."""
        pending, selected = self._state.pending_position, self._state.selected_exchange
        if pending is not None and pending == self._last_target:
            return pending  # the last move has not arrived yet
        line = self._widgets.frames.current_row
        if isinstance(line, FrameLine) and line.row.exchange_key == selected:
            here = (selected, line.row.frame.seq)
            if self._panes.focused_index() or self._last_target in (here, (selected, -1)):
                return here
        return selected, _OUTSIDE_FRAMES[by]

    def _go_to_position(self, place: FramePosition) -> None:
        self._last_target = place
        self._filter.go_to(*place)
        if self._panes.is_small and not self._panes.focused_index():
            self._panes.focus_pane("frames")  # a small terminal would not show the frame
