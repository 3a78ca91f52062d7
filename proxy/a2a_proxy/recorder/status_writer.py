"""Writes status lines without waiting for the reader, because a blocked terminal must not stop the
recording.

Lines wait in the memory of the recorder: a burst of calls is printed as a whole, a moment later if
need be.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable

import msgspec

from a2a_proxy.model.values import Severity
from a2a_proxy.recorder import status
from a2a_proxy.recorder.status import (
    FindingStatus,
    Line,
    LinesSkipped,
    RecorderDone,
    RecorderFailed,
    RecorderProgress,
    RecorderReady,
    Status,
)

SendStatus = Callable[[Status, int], bool]
"""Sends a message at a time, ns. Returns whether no message waits any more."""

BURST_LINES = 5_000
"""Lines of exchanges, and of findings, that are printed as a whole if they come at once."""
_MAX_LINES_PER_SECOND = 200
"""Lines after such a burst: more than a person can read."""
_WRITTEN_PER_SECOND = 1_000
"""Lines written to the pipe: printing one takes about 20 us of processor time from the relay."""
_WRITTEN_AT_ONCE = 100
"""Lines written at once after a pause."""
_MAX_QUEUED_BYTES = 16 << 20
"""Bytes that wait for a reader; more lines are only counted."""
_SECOND = 1_000_000_000


class StatusWriter:
    """The writing end of the status pipe (`descriptor` < 0: no reader)."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._queue: deque[_QueuedMessage] = deque()
        self._queued_bytes = 0
        self._unwritten = b""
        """The rest of a message that the pipe took in part."""
        self._skipped_count = 0
        self._limit = _LineLimit()
        self._allowance = float(_WRITTEN_AT_ONCE)
        """Lines that may be written now."""
        self._allowed_at = 0
        if descriptor >= 0:
            os.set_blocking(descriptor, False)

    def __call__(self, message: Status, at: int) -> bool:
        """Send a message at `at` (ns), or count it as skipped if it is one line too many.

        Progress is sent before the messages that wait in memory, all others after them. The
        messages that begin and end the work of a recorder are sent at once, and the waiting ones
        before them.

        Returns whether no message waits any more; otherwise the next call sends more of them.
        """
        if self._descriptor < 0:
            return True
        if isinstance(message, RecorderReady | RecorderFailed | RecorderDone):
            self._enqueue(message)
            self._write_all()
            return True
        if isinstance(message, RecorderProgress):
            is_sent = self._write_now(message)
            self._write_queued(at)
            return is_sent and not self._is_waiting
        if self._queued_bytes < _MAX_QUEUED_BYTES and (
            not isinstance(message, Line) or self._limit.admits_line(message, at)
        ):
            self._enqueue(message)
        elif isinstance(message, Line):
            self._skipped_count += 1
        self._write_queued(at)
        return not self._is_waiting

    @property
    def _is_waiting(self) -> bool:
        return bool(self._queue or self._unwritten)

    def _enqueue(self, message: Status) -> None:
        if self._skipped_count and not isinstance(message, Line):
            skipped, self._skipped_count = LinesSkipped(self._skipped_count), 0
            self._enqueue(skipped)
        data = _encode_line(message)
        self._queue.append(_QueuedMessage(data, isinstance(message, Line)))
        self._queued_bytes += len(data)

    def _write_now(self, message: RecorderProgress) -> bool:
        """Write a message before those that wait. Return False if the pipe is full."""
        if self._unwritten and not self._write_rest():
            return False
        self._unwritten = _encode_line(message)
        return self._write_rest() or self._descriptor < 0

    def _write_queued(self, at: int) -> None:
        """Write the messages that wait, as many as the pipe takes, and not too many lines at
        once."""
        self._allowance += max(at - self._allowed_at, 0) / _SECOND * _WRITTEN_PER_SECOND
        self._allowance = min(self._allowance, _WRITTEN_AT_ONCE)
        self._allowed_at = at
        while not self._unwritten or self._write_rest():
            if not self._queue or (self._queue[0].is_line and self._allowance < 1):
                return
            self._allowance -= self._queue[0].is_line
            self._take_next()

    def _write_all(self) -> None:
        """Write all messages that wait; wait for the pipe if needed."""
        os.set_blocking(self._descriptor, True)
        while self._unwritten or self._queue:
            if not self._unwritten:
                self._take_next()
            self._write_rest()
        if self._descriptor >= 0:
            os.set_blocking(self._descriptor, False)

    def _take_next(self) -> None:
        self._unwritten = self._queue.popleft().data
        self._queued_bytes -= len(self._unwritten)

    def _write_rest(self) -> bool:
        """Write the message that was begun. Return whether it is written to its end."""
        try:
            self._unwritten = self._unwritten[os.write(self._descriptor, self._unwritten) :]
        except BlockingIOError:
            return False
        except OSError:  # the relay has exited
            self._descriptor, self._unwritten = -1, b""
            self._queue.clear()
        return not self._unwritten


class _QueuedMessage(msgspec.Struct, frozen=True):
    """A message that waits."""

    data: bytes
    is_line: bool


def _encode_line(message: Status) -> bytes:
    return status.encode(message) + b"\n"


class _LineLimit:
    """Admits a burst of lines, and after it a number of them per second.

    Findings have a limit of their own beside exchanges, and each finding counts only those of the
    same or a higher severity: findings of lower severity never suppress a finding.
    """

    def __init__(self) -> None:
        self._exchanges = _LeakyCount()
        self._findings = {severity: _LeakyCount() for severity in Severity}

    def admits_line(self, message: Line, at: int) -> bool:
        """Return whether the line is within the limit at `at`, ns; if so, it is counted."""
        if not isinstance(message, FindingStatus):
            counts = [self._exchanges]
        else:
            severity = message.finding.severity
            counts = [count for each, count in self._findings.items() if each <= severity]
        for count in counts:
            count.leak(at)
        if counts[-1].lines >= BURST_LINES:
            return False
        for count in counts:
            count.lines += 1
        return True


class _LeakyCount:
    """A count of lines that shrinks with time."""

    def __init__(self) -> None:
        self.lines = 0.0
        self._at = 0

    def leak(self, at: int) -> None:
        """Subtract what may be printed in the time since the last call, ns."""
        self.lines = max(self.lines - (at - self._at) / _SECOND * _MAX_LINES_PER_SECOND, 0.0)
        self._at = at
