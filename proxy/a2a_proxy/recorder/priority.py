"""The recorder gives way to the relay, and to everything else, until the relay has gone; hooks give way to both."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

NICE = 10
"""A tenth of the processor time of a busy process. With the recorder at equal priority HTTP/1.1 throughput fell by a
third."""
_LAST = 19
"""The lowest there is."""
_EXPENDABLE = Path("/proc/self/oom_score_adj")
_AUTOGROUP = Path("/proc/self/autogroup")
_TRIES, _PAUSE_SECONDS = 50, 0.02


def give_way() -> None:
    """Lower the priority of this process, which leads a session of its own.

    Linux shares processor time out among sessions first (sched(7), "The autogroup feature"): there the nice value of
    a process that is alone in its session changes nothing, that of its session does.
    """
    os.nice(NICE)
    _set_session(NICE)


def give_way_to_all() -> None:
    """For a process that nobody waits for and that may compute for ever: it gets what all others leave, the recorder
    too. It leads a session of its own, and is the first to go where memory runs out."""
    os.nice(_LAST)
    if hasattr(os, "SCHED_IDLE"):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    _set_session(_LAST)
    with contextlib.suppress(OSError):
        _EXPENDABLE.write_text("1000")


def give_way_no_more() -> None:
    """The relay has gone, and somebody may wait for the recording, or for a hook. A session's nice value can be taken
    back; what the process itself has given up cannot."""
    _set_session(0)


def let_hurry(process: int) -> None:
    """Somebody waits for this process, which leads a session of its own: the same, done from outside, for it may not
    get the processor soon enough to do it."""
    _set_session(0, Path(f"/proc/{process}/autogroup"))


def _set_session(nice: int, group: Path = _AUTOGROUP) -> None:
    for _ in range(_TRIES):
        try:
            group.write_text(str(nice))
        except BlockingIOError:  # the kernel takes ten such changes a second, of all users together
            time.sleep(_PAUSE_SECONDS)
        except OSError:
            return  # no Linux, or one that does not group
        else:
            return
