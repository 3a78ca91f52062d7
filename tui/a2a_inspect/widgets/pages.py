"""The pages of a long list that are held: which to read next, which may be wrong by now, which to let go."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

from a2a_inspect.data.positions import PAGE

_MAX_PAGES = 16


class ListPages:
    """Rows by their place in the list, a page at a time. A stale page is shown until it has been read again."""

    def __init__(self) -> None:
        self._pages: OrderedDict[int, Sequence[Any]] = OrderedDict()
        self._stale_pages: set[int] = set()
        self._page_being_read: int | None = None
        """The page that is being read: what comes may be of before the last doubt."""

    def __len__(self) -> int:
        """Pages that are held."""
        return len(self._pages)

    def row(self, index: int) -> Any:
        """One row; None while it is not there."""
        page, offset = divmod(index, PAGE)
        rows = self._pages.get(page)
        return rows[offset] if rows is not None and offset < len(rows) else None

    def clear(self) -> None:
        """Rows have other places now."""
        self._pages.clear()
        self._stale_pages.clear()

    def mark_stale(self) -> None:
        """Any row may have changed."""
        self._stale_pages.update(self._pages, () if self._page_being_read is None else (self._page_being_read,))

    def next_to_read(self, visible: Iterable[int]) -> int | None:
        """The first of these that is missing or stale."""
        return next((page for page in sorted(visible) if page not in self._pages or page in self._stale_pages), None)

    def begin_read(self, page: int) -> None:
        """It is being read as it is now: what changes from here on is doubt anew."""
        self._stale_pages.discard(page)
        self._page_being_read = page

    def store(self, page: int, rows: Sequence[Any]) -> None:
        """It has been read; the one kept for longest may go for it."""
        self._page_being_read = None
        self._pages[page] = rows
        self._pages.move_to_end(page)
        while len(self._pages) > _MAX_PAGES:
            self._stale_pages.discard(self._pages.popitem(last=False)[0])
