"""Processes and signals of the stdio relay, and what it records of them."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from a2a_proxy.model.wire import ChunkKind, Direction
from support_cli import SECONDS, until, until_dead
from support_process import state_of
from support_stdio import agent
from support_stdio_relay import (
    PYTHON,
    both,
    child_of,
    data,
    journal,
    of_kind,
    relayed,
    spawn,
    story,
)


def test_the_journal_contains_the_whole_session(tmp_path: Path) -> None:
    code = (
        "import os; os.write(2, b'log'); d = os.read(0, 9); "
        "os.write(1, d.upper()); os.read(0, 9); os._exit(3)"
    )
    process = spawn(relayed(tmp_path, [*PYTHON, code]))
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


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1]
)
def test_a_signal_reaches_the_agent_once_and_its_death_the_client(
    tmp_path: Path, number: signal.Signals
) -> None:
    for command in both(
        tmp_path, ["cat"]
    ):  # which an interpreter that starts up is not: it may make an error of it
        process = spawn(command)
        if command != ["cat"]:  # before there is an agent, a signal ends the relay alone
            child_of(process.pid)
        process.send_signal(number)
        assert process.wait(SECONDS) == -number
        process.communicate(timeout=SECONDS)
    chunks = journal(tmp_path)
    assert [chunk.data.decode() for chunk in chunks if chunk.kind is ChunkKind.SIGNAL] == [
        number.name
    ]
    assert of_kind(chunks, ChunkKind.EXITED) == [{"code": None, "signal": number.name}]


def test_a_signal_after_the_exit_changes_nothing(tmp_path: Path) -> None:
    """The agent ends before the relay takes the signal up; the exit code stays the agent's."""
    code = (
        "import os, signal as s; s.signal(s.SIGUSR1, s.SIG_IGN); "
        "os.kill(os.getppid(), s.SIGUSR1); os._exit(4)"
    )
    process = spawn(relayed(tmp_path, [*PYTHON, code]))
    process.communicate(timeout=SECONDS)
    assert process.returncode == 4
    assert of_kind(journal(tmp_path), ChunkKind.EXITED) == [{"code": 4, "signal": None}]


def test_the_agent_is_treated_as_its_client_treats_the_proxy(tmp_path: Path) -> None:
    """Folder, process group, ignored and blocked signals and further descriptors are passed on as
    they were given."""
    code = (
        "import os; from pathlib import Path; status = Path('/proc/self/status').read_text();"
        "print(os.getcwd(), os.getpgid(0), os.getsid(0),"
        " [line for line in status.splitlines() if line[:6] in ('SigIgn', 'SigBlk', 'SigCgt')],"
        " [n for n in range(64) if os.path.exists(f'/proc/self/fd/{n}')])"
    )
    read_end, write_end = os.pipe()
    seen = []
    for command in both(tmp_path, [*PYTHON, code]):
        line = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", *command]
        seen.append(spawn(line, pass_fds=(write_end,), cwd=tmp_path).communicate(timeout=SECONDS))
    os.close(write_end)
    os.close(read_end)
    assert seen[0] == seen[1]
    assert not seen[0][1]


def test_the_agent_gets_the_environment_of_the_client(tmp_path: Path) -> None:
    """Also in the C locale, where an interpreter sets a variable of its own."""
    given = {b"PATH": os.environb[b"PATH"], b"X": b"\xff", b"EMPTY": b""}
    bare, relay = (
        spawn(command, env=given).communicate(timeout=SECONDS)[0].split(b"\0")
        for command in both(tmp_path, ["env", "-0"])
    )
    assert sorted(bare) == sorted(relay)
    assert b"X=\xff" in relay


def test_exit_codes_are_passed_on_if_sigchld_is_ignored(tmp_path: Path) -> None:
    """An ignored SIGCHLD is inherited and makes waiting for a child impossible."""
    code = (
        "import os, signal; print(signal.getsignal(signal.SIGCHLD) "
        "is signal.SIG_IGN, flush=True); os._exit(9)"
    )
    for command in both(tmp_path, [*PYTHON, code]):
        process = spawn(command, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        assert process.communicate(timeout=SECONDS) == (b"True\n", b"")
        assert process.returncode == 9


def test_a_killed_proxy_leaves_no_agent(tmp_path: Path) -> None:
    """Not even one that ignores everything and reads nothing."""
    code = (
        "import signal, time; "
        "[signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; time.sleep(1000)"
    )
    process = spawn(relayed(tmp_path, [*PYTHON, code]))
    child = child_of(process.pid)
    process.kill()
    until_dead(child)
    process.communicate(timeout=SECONDS)


_COUNTS = """
import os, signal, sys, time
ours, theirs = os.pipe()
os.set_blocking(theirs, False)
number = signal.Signals[sys.argv[1]]
signal.signal(number, lambda *_: None)
signal.set_wakeup_fd(theirs)
os.write(1, b"ready")
os.read(ours, 1)
time.sleep(0.5)
os.write(theirs, b"end")
with open(sys.argv[2] + ".new", "w") as file:
    file.write(str(os.read(ours, 100).index(b"end") + 1))
os.rename(sys.argv[2] + ".new", sys.argv[2])
"""
"""Waits for a signal and counts how often it comes within half a second, below the interpreter,
which may take two for one."""


@pytest.mark.parametrize("proxied", [False, True])
def test_the_interrupt_key_of_a_terminal_reaches_the_agent_once(
    tmp_path: Path, proxied: bool
) -> None:
    main, process = _on_terminal(_counting(tmp_path, "SIGINT", proxied=proxied))
    os.write(main, b"\x03")
    _check_one(tmp_path, process)
    os.close(main)
    if proxied:
        assert [chunk.data for chunk in journal(tmp_path) if chunk.kind is ChunkKind.SIGNAL] == [
            b"SIGINT"
        ]


@pytest.mark.parametrize("leads", [False, True])
@pytest.mark.parametrize("proxied", [False, True])
def test_a_terminal_hangup_reaches_the_agent_once(
    tmp_path: Path, proxied: bool, leads: bool
) -> None:
    """Behind a shell that leads the session, and where the agent, or the proxy, leads it."""
    command = _counting(tmp_path, "SIGHUP", proxied=proxied)
    main, process = _on_terminal(command if leads else ["sh", "-c", '"$@"; exit', "sh", *command])
    os.close(main)
    _check_one(tmp_path, process)


_NEXT = """
import json, os, signal, sys
from pathlib import Path
from a2a_proxy.relay.stdio_agent import SIGNALS, next_signal
signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
os.write(1, b"ready")
Path(sys.argv[1] + ".new").write_text(json.dumps([int(n) for n in next_signal()]))
os.rename(sys.argv[1] + ".new", sys.argv[1])
"""


@pytest.mark.parametrize(
    ("how", "leads", "wanted"),
    [
        ("key", True, (signal.SIGINT, False)),
        ("key", False, (signal.SIGINT, False)),
        ("hang up", False, (signal.SIGHUP, False)),
        ("hang up", True, (signal.SIGHUP, True)),
        ("kill", True, (signal.SIGINT, True)),
    ],
)
def test_signals_to_the_process_group_are_not_forwarded(
    tmp_path: Path, how: str, leads: bool, wanted: tuple[signal.Signals, bool]
) -> None:
    """The agent has got it already; what only the proxy got is sent on."""
    command = [sys.executable, "-c", _NEXT, str(tmp_path / "next")]
    main, process = _on_terminal(command if leads else ["sh", "-c", '"$@"; exit', "sh", *command])
    if how == "key":
        os.write(main, b"\x03")
    elif how == "kill":
        process.send_signal(signal.SIGINT)
    else:
        os.close(main)
    until((tmp_path / "next").exists)
    assert json.loads((tmp_path / "next").read_text()) == list(wanted)
    process.wait(SECONDS)
    if how != "hang up":
        os.close(main)


def _counting(folder: Path, name: str, *, proxied: bool) -> list[str]:
    return both(folder, [*PYTHON, _COUNTS, name, folder / "count"])[proxied]


def _on_terminal(command: list[str]) -> tuple[int, subprocess.Popen[bytes]]:
    """Run it on a new terminal, in a session of its own, until it is ready."""
    main, line = pty.openpty()
    process = subprocess.Popen(
        command,
        stdin=line,
        stdout=line,
        stderr=line,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(line)
    got = b""
    while b"ready" not in got:
        assert select.select([main], [], [], SECONDS)[0], got
        got += os.read(main, 4096)
    return main, process


def _check_one(folder: Path, process: subprocess.Popen[bytes]) -> None:
    until((folder / "count").exists)
    assert (folder / "count").read_text() == "1"
    process.wait(SECONDS)


def test_stop_and_continue_apply_to_proxy_and_agent(tmp_path: Path) -> None:
    # A group of its own: the kernel stops none whose members all have parents elsewhere, as under
    # nohup.
    process = spawn(relayed(tmp_path, agent("plain")), start_new_session=False, process_group=0)
    child = child_of(process.pid)
    process.send_signal(signal.SIGTSTP)
    until(lambda: state_of(process.pid) == state_of(child) == "T")
    process.send_signal(signal.SIGCONT)
    until(lambda: state_of(process.pid) != "T" and state_of(child) != "T")
    process.communicate(timeout=SECONDS)
    assert process.returncode == 0
