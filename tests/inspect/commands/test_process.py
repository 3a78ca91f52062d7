"""`show` lists the process of a stdio agent with its calls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from a2a_inspect.commands.show import show_conversation
from a2a_inspect.commands.show_selection import ShowSelection
from a2a_proxy.recording.read.reader import Recording
from support_pipe import Stdio
from support_rules import record


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """An agent that logs, writes a banner, and dies."""
    session = (
        Stdio().log(b"ready\n").read(b"Welcome!\n").call("GetTask", {"id": "t-1"}).exit(3).closed()
    )
    record(tmp_path / "r.db", session.session())
    return tmp_path / "r.db"


def test_process_lines_are_shown(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Log, stray output and exit with their times; only where everything is shown."""
    with Recording(recording) as opened:
        show_conversation(opened, ShowSelection(), as_json=False)
        lines = capsys.readouterr().out.splitlines()
        show_conversation(opened, ShowSelection(words=("1",)), as_json=False)
    at = lines.index("  process 456  python agent.py --stdio  agent exited with code 3")
    assert [line.partition(" <-- ")[2] for line in lines[at + 1 :]] == [
        "log ready",
        'outside any message: "Welcome!"',
        "agent closes its side",
        "agent exited with code 3",
    ]
    assert "process 456" not in capsys.readouterr().out


def test_process_records_are_in_json(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One object a process, after the calls."""
    with Recording(recording) as opened:
        show_conversation(opened, ShowSelection(), as_json=True)
    process = json.loads(capsys.readouterr().out.splitlines()[-1])["agent_process"]
    assert (process["command"], process["how"]) == (
        "python agent.py --stdio",
        "agent exited with code 3",
    )
    assert [(each["kind"], each["note"]) for each in process["frames"]] == [
        ("log", ""),
        ("other", "outside any message"),
        ("control", "eof"),
        ("control", "exit"),
    ]
    assert process["frames"][0]["text"] == "ready"
