"""Full, slow, hung and read-only disks, and files deleted while recording: traffic continues, the
user is warned."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import support_cli
from a2a_proxy.model.wire import ChunkKind, Direction
from a2a_proxy.recording.read.reader import Recording
from support_cli import Agent, Proxy, call, recorder_of, run, until, until_dead
from support_environments import fill, obeying, small_disk
from support_journal import read_all
from support_kills import kill

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="finds the recorder in /proc"
)
Start = Callable[..., Proxy]


@pytest.fixture
def agent() -> Iterator[Agent]:
    with support_cli.agent() as one:
        yield one


@pytest.fixture
def start(tmp_path: Path, agent: Agent) -> Iterator[Start]:
    """Start proxies that end with the test."""
    made: list[Proxy] = []

    def begin(
        *words: object,
        record: Path | None = None,
        log_format: str = "json",
        before: list[str] | None = None,
        **environ: str,
    ) -> Proxy:
        file = record or tmp_path / "r.db"
        fixed = (
            "-l",
            "127.0.0.1:0",
            "-u",
            agent.upstream,
            "--record",
            file,
            "--log-format",
            log_format,
        )
        made.append(Proxy(tmp_path, *fixed, *words, before=before or [], **environ))
        return made[-1]

    yield begin
    for each in made:
        if recorder := recorder_of(each.process.pid) if each.process.poll() is None else 0:
            kill(recorder)
        each.process.kill()
        each.process.wait()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    with small_disk(tmp_path / "small") as folder:
        yield folder


def calls(recording: Path) -> int:
    """Return the number of calls recorded as answered."""
    with Recording(recording) as stored:
        return sum(row.exchange.how == "complete" for row in stored.read_exchanges())


def test_the_journal_has_a_cap(start: Start) -> None:
    """At `--journal-max` traffic continues without capture, and the user is warned; then new
    connections are captured again."""
    one = start("--journal-max", "64K", "--journal-segment", "16K")
    (address,) = one.addresses()
    recorder = one.recorder()
    os.kill(recorder, signal.SIGSTOP)
    for _ in range(150):
        assert "result" in call(address)
    until(
        lambda: (
            "the capture is incomplete, traffic is still relayed: "
            "the journal cannot be written: it has reached" in one.out
        )
    )
    assert "allow more: --journal-max SIZE" in one.out
    os.kill(recorder, signal.SIGCONT)
    until(lambda: "new connections are captured again" in one.out)
    call(address, "GetTask")
    assert one.stop() == 0
    with Recording(one.folder / "r.db") as stored:
        assert [row.exchange.operation for row in stored.read_exchanges()][-1] == "GetTask"
        assert (
            stored.read_sessions()[0]
            .complete.partition(" ")[2]
            .startswith("bytes were not captured; connection ")
        )
    assert '"complete": false' in one.out.splitlines()[-1]


def test_the_journal_is_on_a_full_disk(start: Start, small: Path) -> None:
    """No client notices; the console reports the start and the end."""
    one = start("--journal-segment", "64K", A2A_PROXY_STATE=str(small))
    (address,) = one.addresses()
    call(address)
    fill(small)
    call_until(one, address, "the journal cannot be written: the disk is almost full")
    (small / "filler").unlink()
    until(lambda: "new connections are captured again" in one.out)
    call(address, "GetTask")
    assert one.stop() == 0
    with Recording(one.folder / "r.db") as stored:
        assert [row.exchange.operation for row in stored.read_exchanges()][-1] == "GetTask"


def call_until(one: Proxy, address: str, told: str) -> int:
    """Call until the console prints the line; return the number of calls, each answered. Some calls
    succeed on a full disk, because space may be freed while it is filled."""
    made = 0

    def said() -> bool:
        nonlocal made
        made += 1
        assert "result" in call(address)
        return told in one.out + one.err

    until(said)
    return made


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_the_recording_is_on_a_full_disk(start: Start, small: Path, log_format: str) -> None:
    """The console reports it once; the journal keeps everything; when there is space again,
    everything is recorded."""
    one = start(record=small / "r.db", log_format=log_format)
    (address,) = one.addresses()
    call(address)
    until(lambda: calls(small / "r.db") == 1)
    fill(small)
    told = "the disk is full; the journal keeps everything, trying again"
    made = call_until(one, address, told)
    assert "free some space" in one.out + one.err
    (small / "filler").unlink()
    until(lambda: "the recording is written again, nothing is missing" in one.out + one.err)
    assert one.stop() == 0
    assert calls(small / "r.db") == 1 + made
    assert (one.out + one.err).count(told) == 1


def test_the_recording_is_locked_for_seconds(start: Start, tmp_path: Path) -> None:
    """Calls are answered while it is locked, and all are recorded afterwards."""
    one = start()
    (address,) = one.addresses()
    call(address)
    until(lambda: calls(tmp_path / "r.db") == 1)
    db = sqlite3.connect(tmp_path / "r.db", isolation_level=None, timeout=support_cli.SECONDS)
    db.execute("BEGIN IMMEDIATE")
    ends = time.monotonic() + 5
    while time.monotonic() < ends:
        call(address)
        time.sleep(0.1)
    db.execute("ROLLBACK")
    db.close()
    assert one.stop() == 0
    with Recording(tmp_path / "r.db") as stored:
        assert all(row.exchange.how == "complete" for row in stored.read_exchanges())
        assert stored.read_sessions()[0].complete == "complete"


HUNG = """
import os, time, threading
from a2a_proxy.capture.journal_files import JournalFiles
write = JournalFiles._write_all
def hung(self, fd, data):
    while os.path.exists({flag!r}):
        time.sleep(0.02)
    return write(self, fd, data)
JournalFiles._write_all = hung
"""


def site(folder: Path, flag: Path) -> str:
    """Return a folder for PYTHONPATH that makes the journal's disk hang while `flag` exists."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(HUNG.format(flag=str(flag)))
    return str(folder)


def test_a_disk_that_hangs_temporarily(start: Start, tmp_path: Path) -> None:
    """Calls are answered while it hangs, and all of them are recorded."""
    flag = tmp_path / "flag"
    one = start(PYTHONPATH=site(tmp_path / "site", flag))
    (address,) = one.addresses()
    flag.touch()
    for _ in range(20):
        call(address)
    flag.unlink()
    assert one.stop() == 0
    assert calls(tmp_path / "r.db") == 20
    assert '"complete": true' in one.out.splitlines()[-1]


def test_a_hung_disk_does_not_hold_up_the_exit(start: Start, tmp_path: Path) -> None:
    """The console reports the reason of the wait; a second Ctrl-C ends the proxy."""
    flag = tmp_path / "flag"
    one = start(PYTHONPATH=site(tmp_path / "site", flag))
    (address,) = one.addresses()
    flag.touch()
    call(address)
    one.interrupt()
    until(lambda: "stopping: the disk is slow" in one.out)
    one.interrupt()
    assert one.wait() == 0
    assert "finish with: a2a-inspect recover" in one.out.splitlines()[-1]


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_the_recording_is_deleted(start: Start, tmp_path: Path, log_format: str) -> None:
    """The console reports it, and a new recording has everything."""
    one = start(log_format=log_format)
    (address,) = one.addresses()
    call(address)
    until(lambda: calls(tmp_path / "r.db") == 1)
    (tmp_path / "r.db").unlink()
    call(address)
    until(lambda: "was deleted or moved; a new one is written there" in one.out + one.err)
    assert f"inspect it: a2a-inspect {tmp_path / 'r.db'}" in one.out + one.err
    assert one.stop() == 0
    assert calls(tmp_path / "r.db") == 2


def test_the_state_directory_is_deleted(start: Start, tmp_path: Path) -> None:
    """It is created again; the recording of the connection continues; the end is clean."""
    one = start()
    (address,) = one.addresses()
    call(address)
    until(lambda: calls(tmp_path / "r.db") == 1)
    shutil.rmtree(one.state)
    call(address)
    until(lambda: "the journal's folder was deleted and has been created again" in one.out)
    call(address)
    assert one.stop() == 0
    assert calls(tmp_path / "r.db") == 3
    assert not one.journals


def answered(journal: Path) -> bool:
    """Return whether the agent's answer is in the journal."""
    return any(
        chunk.kind is ChunkKind.DATA and chunk.direction is Direction.TO_CLIENT
        for chunk in read_all(journal)
    )


def test_recover_fails_cleanly_if_the_recording_is_unwritable(start: Start, tmp_path: Path) -> None:
    """It exits with code 1 and a hint, and leaves the journal for a later `recover`."""
    one = start()
    (address,) = one.addresses()
    recorder = one.recorder()
    os.kill(recorder, signal.SIGSTOP)
    call(address)
    (journal,) = one.journals
    until(lambda: answered(journal))
    kill(one.process.pid, recorder)
    one.process.wait()
    until_dead(recorder)
    # Also its -wal: what the recorder wrote last may be only there.
    (tmp_path / "kept").mkdir()
    kept = [each.rename(tmp_path / "kept" / each.name) for each in tmp_path.glob("r.db*")]
    (tmp_path / "r.db").write_bytes(b"a letter")
    failed = run(one.state, "a2a-inspect", "recover")
    assert failed.code == 1
    assert failed.err.startswith(
        f"a2a-inspect: error: cannot recover {tmp_path / 'r.db'}: {tmp_path / 'r.db'} is not a"
    )
    assert "a2a-inspect: hint: " in failed.err
    assert len(one.journals) == 1
    for each in kept:
        each.rename(tmp_path / each.name)
    assert run(one.state, "a2a-inspect", "recover").code == 0
    assert calls(tmp_path / "r.db") == 1


def test_the_folder_of_the_recording_becomes_read_only(start: Start, tmp_path: Path) -> None:
    """Open files stay open: everything is recorded, also by a second recorder."""
    folder = tmp_path / "recordings"
    folder.mkdir()
    path = folder / "r.db"
    one = start(record=path, before=obeying())
    (address,) = one.addresses()
    call(address)
    until(lambda: calls(path) == 1)
    folder.chmod(0o555)
    try:
        call(address)
        os.kill(one.recorder(), signal.SIGKILL)
        call(address)
        until(lambda: calls(path) == 3)
        assert one.stop() == 0
        assert calls(path) == 3
    finally:
        folder.chmod(0o755)
