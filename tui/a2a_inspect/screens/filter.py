"""The list of exchanges narrowed: by a filter that is typed, to one task or context, to those with findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from a2a_inspect.data.filtered_source import ExchangeSearch, Finder
from a2a_inspect.data.finding_counts import ExchangeLine, exchange_lines
from a2a_inspect.data.list_filter import ListFilter
from a2a_inspect.data.positions import PAGE
from a2a_inspect.data.source import RecordingSnapshot, RecordingSource
from a2a_inspect.dialogs.filter_box import FilterBox
from a2a_inspect.screens.browse import BrowseScreen
from a2a_inspect.screens.lane_screen import LaneFrameChosen
from a2a_inspect.widgets.key_line import KeyLine
from a2a_proxy.recording.query.errors import QueryError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow

if TYPE_CHECKING:
    from a2a_proxy.recording.query.complete import Completion

_PRELOAD_DELAY = 1.0
"""Seconds after which nobody waits for the first rows any more."""


class FilterScreen(BrowseScreen):
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
        self._finder = Finder(source.reopen_recording, self._on_search_progress)
        self._filter = ListFilter()
        self._search: ExchangeSearch | None = None
        self._exchange_to_find = 0
        """Key of the exchange that had the cursor, until it is found again."""
        self._filter_before_box = ListFilter()
        """What held when the filter's box was opened."""
        self._box = FilterBox(self._complete_expression)

    def compose(self) -> ComposeResult:
        """The box above the last line."""
        for widget in super().compose():
            if isinstance(widget, KeyLine):
                yield self._box
            yield widget

    def on_mount(self) -> None:
        """Get ready for filters when the first rows are there."""
        self.set_timer(_PRELOAD_DELAY, self._finder.preload)

    def on_unmount(self) -> None:
        """End what is searched."""
        self._finder.close()

    @property
    def narrowing(self) -> ListFilter:
        """What the list is narrowed to now."""
        return self._filter

    @property
    def found_keys(self) -> Sequence[int] | None:
        """Keys of the exchanges that were found so far; None where nothing narrows."""
        return None if self._search is None else self._search.keys[:]

    def narrow(self, list_filter: ListFilter) -> None:
        """Show only this; all of it where nothing narrows. Raises QueryError where its text is wrong."""
        if list_filter == self._filter:
            return
        node = list_filter.node()
        if self._search is not None:
            self._finder.cancel(self._search)
        self._filter, rows = list_filter, self._exchanges
        self._exchange_to_find = 0 if rows.follow else self._selected_exchange
        rows.restart(follow=rows.follow)
        rows.placeholder = ""
        if list_filter != ListFilter():
            self._search = self._finder.start(node)
        else:
            self._search = None
            rows.show(self._snapshot, self._snapshot.exchanges, above=0)
            if self._exchange_to_find:
                self._go_to(self._exchange_to_find)
        self._breadcrumbs.only = list_filter.expression()
        self._breadcrumbs.set_class(
            list_filter != ListFilter(), "-narrowed"
        )  # on the screen it would style all that is on it
        self._update_titles()

    def _change_filter(self, **parts: Any) -> None:
        self.narrow(msgspec.structs.replace(self._filter, **parts))

    # Rows.

    async def _load_exchanges(self, page: int) -> Sequence[ExchangeRow]:
        if self._search is None:
            return await super()._load_exchanges(page)
        keys = list(self._search.keys[page * PAGE : (page + 1) * PAGE])

        def rows(recording: Recording) -> list[ExchangeLine]:
            found = [row for key in keys if (row := recording.exchange(key, headers=False)) is not None]
            return exchange_lines(recording, found)

        return await self._await_answer("exchanges", self._source.ask(rows, []), [])

    async def _list_index(self, exchange: int) -> int | None:
        if self._search is None:
            return await super()._list_index(exchange)
        return self._search.index(exchange) if self._search.is_match(exchange) else None

    def reveal(self, frame: LaneFrameChosen | None) -> None:
        """See `BrowseScreen.reveal`; what is not in the narrowed list is shown in the whole one."""
        if frame is not None and self._search is not None and not self._search.is_match(frame.exchange):
            self.narrow(ListFilter())
        super().reveal(frame)

    def go_to_when_found(self, exchange: int, seq: int = -1) -> None:
        """To an exchange that the list has, or will have when the search comes to it."""
        search = self._search
        if search is None or search.is_match(exchange):
            self._go_to(exchange, seq)
        else:
            self._pending_position = (exchange, seq) if seq >= 0 else None
            self._exchanges.follow = self._exchanges.has_user_moved = False
            self._exchange_to_find = exchange

    def _show_exchanges(self, before: RecordingSnapshot, now: RecordingSnapshot) -> None:
        search = self._search
        if search is None:
            super()._show_exchanges(before, now)
        elif not {each.id for each in before.sessions} <= {each.id for each in now.sessions}:
            self._finder.cancel(search)
            self._search = self._finder.start(search.node)
        else:
            search.is_stale = True
            self._finder.follow(search)

    def _start_poll(self) -> None:
        super()._start_poll()
        if self._search is not None and self._search.is_stale and not self._summary.paused:
            self._finder.follow(self._search)

    def _apply_snapshot(self) -> None:
        super()._apply_snapshot()
        if self._search is not None and not self._summary.paused:
            self._show_matches(self._search)  # what was found during a pause

    def _on_search_progress(self, search: ExchangeSearch) -> None:
        """The finder has more."""
        if search is self._search and not self._summary.paused:
            self._show_matches(search)

    def _show_matches(self, search: ExchangeSearch) -> None:
        rows, above = self._exchanges, 0
        if not search.keys and not search.is_done:
            self._update_titles()
            return
        row = rows.current_row
        if isinstance(row, ExchangeRow) and not rows.follow and search.is_match(row.key):
            above = search.index(row.key) - rows.cursor
        rows.show(self._snapshot, len(search.keys), above=above)
        if rows.has_user_moved:
            self._exchange_to_find = 0  # the user wants to be elsewhere by now
        if self._exchange_to_find and (search.is_match(self._exchange_to_find) or search.is_done):
            rows.select(min(search.index(self._exchange_to_find), len(search.keys) - 1))
            self._exchange_to_find = 0
        if search.is_done and not search.keys:
            rows.placeholder = "  nothing matches; Esc widens"
            self._clear_panes()
        self._update_titles()

    def _exchanges_remark(self) -> str:
        search = self._search
        if search is None:
            return super()._exchanges_remark()
        found = f"{len(search.keys)} found"
        if search.error:
            return f"{search.error}; {found}"
        percent = search.examined * 100 // max(search.total, 1)
        if search.is_cancelled:
            return f"stopped at {percent}%: {found}"
        if not search.is_done:
            return f"searching {percent}%: {found}, Esc stops"
        new = f"+{self._exchanges.unseen_rows} new  " if self._exchanges.unseen_rows > 0 else ""
        follows = "following  " if self._exchanges.follow else ""
        return f"{new}{follows}{len(search.keys)} of {self._snapshot.exchanges}"

    # What the user does.

    def widen_filter(self) -> bool:
        """Stop a search that runs, else take away what narrows most; False where nothing narrows."""
        search = self._search
        if search is not None and not search.is_done:
            self._finder.cancel(search)
            search.is_done = True
            self._show_matches(search)
        elif self._filter != ListFilter():
            self.narrow(self._filter.without_narrowest())
        else:
            return False
        return True

    def action_filter(self) -> None:
        """Type a filter."""
        if not self.has_class("-empty"):
            self._filter_before_box = self._filter
            self._box.open(self._filter.text)

    async def _complete_expression(self, text: str, cursor: int) -> Completion:
        from a2a_proxy.recording.query.complete import Completion, complete

        def counted(recording: Recording) -> Completion:
            return complete(text, cursor, recording.db)

        question = self._source.ask_cancellable(counted, complete(text, cursor))
        return await self._await_answer("suggestions", question, Completion(0, 0, ()))

    @on(FilterBox.Typed)
    def _filter_as_typed(self, message: FilterBox.Typed) -> None:
        self._change_filter(text=message.text.strip())

    @on(FilterBox.Used)
    def _use_filter(self, message: FilterBox.Used) -> None:
        self._change_filter(text=message.text)
        self._focus_pane("exchanges")

    @on(FilterBox.Closed)
    def _restore_filter(self) -> None:
        self.narrow(self._filter_before_box)
        self._focus_pane("exchanges")

    def action_only(self, what: str) -> None:
        """Only the task or context of the exchange under the cursor; all of them where it is so already."""
        if getattr(self._filter, what) is not None:
            self._change_filter(**{what: None})
            return
        row = self._exchanges.current_row  # what is shown below may not have been read yet
        found = getattr(row.exchange, f"{what}_id") if isinstance(row, ExchangeRow) else ""
        if found:
            self._change_filter(**{what: found})
        else:
            self.show_message(f"this exchange has no {what}")

    def action_findings(self) -> None:
        """Only exchanges with findings, or all."""
        self._change_filter(findings=not self._filter.findings)

    def narrow_to(self, expression: str | None) -> None:
        """Show of what is shown only that for which this holds too."""
        if expression:
            text = self._filter.text
            self._change_filter(text=f"({text}) {expression}" if text else expression)

    def use_expression(self, expression: str) -> None:
        """Show what matches an expression and nothing else narrows; a wrong one is told."""
        try:
            self.narrow(ListFilter(expression))
        except QueryError as wrong:
            self.show_message(f"the filter is wrong: {wrong.message}", is_error=True)
