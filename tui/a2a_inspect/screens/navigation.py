"""From one finding to the next, from one match to the next, without a row being hidden."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual import on, work
from textual.binding import Binding, BindingType

from a2a_inspect.data.filtered_source import ExchangeSearch
from a2a_inspect.data.next_places import FramePosition, next_finding, next_match
from a2a_inspect.data.source import FrameLine, RecordingSource
from a2a_inspect.dialogs.filter_box import FilterBox
from a2a_inspect.screens.browse import POLL_INTERVAL
from a2a_inspect.screens.filter import FilterScreen
from a2a_inspect.widgets.tab_line import TABS

_OUTSIDE_FRAMES = {1: -1, -1: 1 << 40}
"""Before all frames of an exchange, and after them."""


class NavigationScreen(FilterScreen):
    """See the module."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "match(1)", "Next match", show=False, id="match.next", tooltip="the next frame that matches"),
        Binding("N", "match(-1)", "Previous match", show=False, id="match.previous"),
        Binding(
            "e", "finding(1)", "Next finding", show=False, id="finding.next", tooltip="the next finding, and its rule"
        ),
        Binding("E", "finding(-1)", "Previous finding", show=False, id="finding.previous"),
    ]

    def __init__(self, source: RecordingSource) -> None:
        super().__init__(source)
        self._match_search: ExchangeSearch | None = None
        """What was looked for without hiding anything; None: what the list is narrowed to."""
        self._last_target: FramePosition | None = None
        """Where the last hop led."""

    def _current_position(self, by: int) -> FramePosition:
        """Where one is: on the frame with the cursor, or, in the list of exchanges, before or after all frames."""
        if self._pending_position is not None and self._pending_position == self._last_target:
            return self._pending_position  # where the last hop leads to
        line = self._frames.current_row
        if isinstance(line, FrameLine) and line.row.exchange_key == self._selected_exchange:
            here = (self._selected_exchange, line.row.frame.seq)
            if self._focused_pane_index() or self._last_target in (here, (self._selected_exchange, -1)):
                return here
        return self._selected_exchange, _OUTSIDE_FRAMES[by]

    @on(FilterBox.Used)
    @on(FilterBox.Closed)
    def _cancel_match_search(self) -> None:
        if self._match_search is not None:
            self._finder.cancel(self._match_search)
            self._match_search = None

    @on(FilterBox.Sought)
    def _start_match_search(self, message: FilterBox.Sought) -> None:
        from a2a_proxy.recording.query.parser import parse

        self._cancel_match_search()
        self.narrow(self._filter_before_box)
        self._focus_pane("exchanges")
        if message.text:
            self._match_search = self._finder.start(parse(message.text))
            self.action_match(1)

    def _on_search_progress(self, search: ExchangeSearch) -> None:
        super()._on_search_progress(search)
        if search is self._match_search and search.is_done and not search.keys:
            self.show_message(search.error or "nothing matches")

    def action_match(self, by: int) -> None:
        """Go to the next frame that matches what was looked for, or what the list is narrowed to."""
        search = self._match_search or self._search
        if search is None:
            self.action_filter()
        else:
            self._go_to_match(search, by)

    @work(group="hop", exclusive=True)
    async def _go_to_match(self, search: ExchangeSearch, by: int) -> None:
        place = (
            await self._next_match_in_exchange(search, self._current_position(by), by)
            if search.is_match(self._selected_exchange)
            else None
        )
        key = self._selected_exchange
        while place is None:
            beside = await self._next_matching_exchange(search, key, by)
            if beside is None:
                self.show_message("no match")
                return
            key = beside
            place = await self._next_match_in_exchange(search, (key, _OUTSIDE_FRAMES[by]), by) or (key, -1)
        self._go_to_position(place)

    async def _next_match_in_exchange(
        self, search: ExchangeSearch, start: FramePosition, by: int
    ) -> FramePosition | None:
        return await self._await_answer(
            "match", self._source.ask(lambda r: next_match(r, search.node, start, by), None), None
        )

    async def _next_matching_exchange(self, search: ExchangeSearch, key: int, by: int) -> int | None:
        """The next exchange that matches and is in the list; after the last one the first. Waits for the search."""
        while not (search.is_done or search.searched_until > key):
            await asyncio.sleep(POLL_INTERVAL)
        start = search.index(key + 1) if by > 0 else search.index(key) - 1
        for step in range(len(search.keys)):
            at = start + step * by
            if at in (-1, len(search.keys)):
                self.show_message("from the beginning" if by > 0 else "from the end")
            found = search.keys[at % len(search.keys)]
            if self._search is None or self._search.is_match(found):
                return found
        return None

    def action_finding(self, by: int) -> None:
        """Go to the next finding in the list."""
        self._go_to_finding(by)

    @work(group="hop", exclusive=True)
    async def _go_to_finding(self, by: int) -> None:
        at, search = self._current_position(by), self._search

        def listed(key: int) -> bool:
            return search is None or search.is_match(key)

        place = await self._await_answer(
            "finding", self._source.ask(lambda r: next_finding(r, at, by, listed), None), None
        )
        if place is None:
            self.show_message(f"no more findings {'after this: E' if by > 0 else 'before this: e'} goes the other way")
        else:
            self._go_to_position(place)
            self._detail.action_tab(TABS.index("Findings"))

    def _go_to_position(self, place: FramePosition) -> None:
        self._last_target = place
        self._go_to(*place)
        if self.is_small and not self._focused_pane_index():
            self._focus_pane("frames")  # or nothing could be seen of it
