from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from a2a_proxy.capture import file_layout
from a2a_proxy.capture.file_layout import SessionFile


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(file_layout.STATE_VARIABLE, str(tmp_path / "state"))
    return tmp_path / "state"


def test_folders_are_private(state: Path) -> None:
    """The variable names the state directory; everything created in it is readable by the user only."""
    assert file_layout.state_dir() == state
    for folder in (file_layout.state_dir(), file_layout.journals_dir(), file_layout.recordings_dir()):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_without_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The platform's directory is used."""
    monkeypatch.delenv(file_layout.STATE_VARIABLE)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tmp_path in file_layout.state_dir().parents


def test_the_key_is_created_once(state: Path) -> None:
    """The key is 32 random bytes, private, and stays."""
    key = file_layout.redaction_key()
    assert len(key) == 32
    assert file_layout.redaction_key() == key
    assert (state / "redaction.key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in state.iterdir()] == ["redaction.key"]


def test_many_processes_get_one_key(state: Path) -> None:
    """Processes that start at once agree."""
    code = "from a2a_proxy.capture import file_layout; print(file_layout.redaction_key().hex())"
    command = [sys.executable, "-c", code]
    environment = {**os.environ, file_layout.STATE_VARIABLE: str(state)}
    running = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    keys = {process.communicate(timeout=120)[0].strip() for process in running}
    assert len(keys) == 1
    assert len(keys.pop()) == 64


def test_a_broken_key_is_not_replaced(state: Path) -> None:
    """A key file of another size is an error: labels made with a new one would not match."""
    file_layout.state_dir()
    (state / "redaction.key").write_bytes(b"short")
    with pytest.raises(ValueError, match=r"redaction\.key"):
        file_layout.redaction_key()


def test_leftovers_are_journals_without_a_holder() -> None:
    """A journal belongs to its relay until that lets go, or dies; then it is left over, oldest first."""
    later = file_layout.create_journal(SessionFile("/tmp/b.db", os.getpid(), 2_000_000_000))
    first = file_layout.create_journal(SessionFile("/tmp/a.db", os.getpid(), 1_000_000_000))
    assert file_layout.is_held(first.path)
    assert first.path.stat().st_mode & 0o777 == 0o700
    assert file_layout.find_leftovers() == []
    later.release_locks()
    first.release_locks()
    found = file_layout.find_leftovers()
    assert [leftover.session.recording for leftover in found] == ["/tmp/a.db", "/tmp/b.db"]
    assert found[0].path == first.path


def test_a_killed_relay_leaves_its_journal() -> None:
    """The hold ends with the process, however that ends."""
    script = (
        "import os, signal;"
        "from a2a_proxy.capture.file_layout import SessionFile, create_journal;"
        "folder = create_journal(SessionFile('/tmp/a.db', os.getpid(), 1));"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script], check=False, timeout=120)
    (leftover,) = file_layout.find_leftovers()
    assert leftover.session.recording == "/tmp/a.db"


def test_foreign_folders_are_ignored() -> None:
    """A folder without a readable `session.json` is no journal."""
    (file_layout.journals_dir() / "x").mkdir()
    (file_layout.journals_dir() / "y").mkdir()
    (file_layout.journals_dir() / "y" / "session.json").write_text("{")
    (file_layout.journals_dir() / "file").write_text("")
    assert file_layout.find_leftovers() == []


def test_a_journal_with_a_live_recorder_is_no_leftover(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorder finishes it; `recover` is needed only if both processes are dead."""
    monkeypatch.setenv(file_layout.STATE_VARIABLE, str(tmp_path))
    folder = file_layout.create_journal(file_layout.SessionFile("r.db", 1, 1))
    folder.release_locks()
    lock = file_layout.lock_recorder(folder.path)
    assert lock is not None
    assert file_layout.find_leftovers() == []
    assert file_layout.lock_recorder(folder.path) is None
    os.close(lock)
    assert [left.path for left in file_layout.find_leftovers()] == [folder.path]


def test_a_journal_that_is_being_deleted_is_no_leftover(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path))
    folder = file_layout.create_journal(file_layout.SessionFile("r.db", 1, 1))
    folder.release_locks()
    (found,) = file_layout.find_leftovers()
    meanwhile: list[list[file_layout.Leftover]] = []
    monkeypatch.setattr(file_layout.shutil, "rmtree", lambda *_, **__: meanwhile.append(file_layout.find_leftovers()))
    file_layout.delete_journal(found.path)
    assert meanwhile == [[]]


def test_an_inherited_lock_holds_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recorder that inherited it: the relay may go."""
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path))
    folder = file_layout.create_journal(file_layout.SessionFile("r.db", 1, 1))
    copy = os.dup(folder.lock)
    folder.release_locks()
    assert file_layout.find_leftovers() == []
    os.close(copy)
    assert len(file_layout.find_leftovers()) == 1
