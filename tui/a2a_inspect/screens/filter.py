"""The list of exchanges narrowed: by a filter that is typed, to one task or context, to those with findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from a2a_inspect.data.filtered_source import Finder, Search
from a2a_inspect.data.finding_counts import ExchangeLine, lines
from a2a_inspect.data.list_filter import ListFilter
from a2a_inspect.data.positions import PAGE
from a2a_inspect.data.source import RecordingSnapshot, RecordingSource
from a2a_inspect.dialogs.filter_box import FilterBox
from a2a_inspect.screens.browse import Browse
from a2a_inspect.screens.lane_screen import LaneFrameChosen
from a2a_inspect.widgets.key_line import KeyLine
from a2a_proxy.recording.query.errors import QueryError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow

if TYPE_CHECKING:
    from a2a_proxy.recording.query.complete import Completion

_READY = 1.0
"""Seconds after which nobody waits for the first rows any more."""


class Narrowed(Browse):
    """See the module. Everything that narrows goes through `narrow`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", key_display="/", id="exchanges.filter", tooltip="show only what matches"),
        Binding("o", "only('task')", "Only task", show=False, id="exchanges.task", tooltip="only this task, or all"),
        Binding(
            "O", "only('context')", "Only context", show=False, id="exchanges.context", tooltip="only this context"
        ),
        Binding(
            "ctrl+z", "findings", "Only findings", show=False, id="exchanges.findings", tooltip="only with findings"
        ),
    ]

    def __init__(self, source: RecordingSource) -> None:
        super().__init__(source)
        self._finder = Finder(source.another, self._told)
        self._narrowing = ListFilter()
        self._search: Search | None = None
        self._keep = 0
        """Key of the exchange that had the cursor, until it is found again."""
        self._before = ListFilter()
        """What held when the filter's box was opened."""
        self._box = FilterBox(self._complete)

    def compose(self) -> ComposeResult:
        """The box above the last line."""
        for widget in super().compose():
            if isinstance(widget, KeyLine):
                yield self._box
            yield widget

    def on_mount(self) -> None:
        """Get ready for filters when the first rows are there."""
        self.set_timer(_READY, self._finder.warm)

    def on_unmount(self) -> None:
        """End what is searched."""
        self._finder.close()

    @property
    def narrowing(self) -> ListFilter:
        """What the list is narrowed to now."""
        return self._narrowing

    @property
    def found(self) -> Sequence[int] | None:
        """Keys of the exchanges that were found so far; None where nothing narrows."""
        return None if self._search is None else self._search.keys[:]

    def narrow(self, wanted: ListFilter) -> None:
        """Show only this; all of it where nothing narrows. Raises QueryError where its text is wrong."""
        if wanted == self._narrowing:
            return
        node = wanted.node()
        if self._search is not None:
            self._finder.cancel(self._search)
        self._narrowing, rows = wanted, self._exchanges
        self._keep = 0 if rows.follow else self._chosen
        rows.restart(follow=rows.follow)
        rows.placeholder = ""
        if wanted != ListFilter():
            self._search = self._finder.start(node)
        else:
            self._search = None
            rows.show(self._shown, self._shown.exchanges, above=0)
            if self._keep:
                self._go_to(self._keep)
        self._crumbs.only = wanted.expression()
        self._crumbs.set_class(wanted != ListFilter(), "-narrowed")  # on the screen it would style all that is on it
        self._retitle()

    def _change(self, **parts: Any) -> None:
        self.narrow(msgspec.structs.replace(self._narrowing, **parts))

    # Rows.

    async def _load_exchanges(self, page: int) -> Sequence[ExchangeRow]:
        if self._search is None:
            return await super()._load_exchanges(page)
        keys = list(self._search.keys[page * PAGE : (page + 1) * PAGE])

        def rows(recording: Recording) -> list[ExchangeLine]:
            found = [row for key in keys if (row := recording.exchange(key, headers=False)) is not None]
            return lines(recording, found)

        return await self._asked("exchanges", self._source.ask(rows, []), [])

    async def _index(self, exchange: int) -> int | None:
        if self._search is None:
            return await super()._index(exchange)
        return self._search.index(exchange) if self._search.has(exchange) else None

    def reveal(self, chosen: LaneFrameChosen | None) -> None:
        """See `Browse.reveal`; what is not in the narrowed list is shown in the whole one."""
        if chosen is not None and self._search is not None and not self._search.has(chosen.exchange):
            self.narrow(ListFilter())
        super().reveal(chosen)

    def go_when_found(self, exchange: int, seq: int = -1) -> None:
        """To an exchange that the list has, or will have when the search comes to it."""
        search = self._search
        if search is None or search.has(exchange):
            self._go_to(exchange, seq)
        else:
            self._goal = (exchange, seq) if seq >= 0 else None
            self._exchanges.follow = self._exchanges.touched = False
            self._keep = exchange

    def _grown(self, before: RecordingSnapshot, now: RecordingSnapshot) -> None:
        search = self._search
        if search is None:
            super()._grown(before, now)
        elif not {each.id for each in before.sessions} <= {each.id for each in now.sessions}:
            self._finder.cancel(search)
            self._search = self._finder.start(search.node)
        else:
            search.behind = True
            self._finder.grow(search)

    def _tick(self) -> None:
        super()._tick()
        if self._search is not None and self._search.behind and not self._summary.paused:
            self._finder.grow(self._search)

    def _apply(self) -> None:
        super()._apply()
        if self._search is not None and not self._summary.paused:
            self._show_found(self._search)  # what was found during a pause

    def _told(self, search: Search) -> None:
        """The finder has more."""
        if search is self._search and not self._summary.paused:
            self._show_found(search)

    def _show_found(self, search: Search) -> None:
        rows, above = self._exchanges, 0
        if not search.keys and not search.done:
            self._retitle()
            return
        row = rows.row
        if isinstance(row, ExchangeRow) and not rows.follow and search.has(row.key):
            above = search.index(row.key) - rows.cursor
        rows.show(self._shown, len(search.keys), above=above)
        if rows.touched:
            self._keep = 0  # the user wants to be elsewhere by now
        if self._keep and (search.has(self._keep) or search.done):
            rows.select(min(search.index(self._keep), len(search.keys) - 1))
            self._keep = 0
        if search.done and not search.keys:
            rows.placeholder = "  nothing matches; Esc widens"
            self._choose_nothing()
        self._retitle()

    def _remark(self) -> str:
        search = self._search
        if search is None:
            return super()._remark()
        found = f"{len(search.keys)} found"
        if search.trouble:
            return f"{search.trouble}; {found}"
        percent = search.looked * 100 // max(search.total, 1)
        if search.cancelled:
            return f"stopped at {percent}%: {found}"
        if not search.done:
            return f"searching {percent}%: {found}, Esc stops"
        new = f"+{self._exchanges.unseen} new  " if self._exchanges.unseen > 0 else ""
        follows = "following  " if self._exchanges.follow else ""
        return f"{new}{follows}{len(search.keys)} of {self._shown.exchanges}"

    # What the user does.

    def widen(self) -> bool:
        """Stop a search that runs, else take away what narrows most; False where nothing narrows."""
        search = self._search
        if search is not None and not search.done:
            self._finder.cancel(search)
            search.done = True
            self._show_found(search)
        elif self._narrowing != ListFilter():
            self.narrow(self._narrowing.wider())
        else:
            return False
        return True

    def action_filter(self) -> None:
        """Type a filter."""
        if not self.has_class("-empty"):
            self._before = self._narrowing
            self._box.open(self._narrowing.text)

    async def _complete(self, text: str, cursor: int) -> Completion:
        from a2a_proxy.recording.query.complete import Completion, complete

        def counted(recording: Recording) -> Completion:
            return complete(text, cursor, recording.db)

        question = self._source.ask_while_wanted(counted, complete(text, cursor))
        return await self._asked("suggestions", question, Completion(0, 0, ()))

    @on(FilterBox.Typed)
    def _typed(self, message: FilterBox.Typed) -> None:
        self._change(text=message.text.strip())

    @on(FilterBox.Used)
    def _used(self, message: FilterBox.Used) -> None:
        self._change(text=message.text)
        self._enter("exchanges")

    @on(FilterBox.Closed)
    def _given_up(self) -> None:
        self.narrow(self._before)
        self._enter("exchanges")

    def action_only(self, what: str) -> None:
        """Only the task or context of the exchange under the cursor; all of them where it is so already."""
        if getattr(self._narrowing, what) is not None:
            self._change(**{what: None})
            return
        row = self._exchanges.row  # what is shown below may not have been read yet
        found = getattr(row.exchange, f"{what}_id") if isinstance(row, ExchangeRow) else ""
        if found:
            self._change(**{what: found})
        else:
            self.say(f"this exchange has no {what}")

    def action_findings(self) -> None:
        """Only exchanges with findings, or all."""
        self._change(findings=not self._narrowing.findings)

    def narrow_to(self, expression: str | None) -> None:
        """Show of what is shown only that for which this holds too."""
        if expression:
            text = self._narrowing.text
            self._change(text=f"({text}) {expression}" if text else expression)

    def use(self, expression: str) -> None:
        """Show what matches an expression and nothing else narrows; a wrong one is told."""
        try:
            self.narrow(ListFilter(expression))
        except QueryError as wrong:
            self.say(f"the filter is wrong: {wrong.message}", wrong=True)
