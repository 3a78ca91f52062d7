"""The screen ends when its terminal is closed, although the kernel sends SIGCONT with SIGHUP."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.drivers._writer_thread import MAX_QUEUED_WRITES, WriterThread
from textual.drivers.linux_driver import LinuxDriver

from a2a_inspect.app import InspectApp, TerminalDriver
from a2a_inspect.data.source import RecordingSource

_HANDLED = (signal.SIGTSTP, signal.SIGCONT)


@pytest.fixture
async def driver() -> AsyncIterator[TerminalDriver]:
    """A driver at a terminal that is closed: its writer thread has ended with the first write."""
    before = [signal.getsignal(number) for number in _HANDLED]
    made = TerminalDriver(App())
    for number, handler in zip(_HANDLED, before, strict=True):
        signal.signal(number, handler)
    master, slave = pty.openpty()
    with contextlib.suppress(OSError), os.fdopen(slave, "w") as file:
        os.close(master)
        made._writer_thread = WriterThread(file)
        yield made


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_writes_and_close_return_when_the_terminal_is_gone(driver: TerminalDriver) -> None:
    writer = driver._writer_thread
    assert writer is not None
    writer.start()
    driver.write("x")
    writer.join()
    for _ in range(MAX_QUEUED_WRITES + 1):
        driver.write("x")
    driver.close()


async def test_only_a_suspended_driver_resumes(
    driver: TerminalDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise SIGCONT would start a second writer thread and a second thread that reads keys."""
    calls: list[str] = []

    def record(name: str) -> Any:
        return lambda _driver: calls.append(name)

    for name in ("suspend_application_mode", "resume_application_mode"):
        monkeypatch.setattr(LinuxDriver, name, record(name))
    driver.resume_application_mode()
    assert calls == []
    driver.suspend_application_mode()
    driver.resume_application_mode()
    driver.resume_application_mode()
    assert calls == ["suspend_application_mode", "resume_application_mode"]


def test_the_screen_uses_this_driver(tmp_path: Path) -> None:
    assert InspectApp(RecordingSource(tmp_path / "r.db")).driver_class is TerminalDriver
