"""`a2a-inspect` with a log of its redraws and of the pauses of its event loop.

Called with a recording and a file. Each redraw writes a line: the time, the cursor of the focused
list, the length of that list, whether the row under the cursor has been read. Each pause writes a
line: its beginning, its length by the clock, and the processor time of the loop's thread in it,
which is less if other processes used the processor. Times are those of `time.monotonic`, in
seconds.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any, TextIO

from textual.drivers.linux_driver import LinuxDriver

from a2a_inspect import app
from a2a_inspect.widgets.lazy_list import LazyList

_LOOK = 0.005
_WORTH = 0.02
"""Seconds: a shorter pause is not logged."""


class _Driver(LinuxDriver):
    """The terminal, which reports each redraw."""

    def write(self, data: str) -> None:
        """Draw."""
        super().write(data)
        if isinstance(self._app, Watched) and self._app.is_running:
            self._app.painted()


class Watched(app.InspectApp):
    """The application with the log."""

    told: TextIO
    """Path of the log."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.driver_class = _Driver

    def on_mount(self) -> None:
        """Start the log."""
        self._watch = asyncio.create_task(self._look())

    def painted(self) -> None:
        """Log the state of the screen."""
        rows = self.focused if self.screen_stack else None
        if isinstance(rows, LazyList):
            read = int(rows.current_row is not None)
            print(
                "paint", time.monotonic(), rows.cursor, rows.total, read, file=self.told, flush=True
            )

    async def _look(self) -> None:
        while True:
            began, had = time.monotonic(), time.thread_time()
            await asyncio.sleep(_LOOK)
            took = time.monotonic() - began - _LOOK
            if took > _WORTH:
                print("pause", began, took, time.thread_time() - had, file=self.told, flush=True)


if __name__ == "__main__":
    app.InspectApp = Watched  # type: ignore[misc]
    with open(sys.argv[2], "w") as Watched.told:
        app.run_app(Path(sys.argv[1]))
