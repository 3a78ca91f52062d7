"""The clock of the relay: the only source of timestamps."""

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""ns since the Unix epoch, never decreasing."""


def session_clock() -> Clock:
    """Return a clock set once from the system time. It follows the monotonic clock, so a corrected
    system clock never turns it back."""
    offset = time.time_ns() - time.monotonic_ns()
    monotonic = time.monotonic_ns
    return lambda: offset + monotonic()
