"""Selection of the recording that a command uses."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from a2a_inspect.data.recording_choice import open_recording
from a2a_proxy.capture import file_layout
from support_cli import run_here
from support_inspect import changes, exchange, request, sample, writer
from support_recording import STARTED

HINT = "copy r.db, r.db-wal and r.db-shm together, or end the proxy before you copy it"


@pytest.mark.parametrize(("is_terminal", "is_named"), [(True, False), (True, True), (False, False)])
def test_a_terminal_shows_which_recording_was_chosen(
    *,
    is_terminal: bool,
    is_named: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Only if the user did not name it; the output of a pipe stays as it is."""
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path))
    folder = file_layout.recordings_dir()
    folder.mkdir(parents=True, exist_ok=True)
    path = sample(folder / "run.a2a.db")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    with open_recording(path if is_named else None):
        pass
    assert capsys.readouterr().err == (
        f"recording: {path}\n" if is_terminal and not is_named else ""
    )


@pytest.mark.parametrize("command", ["check", "ls", "show", "stats"])
def test_a_recording_copied_without_its_log_has_no_session(tmp_path: Path, command: str) -> None:
    """All that was recorded is in the log: an error with its own exit code, and what to copy."""
    made = writer(tmp_path / "r.db")
    made.write([request(1)], changes=changes(exchange(1)))
    (tmp_path / "copy").mkdir()
    shutil.copy(tmp_path / "r.db", tmp_path / "copy")
    done = run_here(tmp_path / "state", command, tmp_path / "copy" / "r.db")
    assert (done.code, done.out) == (3, "")
    assert "r.db is not a whole recording: it has no session" in done.err
    assert HINT in done.err
    shutil.copy(tmp_path / "r.db-wal", tmp_path / "copy")
    assert (
        "not a whole recording"
        not in run_here(tmp_path / "state", command, tmp_path / "copy" / "r.db").err
    )
    made.finish(STARTED)


@pytest.mark.parametrize(("command", "code"), [("check", 3), ("ls", 0), ("show", 0)])
def test_a_recording_without_an_end_and_without_a_log_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, code: int
) -> None:
    """What is there is shown. Nothing is said of copies if a recorder works on it, or `recover`
    will end it."""
    path = tmp_path / "r.db"
    made = writer(path)
    made.write([request(1)], changes=changes(exchange(1)))
    made.close()
    done = run_here(tmp_path / "state", command, path)
    assert done.code == code
    assert "r.db is not a whole recording: a session has no end" in done.err
    assert HINT in done.err
    assert done.out
    monkeypatch.setenv(file_layout.STATE_VARIABLE, str(tmp_path / "state"))
    journal = file_layout.create_journal(
        file_layout.SessionFile(str(path), os.getpid(), STARTED, uuid="u")
    )
    assert HINT not in run_here(tmp_path / "state", command, path).err
    journal.release_locks()
    abandoned = run_here(tmp_path / "state", command, path)
    assert "hint: finish with: a2a-inspect recover" in abandoned.err
    assert HINT not in abandoned.err
