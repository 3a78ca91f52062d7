"""A recording whose proxy ended before its recorder: readers wait, report it, and end without a
recorder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from a2a_proxy.capture import file_layout
from a2a_proxy.capture.file_layout import JournalFolder, SessionFile
from a2a_proxy.cli.unfinished import await_recorders
from a2a_proxy.model.errors import UserError
from a2a_proxy.recording.read.reader import Recording
from support_cli import SECONDS, Agent, Proxy, call, environment, program, run, until

_HELD = """
import os, sys, time
if "a2a_proxy.recorder" in sys.orig_argv:
    while os.path.exists({flag!r}):
        time.sleep(0.02)
"""


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    """While this file is there no recorder begins: `environ` has to have the folder `site` on its
    PYTHONPATH."""
    flag = tmp_path / "flag"
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(_HELD.format(flag=str(flag)))
    flag.touch()
    yield flag
    flag.unlink(missing_ok=True)


def stdio(tmp_path: Path, *words: object) -> None:
    """One run of an agent that says one line, to its end."""
    agent = (sys.executable, "-c", "print('there')")
    line = [program("a2a-proxy"), "stdio", *map(str, words), "--", *agent]
    env = environment(tmp_path / "state", PYTHONPATH=str(tmp_path / "site"))
    subprocess.run(
        line,
        env=env,
        timeout=SECONDS,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("named", [True, False], ids=["named", "newest"])
@pytest.mark.parametrize("command", ["check", "show", "ls", "export"])
def test_a_reader_waits_for_the_recorder(
    tmp_path: Path, held: Path, command: str, named: bool
) -> None:
    """The agent has ended, there is no file yet: the command says what it waits for, and sees all
    of it."""
    file = tmp_path / "r.db"
    stdio(tmp_path, *(("--record", file) if named else ()))
    assert not file.exists()
    line = [program("a2a-inspect"), command, *([str(file)] if named else [])]
    env = environment(tmp_path / "state")
    with subprocess.Popen(
        line, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stderr is not None
        first_line = reader.stderr.readline()
        assert first_line.startswith("a2a-inspect: waiting for the recorder of ")
        assert reader.poll() is None
        held.unlink()
        out, err = reader.communicate(timeout=SECONDS)
    assert reader.returncode == 0, err
    assert "still" not in out
    if named:
        with Recording(file) as stored:
            assert [session.how for session in stored.read_sessions()] == ["clean"]


def test_no_wait_reads_at_once(tmp_path: Path, held: Path) -> None:
    stdio(tmp_path, "--record", tmp_path / "r.db")
    for command in ("check", "show", "ls", "stats", "export"):
        done = run(tmp_path / "state", "a2a-inspect", command, tmp_path / "r.db", "--no-wait")
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith("a2a-inspect: error: there is no recording ")


def test_a_killed_recorder_is_not_waited_for(tmp_path: Path, held: Path) -> None:
    """The command ends with a hint, which finishes the recording; then it is read as any."""
    stdio(tmp_path, "--record", tmp_path / "r.db")
    (journal,) = (tmp_path / "state" / "journals").iterdir()
    for process in _processes(journal):
        os.kill(process, 9)
    until(lambda: not _processes(journal))
    held.unlink()
    done = run(tmp_path / "state", "a2a-inspect", "check", tmp_path / "r.db")
    assert done.code == 2
    error, hint = done.err.splitlines()
    assert error.endswith(
        f"not all of {tmp_path / 'r.db'} is recorded: its proxy and its recorder have ended"
    )
    assert hint == "a2a-inspect: hint: finish with: a2a-inspect recover"
    assert run(tmp_path / "state", "a2a-inspect", "recover").code == 0
    done = run(tmp_path / "state", "a2a-inspect", "check", tmp_path / "r.db")
    assert (done.code, done.err) == (0, "")


def _processes(journal: Path) -> list[int]:
    """Those whose command line names the journal."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.fsencode(journal) in each.read_bytes():
                found.append(int(each.parent.name))
        except OSError:
            continue
    return found


def test_readers_wait_for_the_recorder_of_a_killed_relay(
    proxy: Callable[..., Proxy], agent: Agent, tmp_path: Path
) -> None:
    """Readers do not wait while the relay runs; afterwards they wait for its recorder."""
    file = tmp_path / "r.db"
    one = proxy("-l", "127.0.0.1:0", "-u", agent.upstream, "--record", file)
    (address,) = one.addresses()
    recorder = one.recorder()
    until(lambda: file.exists())
    assert run(one.state, "a2a-inspect", "ls", file).err == ""
    os.kill(recorder, 19)
    for _ in range(5):
        call(address)
    until(
        lambda: (
            sum(each.read_bytes().count(b"HTTP/1.1 200") for each in one.state.rglob("*.a2aj")) >= 5
        )
    )
    line = [program("a2a-inspect"), "ls", str(file), "--json"]
    env = environment(one.state)
    try:
        one.process.kill()
        one.wait()
        with subprocess.Popen(
            line, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as reader:
            assert reader.stderr is not None
            assert "waiting for the recorder of " in reader.stderr.readline()
            os.kill(recorder, 18)
            out, err = reader.communicate(timeout=SECONDS)
    finally:
        os.kill(recorder, 18)
    assert reader.returncode == 0, err
    assert len(out.splitlines()) >= 4


class Scene:
    """A journal, and a clock that moves as the wait sleeps."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(file_layout.STATE_VARIABLE, str(tmp_path / "state"))
        self.file = tmp_path / "r.db"
        self.folder: JournalFolder = file_layout.create_journal(
            SessionFile(str(self.file), os.getpid(), 1, uuid="u")
        )
        self.time = 0.0
        self.on_sleep: Callable[[], object] = lambda: None

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        self.on_sleep()

    def wait(self) -> float:
        """How long it waits, seconds."""
        await_recorders(self.file, self.sleep, lambda: self.time)
        return self.time


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(tmp_path, monkeypatch)


def test_a_running_session_is_read_as_it_is(scene: Scene) -> None:
    """Once there is a recording; a reader that comes earlier waits for that."""
    scene.on_sleep = scene.file.touch
    assert 0 < scene.wait() < 1
    assert scene.wait() < 1


def test_readers_give_up_on_a_recorder_without_progress(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each step that it makes is waited for; then what there is is read."""
    lock = file_layout.lock_recorder(scene.folder.path)
    assert lock is not None
    scene.folder.release_locks()
    scene.file.touch()
    journal = scene.folder.path / "000001.a2aj"
    journal.write_bytes(bytes(2000))

    def record() -> None:
        if scene.time < 100:
            journal.write_bytes(bytes(int(2000 - 10 * scene.time)))

    scene.on_sleep = record
    assert 155 < scene.wait() < 165
    os.close(lock)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith("2.0 KiB left to record (--no-wait skips this)")
    assert 25 < len(lines) < 40
    assert "makes no progress: reading an incomplete recording" in lines[-1]


def test_without_a_recorder_there_is_nothing_to_wait_for(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error if there is no recording, else a remark."""
    scene.folder.release_locks()
    with pytest.raises(UserError, match=r"not all of .* is recorded") as caught:
        scene.wait()
    assert caught.value.hint == "finish with: a2a-inspect recover"
    scene.file.touch()
    assert scene.wait() == 0
    assert (
        capsys.readouterr().err.splitlines()[1]
        == "a2a-inspect: hint: finish with: a2a-inspect recover"
    )


def test_only_the_recorder_of_the_same_file_is_waited_for(scene: Scene, tmp_path: Path) -> None:
    """A link to the recording counts as the recording; other files are ignored."""
    scene.folder.release_locks()
    link = tmp_path / "link.db"
    link.symlink_to(scene.file)
    assert [each.path for each in file_layout.find_unfinished(link)] == [scene.folder.path]
    assert file_layout.find_unfinished(tmp_path / "other.db") == []
    await_recorders(tmp_path / "other.db")


def test_without_a_state_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is waited for, and nothing made."""
    monkeypatch.setenv(file_layout.STATE_VARIABLE, str(tmp_path / "none"))
    await_recorders(tmp_path / "r.db")
    assert not (tmp_path / "none").exists()
