"""Holds back a process whose call computes on and on: it gets a tenth of the time.

The lowest priority is not enough. What a system shows as two processors is often one with two sets of registers, and
whatever runs on the one takes a quarter of the other's speed, at any priority.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

IDLE_SECONDS = 0.25
"""Seconds between two looks at a process that runs freely."""
_LONG_CALL_SECONDS = 0.5
"""Seconds that a call may take before it is looked at: nearly all return sooner, however much they compute."""
_RUN_SECONDS, _REST_SECONDS = 0.1, 0.9
"""Seconds for which it goes on and is stopped, in turns."""
_MIN_BUSY_SHARE = 0.5
"""Processors in use, over one look, that make it one that computes; a call that waits for something is let alone."""


class Throttle:
    """For one process, which the caller has started. Two threads may use it: one takes the steps, one releases."""

    def __init__(self, process: subprocess.Popen[bytes], since: Callable[[], float]) -> None:
        """`since` tells when the call that is being made began, s of the monotonic clock; 0: none is."""
        self._process = process
        self._call_start = since
        self._lock = threading.Lock()
        self._released = False
        self._stopped = False
        self._last_usage = (0.0, processor_seconds(process.pid))
        self._due = 0.0

    def step(self, now: float) -> float:
        """Do what is due at `now`, s of the monotonic clock; seconds until the next step is."""
        with self._lock:
            if now >= self._due and not self._released:
                self._due = now + self._switch(now)
            return IDLE_SECONDS if self._released else max(self._due - now, 0.0)

    def release(self) -> None:
        """It goes on, from now on at its own speed: somebody waits for it."""
        with self._lock:
            self._released = True
            self._resume()

    def _switch(self, now: float) -> float:
        if self._stopped:
            self._resume()
            self._last_usage = now, processor_seconds(self._process.pid)
            return _RUN_SECONDS
        (at, before), spent = self._last_usage, processor_seconds(self._process.pid)
        self._last_usage = now, spent
        since = self._call_start()
        if since and now - since > _LONG_CALL_SECONDS and spent - before >= _MIN_BUSY_SHARE * (now - at):
            self._process.send_signal(signal.SIGSTOP)
            self._stopped = True
            return _REST_SECONDS
        return IDLE_SECONDS

    def _resume(self) -> None:
        if self._stopped:
            self._process.send_signal(signal.SIGCONT)
            self._stopped = False


def processor_seconds(process: int) -> float:
    """What it has used until now; 0 where it has ended, or the system does not tell: then nothing is held back."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
