"""Write status lines without ever waiting for the reader: a terminal that stands still must not stop the recording."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable

from a2a_proxy.model.finding import Severity
from a2a_proxy.recorder import status
from a2a_proxy.recorder.status import (
    ExchangeStatus,
    FindingStatus,
    GapClosedStatus,
    LinesSkipped,
    RecorderDone,
    RecorderFailed,
    RecorderReady,
    Status,
)

Say = Callable[[Status, int], None]
"""Says it now, ns."""

_LINES_A_SECOND = 200
"""More lines than a person reads; printing more would take processor time from the relay. As many of findings beside
those of exchanges, and a finding counts only those that are as grave or graver."""


class StatusWriter:
    """The writing end of the status pipe (`descriptor` < 0: nobody listens)."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""
        self._skipped = 0
        self._window = 0
        self._exchanges = 0
        self._findings: Counter[Severity] = Counter()
        if descriptor >= 0:
            os.set_blocking(descriptor, False)

    def __call__(self, message: Status, at: int) -> None:
        """Say it now (`at` ns), or count it as skipped where there are too many or the pipe is full."""
        line = isinstance(message, ExchangeStatus | FindingStatus | GapClosedStatus)
        if isinstance(message, ExchangeStatus | FindingStatus | GapClosedStatus) and not self._may(message, at):
            self._skipped += 1
            return
        if self._skipped and not line and self._put(LinesSkipped(self._skipped)):
            self._skipped = 0
        if self._put(message):
            return
        if line:
            self._skipped += 1
        elif isinstance(message, RecorderReady | RecorderFailed | RecorderDone):
            self._wait(message)

    def _may(self, message: ExchangeStatus | FindingStatus | GapClosedStatus, at: int) -> bool:
        """Not yet too many of its kind in this second; what is less grave keeps no finding from being said."""
        if at - self._window > 1_000_000_000:
            self._window, self._exchanges = at, 0
            self._findings.clear()
        if not isinstance(message, FindingStatus):
            self._exchanges += 1
            return self._exchanges <= _LINES_A_SECOND
        severity = message.finding.severity
        self._findings[severity] += 1
        return sum(count for each, count in self._findings.items() if each >= severity) <= _LINES_A_SECOND

    def _put(self, message: Status) -> bool:
        if self._descriptor < 0:
            return True
        if self._rest and not self._write(b""):
            return False
        return self._write(status.encode(message) + b"\n")

    def _write(self, line: bytes) -> bool:
        """Hand `line` over whole or not at all; a half-written one is finished before the next."""
        data = self._rest + line
        try:
            done = os.write(self._descriptor, data)
        except BlockingIOError:
            return False
        except OSError:
            self._descriptor = -1  # the relay is gone; there is nobody to tell
            return True
        self._rest = data[done:]
        return True

    def _wait(self, message: Status) -> None:
        """The three lines that somebody waits for may wait for the pipe."""
        if self._descriptor >= 0:
            os.set_blocking(self._descriptor, True)
            self._write(status.encode(message) + b"\n")
            os.set_blocking(self._descriptor, False)


def before_ready(say: Say, do: Callable[[], None]) -> Say:
    """Says the same, and does this once, just before the first `Ready`."""
    done = False

    def said(message: Status, at: int) -> None:
        nonlocal done
        if isinstance(message, RecorderReady) and not done:
            done = True
            do()
        say(message, at)

    return said
