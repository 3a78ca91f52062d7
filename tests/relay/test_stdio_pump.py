"""Pipes, sockets and files of the stdio relay: full, broken and closed ones."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from a2a_proxy.model.wire import ChunkKind, Direction
from support_cli import SECONDS, until
from support_stdio import agent
from support_stdio_relay import (
    PYTHON,
    blocked,
    both,
    child_of,
    data,
    journal,
    relayed,
    spawn,
    story,
)


def test_a_descriptor_closed_by_the_agent_ends_for_its_client(tmp_path: Path) -> None:
    """The proxy keeps no end of a pipe that was meant for the agent."""
    read_end, write_end = os.pipe()
    code = f"import os; os.close({write_end}); os.read(0, 1)"
    process = spawn(relayed(tmp_path, [*PYTHON, code]), pass_fds=(write_end,))
    os.close(write_end)
    assert os.read(read_end, 1) == b""
    assert process.poll() is None
    process.communicate(timeout=SECONDS)
    os.close(read_end)


def test_no_descriptor_becomes_non_blocking(tmp_path: Path) -> None:
    process = spawn(relayed(tmp_path, agent("plain")))
    until(lambda: (tmp_path / "journal").is_dir() and "DIALED TO_AGENT" in story(journal(tmp_path)))
    for number in range(3):
        flags = int(
            Path(f"/proc/{process.pid}/fdinfo/{number}").read_text().split("flags:")[1].split()[0],
            8,
        )
        assert not flags & os.O_NONBLOCK
    process.communicate(timeout=SECONDS)


def test_non_blocking_sockets_of_the_client_lose_nothing(tmp_path: Path) -> None:
    """Some clients give such ones away; here they run full in both directions."""
    ours, theirs = socket.socketpair()
    out_ours, out_theirs = socket.socketpair()
    for each in (theirs, out_theirs):
        each.setblocking(False)
    with ours, out_ours:
        process = spawn(relayed(tmp_path, ["cat"]), stdin=theirs, stdout=out_theirs, stderr=None)
        theirs.close()
        out_theirs.close()
        sent = os.urandom(4 << 20)
        sender = threading.Thread(
            target=lambda: (ours.sendall(sent), ours.shutdown(socket.SHUT_WR)), daemon=True
        )
        sender.start()
        child = child_of(process.pid)
        until(lambda: blocked(child))
        got = bytearray()
        out_ours.settimeout(SECONDS)
        while data := out_ours.recv(65536):
            got += data
        assert process.wait(SECONDS) == 0
    assert got == sent


@pytest.mark.parametrize("stdout", ["file", "/dev/null"])
def test_files_as_standard_streams_are_complete(tmp_path: Path, stdout: str) -> None:
    given = tmp_path / "in"
    given.write_bytes(b"x" * 200_000)
    target = tmp_path / "out" if stdout == "file" else Path(stdout)
    with given.open("rb") as stdin, target.open("wb") as out:
        assert (
            spawn(relayed(tmp_path, ["cat"]), stdin=stdin, stdout=out, stderr=None).wait(SECONDS)
            == 0
        )
    assert stdout != "file" or target.read_bytes() == given.read_bytes()
    assert data(journal(tmp_path), ChunkKind.DATA, Direction.TO_CLIENT) == given.read_bytes()


def test_closed_standard_streams_are_accepted(tmp_path: Path) -> None:
    line = [
        "sh",
        "-c",
        'exec "$@" <&- >&- 2>&-',
        "sh",
        *relayed(tmp_path, ["sh", "-c", "echo hello; exit 5"]),
    ]
    assert spawn(line).wait(SECONDS) == 5


def test_one_pipe_for_stdout_and_stderr_keeps_its_order(tmp_path: Path) -> None:
    code = "import os; [os.write(1 + n % 2, b'%d ' % n) for n in range(5000)]"
    bare, relay = (
        spawn(command, stderr=subprocess.STDOUT).communicate(timeout=SECONDS)[0]
        for command in both(tmp_path, [*PYTHON, code])
    )
    assert relay == bare == b"".join(b"%d " % n for n in range(5000))
    assert data(journal(tmp_path), ChunkKind.DATA, Direction.TO_CLIENT) == bare


def test_a_client_that_stops_reading_breaks_the_pipe_of_the_agent(tmp_path: Path) -> None:
    """Before the agent writes: its first write fails, as it would without the proxy."""
    code = "import os, sys; os.read(0, 1); os.write(1, b'x'); os._exit(4)"
    code = "import signal; signal.signal(signal.SIGPIPE, signal.SIG_DFL);" + code
    for command in both(tmp_path, [*PYTHON, code]):
        process = spawn(command)
        if command[1] == "-c":
            child = child_of(process.pid)
        assert process.stdout is not None
        process.stdout.close()
        if command[1] == "-c":  # the end of the pipe has reached the agent's side
            until(lambda: not _reader_of_stdout(process.pid, child))  # noqa: B023
        assert process.stdin is not None
        process.stdin.write(b"x")
        assert process.wait(SECONDS) == -signal.SIGPIPE
        process.communicate(timeout=SECONDS)
    kinds = story(journal(tmp_path))
    assert kinds.index("RESET TO_AGENT") < kinds.index("EXITED TO_CLIENT")  # whose doing it is


def _reader_of_stdout(relay: int, child: int) -> bool:
    pipe = os.readlink(f"/proc/{child}/fd/1")
    folder = f"/proc/{relay}/fd"
    found = []
    for name in os.listdir(folder):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"{folder}/{name}"))
    return pipe in found


def test_an_agent_that_stops_reading_breaks_the_pipe_of_the_client(tmp_path: Path) -> None:
    code = "import os, time; os.close(0); os.write(1, b'x'); time.sleep(1000)"
    for command in both(tmp_path, [*PYTHON, code]):
        process = spawn(command)
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.read(1) == b"x"

        def broken(process: subprocess.Popen[bytes] = process) -> bool:
            assert process.stdin is not None
            try:
                os.write(process.stdin.fileno(), b"x")
            except BrokenPipeError:
                return True
            return False

        until(broken)
        process.terminate()
        process.wait(SECONDS)
        process.stdin = None
        process.communicate(timeout=SECONDS)


def test_a_client_that_reads_nothing_blocks_the_agent(tmp_path: Path) -> None:
    """The memory of the relay stays small, and a signal still ends both."""
    progress = tmp_path / "progress"
    code = (
        f"import os; f = os.open({str(progress)!r}, 65, 384)\n"
        "while 1: os.write(1, b'x' * 65536); os.write(f, b'.')"
    )
    process = spawn(relayed(tmp_path, [*PYTHON, code]))
    child = child_of(process.pid)
    until(lambda: progress.exists() and blocked(child))
    assert progress.stat().st_size < 20
    process.terminate()
    assert process.wait(SECONDS) == -signal.SIGTERM
    process.communicate(timeout=SECONDS)


def test_remaining_output_is_delivered_to_a_slow_client(tmp_path: Path) -> None:
    """It has ended long before its client begins to read; a signal that did not tell it to end
    changes nothing."""
    code = (
        "import os; os.read(0, 1); os.write(1, b'x' * 150_000); "
        "os.write(2, b'y' * 60_000); os._exit(6)"
    )
    process = spawn(relayed(tmp_path, [*PYTHON, code]))
    child_of(process.pid)
    process.send_signal(signal.SIGWINCH)
    assert process.stdin is not None
    process.stdin.write(b"x")
    until(
        lambda: (
            (tmp_path / "journal").is_dir()
            and b"y" in data(journal(tmp_path), ChunkKind.LOG, Direction.TO_CLIENT)
        )
    )
    time.sleep(1.0)
    assert process.poll() is None
    out, err = process.communicate(timeout=SECONDS)
    assert (len(out), len(err), process.returncode) == (150_000, 60_000, 6)


def test_a_client_that_ends_its_agent_and_reads_nothing_is_not_waited_for(tmp_path: Path) -> None:
    """What lies in its own pipe is still there for it: as much as the agent alone could have
    written."""
    code = "import os, time; os.write(1, b'x' * 150_000); os.write(2, b'y'); time.sleep(1000)"
    process = spawn(relayed(tmp_path, [*PYTHON, code]))
    assert process.stderr is not None
    assert process.stderr.read(1) == b"y"
    process.terminate()
    assert process.wait(SECONDS) == -signal.SIGTERM
    out, _ = process.communicate(timeout=SECONDS)
    assert 65_536 <= len(out) < 150_000


def test_the_proxy_waits_only_for_output_left_at_the_end_of_the_agent(tmp_path: Path) -> None:
    """Its end is noticed while bytes of it wait for the client; a child of it holds the pipe."""
    ended = tmp_path / "ended"
    code = (
        "import os, time; os.write(1, b'x' * 170_000); "
        f"pid = os.fork(); open({str(ended)!r}, 'w') if pid else 0; "
    )
    code += "os._exit(2) if pid else time.sleep(1000)"
    process = spawn(relayed(tmp_path, [*PYTHON, code]), start_new_session=True)
    try:
        until(ended.exists)
        time.sleep(0.3)  # so that the end is noticed first, mostly; in either order all of it comes
        got, _ = process.communicate(timeout=SECONDS)
        assert (process.returncode, len(got)) == (2, 170_000)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def test_a_grandchild_that_keeps_stdout_does_not_keep_the_proxy(tmp_path: Path) -> None:
    """The output of the agent is complete; its own child is not waited for, not even one that never
    stops."""
    for tail in ("time.sleep(1000)", "[os.write(1, b'more') for _ in iter(int, 1)]"):
        code = (
            "import os, time; os.write(1, b'x' * 50_000); "
            f"pid = os.fork();os._exit(2) if pid else {tail}"
        )
        folder = tmp_path / str(len(tail))
        folder.mkdir()
        process = spawn(relayed(folder, [*PYTHON, code]), start_new_session=True)
        assert process.stdout is not None
        got = bytearray()
        while data := process.stdout.read(65536):
            got += data
        assert process.wait(SECONDS) == 2
        assert got.startswith(b"x" * 50_000)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=SECONDS)
