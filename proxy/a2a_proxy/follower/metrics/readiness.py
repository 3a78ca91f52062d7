"""Decides whether the recorder keeps up or is late only for a moment. Pure."""

from __future__ import annotations

MAX_LAG_BYTES = 4 << 20
"""Bytes that the recorder may be behind for a moment."""
STUCK_SECONDS = 10.0
"""Seconds for which it may be behind by more, or by any number of bytes without progress."""


class RecorderLag:
    """The recorder's lag over time."""

    def __init__(self, now: float) -> None:
        """`now`: seconds of a clock that never goes back."""
        self._last_near = self._last_moved = now
        self._position: object = None

    def describe_lag(self, lag: int, position: object, now: float) -> str:
        """Return why the recorder does not keep up, or an empty string. `position` is its position in the journal."""
        if lag <= MAX_LAG_BYTES:
            self._last_near = now
        if not lag or position != self._position:
            self._last_moved, self._position = now, position
        if now - self._last_near > STUCK_SECONDS:
            return f"the recorder is {lag} bytes behind"
        if now - self._last_moved > STUCK_SECONDS:
            return f"the recorder makes no progress, {lag} bytes behind"
        return ""
