"""The pages of a long list that are held: which to read next, which may be wrong by now, which to let go."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

from a2a_inspect.data.positions import PAGE

_KEPT = 16


class ListPages:
    """Rows by their place in the list, a page at a time. A stale page is shown until it has been read again."""

    def __init__(self) -> None:
        self._pages: OrderedDict[int, Sequence[Any]] = OrderedDict()
        self._stale: set[int] = set()
        self._under_way: int | None = None
        """The page that is being read: what comes may be of before the last doubt."""

    def __len__(self) -> int:
        """Pages that are held."""
        return len(self._pages)

    def row(self, index: int) -> Any:
        """One row; None while it is not there."""
        page, offset = divmod(index, PAGE)
        rows = self._pages.get(page)
        return rows[offset] if rows is not None and offset < len(rows) else None

    def forget(self) -> None:
        """Rows have other places now."""
        self._pages.clear()
        self._stale.clear()

    def doubt(self) -> None:
        """Any row may have changed."""
        self._stale.update(self._pages, () if self._under_way is None else (self._under_way,))

    def wanted(self, pages: Iterable[int]) -> int | None:
        """The first of these that is missing or stale."""
        return next((page for page in sorted(pages) if page not in self._pages or page in self._stale), None)

    def reading(self, page: int) -> None:
        """It is being read as it is now: what changes from here on is doubt anew."""
        self._stale.discard(page)
        self._under_way = page

    def keep(self, page: int, rows: Sequence[Any]) -> None:
        """It has been read; the one kept for longest may go for it."""
        self._under_way = None
        self._pages[page] = rows
        self._pages.move_to_end(page)
        while len(self._pages) > _KEPT:
            self._stale.discard(self._pages.popitem(last=False)[0])
