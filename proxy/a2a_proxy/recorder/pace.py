"""The processor time that the recorder leaves to the relay: less, the further it is behind.

A recorder at equal priority costs HTTP/1.1 a third of its throughput; one that always yields falls minutes behind on a
busy machine. So it yields while it keeps up, or while the relay forwards more than any recorder could decode.
"""

from __future__ import annotations

from a2a_proxy.recorder.priority import NICE

_INTERVAL = 250_000_000
"""ns between two decisions. The kernel accepts ten changes of a session's nice value a second, of all users in all."""
_SECOND = 1_000_000_000
_STEPS = ((_SECOND // 2, NICE), (_SECOND, NICE // 2))
"""Nice values for a lag below so many ns; 0 for more. A recorder that can keep up is never two seconds behind."""
_OVERLOAD_STEPS = ((30 * _SECOND, NICE), (60 * _SECOND, NICE // 2))
"""The same while the relay forwards more than the recorder can decode."""
_MAX_PAUSE = 50_000_000


class Pace:
    """Decides from the progress of the recorder how far it yields."""

    def __init__(self) -> None:
        self.nice = 0
        """The nice value: from `NICE` (yield) to 0 (equal priority, as until the first decision)."""
        self._decided_at = 0
        self._captured = 0
        self._rate = 0.0
        """Bytes decoded per ns of processor time."""

    def note_work(self, decoded: int, work: int) -> None:
        """Note that `decoded` bytes of the journal took `work` ns of processor time."""
        if work > 0:
            self._rate += (decoded / work - self._rate) * (0.2 if self._rate else 1)

    def is_due(self, now: int) -> bool:
        """Whether it is time for a decision; `now` in ns."""
        return now - self._decided_at >= _INTERVAL

    def decide(self, now: int, captured: int, lag: int) -> None:
        """Decide again.

        `captured`: bytes that the relay has written to the journal; `lag`: time from the last decoded record to `now`,
        ns, or 0 if all records are decoded.
        """
        growth = (captured - self._captured) / (now - self._decided_at) if self._decided_at else 0.0
        self._decided_at, self._captured = now, captured
        steps = _OVERLOAD_STEPS if 0 < self._rate < growth else _STEPS
        self.nice = next((nice for limit, nice in steps if lag < limit), 0)

    def pause_after(self, work: int) -> int:
        """Return the pause after `work` ns of decoding, ns, for systems where no nice value can be set."""
        return min(work * self.nice // NICE, _MAX_PAUSE)
