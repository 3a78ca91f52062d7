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
    """The variable names the state directory; everything created in it is readable by the user
    only."""
    assert file_layout.state_dir() == state
    for folder in (
        file_layout.state_dir(),
        file_layout.journals_dir(),
        file_layout.recordings_dir(),
    ):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_without_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The platform's directory is used."""
    monkeypatch.delenv(file_layout.STATE_VARIABLE)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tmp_path in file_layout.state_dir().parents


@pytest.mark.parametrize("home", ["", "~/.local/state"])
def test_a_user_without_a_home_directory(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever way platformdirs says so: looking something up finds nothing, and writing is an
    error."""

    def find(_name: str) -> str:
        if not home:
            raise RuntimeError("could not determine the home directory")
        return home

    monkeypatch.delenv(file_layout.STATE_VARIABLE)
    monkeypatch.setattr(file_layout, "user_state_dir", find)
    assert file_layout.find_unfinished() == file_layout.find_journals("u") == []
    assert file_layout.remembered_recording() is None
    with pytest.raises(FileNotFoundError, match="no home directory"):
        file_layout.state_dir()


def test_parents_are_private_whatever_the_umask(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(file_layout.STATE_VARIABLE, str(state / "local" / "a2a"))
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    before = os.umask(0)
    try:
        file_layout.remember_recording(state / "r.db")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (state, *state.rglob("*"))}
    assert modes == {"state": 0o700, "local": 0o700, "a2a": 0o700, "last-recording": 0o600}


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
    running = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
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
    """A journal belongs to its relay until that lets go, or dies; then it is left over, oldest
    first."""
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


def test_leftovers_are_found_among_journals_in_use() -> None:
    folders = [
        file_layout.create_journal(SessionFile("/tmp/a.db", os.getpid(), second))
        for second in range(1, 9)
    ]
    for folder in folders[::2]:
        folder.release_locks()
    assert {left.path for left in file_layout.find_leftovers()} == {
        folder.path for folder in folders[::2]
    }


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


def test_a_journal_with_a_live_recorder_is_no_leftover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_journal_that_is_being_deleted_is_no_leftover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path))
    folder = file_layout.create_journal(file_layout.SessionFile("r.db", 1, 1))
    folder.release_locks()
    (found,) = file_layout.find_leftovers()
    meanwhile: list[list[file_layout.Leftover]] = []
    monkeypatch.setattr(
        file_layout.shutil,
        "rmtree",
        lambda *_, **__: meanwhile.append(file_layout.find_leftovers()),
    )
    file_layout.delete_journal(found.path)
    assert meanwhile == [[]]


def test_an_inherited_lock_holds_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recorder that inherited it: the relay may go."""
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path))
    folder = file_layout.create_journal(file_layout.SessionFile("r.db", 1, 1))
    copy = os.dup(folder.lock)
    folder.release_locks()
    assert file_layout.find_leftovers() == []
    os.close(copy)
    assert len(file_layout.find_leftovers()) == 1


def session(recording: Path | str, started: int = 1, uuid: str = "") -> SessionFile:
    return SessionFile(str(recording), os.getpid(), started, uuid)


def test_folders_of_hooks_and_spans_are_private(state: Path) -> None:
    assert (file_layout.hooks_dir(), file_layout.otlp_dir()) == (state / "hooks", state / "otlp")
    for folder in (file_layout.hooks_dir(), file_layout.otlp_dir()):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_key_that_another_process_created_first_is_kept(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = file_layout.redaction_key()
    monkeypatch.setattr(Path, "exists", lambda _: False)
    assert file_layout.redaction_key() == key
    assert [path.name for path in state.iterdir()] == ["redaction.key"]


def test_unfinished_sessions_are_those_of_a_recording_and_say_who_is_at_work(
    state: Path, tmp_path: Path
) -> None:
    assert file_layout.find_unfinished() == []
    one = file_layout.create_journal(session(tmp_path / "one.db", uuid="u1"))
    two = file_layout.create_journal(session(tmp_path / "two.db", uuid="u2"))
    (tmp_path / "link.db").symlink_to(tmp_path / "one.db")
    (file_layout.journals_dir() / "foreign").mkdir()
    assert {each.path for each in file_layout.find_unfinished()} == {one.path, two.path}
    assert file_layout.sessions_with_journal() == {"u1", "u2"}

    def state_of_one() -> tuple[bool, bool]:
        (found,) = file_layout.find_unfinished(tmp_path / "link.db")
        assert (found.path, found.session.uuid) == (one.path, "u1")
        return found.proxy_lives, found.is_at_work

    assert state_of_one() == (True, True)
    recorder = os.dup(one.lock)
    one.release_locks()
    assert state_of_one() == (False, True)
    os.close(recorder)
    assert state_of_one() == (False, False)
    lock = file_layout.lock_recorder(one.path)
    assert lock is not None
    assert state_of_one() == (False, True)
    os.close(lock)
    file_layout.delete_journal(one.path)
    assert file_layout.find_unfinished(tmp_path / "one.db") == []
    assert not one.path.exists()


@pytest.mark.parametrize(
    "deleted", [["lock"], ["session.json"], ["lock", "session.json", "proxy.lock"]]
)
def test_deleted_files_of_a_live_journal_are_made_again(tmp_path: Path, deleted: list[str]) -> None:
    folder = file_layout.create_journal(session(tmp_path / "r.db"))
    assert not folder.restore_files(session(tmp_path / "other.db"))
    for name in deleted:
        (folder.path / name).unlink()
    assert folder.restore_files(session(tmp_path / "r.db", uuid="again"))
    (found,) = file_layout.find_unfinished()
    assert (found.proxy_lives, found.is_at_work, found.session.uuid) == (True, True, "again")
    assert (folder.path / "session.json").stat().st_mode & 0o777 == 0o600
    folder.release_locks()
    folder.release_locks()
    assert len(file_layout.find_leftovers()) == 1


def test_a_recorder_waits_while_another_process_tests_its_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = file_layout.create_journal(session(tmp_path / "r.db"))
    held = [file_layout.lock_recorder(folder.path)]
    pauses: list[float] = []

    def wait(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 4:
            os.close(held.pop() or -1)

    monkeypatch.setattr(file_layout.time, "sleep", wait)
    lock = file_layout.lock_recorder(folder.path)
    assert lock is not None
    assert len(pauses) == 4
    assert file_layout.lock_recorder(folder.path) is None
    assert len(pauses) == 9
    assert 0 < sum(pauses) < 1
    os.close(lock)


def test_a_session_file_keeps_names_that_are_not_utf_8(tmp_path: Path) -> None:
    name = os.fsdecode(b"/tmp/caf\xe9.db")
    folder = file_layout.create_journal(SessionFile(name, 1, 2, command=("a2a-proxy", name)))
    found = file_layout.read_session(folder.path)
    assert found == SessionFile(name, 1, 2, command=("a2a-proxy", name))
    folder.release_locks()


def test_the_last_recording_elsewhere_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless a test made it, or it was deleted since."""
    monkeypatch.setenv(file_layout.STATE_VARIABLE, str(tmp_path / "state"))
    recording = tmp_path / "r.db"
    recording.touch()
    file_layout.remember_recording(recording)
    assert file_layout.remembered_recording() is None
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    file_layout.remember_recording(recording)
    assert file_layout.remembered_recording() == recording
    recording.unlink()
    assert file_layout.remembered_recording() is None
