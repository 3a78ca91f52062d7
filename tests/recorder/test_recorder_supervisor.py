"""The supervisor: status messages it forwards, and recorders that cannot start."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_proxy.capture.record_format import segment_path
from a2a_proxy.recorder import recorder_supervisor as module
from a2a_proxy.recorder import status
from a2a_proxy.recorder.recorder_supervisor import RecorderSupervisor
from a2a_proxy.recorder.status import RecorderFailed, RecorderProgress, RecorderReady, Status


def test_a_folder_without_a_journal_is_reported(tmp_path: Path) -> None:
    """The first status goes to the caller waiting in `start` only."""
    heard: list[Status] = []
    supervisor = RecorderSupervisor(tmp_path, heard.append)
    answer = supervisor.start(120)
    assert isinstance(answer, RecorderFailed)
    assert "holds no journal" in answer.message
    assert supervisor.drain_journal(120)
    assert heard == []


def test_a_recorder_that_cannot_start_is_tried_three_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three tries, then its last words."""
    broken = ["sh", "-c", "echo it is broken >&2; exit 3"]
    monkeypatch.setattr(module, "_recorder_command", lambda *_, **__: broken)
    supervisor = RecorderSupervisor(tmp_path, print, pauses=(0.001,))
    answer = supervisor.start(120)
    assert answer == RecorderFailed(
        "the recorder does not start: it is broken", "report this as a bug of a2a-proxy"
    )
    assert supervisor.restarts == 2


def test_a_recorder_yields_unless_it_is_waited_for_or_much_is_unrecorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine a recorder that yields would exceed the time that the user waits for it,
    and one that died again and again would never record anything."""
    asked: list[bool] = []

    def command(*_: object, urgent: bool) -> list[str]:
        asked.append(urgent)
        return ["sh", "-c", "exit 3"]

    monkeypatch.setattr(module, "_recorder_command", command)
    backlog = tmp_path / "backlog"
    backlog.mkdir()
    with segment_path(backlog, 1).open("wb") as file:
        file.truncate(20 << 20)
    for folder, begin in (
        (tmp_path, RecorderSupervisor.start),
        (tmp_path, RecorderSupervisor.launch_process),
        (backlog, RecorderSupervisor.launch_process),
    ):
        supervisor = RecorderSupervisor(folder, print, pauses=(0.001,))
        begin(supervisor, 120)
        assert supervisor.drain_journal(120)
    assert asked == [True] * 3 + [False] * 3 + [True] * 3
    supervisor = RecorderSupervisor(backlog, print, pauses=(0.001,))
    supervisor.progress = RecorderProgress(1, 10 << 20)
    supervisor.launch_process(120)
    assert supervisor.drain_journal(120)
    assert asked[9:] == [False] * 3


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    """The folder is gone: no thread dies of it, and `start` returns."""
    supervisor = RecorderSupervisor(tmp_path / "gone", print, pauses=(0.001,))
    assert isinstance(supervisor.start(120), RecorderFailed)
    assert supervisor.drain_journal(120)


def test_a_launch_does_not_wait_for_the_first_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for its answer, which this one never gives; and not where there can be no process."""
    monkeypatch.setattr(module, "_recorder_command", lambda *_, **__: ["sleep", "1000"])
    supervisor = RecorderSupervisor(tmp_path, print)
    pids: list[int] = []
    assert isinstance(supervisor.start(0.1, lambda: pids.append(supervisor.pid)), RecorderFailed)
    assert all(pids)
    assert len(pids) == 1
    supervisor = RecorderSupervisor(tmp_path, print)
    supervisor.launch_process(120)
    assert supervisor.pid
    assert not supervisor.drain_journal(0)
    supervisor.kill()
    assert supervisor.drain_journal(120)
    gone = RecorderSupervisor(tmp_path / "gone", print, pauses=(0.001,))
    gone.launch_process(120)
    assert not gone.pid


def test_repeated_failures_are_reported_once(tmp_path: Path) -> None:
    """Until a recorder was ready again."""
    heard: list[Status] = []
    supervisor = RecorderSupervisor(tmp_path, heard.append)
    locked = RecorderFailed("locked", permanent=False)
    for said in (
        RecorderReady("r", 1),
        locked,
        locked,
        RecorderReady("r", 1),
        locked,
        RecorderFailed("other", permanent=False),
    ):
        supervisor._handle_line(status.encode(said) + b"\n")
    supervisor._handle_line(b'{"type":"prog')
    assert [type(each).__name__ for each in heard] == [
        "RecorderReady",
        "RecorderFailed",
        "RecorderReady",
        "RecorderFailed",
        "RecorderFailed",
    ]
    assert supervisor.outcome is None
