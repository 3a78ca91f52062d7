"""Search for exchanges that match an expression: in a thread of its own, by windows, with progress.

While a recording grows, only changed exchanges are searched again. `ExchangeSearch` objects belong
to the event loop's thread; the finder's thread hands its matches over to it.
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

_IDS_PER_BATCH = 512
"""Ids handed over at once when a window has many matches."""
_PAUSE_FACTOR = 4
"""Pause between two searches of a growing recording, as a multiple of the last search's duration,
so that following never uses a whole processor.
"""


class ExchangeSearch:
    """One expression and its matches so far."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.keys = array("q")
        """Keys of the matching exchanges, in order."""
        self.searched_until = 0
        """Key up to which all matches are known; some later matches may be known too."""
        self.examined = 0
        """Number of examined exchanges, of `total`."""
        self.total = 0
        self.is_done = False
        """Whether all exchanges that existed have been examined."""
        self.error = ""
        """Reason why the search ended early."""
        self.is_stale = False
        """Whether the recording has grown since."""
        self.is_cancelled = False
        self._changes: ChangedExchanges | None = None
        self._is_running = True
        self._next_refresh = 0.0

    def find_index(self, key: int) -> int:
        """Return the index of this key, or where it would be inserted."""
        return bisect_left(self.keys, key)

    def is_match(self, key: int) -> bool:
        """Return whether this exchange matches."""
        at = self.find_index(key)
        return at < len(self.keys) and self.keys[at] == key

    def add_matches(self, matches: array[int]) -> None:
        """Add the next matches, in order; some may be known already."""
        new = array("q", (key for key in matches if not self.is_match(key)))
        if new and self.keys and new[0] < self.keys[-1]:
            self.keys = array("q", sorted((*self.keys, *new)))
        else:
            self.keys.extend(new)

    def update_matches(self, changed: Iterable[int], matches: set[int]) -> None:
        """Replace the results for the changed exchanges: those in `matches` match now, the others
        do not."""
        for key in sorted(changed):
            at = self.find_index(key)
            is_known = at < len(self.keys) and self.keys[at] == key
            if key in matches and not is_known:
                self.keys.insert(at, key)
            elif is_known and key not in matches:
                del self.keys[at]


class Finder:
    """Runs searches, one at a time. Calls `listener` on the event loop whenever a search has
    news."""

    def __init__(
        self,
        open_recording: Callable[[], Recording | None],
        listener: Callable[[ExchangeSearch], None],
    ) -> None:
        self._open_recording = open_recording
        self._listener = listener
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="search")
        self._lock = threading.Lock()
        self._recording: Recording | None = None
        self._running: ExchangeSearch | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def start_preload(self) -> None:
        """Import the modules that filters need and open the recording, before the first filter is
        typed."""
        self._thread.submit(self._preload_modules)

    def _preload_modules(self) -> None:
        importlib.import_module(
            "a2a_proxy.recording.query.complete"
        )  # also imports the fields and the payload decoders
        with contextlib.suppress(RecordingError):  # the first search reports the error
            self._recording = self._recording or self._open_recording()

    def start(self, node: Node) -> ExchangeSearch:
        """Start a search of the whole recording."""
        search = ExchangeSearch(node)
        self._submit_search(search, self._scan_recording)
        return search

    def continue_search(self, search: ExchangeSearch) -> None:
        """Search new and changed exchanges, unless a search is running or ended a moment ago; then
        `is_stale` remains set.
        """
        if search._is_running or search.is_cancelled or time.monotonic() < search._next_refresh:
            return
        search.is_stale = False
        search._is_running = True
        self._submit_search(
            search, self._refresh_search if search._changes is not None else self._scan_recording
        )

    def cancel(self, search: ExchangeSearch) -> None:
        """Stop the search at once; its matches are kept."""
        search.is_cancelled = True
        with self._lock:
            if self._running is search and self._recording is not None:
                self._recording.db.interrupt()

    def close(self) -> None:
        """Stop all searches and close the file. No search may be started afterwards."""
        running = self._running
        if running is not None:
            self.cancel(running)
        self._thread.submit(self._close_recording)
        self._thread.shutdown(wait=False)

    def _submit_search(
        self, search: ExchangeSearch, job: Callable[[ExchangeSearch, Recording], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.submit(self._run_search, search, job)

    def _run_search(
        self, search: ExchangeSearch, job: Callable[[ExchangeSearch, Recording], None]
    ) -> None:
        began, trouble = time.monotonic(), ""
        try:
            if self._recording is None:
                self._recording = self._open_recording()
            with self._lock:
                self._running = search
            if self._recording is not None and not search.is_cancelled:
                job(search, self._recording)
        except SearchStopped:
            pass
        except (RecordingError, QueryError) as wrong:
            trouble = "" if search.is_cancelled else wrong.message
        finally:
            with self._lock:
                self._running = None
        self._call_on_loop(self._finish_search, search, trouble, time.monotonic() - began)

    def _scan_recording(self, search: ExchangeSearch, recording: Recording) -> None:
        from a2a_proxy.recording.query.sql import (
            Rows,
        )  # imports everything filters need, on first use

        search._changes = ChangedExchanges(recording)
        if early := recording.get_queryable().early_exchanges(search.node):
            self._call_on_loop(self._add_early_matches, search, array("q", early))
        found = array("q")
        at = (0, 0)

        def watch(looked: int, total: int) -> bool:
            nonlocal found, at
            at = looked, total
            self._call_on_loop(self._add_window_matches, search, found, at)
            found = array("q")
            return not search.is_cancelled

        for key in recording.get_queryable().select_ids(search.node, Rows.EXCHANGES, watch=watch):
            found.append(key)
            if len(found) == _IDS_PER_BATCH:
                watch(*at)
        self._call_on_loop(self._add_window_matches, search, found, at)

    def _refresh_search(self, search: ExchangeSearch, recording: Recording) -> None:
        from a2a_proxy.recording.query.sql import Rows

        assert search._changes is not None
        touched = search._changes.pop_changed_keys(recording)
        if touched:
            found = set(
                recording.get_queryable().filter_ids(search.node, Rows.EXCHANGES, sorted(touched))
            )
            self._call_on_loop(self._update_matches, search, touched, found)

    def _call_on_loop(self, call: Callable[..., None], *values: object) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop was closed meanwhile
            assert self._loop is not None
            self._loop.call_soon_threadsafe(call, *values)

    def _add_early_matches(self, search: ExchangeSearch, matches: array[int]) -> None:
        search.add_matches(matches)
        self._notify_listener(search)

    def _add_window_matches(
        self, search: ExchangeSearch, matches: array[int], progress: tuple[int, int]
    ) -> None:
        search.add_matches(matches)
        search.searched_until = matches[-1] if matches else search.searched_until
        search.examined, search.total = progress
        self._notify_listener(search)

    def _update_matches(self, search: ExchangeSearch, changed: set[int], matches: set[int]) -> None:
        search.update_matches(changed, matches)
        self._notify_listener(search)

    def _finish_search(self, search: ExchangeSearch, error: str, seconds: float) -> None:
        search._is_running = False
        search._next_refresh = time.monotonic() + _PAUSE_FACTOR * seconds
        search.is_done, search.error = True, error
        self._notify_listener(search)

    def _notify_listener(self, search: ExchangeSearch) -> None:
        if not search.is_cancelled:
            self._listener(search)

    def _close_recording(self) -> None:
        if self._recording is not None:
            self._recording.close()
