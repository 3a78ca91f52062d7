"""Cached pages of a long list: the next page to read, stale pages, and pages to drop."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

from a2a_inspect.data.positions import PAGE

_MAX_PAGES = 16


class ListPages:
    """Rows by their index in the list, in pages. A stale page is shown until it has been read again."""

    def __init__(self) -> None:
        self._pages: OrderedDict[int, Sequence[Any]] = OrderedDict()
        self._stale_pages: set[int] = set()
        self._page_being_read: int | None = None
        """The page that is being read. Its rows may be older than the last `mark_stale`."""

    def __len__(self) -> int:
        """Number of cached pages."""
        return len(self._pages)

    def row(self, index: int) -> Any:
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
        self._stale_pages.update(self._pages, () if self._page_being_read is None else (self._page_being_read,))

    def next_to_read(self, visible: Iterable[int]) -> int | None:
        """Return the first of these pages that is missing or stale."""
        return next((page for page in sorted(visible) if page not in self._pages or page in self._stale_pages), None)

    def begin_read(self, page: int) -> None:
        """Note that the page is being read in its current state: later changes make it stale again."""
        self._stale_pages.discard(page)
        self._page_being_read = page

    def store(self, page: int, rows: Sequence[Any]) -> None:
        """Store a page that has been read; the oldest page may be dropped for it."""
        self._page_being_read = None
        self._pages[page] = rows
        self._pages.move_to_end(page)
        while len(self._pages) > _MAX_PAGES:
            self._stale_pages.discard(self._pages.popitem(last=False)[0])
