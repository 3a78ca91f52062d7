"""Exchanges for which an expression holds, as they are found: in a thread of its own, by windows, with progress.

While a recording grows, only the exchanges that something new was stored about are asked again. Searches belong to the
thread of the event loop; the thread of the finder hands over what it found.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import threading
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from a2a_inspect.data.changes import ChangedExchanges
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.query.errors import QueryError, SearchStopped
from a2a_proxy.recording.query.tree import Node
from a2a_proxy.recording.read.reader import Recording

_BATCH = 512
"""Ids that are handed over at once where windows find many."""
_REST = 4
"""Times that what the last look took must pass before the next, so that following never takes a whole processor."""


class Search:
    """One expression and what is found by it so far."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.keys = array("q")
        """Of the exchanges that were found, in order."""
        self.upto = 0
        """Key up to which all that hold are among those; a few that come later may be known before."""
        self.looked = 0
        """Exchanges looked at, of `total`."""
        self.total = 0
        self.done = False
        """Everything that was there has been looked at."""
        self.trouble = ""
        """Why it ended early."""
        self.behind = False
        """The recording has grown since."""
        self.cancelled = False
        self._changed: ChangedExchanges | None = None
        self._busy = True
        self._rested = 0.0

    def index(self, key: int) -> int:
        """Where the exchange of this key is, or would be."""
        return bisect_left(self.keys, key)

    def has(self, key: int) -> bool:
        """It is among those found."""
        at = self.index(key)
        return at < len(self.keys) and self.keys[at] == key

    def add(self, found: array[int]) -> None:
        """The next ones, in order; some may be known."""
        new = array("q", (key for key in found if not self.has(key)))
        if new and self.keys and new[0] < self.keys[-1]:
            self.keys = array("q", sorted((*self.keys, *new)))
        else:
            self.keys.extend(new)

    def settle(self, touched: Iterable[int], found: set[int]) -> None:
        """Of these exchanges those hold now, the others do not."""
        for key in sorted(touched):
            at = self.index(key)
            known = at < len(self.keys) and self.keys[at] == key
            if key in found and not known:
                self.keys.insert(at, key)
            elif known and key not in found:
                del self.keys[at]


class Finder:
    """Runs searches, one at a time. `told` is called on the event loop whenever one has more."""

    def __init__(self, opened: Callable[[], Recording | None], told: Callable[[Search], None]) -> None:
        self._opened = opened
        self._told = told
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="search")
        self._lock = threading.Lock()
        self._recording: Recording | None = None
        self._running: Search | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def warm(self) -> None:
        """Import what filters need and open the recording, before the first of them is typed."""
        self._thread.submit(self._warm)

    def _warm(self) -> None:
        importlib.import_module("a2a_proxy.recording.query.complete")  # and with it the fields and what reads payloads
        with contextlib.suppress(RecordingError):  # the first search will say it
            self._recording = self._recording or self._opened()

    def start(self, node: Node) -> Search:
        """Look through all of the recording."""
        search = Search(node)
        self._submit(search, self._scan)
        return search

    def grow(self, search: Search) -> None:
        """Look at what is new, unless it is being done, or was done a moment ago; then `behind` stays."""
        if search._busy or search.cancelled or time.monotonic() < search._rested:
            return
        search.behind = False
        search._busy = True
        self._submit(search, self._refresh if search._changed is not None else self._scan)

    def cancel(self, search: Search) -> None:
        """Stop at once; what was found stays."""
        search.cancelled = True
        with self._lock:
            if self._running is search and self._recording is not None:
                self._recording.db.interrupt()

    def close(self) -> None:
        """Stop everything and close the file; nothing may be started after."""
        running = self._running
        if running is not None:
            self.cancel(running)
        self._thread.submit(self._close)
        self._thread.shutdown(wait=False)

    def _submit(self, search: Search, job: Callable[[Search, Recording], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.submit(self._run, search, job)

    def _run(self, search: Search, job: Callable[[Search, Recording], None]) -> None:
        began, trouble = time.monotonic(), ""
        try:
            if self._recording is None:
                self._recording = self._opened()
            with self._lock:
                self._running = search
            if self._recording is not None and not search.cancelled:
                job(search, self._recording)
        except SearchStopped:
            pass
        except (RecordingError, QueryError) as wrong:
            trouble = "" if search.cancelled else wrong.message
        finally:
            with self._lock:
                self._running = None
        self._post(self._ended, search, trouble, time.monotonic() - began)

    def _scan(self, search: Search, recording: Recording) -> None:
        from a2a_proxy.recording.query.sql import Rows  # and with it all that filters need: when the first is used

        search._changed = ChangedExchanges(recording)
        if early := recording.queryable().early_exchanges(search.node):
            self._post(self._early, search, array("q", early))
        found = array("q")
        at = (0, 0)

        def watch(looked: int, total: int) -> bool:
            nonlocal found, at
            at = looked, total
            self._post(self._arrived, search, found, at)
            found = array("q")
            return not search.cancelled

        for key in recording.queryable().ids(search.node, Rows.EXCHANGES, watch=watch):
            found.append(key)
            if len(found) == _BATCH:
                watch(*at)
        self._post(self._arrived, search, found, at)

    def _refresh(self, search: Search, recording: Recording) -> None:
        from a2a_proxy.recording.query.sql import Rows

        assert search._changed is not None
        touched = search._changed.since(recording)
        if touched:
            found = set(recording.queryable().filter_ids(search.node, Rows.EXCHANGES, sorted(touched)))
            self._post(self._settled, search, touched, found)

    def _post(self, call: Callable[..., None], *values: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
            assert self._loop is not None
            self._loop.call_soon_threadsafe(call, *values)

    def _early(self, search: Search, found: array[int]) -> None:
        search.add(found)
        self._tell(search)

    def _arrived(self, search: Search, found: array[int], at: tuple[int, int]) -> None:
        search.add(found)
        search.upto = found[-1] if found else search.upto
        search.looked, search.total = at
        self._tell(search)

    def _settled(self, search: Search, touched: set[int], found: set[int]) -> None:
        search.settle(touched, found)
        self._tell(search)

    def _ended(self, search: Search, trouble: str, took: float) -> None:
        search._busy = False
        search._rested = time.monotonic() + _REST * took
        search.done, search.trouble = True, trouble
        self._tell(search)

    def _tell(self, search: Search) -> None:
        if not search.cancelled:
            self._told(search)

    def _close(self) -> None:
        if self._recording is not None:
            self._recording.close()
