"""From one finding to the next, from one match to the next, without a row being hidden."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual import on, work
from textual.binding import Binding, BindingType

from a2a_inspect.data.filtered_source import Search
from a2a_inspect.data.next_places import Place, next_finding, next_match
from a2a_inspect.data.source import FrameLine, RecordingSource
from a2a_inspect.dialogs.filter_box import FilterBox
from a2a_inspect.screens.browse import POLL
from a2a_inspect.screens.filter import Narrowed
from a2a_inspect.widgets.tab_line import TABS

_END = {1: -1, -1: 1 << 40}
"""Before all frames of an exchange, and after them."""


class Hopping(Narrowed):
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
        self._sought: Search | None = None
        """What was looked for without hiding anything; None: what the list is narrowed to."""
        self._hopped: Place | None = None
        """Where the last hop led."""

    def _at(self, by: int) -> Place:
        """Where one is: on the frame with the cursor, or, in the list of exchanges, before or after all frames."""
        if self._goal is not None and self._goal == self._hopped:
            return self._goal  # where the last hop leads to
        line = self._frames.row
        if isinstance(line, FrameLine) and line.row.exchange_key == self._chosen:
            here = (self._chosen, line.row.frame.seq)
            if self._where() or self._hopped in (here, (self._chosen, -1)):
                return here
        return self._chosen, _END[by]

    @on(FilterBox.Used)
    @on(FilterBox.Closed)
    def _forget_sought(self) -> None:
        if self._sought is not None:
            self._finder.cancel(self._sought)
            self._sought = None

    @on(FilterBox.Sought)
    def _seek(self, message: FilterBox.Sought) -> None:
        from a2a_proxy.recording.query.parser import parse

        self._forget_sought()
        self.narrow(self._before)
        self._enter("exchanges")
        if message.text:
            self._sought = self._finder.start(parse(message.text))
            self.action_match(1)

    def _told(self, search: Search) -> None:
        super()._told(search)
        if search is self._sought and search.done and not search.keys:
            self.say(search.trouble or "nothing matches")

    def action_match(self, by: int) -> None:
        """Go to the next frame that matches what was looked for, or what the list is narrowed to."""
        search = self._sought or self._search
        if search is None:
            self.action_filter()
        else:
            self._hop(search, by)

    @work(group="hop", exclusive=True)
    async def _hop(self, search: Search, by: int) -> None:
        place = await self._match(search, self._at(by), by) if search.has(self._chosen) else None
        key = self._chosen
        while place is None:
            beside = await self._beside(search, key, by)
            if beside is None:
                self.say("no match")
                return
            key = beside
            place = await self._match(search, (key, _END[by]), by) or (key, -1)
        self._hop_to(place)

    async def _match(self, search: Search, at: Place, by: int) -> Place | None:
        return await self._asked("match", self._source.ask(lambda r: next_match(r, search.node, at, by), None), None)

    async def _beside(self, search: Search, key: int, by: int) -> int | None:
        """The next exchange that matches and is in the list; after the last one the first. Waits for the search."""
        while not (search.done or search.upto > key):
            await asyncio.sleep(POLL)
        start = search.index(key + 1) if by > 0 else search.index(key) - 1
        for step in range(len(search.keys)):
            at = start + step * by
            if at in (-1, len(search.keys)):
                self.say("from the beginning" if by > 0 else "from the end")
            found = search.keys[at % len(search.keys)]
            if self._search is None or self._search.has(found):
                return found
        return None

    def action_finding(self, by: int) -> None:
        """Go to the next finding in the list."""
        self._hop_to_finding(by)

    @work(group="hop", exclusive=True)
    async def _hop_to_finding(self, by: int) -> None:
        at, search = self._at(by), self._search

        def listed(key: int) -> bool:
            return search is None or search.has(key)

        place = await self._asked("finding", self._source.ask(lambda r: next_finding(r, at, by, listed), None), None)
        if place is None:
            self.say(f"no more findings {'after this: E' if by > 0 else 'before this: e'} goes the other way")
        else:
            self._hop_to(place)
            self._detail.action_tab(TABS.index("Findings"))

    def _hop_to(self, place: Place) -> None:
        self._hopped = place
        self._go_to(*place)
        if self.small and not self._where():
            self._enter("frames")  # or nothing could be seen of it
