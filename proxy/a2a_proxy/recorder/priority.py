"""The recorder gives way to the relay, and to everything else, until the relay has gone."""

from __future__ import annotations

import os
import time
from pathlib import Path

NICE = 10
"""A tenth of the processor time of a busy process. With the recorder at equal priority HTTP/1.1 throughput fell by a
third."""
_AUTOGROUP = Path("/proc/self/autogroup")
_TRIES, _PAUSE_SECONDS = 50, 0.02


def give_way() -> None:
    """Lower the priority of this process, which leads a session of its own.

    Linux shares processor time out among sessions first (sched(7), "The autogroup feature"): there the nice value of
    a process that is alone in its session changes nothing, that of its session does.
    """
    os.nice(NICE)
    _set_session(NICE)


def give_way_no_more() -> None:
    """The relay has gone, and somebody may wait for the recording. A session's nice value can be taken back."""
    _set_session(0)


def _set_session(nice: int) -> None:
    for _ in range(_TRIES):
        try:
            _AUTOGROUP.write_text(str(nice))
        except BlockingIOError:  # the kernel takes ten such changes a second, of all users together
            time.sleep(_PAUSE_SECONDS)
        except OSError:
            return  # no Linux, or one that does not group
        else:
            return
