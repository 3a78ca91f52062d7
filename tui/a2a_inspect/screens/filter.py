"""The list of exchanges: the whole recording, or the exchanges that a filter finds.

A filter is typed, or made from the task or context of an exchange, or limits the list to exchanges
with findings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from a2a_inspect.data.filtered_source import ExchangeSearch, Finder
from a2a_inspect.data.finding_counts import ExchangeLine
from a2a_inspect.data.list_filter import ListFilter
from a2a_inspect.data.positions import PAGE
from a2a_inspect.data.source import RecordingSnapshot
from a2a_inspect.screens.controller import run_in_background
from a2a_inspect.screens.lane_screen import LaneFrameChosen
from a2a_inspect.screens.main_controller import MainController, MainParts
from a2a_inspect.screens.panes import Panes
from a2a_inspect.screens.selection import RowSelection
from a2a_inspect.screens.titles import PaneTitles, list_remark, rows_above
from a2a_inspect.widgets.breadcrumbs import ONLY_PROMPT
from a2a_proxy.recording.query.errors import QueryError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow

if TYPE_CHECKING:
    from a2a_inspect.data.list_columns import ColumnReader, UserColumn

_PRELOAD_DELAY = 1.0
"""Seconds until the first rows have been read. Then the modules of the filter language are
loaded."""


class FilterController(MainController):
    """The list of exchanges and its filter. Every change of the filter goes through
    `apply_filter`."""

    def __init__(
        self, parts: MainParts, titles: PaneTitles, panes: Panes, selection: RowSelection
    ) -> None:
        super().__init__(parts)
        self._titles = titles
        self._panes = panes
        self._selection = selection
        self.finder = Finder(self._source.reopen_recording, self._on_progress)
        self.current = ListFilter()
        """The filter in force."""
        self.search: ExchangeSearch | None = None
        """The search for the exchanges of the filter; None without a filter."""
        self.match_search: ExchangeSearch | None = None
        """The search for matches that hides no exchange; None: the filter decides what matches."""
        self._exchange_to_find = 0
        """Key of the exchange that had the cursor, until it is found again."""
        self._filter_before_box = ListFilter()
        """The filter that was in force when the filter's box was opened."""
        self._column_reader: ColumnReader | None = None
        """Reads the cells of the columns that the user chose; None: there are only standard
        columns."""
        self._edits_whole = False
        """Whether the box has all parts of the filter, not only the typed one."""

    def prepare_search(self) -> None:
        """Import the filter language and open the recording for searches soon, before a filter is
        typed."""
        self.screen.set_timer(_PRELOAD_DELAY, self.finder.start_preload)

    def close(self) -> None:
        """End all searches."""
        self.finder.close()

    def found_keys(self) -> Sequence[int] | None:
        """Return the keys of the exchanges that were found so far; None without a filter."""
        return None if self.search is None else self.search.keys[:]

    def apply_filter(self, list_filter: ListFilter) -> None:
        """Put a filter in force; an empty one shows the whole recording. Raises QueryError if its
        text is wrong."""
        if list_filter == self.current:
            return
        node = list_filter.make_node()
        if self.search is not None:
            self.finder.cancel(self.search)
        self.current, rows = list_filter, self._widgets.exchanges
        self._exchange_to_find = 0 if rows.follow else self._state.selected_exchange
        rows.clear_rows(follow=rows.follow)
        rows.placeholder = ""
        if list_filter != ListFilter():
            self.search = self.finder.start(node)
        else:
            self.search = None
            rows.show_rows(self._state.snapshot, self._state.snapshot.exchanges, above=0)
            if self._exchange_to_find:
                self.go_to(self._exchange_to_find)
        breadcrumbs = self._widgets.breadcrumbs
        breadcrumbs.only = list_filter.make_expression()
        breadcrumbs.set_class(
            list_filter != ListFilter(), "-narrowed"
        )  # a class of the screen would restyle all of it
        self._titles.update_titles()

    def change_parts(self, **parts: Any) -> None:
        """Change parts of the filter."""
        self.apply_filter(msgspec.structs.replace(self.current, **parts))

    def add_expression(self, expression: str | None) -> None:
        """Narrow the list further by an expression."""
        if expression:
            text = self.current.text
            self.change_parts(text=f"({text}) {expression}" if text else expression)

    def use_expression(self, expression: str) -> None:
        """Filter by an expression alone, or show an error if it is wrong."""
        try:
            self.apply_filter(ListFilter(expression))
        except QueryError as error:
            self.show_message(f"invalid filter: {error.message}", is_error=True)

    def widen_filter(self) -> bool:
        """Stop a search that runs, or else remove the narrowest part of the filter. Return False
        without a filter."""
        search = self.search
        if search is not None and not search.is_done:
            self.finder.cancel(search)
            search.is_done = True
            self._show_matches(search)
        elif self.current != ListFilter():
            self.apply_filter(self.current.without_narrowest())
        else:
            return False
        return True

    # Rows of the list.

    def read_columns(self, columns: Sequence[UserColumn]) -> None:
        """Read the cells of these columns with each page from now on."""
        from a2a_inspect.data.list_columns import ColumnReader

        self._column_reader = (
            ColumnReader(columns) if any(not each.is_standard for each in columns) else None
        )

    async def load_exchanges(self, page: int) -> Sequence[ExchangeRow]:
        """Read one page of the list, with the cells of the columns that the user chose."""
        rows, reader = await self._load_rows(page), self._column_reader
        if reader is None:
            return rows

        def fill(recording: Recording) -> list[ExchangeLine]:
            cells = reader.read_cells(recording, rows)
            return [
                msgspec.structs.replace(row, cells=own)
                for row, own in zip(rows, cells, strict=True)
            ]

        return await self._reader.run_query("exchanges", fill, list(rows))

    async def _load_rows(self, page: int) -> Sequence[ExchangeLine]:
        if self.search is None:
            return await self._reader.answer_query(
                "exchanges", self._reader.source.read_exchanges(page), []
            )
        keys = list(self.search.keys[page * PAGE : (page + 1) * PAGE])

        return await self._reader.answer_query(
            "exchanges", self._reader.source.read_lines(keys), []
        )

    async def list_index(self, exchange: int) -> int | None:
        """Return the index of an exchange in the list; None if the list does not have it."""
        if self.search is None:
            return await self._reader.answer_query(
                "exchanges", self._reader.source.exchange_index(exchange), 0
            )
        return self.search.find_index(exchange) if self.search.is_match(exchange) else None

    def show_exchanges(self, before: RecordingSnapshot, now: RecordingSnapshot) -> None:
        """Show the exchanges of a new snapshot, or search them."""
        search = self.search
        if search is None:
            rows = self._widgets.exchanges
            rows.show_rows(now, now.exchanges, above=rows_above(before, now, rows.cursor))
        elif not {each.id for each in before.sessions} <= {each.id for each in now.sessions}:
            self.finder.cancel(search)
            self.search = self.finder.start(search.node)
        else:
            search.is_stale = True
            self.finder.continue_search(search)

    def follow_recording(self) -> None:
        """Search the exchanges recorded since the last search, unless the display is paused."""
        if self.search is not None and self.search.is_stale and not self._widgets.summary.paused:
            self.finder.continue_search(self.search)

    def show_found(self) -> None:
        """Show the matches found so far, for example during a pause of the display."""
        if self.search is not None and not self._widgets.summary.paused:
            self._show_matches(self.search)

    def _on_progress(self, search: ExchangeSearch) -> None:
        """Show new results of a search. The finder calls it."""
        if search is self.search:
            self.show_found()
        if search is self.match_search and search.is_done and not search.keys:
            self.show_message(search.error or "nothing matches")

    def _show_matches(self, search: ExchangeSearch) -> None:
        rows, above = self._widgets.exchanges, 0
        if not search.keys and not search.is_done:
            self._titles.update_titles()
            return
        row = rows.current_row
        if isinstance(row, ExchangeRow) and not rows.follow and search.is_match(row.key):
            above = search.find_index(row.key) - rows.cursor
        rows.show_rows(self._state.snapshot, len(search.keys), above=above)
        if rows.has_user_moved:
            self._exchange_to_find = 0  # the user has gone elsewhere
        if self._exchange_to_find and (search.is_match(self._exchange_to_find) or search.is_done):
            rows.select_row(min(search.find_index(self._exchange_to_find), len(search.keys) - 1))
            self._exchange_to_find = 0
        if search.is_done and not search.keys:
            rows.placeholder = "  nothing matches; Esc widens the list"
            self._selection.clear()
        self._titles.update_titles()

    def describe_list(self) -> str:
        """Return the remark at the title of the list: number of rows, progress of the search."""
        search, rows, state = self.search, self._widgets.exchanges, self._state
        if search is None:
            pending = state.pending_snapshot
            late = pending.exchanges - state.snapshot.exchanges if pending is not None else 0
            return list_remark(rows, late)
        found = f"{len(search.keys)} found"
        if search.error:
            return f"{search.error}; {found}"
        percent = search.examined * 100 // max(search.total, 1)
        if search.is_cancelled:
            return f"stopped at {percent}%: {found}"
        if not search.is_done:
            return f"searching {percent}%: {found}, Esc stops"
        new = f"+{rows.unseen_rows} new  " if rows.unseen_rows > 0 else ""
        follows = "following  " if rows.follow else ""
        return f"{new}{follows}{len(search.keys)} of {state.snapshot.exchanges}"

    # Going to an exchange.

    @run_in_background("go", exclusive=True)
    async def go_to(self, exchange: int, seq: int = -1) -> None:
        """Put the cursor on an exchange of the list, and on a frame of it."""
        index = await self.list_index(exchange)
        if index is None:
            return
        self._state.pending_position = (exchange, seq) if seq >= 0 else None
        self._widgets.exchanges.select_row(index)
        if exchange == self._state.selected_exchange:
            self._selection.show_exchange(exchange)

    def go_to_when_found(self, exchange: int, seq: int = -1) -> None:
        """Go to an exchange as soon as the search has found it."""
        search, rows = self.search, self._widgets.exchanges
        if search is None or search.is_match(exchange):
            self.go_to(exchange, seq)
        else:
            self._state.pending_position = (exchange, seq) if seq >= 0 else None
            rows.follow = rows.has_user_moved = False
            self._exchange_to_find = exchange

    def reveal_frame(self, frame: LaneFrameChosen | None) -> None:
        """Go to a frame, if there is one. If the filter hides its exchange, show the whole list."""
        if frame is None:
            return
        if self.search is not None and not self.search.is_match(frame.exchange):
            self.apply_filter(ListFilter())
        self.go_to(frame.exchange, frame.seq)
        self._panes.focus_pane("frames")

    # The filter's box.

    def open_box(self) -> None:
        """Let the user type a filter."""
        if not self.screen.has_class("-empty"):
            self._filter_before_box, self._edits_whole = self.current, False
            self._panes.place_filter_box(above=False)
            self._widgets.filter_box.open(self.current.text)

    def edit_whole(self) -> None:
        """Let the user edit all that narrows the list, in the line that shows it."""
        if not self.screen.has_class("-empty"):
            self._filter_before_box, self._edits_whole = self.current, True
            self._panes.place_filter_box(above=True)
            self._widgets.filter_box.open(
                self.current.make_expression(), ONLY_PROMPT, is_above=True
            )

    def apply_typed(self, text: str) -> None:
        """Filter by the expression in the box."""
        if not self._edits_whole:
            self.change_parts(text=text)
        elif text == self._filter_before_box.make_expression():
            self.apply_filter(self._filter_before_box)  # its parts can still be removed one by one
        else:
            self.apply_filter(ListFilter(text))

    def use_typed(self, text: str) -> None:
        """Filter by the expression in the box, and leave the box."""
        self.cancel_match_search()
        self.apply_typed(text)
        self._leave_box()

    def restore_filter(self) -> None:
        """Restore the filter from before the box was opened, and leave the box."""
        self.cancel_match_search()
        self.apply_filter(self._filter_before_box)
        self._leave_box()

    def _leave_box(self) -> None:
        self._panes.place_filter_box(above=False)
        self._panes.focus_pane("exchanges")

    def cancel_match_search(self) -> None:
        """End the search that hides no exchange."""
        if self.match_search is not None:
            self.finder.cancel(self.match_search)
            self.match_search = None

    def find_typed(self, text: str) -> bool:
        """Search for the typed expression without hiding an exchange. Return False if it is
        empty."""
        from a2a_proxy.recording.query.parser import parse_expression

        self.restore_filter()
        if text:
            self.match_search = self.finder.start(parse_expression(text))
        return bool(text)

    # Actions.

    def toggle_only(self, what: str) -> None:
        """Show only the task or context of the exchange under the cursor, or all of them again."""
        if getattr(self.current, what) is not None:
            self.change_parts(**{what: None})
            return
        row = self._widgets.exchanges.current_row  # the panes below may not have been read yet
        found = getattr(row.exchange, f"{what}_id") if isinstance(row, ExchangeRow) else ""
        if found:
            self.change_parts(**{what: found})
        else:
            self.show_message(f"this exchange has no {what}")

    def toggle_findings(self) -> None:
        """Show only exchanges with findings, or all of them again."""
        self.change_parts(findings=not self.current.findings)
