"""Writes status lines without waiting for the reader, because a blocked terminal must not stop the recording."""

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

SendStatus = Callable[[Status, int], bool]
"""Sends a message at a time, ns. Returns whether the message was sent."""

_MAX_LINES_PER_SECOND = 200
"""More lines than a person can read; printing more would take processor time from the relay. Findings have a limit of
their own next to exchanges, and each finding counts only those of the same or a higher severity."""


class StatusWriter:
    """The writing end of the status pipe (`descriptor` < 0: no reader)."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._unwritten = b""
        self._skipped_count = 0
        self._window_start = 0
        self._exchange_count = 0
        self._finding_counts: Counter[Severity] = Counter()
        if descriptor >= 0:
            os.set_blocking(descriptor, False)

    def __call__(self, message: Status, at: int) -> bool:
        """Send a message at `at` (ns), or count it as skipped if there are too many or the pipe is full.

        Returns whether the message was sent, or has no reader any more.
        """
        line = isinstance(message, ExchangeStatus | FindingStatus | GapClosedStatus)
        if isinstance(message, ExchangeStatus | FindingStatus | GapClosedStatus) and not self._is_within_rate(
            message, at
        ):
            self._skipped_count += 1
            return False
        if self._skipped_count and not line and self._write_message(LinesSkipped(self._skipped_count)):
            self._skipped_count = 0
        if self._write_message(message):
            return True
        if line:
            self._skipped_count += 1
        elif isinstance(message, RecorderReady | RecorderFailed | RecorderDone):
            self._write_blocking(message)
            return True
        return False

    def _is_within_rate(self, message: ExchangeStatus | FindingStatus | GapClosedStatus, at: int) -> bool:
        """Whether the limit of this second is not reached; findings of lower severity never suppress a finding."""
        if at - self._window_start > 1_000_000_000:
            self._window_start, self._exchange_count = at, 0
            self._finding_counts.clear()
        if not isinstance(message, FindingStatus):
            self._exchange_count += 1
            return self._exchange_count <= _MAX_LINES_PER_SECOND
        severity = message.finding.severity
        self._finding_counts[severity] += 1
        return sum(count for each, count in self._finding_counts.items() if each >= severity) <= _MAX_LINES_PER_SECOND

    def _write_message(self, message: Status) -> bool:
        if self._descriptor < 0:
            return True
        if self._unwritten and not self._write_line(b""):
            return False
        return self._write_line(status.encode(message) + b"\n")

    def _write_line(self, line: bytes) -> bool:
        """Write a whole line or nothing; a half-written one is completed before the next."""
        data = self._unwritten + line
        try:
            done = os.write(self._descriptor, data)
        except BlockingIOError:
            return False
        except OSError:
            self._descriptor = -1  # the relay has exited
            return True
        self._unwritten = data[done:]
        return True

    def _write_blocking(self, message: Status) -> None:
        """Write one of the three messages that a caller waits for, waiting for the pipe if needed."""
        if self._descriptor >= 0:
            os.set_blocking(self._descriptor, True)
            self._write_line(status.encode(message) + b"\n")
            os.set_blocking(self._descriptor, False)
