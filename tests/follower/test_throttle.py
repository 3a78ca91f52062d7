"""A process whose call keeps computing is stopped most of the time; no other process is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from a2a_proxy.follower.supervisor import IDLE_SECONDS, Throttle, processor_seconds
from support_cli import until
from support_process import state_of
from support_stdio_relay import blocked

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells what a process uses, in /proc"
)
Start = Callable[[str], subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts Python code in a process of its own, which ends with the test."""
    made: list[subprocess.Popen[bytes]] = []

    def run(code: str) -> subprocess.Popen[bytes]:
        made.append(subprocess.Popen([sys.executable, "-c", code]))
        return made[-1]

    yield run
    for each in made:
        each.kill()
        each.wait()


def test_a_busy_process_runs_a_tenth_of_the_time(start: Start) -> None:
    """In turns; once released it continues and is never stopped again."""
    process = start("while True: pass")
    brake = Throttle(process, lambda: 0.1)
    now = 1.0
    until(lambda: processor_seconds(process.pid) > 1.0)
    now += brake.advance_to(now)
    until(lambda: state_of(process.pid) == "T")
    assert now == pytest.approx(1.9)
    now += brake.advance_to(now)
    until(lambda: state_of(process.pid) == "R")
    assert now == pytest.approx(2.0)
    before = processor_seconds(process.pid)
    until(lambda: processor_seconds(process.pid) > before + 0.1)
    assert brake.advance_to(now) == pytest.approx(0.9)
    until(lambda: state_of(process.pid) == "T")
    brake.release_process()
    until(lambda: state_of(process.pid) == "R")
    assert [brake.advance_to(now + wait) for wait in (1, 2, 3)] == [IDLE_SECONDS] * 3
    assert state_of(process.pid) == "R"


def test_a_waiting_process_is_not_throttled(start: Start) -> None:
    """A call that takes long and computes nothing: it may be reading an answer."""
    process = start("import time; time.sleep(1000)")
    until(lambda: blocked(process.pid))
    brake = Throttle(process, lambda: 0.1)
    for now in range(1, 10):
        assert brake.advance_to(now) == IDLE_SECONDS
        assert state_of(process.pid) == "S"


@pytest.mark.parametrize("since", [0.0, 0.8], ids=["between calls", "a short call"])
def test_a_briefly_busy_process_is_not_throttled(start: Start, since: float) -> None:
    """A hook may work as much as it likes if it returns."""
    process = start("while True: pass")
    brake = Throttle(process, lambda: since)
    until(lambda: processor_seconds(process.pid) > 1.0)
    assert brake.advance_to(1.0) == IDLE_SECONDS
    assert state_of(process.pid) == "R"


def test_steps_are_taken_only_when_due(start: Start) -> None:
    """However often it is asked."""
    process = start("while True: pass")
    brake = Throttle(process, lambda: 0.1)
    until(lambda: processor_seconds(process.pid) > 1.0)
    brake.advance_to(1.0)
    assert brake.advance_to(1.5) == pytest.approx(0.4)
    until(lambda: state_of(process.pid) == "T")


def test_an_ended_process_gets_no_signal(start: Start) -> None:
    """No signal reaches the process that has its id now."""
    process = start("")
    process.wait()
    brake = Throttle(process, lambda: 0.1)
    assert brake.advance_to(1.0) == IDLE_SECONDS
    brake.release_process()
