"""Lines to a descriptor by a thread of its own: a terminal that stands still stops neither traffic nor recording.

Python's own streams would do for writing, but not for ending: their locks are waited for at exit.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable
from typing import TextIO

MAX_LINES = 10_000
"""Lines that wait for a reader who stands still; later ones are counted only."""


class Printer:
    """Writes lines in order. A reader who has gone away (`| head`) is no error: nothing more is written."""

    def __init__(self, stream: TextIO | None, dropped_note: Callable[[int], str]) -> None:
        """`stream` is None where the program was started without it; `dropped_note` words how many lines were
        dropped."""
        self._descriptor = stream.fileno() if stream is not None else -1
        self._encoding = (stream.encoding if stream is not None else "") or "utf-8"
        self._dropped_note = dropped_note
        self._lines: deque[str] = deque()
        self._dropped = 0
        self._busy = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def __call__(self, line: str) -> None:
        """Print `line` soon. Never blocks."""
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
        """Wait until everything is printed; False where `seconds` were not enough."""
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
                self._descriptor = -1  # the reader has gone; whatever comes now is taken and forgotten
