"""Connections past the proxy: of real processes, seen in the system's tables."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from a2a_proxy.cli.command import bypass
from a2a_proxy.cli.command.bypass import BypassWatch

_COMMAND = """
import socket, sys
kept = [socket.create_connection(("127.0.0.1", int(port))) for port in sys.argv[1:]]
print("connected", flush=True)
sys.stdin.read()
"""
_AGENT = """
import socket, sys
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
kept = server.accept()
print("accepted", flush=True)
sys.stdin.readline()
server.close()
print("closed", flush=True)
sys.stdin.read()
"""
_TREE = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, *sys.argv[1:]]))"

Start = Callable[..., int]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a command whose child connects to these ports; return the process id of the command."""
    script = tmp_path / "planner.py"
    script.write_text(_COMMAND)
    with ExitStack() as running:

        def begin(*ports: int) -> int:
            command = [sys.executable, "-c", _TREE, str(script), *map(str, ports)]
            variables = {
                **os.environ,
                "HTTP_PROXY": "http://127.0.0.1:9",
                "NO_PROXY": "",
                "no_proxy": "",
            }
            child = running.enter_context(
                subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=variables
                )
            )
            assert child.stdin is not None
            assert child.stdout is not None
            running.callback(child.stdin.close)
            assert child.stdout.readline() == "connected\n"
            return child.pid

        yield begin


@pytest.fixture
def ports() -> Iterator[tuple[int, int]]:
    """Two listening ports of this process: of the proxy, and of an agent that somebody else
    runs."""
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as two,
    ):
        yield one.getsockname()[1], two.getsockname()[1]


def test_connections_past_the_proxy_are_reported_once(start: Start, ports: tuple[int, int]) -> None:
    """By a descendant of the command, which has the name of its script; those to the proxy are left
    out."""
    proxy, agent = ports
    lines: list[tuple[str, str]] = []
    command = start(proxy, agent, agent, proxy)
    watch = BypassWatch(command, {proxy}, lambda *line: lines.append(line), command)
    watch.look()
    watch.look()
    ((line, reason),) = lines
    assert line.startswith("past the proxy: planner (pid ")
    assert line.endswith(f") to 127.0.0.1:{agent}")
    assert reason == "plain sockets, and aiohttp without trust_env=True, ignore proxy variables"


def test_several_connections_are_counted_at_the_end(
    start: Start, ports: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several times a second, on a thread of its own."""
    monkeypatch.setattr(bypass, "_INTERVAL_SECONDS", 0.02)
    proxy, agent = ports
    lines: list[str] = []
    command = start(agent, proxy, agent, agent)
    watch = BypassWatch(command, {proxy}, lambda line, _: lines.append(line), command)
    watch.start()
    deadline = time.monotonic() + 20
    while not lines and time.monotonic() < deadline:
        time.sleep(0.01)
    watch.stop()
    first, last = lines
    assert last == f"{first}, at least 3 connections"


def test_accepted_connections_are_not_reported(tmp_path: Path) -> None:
    """Of an agent that has closed its listener meanwhile too."""
    script = tmp_path / "agent.py"
    script.write_text(_AGENT)
    lines: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-c", _TREE, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        watch = BypassWatch(child.pid, (), lambda line, _: lines.append(line), child.pid)
        with socket.create_connection(("127.0.0.1", int(child.stdout.readline()))):
            assert child.stdout.readline() == "accepted\n"
            watch.look()
            child.stdin.write("\n")
            child.stdin.flush()
            assert child.stdout.readline() == "closed\n"
            watch.look()
            assert [line.partition(" (")[0] for line in watch.list_processes()] == ["agent"]
        child.stdin.close()
    assert lines == []


def test_targets_are_limited(
    start: Start, ports: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bypass, "_MAX_TARGETS", 1)
    lines: list[str] = []
    command = start(*ports)
    watch = BypassWatch(command, (), lambda line, _: lines.append(line), command)
    watch.look()
    assert len(lines) == 1


def test_a_command_that_has_ended_has_no_connections() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    watch = BypassWatch(
        child.pid, (), lambda *_: pytest.fail("nothing can be past the proxy"), child.pid
    )
    watch.look()


def test_the_guard_ended_processes_and_those_that_record_are_left_out() -> None:
    """Others are listed, also if they outlive the guard, and are children of this process then."""
    orphan, guard = (os.posix_spawn("/bin/sleep", ["sleep", "60"], {}) for _ in range(2))
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "a2a_proxy.recorder", "x", "--wake", "0", "--status", "0"]
    ) as helper:
        watch = BypassWatch(guard, (), lambda *_: None)
        running = watch.list_processes()
        assert f"sleep (pid {orphan})" in running
        assert not [
            line for line in running if f"pid {helper.pid})" in line or f"pid {guard})" in line
        ]
    os.kill(orphan, signal.SIGKILL)
    os.waitid(os.P_PID, orphan, os.WEXITED | os.WNOWAIT)
    assert f"sleep (pid {orphan})" not in watch.list_processes()
    os.kill(guard, signal.SIGKILL)
    for pid in (orphan, guard):
        os.waitpid(pid, 0)
