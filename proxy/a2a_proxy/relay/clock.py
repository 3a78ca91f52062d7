"""The one place where the relay asks for the time."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""ns since the Unix epoch, never decreasing."""


def session_clock() -> Clock:
    """A clock set once: it follows the monotonic one, so that a corrected system clock never turns time back."""
    offset = time.time_ns() - time.monotonic_ns()
    monotonic = time.monotonic_ns
    return lambda: offset + monotonic()
