"""Whether the recorder keeps up, or does no more than be late for a moment. Pure."""

from __future__ import annotations

MUCH = 4 << 20
"""Octets that the recorder may be behind for a moment."""
STUCK = 10.0
"""Seconds for which it may be behind by more, or by anything without getting on."""


class RecorderLag:
    """What was seen of the recorder until now."""

    def __init__(self, now: float) -> None:
        """`now`: seconds of any clock that only goes on."""
        self._near = self._moved = now
        self._position: object = None

    def late(self, behind: int, position: object, now: float) -> str:
        """How it does not keep up, in words; empty where it does. `position`: how far it has come in the journal."""
        if behind <= MUCH:
            self._near = now
        if not behind or position != self._position:
            self._moved, self._position = now, position
        if now - self._near > STUCK:
            return f"the recorder is {behind} octets behind"
        if now - self._moved > STUCK:
            return f"the recorder does not get on, {behind} octets behind"
        return ""
