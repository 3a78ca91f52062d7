"""What the stdio relay does to descriptors, processes and signals, and what it writes down of it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from a2a_proxy.model.chunk import Chunk, ChunkKind, Direction
from support_cli import SECONDS, until, until_dead
from support_journal import read_all
from support_stdio import agent

_RELAY = """
import sys
from pathlib import Path
from a2a_proxy.capture.append import Journal
from a2a_proxy.relay.clock import session_clock
from a2a_proxy.relay.stdio import StdioRelay
from a2a_proxy.relay.stdio_agent import end_like
from a2a_proxy.relay.tape import Tape
relay = StdioRelay(sys.argv[2:])
journal = Journal(Path(sys.argv[1]), lambda *_: None)
relay.start(Tape(journal, session_clock()))
code = relay.wait()
journal.close(0, 60)
end_like(code)
"""
"""A relay without a recorder, which leaves its journal."""
_PY = [sys.executable, "-SEc"]
_PIPE = subprocess.PIPE


def relayed(folder: Path, command: Sequence[object]) -> list[str]:
    """The command line of a relay whose journal is in `folder`."""
    return [sys.executable, "-c", _RELAY, str(folder / "journal"), *map(str, command)]


def both(folder: Path, command: Sequence[object]) -> list[list[str]]:
    """The agent alone, and behind a relay."""
    return [[str(word) for word in command], relayed(folder, command)]


def spawn(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    streams = {"stdin": _PIPE, "stdout": _PIPE, "stderr": _PIPE}
    return subprocess.Popen(command, bufsize=0, **{**streams, **options})


def journal(folder: Path) -> list[Chunk]:
    """What the relay wrote down."""
    return read_all(folder / "journal")


def story(chunks: Sequence[Chunk]) -> list[str]:
    """The kinds in order, DATA and LOG of one side in a row as one."""
    words = [f"{chunk.kind.name} {chunk.direction.name}" for chunk in chunks]
    return [word for index, word in enumerate(words) if index == 0 or word != words[index - 1]]


def data(chunks: Sequence[Chunk], kind: ChunkKind, direction: Direction) -> bytes:
    return b"".join(chunk.data for chunk in chunks if chunk.kind is kind and chunk.direction is direction)


def of_kind(chunks: Sequence[Chunk], kind: ChunkKind) -> list[Any]:
    return [json.loads(chunk.data) for chunk in chunks if chunk.kind is kind]


def child_of(pid: int) -> int:
    """The agent of a relay, once it runs."""
    return int(until(lambda: Path(f"/proc/{pid}/task/{pid}/children").read_text().split() or None)[0])


def test_the_journal_tells_the_whole_story(tmp_path: Path) -> None:
    code = "import os; os.write(2, b'log'); d = os.read(0, 9); os.write(1, d.upper()); os.read(0, 9); os._exit(3)"
    process = spawn(relayed(tmp_path, [*_PY, code]))
    assert process.communicate(b"hello", SECONDS) == (b"HELLO", b"log")
    assert process.returncode == 3
    chunks = journal(tmp_path)
    assert {chunk.connection for chunk in chunks[:-1]} == {1}
    assert [chunk.at for chunk in chunks[:-1]] == sorted(chunk.at for chunk in chunks[:-1])
    kinds = story(chunks)
    assert kinds[:2] == ["OPEN TO_AGENT", "DIALED TO_AGENT"]
    assert kinds[-3:] == ["EXITED TO_CLIENT", "CLOSED TO_AGENT", "END TO_AGENT"]
    assert {"EOF TO_AGENT", "EOF TO_CLIENT"} <= set(kinds)
    assert data(chunks, ChunkKind.DATA, Direction.TO_AGENT) == b"hello"
    assert data(chunks, ChunkKind.DATA, Direction.TO_CLIENT) == b"HELLO"
    assert data(chunks, ChunkKind.LOG, Direction.TO_CLIENT) == b"log"
    assert kinds.index("DATA TO_AGENT") < kinds.index("DATA TO_CLIENT")
    (opened,) = of_kind(chunks, ChunkKind.OPEN)
    (dialed,) = of_kind(chunks, ChunkKind.DIALED)
    assert opened["transport"] == opened["listen"] == "stdio"
    assert opened["client"].startswith(f"pid {os.getpid()} (")
    assert opened["upstream"].startswith(sys.executable)
    assert dialed["peer"].startswith("pid ")
    assert of_kind(chunks, ChunkKind.EXITED) == [{"code": 3, "signal": None}]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1])
def test_a_signal_reaches_the_agent_once_and_its_death_the_client(tmp_path: Path, number: signal.Signals) -> None:
    for command in both(tmp_path, ["cat"]):  # which an interpreter that starts up is not: it may make an error of it
        process = spawn(command)
        if command != ["cat"]:  # before there is an agent, a signal ends the relay alone
            child_of(process.pid)
        process.send_signal(number)
        assert process.wait(SECONDS) == -number
        process.communicate(timeout=SECONDS)
    chunks = journal(tmp_path)
    assert [chunk.data.decode() for chunk in chunks if chunk.kind is ChunkKind.SIGNAL] == [number.name]
    assert of_kind(chunks, ChunkKind.EXITED) == [{"code": None, "signal": number.name}]


def test_a_signal_that_comes_too_late_changes_nothing(tmp_path: Path) -> None:
    """The agent ends before the relay takes the signal up; the exit code stays the agent's."""
    code = "import os, signal as s; s.signal(s.SIGUSR1, s.SIG_IGN); os.kill(os.getppid(), s.SIGUSR1); os._exit(4)"
    process = spawn(relayed(tmp_path, [*_PY, code]))
    process.communicate(timeout=SECONDS)
    assert process.returncode == 4
    assert of_kind(journal(tmp_path), ChunkKind.EXITED) == [{"code": 4, "signal": None}]


def test_the_agent_is_treated_as_its_client_treats_the_proxy(tmp_path: Path) -> None:
    """Folder, process group, ignored and blocked signals and further descriptors are passed on as they were given."""
    code = (
        "import os; from pathlib import Path; status = Path('/proc/self/status').read_text();"
        "print(os.getcwd(), os.getpgid(0), os.getsid(0),"
        " [line for line in status.splitlines() if line[:6] in ('SigIgn', 'SigBlk', 'SigCgt')],"
        " [n for n in range(64) if os.path.exists(f'/proc/self/fd/{n}')])"
    )
    read_end, write_end = os.pipe()
    seen = []
    for command in both(tmp_path, [*_PY, code]):
        line = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", *command]
        seen.append(spawn(line, pass_fds=(write_end,), cwd=tmp_path).communicate(timeout=SECONDS))
    os.close(write_end)
    os.close(read_end)
    assert seen[0] == seen[1]
    assert not seen[0][1]


def test_the_environment_is_the_clients(tmp_path: Path) -> None:
    """Also in the C locale, where an interpreter sets a variable of its own."""
    given = {b"PATH": os.environb[b"PATH"], b"X": b"\xff", b"EMPTY": b""}
    bare, relay = (
        spawn(command, env=given).communicate(timeout=SECONDS)[0].split(b"\0")
        for command in both(tmp_path, ["env", "-0"])
    )
    assert sorted(bare) == sorted(relay)
    assert b"X=\xff" in relay


def test_exit_codes_come_though_the_client_ignores_its_children(tmp_path: Path) -> None:
    """An ignored SIGCHLD is inherited, and with it nobody can wait for a child."""
    code = "import os, signal; print(signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN, flush=True); os._exit(9)"
    for command in both(tmp_path, [*_PY, code]):
        process = spawn(command, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        assert process.communicate(timeout=SECONDS) == (b"True\n", b"")
        assert process.returncode == 9


def test_a_descriptor_that_the_agent_closes_ends_for_its_client(tmp_path: Path) -> None:
    """The proxy keeps no end of a pipe that was meant for the agent."""
    read_end, write_end = os.pipe()
    code = f"import os; os.close({write_end}); os.read(0, 1)"
    process = spawn(relayed(tmp_path, [*_PY, code]), pass_fds=(write_end,))
    os.close(write_end)
    assert os.read(read_end, 1) == b""
    assert process.poll() is None
    process.communicate(timeout=SECONDS)
    os.close(read_end)


def test_no_descriptor_becomes_non_blocking(tmp_path: Path) -> None:
    process = spawn(relayed(tmp_path, agent("plain")))
    until(lambda: (tmp_path / "journal").is_dir() and "DIALED TO_AGENT" in story(journal(tmp_path)))
    for number in range(3):
        flags = int(Path(f"/proc/{process.pid}/fdinfo/{number}").read_text().split("flags:")[1].split()[0], 8)
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
        sender = threading.Thread(target=lambda: (ours.sendall(sent), ours.shutdown(socket.SHUT_WR)), daemon=True)
        sender.start()
        child = child_of(process.pid)
        until(lambda: _blocked(child))
        got = bytearray()
        out_ours.settimeout(SECONDS)
        while octets := out_ours.recv(65536):
            got += octets
        assert process.wait(SECONDS) == 0
    assert got == sent


@pytest.mark.parametrize("stdout", ["file", "/dev/null"])
def test_files_do(tmp_path: Path, stdout: str) -> None:
    given = tmp_path / "in"
    given.write_bytes(b"x" * 200_000)
    target = tmp_path / "out" if stdout == "file" else Path(stdout)
    with given.open("rb") as stdin, target.open("wb") as out:
        assert spawn(relayed(tmp_path, ["cat"]), stdin=stdin, stdout=out, stderr=None).wait(SECONDS) == 0
    assert stdout != "file" or target.read_bytes() == given.read_bytes()
    assert data(journal(tmp_path), ChunkKind.DATA, Direction.TO_CLIENT) == given.read_bytes()


def test_closed_standard_streams_hurt_nobody(tmp_path: Path) -> None:
    line = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *relayed(tmp_path, ["sh", "-c", "echo hello; exit 5"])]
    assert spawn(line).wait(SECONDS) == 5


def test_one_pipe_for_stdout_and_stderr_keeps_its_order(tmp_path: Path) -> None:
    code = "import os; [os.write(1 + n % 2, b'%d ' % n) for n in range(5000)]"
    bare, relay = (
        spawn(command, stderr=subprocess.STDOUT).communicate(timeout=SECONDS)[0]
        for command in both(tmp_path, [*_PY, code])
    )
    assert relay == bare == b"".join(b"%d " % n for n in range(5000))
    assert data(journal(tmp_path), ChunkKind.DATA, Direction.TO_CLIENT) == bare


def test_a_client_that_reads_no_more_breaks_the_agents_pipe(tmp_path: Path) -> None:
    """Before the agent writes: its first write fails, as it would without the proxy."""
    code = "import os, sys; os.read(0, 1); os.write(1, b'x'); os._exit(4)"
    code = "import signal; signal.signal(signal.SIGPIPE, signal.SIG_DFL);" + code
    for command in both(tmp_path, [*_PY, code]):
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


def _reader_of_stdout(relay: int, child: int) -> bool:
    pipe = os.readlink(f"/proc/{child}/fd/1")
    folder = f"/proc/{relay}/fd"
    found = []
    for name in os.listdir(folder):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"{folder}/{name}"))
    return pipe in found


def test_an_agent_that_reads_no_more_breaks_the_clients_pipe(tmp_path: Path) -> None:
    code = "import os, time; os.close(0); os.write(1, b'x'); time.sleep(1000)"
    for command in both(tmp_path, [*_PY, code]):
        process = spawn(command)
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.read(1) == b"x"

        def broken(process: subprocess.Popen[bytes] = process) -> bool:
            assert process.stdin is not None
            try:
                process.stdin.write(b"")
                os.write(process.stdin.fileno(), b"x")
            except BrokenPipeError:
                return True
            return False

        until(broken)
        process.terminate()
        process.wait(SECONDS)
        process.stdin = None
        process.communicate(timeout=SECONDS)


def test_a_client_that_reads_nothing_stops_the_agent(tmp_path: Path) -> None:
    """The memory of the relay stays small, and a signal still ends both."""
    progress = tmp_path / "progress"
    code = f"import os; f = os.open({str(progress)!r}, 65, 384)\nwhile 1: os.write(1, b'x' * 65536); os.write(f, b'.')"
    process = spawn(relayed(tmp_path, [*_PY, code]))
    child = child_of(process.pid)
    until(lambda: progress.exists() and _blocked(child))
    assert progress.stat().st_size < 20
    process.terminate()
    assert process.wait(SECONDS) == -signal.SIGTERM
    process.communicate(timeout=SECONDS)


def _blocked(child: int) -> bool:
    """Asleep, and no processor time taken for a while."""
    before = Path(f"/proc/{child}/stat").read_text().rpartition(") ")[2].split()
    time.sleep(0.2)
    after = Path(f"/proc/{child}/stat").read_text().rpartition(") ")[2].split()
    return before[0] == after[0] == "S" and before[11:13] == after[11:13]


def test_what_an_agent_left_is_delivered_to_a_slow_client(tmp_path: Path) -> None:
    """It has ended long before its client begins to read."""
    code = "import os; os.write(1, b'x' * 150_000); os.write(2, b'y' * 60_000); os._exit(6)"
    process = spawn(relayed(tmp_path, [*_PY, code]))
    until(
        lambda: (tmp_path / "journal").is_dir() and b"y" in data(journal(tmp_path), ChunkKind.LOG, Direction.TO_CLIENT)
    )
    time.sleep(1.0)
    assert process.poll() is None
    out, err = process.communicate(timeout=SECONDS)
    assert (len(out), len(err), process.returncode) == (150_000, 60_000, 6)


def test_a_grandchild_that_keeps_stdout_does_not_keep_the_proxy(tmp_path: Path) -> None:
    """What the agent wrote is passed on whole; its own child is not waited for, not even one that never stops."""
    for tail in ("time.sleep(1000)", "[os.write(1, b'more') for _ in iter(int, 1)]"):
        code = f"import os, time; os.write(1, b'x' * 50_000); pid = os.fork();os._exit(2) if pid else {tail}"
        folder = tmp_path / str(len(tail))
        folder.mkdir()
        process = spawn(relayed(folder, [*_PY, code]), start_new_session=True)
        assert process.stdout is not None
        got = bytearray()
        while octets := process.stdout.read(65536):
            got += octets
        assert process.wait(SECONDS) == 2
        assert got.startswith(b"x" * 50_000)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=SECONDS)


def test_the_proxy_killed_leaves_no_agent(tmp_path: Path) -> None:
    """Not even one that ignores everything and reads nothing."""
    code = "import signal, time; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; time.sleep(1000)"
    process = spawn(relayed(tmp_path, [*_PY, code]))
    child = child_of(process.pid)
    process.kill()
    until_dead(child)
    process.communicate(timeout=SECONDS)


_COUNTS = """
import os, signal, time
seen = []
def note(number, _):
    seen.append(number)
    if number == signal.SIGTERM:
        os.write(1, b"%d interrupts" % seen.count(signal.SIGINT))
        os._exit(0)
    os.write(1, b"noted")
signal.signal(signal.SIGINT, note)
signal.signal(signal.SIGTERM, note)
os.write(1, b"ready")
while 1:
    time.sleep(0.01)
"""


@pytest.mark.parametrize("proxied", [False, True])
def test_the_interrupt_key_of_a_terminal_reaches_the_agent_once(tmp_path: Path, proxied: bool) -> None:
    main, line = pty.openpty()
    attributes = termios.tcgetattr(line)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(line, termios.TCSANOW, attributes)
    process = subprocess.Popen(
        both(tmp_path, [*_PY, _COUNTS])[proxied],
        stdin=line,
        stdout=line,
        stderr=line,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(line)
    _read_until(main, b"ready")
    os.write(main, b"\x03")
    _read_until(main, b"noted")
    process.terminate()
    assert b"1 interrupts" in _read_until(main, b"interrupts")
    assert process.wait(SECONDS) == 0
    os.close(main)
    if proxied:
        signals = [chunk.data for chunk in journal(tmp_path) if chunk.kind is ChunkKind.SIGNAL]
        assert signals == [b"SIGINT", b"SIGTERM"]


def _read_until(terminal: int, octets: bytes) -> bytes:
    got = b""
    while octets not in got:
        assert select.select([terminal], [], [], SECONDS)[0], got
        got += os.read(terminal, 4096)
    return got


def test_a_stop_stops_both_and_both_go_on(tmp_path: Path) -> None:
    process = spawn(relayed(tmp_path, agent("plain")), start_new_session=False)
    child = child_of(process.pid)
    process.send_signal(signal.SIGTSTP)
    until(lambda: _state(process.pid) == _state(child) == "T")
    process.send_signal(signal.SIGCONT)
    until(lambda: _state(process.pid) != "T" and _state(child) != "T")
    process.communicate(timeout=SECONDS)
    assert process.returncode == 0


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
