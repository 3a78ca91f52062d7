"""Priorities: the recorder yields to the relay, less the further it is behind; hooks yield to
both."""

import contextlib
import functools
import os
import time
from pathlib import Path

NICE = 10
"""A tenth of the processor time of a busy process."""
_LOWEST_NICE = 19
"""The lowest priority."""
_OOM_SCORE_FILE = Path("/proc/self/oom_score_adj")
_AUTOGROUP_FILE = Path("/proc/self/autogroup")
_AUTOGROUP_SWITCH = Path("/proc/sys/kernel/sched_autogroup_enabled")
_MAX_TRIES, _PAUSE_SECONDS = 50, 0.02
_DECISION_INTERVAL = 250_000_000
"""ns between two decisions. The kernel accepts ten changes of a session's nice value a second, of
all users in all."""
_SECOND = 1_000_000_000
_STEPS = ((_SECOND // 2, NICE), (_SECOND, NICE // 2))
"""Nice values for a lag below so many ns; 0 for more. A recorder that can keep up is never two
seconds behind."""
_OVERLOAD_STEPS = ((30 * _SECOND, NICE), (60 * _SECOND, NICE // 2))
"""The same while the relay forwards more than the recorder can decode."""
_MAX_PAUSE = 50_000_000


def lower_priority() -> None:
    """Lower the priority of this process, which leads a session of its own, for good.

    Linux divides processor time among sessions first (sched(7), "The autogroup feature"): there the
    nice value of a process that is alone in its session has no effect, while the nice value of its
    session does.
    """
    os.nice(NICE)
    _set_session_nice(NICE)


@functools.cache
def has_session_priority() -> bool:
    """Whether the system divides processor time among sessions: then `set_session_nice` has an
    effect."""
    try:
        return _AUTOGROUP_SWITCH.read_text().strip() == "1"
    except OSError:
        return False


def set_session_nice(nice: int) -> bool:
    """Set the nice value of this process's session, which needs no privilege and can be undone.

    Returns whether the system accepted it.
    """
    try:
        _AUTOGROUP_FILE.write_text(str(nice))
    except OSError:
        return False
    return True


def set_idle_priority() -> None:
    """Give this process only the processor time that all others leave, including the recorder.

    For a process that no user waits for and that may compute without end. It leads a session of its
    own, and is killed first when memory runs out.
    """
    os.nice(_LOWEST_NICE)
    if hasattr(os, "SCHED_IDLE"):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    _set_session_nice(_LOWEST_NICE)
    with contextlib.suppress(OSError):
        _OOM_SCORE_FILE.write_text("1000")


def restore_priority() -> None:
    """Restore the priority of the session, because a user may wait; that of the process cannot be
    restored."""
    _set_session_nice(0)


def restore_priority_of(process: int) -> None:
    """Restore the priority of another process that leads a session of its own, because a caller
    waits for it.

    Done from outside, because the process itself may not get the processor soon enough.
    """
    _set_session_nice(0, Path(f"/proc/{process}/autogroup"))


def _set_session_nice(nice: int, group: Path = _AUTOGROUP_FILE) -> None:
    for _ in range(_MAX_TRIES):
        try:
            group.write_text(str(nice))
        except (
            BlockingIOError
        ):  # the kernel accepts ten such changes a second, of all users together
            time.sleep(_PAUSE_SECONDS)
        except OSError:
            return  # not Linux, or a kernel without autogroups
        else:
            return


class Pace:
    """Decides from the progress of the recorder how far it yields to the relay.

    A recorder at equal priority costs HTTP/1.1 a third of its throughput; one that always yields
    falls minutes behind on a busy machine. So it yields while it keeps up, or while the relay
    forwards more than any recorder could decode.
    """

    def __init__(self) -> None:
        self.nice = 0
        """The nice value: from `NICE` (yield) to 0 (equal priority, as until the first
        decision)."""
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
        return now - self._decided_at >= _DECISION_INTERVAL

    def decide(self, now: int, captured: int, lag: int, unread: int = 0) -> None:
        """Decide again.

        `captured`: bytes that the relay has written to the journal, `unread` of them not decoded;
        `lag`: time from the last decoded record to `now`, ns, or 0 if all records are decoded.
        """
        growth = (captured - self._captured) / (now - self._decided_at) if self._decided_at else 0.0
        self._decided_at, self._captured = now, captured
        if 0 < self._rate < growth:
            steps = _OVERLOAD_STEPS
        else:  # the traffic is over, or slow: what is left will take at least this long
            steps, lag = _STEPS, max(lag, int(unread / self._rate) if self._rate else 0)
        self.nice = next((nice for limit, nice in steps if lag < limit), 0)

    def pause_after(self, work: int) -> int:
        """Return the pause after `work` ns of decoding, ns, for systems where no nice value can be
        set."""
        return min(work * self.nice // NICE, _MAX_PAUSE)
