"""Throttles a process whose call computes without end to a tenth of the processor time.

The lowest priority is not enough: two processors shown by a system are often one with two sets of
registers, and a process on one of them takes a quarter of the other's speed at any priority.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

IDLE_SECONDS = 0.25
"""Seconds between two checks of a process that runs unthrottled."""
_LONG_CALL_SECONDS = 0.5
"""Seconds a call may take before it is checked; nearly all return sooner, however much they
compute."""
_RUN_SECONDS, _REST_SECONDS = 0.1, 0.9
"""Seconds for which a throttled process alternately runs and is stopped."""
_MIN_BUSY_SHARE = 0.5
"""Processors in use between two checks that make a process a computing one; a call that waits is
not throttled."""


class Throttle:
    """Throttles one process started by the caller.

    Used by up to two threads: one calls `advance_to`, one `release_process`.
    """

    def __init__(self, process: subprocess.Popen[bytes], since: Callable[[], float]) -> None:
        """`since` returns the start of the current call, seconds of the monotonic clock; 0 if no
        call is running."""
        self._process = process
        self._call_start = since
        self._lock = threading.Lock()
        self._released = False
        self._stopped = False
        self._last_usage = (0.0, processor_seconds(process.pid))
        self._due = 0.0

    def advance_to(self, now: float) -> float:
        """Do what is due at `now`, seconds of the monotonic clock; return the seconds until the
        next step."""
        with self._lock:
            if now >= self._due and not self._released:
                self._due = now + self._switch_process(now)
            return IDLE_SECONDS if self._released else max(self._due - now, 0.0)

    def release_process(self) -> None:
        """Resume the process and stop throttling it, because a caller waits for it."""
        with self._lock:
            self._released = True
            self._resume_process()

    def _switch_process(self, now: float) -> float:
        if self._stopped:
            self._resume_process()
            self._last_usage = now, processor_seconds(self._process.pid)
            return _RUN_SECONDS
        (at, before), spent = self._last_usage, processor_seconds(self._process.pid)
        self._last_usage = now, spent
        since = self._call_start()
        if (
            since
            and now - since > _LONG_CALL_SECONDS
            and spent - before >= _MIN_BUSY_SHARE * (now - at)
        ):
            self._process.send_signal(signal.SIGSTOP)
            self._stopped = True
            return _REST_SECONDS
        return IDLE_SECONDS

    def _resume_process(self) -> None:
        if self._stopped:
            self._process.send_signal(signal.SIGCONT)
            self._stopped = False


def processor_seconds(process: int) -> float:
    """Return its processor time so far; 0 if it has ended or the system does not report it (then it
    is not throttled)."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
