"""What a real recorder process asks of the kernel's scheduler."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from a2a_proxy.recorder.priority import NICE
from support_recorder import Bench

GROUPS = Path("/proc/sys/kernel/sched_autogroup_enabled")


def test_a_recorder_gives_way(bench: Callable[..., Bench]) -> None:
    """Its priority is lower than that of whoever started it."""
    at_work = bench()
    at_work.start()
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, at_work.keeper.pid) == min(mine + NICE, 19)
    at_work.end()
    at_work.finish()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux groups processes by session")
@pytest.mark.skipif(not GROUPS.exists() or GROUPS.read_text().strip() != "1", reason="this kernel does not group")
def test_its_session_gives_way_too(bench: Callable[..., Bench]) -> None:
    """A nice value alone counts within the recorder's own session only, where nobody else is."""
    at_work = bench()
    at_work.start()
    assert Path(f"/proc/{at_work.keeper.pid}/autogroup").read_text().split()[-2:] == ["nice", str(NICE)]
    at_work.end()
    at_work.finish()
