"""The scheduling priority of a real recorder process."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from a2a_proxy.recorder.priority import NICE
from support_observer import scripted, unary
from support_recorder import Bench, wait_until

GROUPS = Path("/proc/sys/kernel/sched_autogroup_enabled")


def test_a_recorder_keeps_its_own_nice_value(bench: Callable[..., Bench]) -> None:
    """A process cannot undo a nice value without privileges, so only that of its session
    changes."""
    at_work = bench()
    at_work.start()
    assert os.getpriority(os.PRIO_PROCESS, at_work.supervisor.pid) == os.getpriority(
        os.PRIO_PROCESS, 0
    )
    at_work.end()
    at_work.finish()


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux groups processes by session"
)
@pytest.mark.skipif(
    not GROUPS.exists() or GROUPS.read_text().strip() != "1", reason="this kernel does not group"
)
def test_the_session_of_a_recorder_has_a_low_priority(bench: Callable[..., Bench]) -> None:
    """A nice value counts only within the session of the recorder, so the session has a low
    priority too, until the relay has ended: then the user waits for the recording."""
    at_work = bench()
    at_work.start()
    wait_until(lambda: nice_of_session(at_work.supervisor.pid) == NICE)
    with contextlib.closing(sqlite3.connect(at_work.recording, isolation_level=None)) as db:
        # So that it cannot end, and tries again and again.
        full = "SELECT RAISE(ABORT, 'database or disk is full')"
        db.execute(f"CREATE TRIGGER f BEFORE INSERT ON exchange BEGIN {full}; END")
        at_work.write(scripted(unary()))
        at_work.end()
        wait_until(lambda: nice_of_session(at_work.supervisor.pid) == 0)
        db.execute("DROP TRIGGER f")
    at_work.finish()


def nice_of_session(process: int) -> int:
    """As the kernel has it."""
    return int(Path(f"/proc/{process}/autogroup").read_text().split()[-1])
