"""Whether the recorder keeps up, or does no more than be late for a moment. Pure."""

from __future__ import annotations

MAX_LAG_BYTES = 4 << 20
"""Bytes that the recorder may be behind for a moment."""
STUCK_SECONDS = 10.0
"""Seconds for which it may be behind by more, or by anything without getting on."""


class RecorderLag:
    """What was seen of the recorder until now."""

    def __init__(self, now: float) -> None:
        """`now`: seconds of any clock that only goes on."""
        self._last_near = self._last_moved = now
        self._position: object = None

    def describe_lag(self, lag: int, position: object, now: float) -> str:
        """How it does not keep up, in words; empty where it does. `position`: how far it has come in the journal."""
        if lag <= MAX_LAG_BYTES:
            self._last_near = now
        if not lag or position != self._position:
            self._last_moved, self._position = now, position
        if now - self._last_near > STUCK_SECONDS:
            return f"the recorder is {lag} bytes behind"
        if now - self._last_moved > STUCK_SECONDS:
            return f"the recorder does not get on, {lag} bytes behind"
        return ""
