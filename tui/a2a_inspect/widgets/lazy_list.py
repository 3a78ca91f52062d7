"""A list of any length: only visible pages are loaded, and only a few are kept. Cursor, follow,
stale rows.

Subclasses define the columns and load the pages. A row that is not loaded yet is an empty line; a
row that may have changed is shown unchanged until it has been read again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from time import monotonic
from typing import Any, ClassVar

from rich.segment import Segment
from textual import events, work
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.timer import Timer

from a2a_inspect.data.positions import PAGE
from a2a_inspect.widgets.columns import ListColumn, fit_text
from a2a_inspect.widgets.row_view import RowView

_MAX_PAGES = 16
_REPORT_INTERVAL = 0.1
"""Minimum seconds between two reports of the cursor."""


class _ListPages:
    """Cached rows by their index in the list, in pages: the next page to read, stale pages, and
    pages to drop.

    A stale page is shown until it has been read again.
    """

    def __init__(self) -> None:
        self._pages: OrderedDict[int, Sequence[Any]] = OrderedDict()
        self._stale_pages: set[int] = set()
        self._page_being_read: int | None = None
        """The page that is being read. Its rows may be older than the last `mark_stale`."""

    def __len__(self) -> int:
        """Number of cached pages."""
        return len(self._pages)

    def get_row(self, index: int) -> Any:
        """Return one row; None if it is not loaded."""
        page, offset = divmod(index, PAGE)
        rows = self._pages.get(page)
        return rows[offset] if rows is not None and offset < len(rows) else None

    def clear(self) -> None:
        """Drop all pages, because the rows have other indexes now."""
        self._pages.clear()
        self._stale_pages.clear()

    def mark_stale(self) -> None:
        """Mark all pages as stale."""
        self._stale_pages.update(
            self._pages, () if self._page_being_read is None else (self._page_being_read,)
        )

    def next_to_read(self, visible: Iterable[int]) -> int | None:
        """Return the first of these pages that is missing or stale."""
        return next(
            (
                page
                for page in sorted(visible)
                if page not in self._pages or page in self._stale_pages
            ),
            None,
        )

    def begin_read(self, page: int) -> None:
        """Note that the page is being read in its current state: later changes make it stale
        again."""
        self._stale_pages.discard(page)
        self._page_being_read = page

    def store_page(self, page: int, rows: Sequence[Any]) -> None:
        """Store a page that has been read; the oldest page may be dropped for it."""
        self._page_being_read = None
        self._pages[page] = rows
        self._pages.move_to_end(page)
        while len(self._pages) > _MAX_PAGES:
            self._stale_pages.discard(self._pages.popitem(last=False)[0])


class LazyList(RowView):
    """A list that loads its rows by page."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "Down", show=False, id="list.down"),
        Binding("k,up", "move(-1)", "Up", show=False, id="list.up"),
        Binding("pagedown,ctrl+d,ctrl+f", "page(1)", "Page down", show=False, id="list.page-down"),
        Binding("pageup,ctrl+u", "page(-1)", "Page up", show=False, id="list.page-up"),
        Binding(
            "home", "first", "First", show=False, id="list.first", tooltip="first row; gg as well"
        ),
        Binding(
            "g",
            "first_at_two",
            "First",
            show=False,
            id="list.first-at-two",
            tooltip="pressed twice: first row",
        ),
        Binding(
            "G,end", "last", "Last", show=False, id="list.last", tooltip="last row, and follow"
        ),
        Binding(
            "F", "follow", "Follow", id="list.follow", tooltip="follow the end; moving up stops it"
        ),
        Binding(
            "enter,l,right",
            "open",
            "Open",
            key_display="enter",
            id="list.open",
            tooltip="open the row",
        ),
    ]

    cursor: reactive[int] = reactive(0, repaint=False)
    follow: reactive[bool] = reactive(False, repaint=False)
    total: reactive[int] = reactive(0, repaint=False)

    class RowUnderCursor(Message):
        """Posted when the cursor is on another row or its row has been read again.

        `row` is None while it is not loaded.
        """

        def __init__(self, sender: LazyList, row: Any) -> None:
            super().__init__()
            self.sender = sender
            self.row = row

        @property
        def control(self) -> LazyList:
            """The list, for `@on` selectors."""
            return self.sender

    class Opened(RowUnderCursor):
        """Posted when the user wants to open the row."""

    class Changed(Message):
        """Posted when the total, the following or the number of unseen rows changed."""

    def __init__(self, columns: Sequence[ListColumn], *, id: str) -> None:
        super().__init__(columns, id=id)
        self._pages = _ListPages()
        self._is_loading = False
        self._epoch = 0
        self._total_at_unfollow = 0
        self._has_total = False
        """Whether the number of rows is known."""
        self.placeholder = ""
        """Text that is shown if there are no rows."""
        self._cursor_reported = 0.0
        self._report_timer: Timer | None = None
        self.has_user_moved = False
        """Whether the user has moved the cursor since the last restart."""

    async def load_page(self, page: int) -> Sequence[Any]:
        """Return the rows of one page, at most PAGE. Subclasses must handle exceptions."""
        raise NotImplementedError

    @property
    def unseen_rows(self) -> int:
        """Number of rows added since following stopped."""
        return 0 if self.follow else self.total - self._total_at_unfollow

    @property
    def current_row(self) -> Any:
        """The row under the cursor; None while it is not loaded."""
        return self._pages.get_row(self.cursor)

    def clear_rows(self, *, follow: bool) -> None:
        """Forget everything, because the list has new content.

        The scroll bar stays until the number of rows is known: otherwise it would disappear and
        come back at once, each time with a new layout of the whole screen.
        """
        self._epoch += 1
        self.has_user_moved = False
        self._pages.clear()
        self._total_at_unfollow = 0
        self.set_reactive(LazyList.cursor, 0)
        self.set_reactive(LazyList.total, 0)
        self.follow = follow
        self.scroll_to(y=0, animate=False)
        self.refresh()

    def update_total(self, total: int, *, rows_above: int = 0) -> None:
        """Set the number of rows.

        Any row may have changed; `rows_above` of the new ones were inserted before the cursor.
        """
        self._has_total = True
        if rows_above:
            self._pages.clear()
            self.set_reactive(LazyList.cursor, self.cursor + rows_above)
            self._total_at_unfollow += rows_above
        if total < self.total:
            self._pages.clear()
            self.set_reactive(LazyList.cursor, max(min(self.cursor, total - 1), 0))
        self._pages.mark_stale()
        if self.follow or not self.total:
            self._total_at_unfollow = total
        self.total = total
        self.set_row_count(total)
        if self.follow:
            self._move_cursor_to(total - 1)
        elif rows_above:
            self.scroll_to(y=self.scroll_offset.y + rows_above, animate=False, force=True)
        self.refresh()
        self._start_loading()
        self.post_message(self.Changed())

    def reread_rows(self) -> None:
        """Read the rows again, for example for other columns."""
        self._pages.mark_stale()
        self._start_loading()
        self.post_message(self.Changed())

    def column_titles(self) -> Strip:
        """Return the titles of the columns, for a line above the list; empty before the first
        content."""
        return (
            self.column_title_strip()
            if self._has_total
            else Strip.blank(self.size.width, self.combine_styles("list--head"))
        )

    def render_line(self, y: int) -> Strip:
        """Render one line."""
        index = self.scroll_offset.y + y
        if index < self.total:
            return self.row_strip(self._pages.get_row(index), is_cursor=index == self.cursor)
        words = fit_text(self.placeholder if not self.total and y == 1 else "", self.size.width)
        return Strip([Segment(words, self.combine_styles("list--dim"))])

    def on_resize(self, event: events.Resize) -> None:
        """Fit the columns and keep the cursor visible."""
        self.fit_columns()
        self.set_row_count(self.total or self.virtual_size.height, event.size.width)
        self._scroll_to_cursor()
        self._start_loading()
        self.post_message(self.Changed())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Load rows that become visible; stop following if the user scrolls away from the end."""
        super().watch_scroll_y(old_value, new_value)
        if self.follow and new_value < min(old_value, self.max_scroll_y):
            self.follow = False
        self._start_loading()

    def watch_follow(self, follow: bool) -> None:
        """Count new rows from here, or go to the end."""
        self._total_at_unfollow = self.total
        if follow and self.total:
            self._move_cursor_to(self.total - 1)
        self.post_message(self.Changed())

    def _start_loading(self) -> None:
        """Load the visible pages that are missing or stale, one after another."""
        if not self._is_loading and self._next_page_to_load() is not None:
            self._is_loading = True
            self._load_pages()

    @work(group="pages", exit_on_error=False)
    async def _load_pages(self) -> None:
        try:
            while (page := self._next_page_to_load()) is not None:
                epoch = self._epoch
                self._pages.begin_read(page)
                rows = await self.load_page(page)
                if epoch == self._epoch:
                    before = self.current_row
                    self._pages.store_page(page, rows)
                    self.refresh()
                    if self.current_row is not before and self.cursor // PAGE == page:
                        self._report_cursor()
        finally:
            self._is_loading = False

    def _next_page_to_load(self) -> int | None:
        if not self.total:
            return None
        top = self.scroll_offset.y
        last = min(top + max(self.size.height, 1), self.total) - 1
        pages = {self.cursor // PAGE, *range(top // PAGE, last // PAGE + 1)}
        return self._pages.next_to_read(pages)

    def _move_cursor_to(self, index: int) -> None:
        index = max(0, min(index, self.total - 1))
        before, self.cursor = self.cursor, index
        self._scroll_to_cursor()
        self.refresh_line(before)
        self.refresh_line(index)
        self._start_loading()
        if index != before and self.current_row is not None:
            self._report_cursor()

    @property
    def is_settled(self) -> bool:
        """Whether the current cursor position has been reported. The loading of a row is reported
        later."""
        return self._report_timer is None and not (
            self._is_loading and self.total and self.current_row is None
        )

    def report_cursor(self) -> None:
        """Report the cursor at once if the report was delayed."""
        if self._report_timer is not None:
            self._report_cursor_now()

    def _report_cursor(self) -> None:
        """Report the cursor: at once, but at most ten times a second while a key is held."""
        wait = self._cursor_reported + _REPORT_INTERVAL - monotonic()
        if wait <= 0:
            self._report_cursor_now()
        elif self._report_timer is None:
            self._report_timer = self.set_timer(wait, self._report_cursor_now)

    def _report_cursor_now(self) -> None:
        if self._report_timer is not None:
            self._report_timer.stop()
        self._cursor_reported, self._report_timer = monotonic(), None
        if self.current_row is not None:
            self.post_message(self.RowUnderCursor(self, self.current_row))

    def _scroll_to_cursor(self) -> None:
        """Scroll to the cursor.

        With `force` scroll even if Textual has no scroll bar yet, because all rows fitted so far.
        """
        top, height = self.scroll_offset.y, max(self.size.height, 1)
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, force=True)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False, force=True)

    def select_row(self, index: int) -> None:
        """Move the cursor to a row. Following continues only if it was on and the row is the last
        one."""
        self._first_press = 0.0
        if index < self.total - 1:
            self.follow = False
        self._move_cursor_to(index)

    def action_move(self, by: int) -> None:
        """Move the cursor by rows."""
        self.has_user_moved = True
        self.select_row(self.cursor + by)

    def action_page(self, by: int) -> None:
        """Move the cursor by screens."""
        self.has_user_moved = True
        self.select_row(self.cursor + by * max(self.size.height - 1, 1))

    def action_first(self) -> None:
        """Go to the first row and stop following, also if no row or only that row is loaded."""
        self.has_user_moved = True
        self.follow = False
        self.select_row(0)

    def action_first_at_two(self) -> None:
        """Go to the first row when the key has been pressed twice."""
        self.run_on_second_press(self.action_first)

    def action_last(self) -> None:
        """Go to the last row and follow."""
        self.has_user_moved = self.follow = True
        self._move_cursor_to(self.total - 1)

    def action_follow(self) -> None:
        """Follow the end of the list, or stop."""
        self.follow = not self.follow

    def action_open(self) -> None:
        """Open the row."""
        if self.current_row is not None:
            self.post_message(self.Opened(self, self.current_row))

    def on_click(self, event: events.Click) -> None:
        """Select the row; a double click opens it."""
        index = self.scroll_offset.y + event.y
        if index < self.total:
            self.has_user_moved = True
            self.select_row(index)
            if event.chain == 2:
                self.action_open()
