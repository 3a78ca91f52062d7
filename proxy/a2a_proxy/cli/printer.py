"""Lines written to a descriptor by a thread of their own: a stopped terminal stops neither traffic nor recording.

Python's own streams would suffice for writing, but not at exit, which waits for their locks.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable
from typing import TextIO

MAX_LINES = 10_000
"""Lines that wait for a stopped reader; further ones are only counted."""


class Printer:
    """Writes lines in order. If the reader has gone (`| head`), nothing more is written and no error is raised."""

    def __init__(self, stream: TextIO | None, dropped_note: Callable[[int], str]) -> None:
        """Create the printer. `stream` is None if the program was started without it; `dropped_note` returns the text
        for a number of dropped lines."""
        self._descriptor = stream.fileno() if stream is not None else -1
        self._encoding = (stream.encoding if stream is not None else "") or "utf-8"
        self._dropped_note = dropped_note
        self._lines: deque[str] = deque()
        self._dropped = 0
        self._busy = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def __call__(self, line: str) -> None:
        """Queue `line` for printing. Never blocks."""
        with self._changed:
            if len(self._lines) >= MAX_LINES:
                self._dropped += 1
                return
            self._lines.append(line)
            if self._thread is None:
                self._thread = threading.Thread(target=self._print_queued, name="printer", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, seconds: float) -> bool:
        """Wait until everything is printed. Return False if `seconds` were not enough."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._lines and not self._busy, seconds)

    def _print_queued(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._lines)
                lines, self._busy = list(self._lines), True
                self._lines.clear()
                if self._dropped:
                    lines.append(self._dropped_note(self._dropped))
                    self._dropped = 0
            self._write_data("".join(line + "\n" for line in lines).encode(self._encoding, "backslashreplace"))

    def _write_data(self, data: bytes) -> None:
        while data and self._descriptor >= 0:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                select.select([], [self._descriptor], [])
            except OSError:
                self._descriptor = -1  # the reader has gone: later lines are discarded
