"""The recorder gives way to the relay, and to everything else, until the relay has gone; hooks give way to both."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

NICE = 10
"""A tenth of the processor time of a busy process. With the recorder at equal priority HTTP/1.1 throughput fell by a
third."""
_LOWEST_NICE = 19
"""The lowest there is."""
_OOM_SCORE_FILE = Path("/proc/self/oom_score_adj")
_AUTOGROUP_FILE = Path("/proc/self/autogroup")
_MAX_TRIES, _PAUSE_SECONDS = 50, 0.02


def lower_priority() -> None:
    """Lower the priority of this process, which leads a session of its own.

    Linux shares processor time out among sessions first (sched(7), "The autogroup feature"): there the nice value of
    a process that is alone in its session changes nothing, that of its session does.
    """
    os.nice(NICE)
    _set_session_nice(NICE)


def set_idle_priority() -> None:
    """For a process that nobody waits for and that may compute for ever: it gets what all others leave, the recorder
    too. It leads a session of its own, and is the first to go where memory runs out."""
    os.nice(_LOWEST_NICE)
    if hasattr(os, "SCHED_IDLE"):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    _set_session_nice(_LOWEST_NICE)
    with contextlib.suppress(OSError):
        _OOM_SCORE_FILE.write_text("1000")


def restore_priority() -> None:
    """The relay has gone, and somebody may wait for the recording, or for a hook. A session's nice value can be taken
    back; what the process itself has given up cannot."""
    _set_session_nice(0)


def restore_priority_of(process: int) -> None:
    """Somebody waits for this process, which leads a session of its own: the same, done from outside, for it may not
    get the processor soon enough to do it."""
    _set_session_nice(0, Path(f"/proc/{process}/autogroup"))


def _set_session_nice(nice: int, group: Path = _AUTOGROUP_FILE) -> None:
    for _ in range(_MAX_TRIES):
        try:
            group.write_text(str(nice))
        except BlockingIOError:  # the kernel takes ten such changes a second, of all users together
            time.sleep(_PAUSE_SECONDS)
        except OSError:
            return  # no Linux, or one that does not group
        else:
            return
