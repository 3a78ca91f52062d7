"""Priorities: the recorder yields to the relay and to all other processes until the relay has exited; hooks yield to
both."""

from __future__ import annotations

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


def lower_priority() -> None:
    """Lower the priority of this process, which leads a session of its own, for good.

    Linux divides processor time among sessions first (sched(7), "The autogroup feature"): there the nice value of a
    process that is alone in its session has no effect, while the nice value of its session does.
    """
    os.nice(NICE)
    _set_session_nice(NICE)


@functools.cache
def has_session_priority() -> bool:
    """Whether the system divides processor time among sessions: then `set_session_nice` has an effect."""
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

    For a process that no user waits for and that may compute without end. It leads a session of its own, and is killed
    first when memory runs out.
    """
    os.nice(_LOWEST_NICE)
    if hasattr(os, "SCHED_IDLE"):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    _set_session_nice(_LOWEST_NICE)
    with contextlib.suppress(OSError):
        _OOM_SCORE_FILE.write_text("1000")


def restore_priority() -> None:
    """Restore the priority of the session, because a user may wait; that of the process cannot be restored."""
    _set_session_nice(0)


def restore_priority_of(process: int) -> None:
    """Restore the priority of another process that leads a session of its own, because a caller waits for it.

    Done from outside, because the process itself may not get the processor soon enough.
    """
    _set_session_nice(0, Path(f"/proc/{process}/autogroup"))


def _set_session_nice(nice: int, group: Path = _AUTOGROUP_FILE) -> None:
    for _ in range(_MAX_TRIES):
        try:
            group.write_text(str(nice))
        except BlockingIOError:  # the kernel accepts ten such changes a second, of all users together
            time.sleep(_PAUSE_SECONDS)
        except OSError:
            return  # not Linux, or a kernel without autogroups
        else:
            return
