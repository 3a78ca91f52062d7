"""The processes behind client connections, with real sockets."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from a2a_proxy.cli.command import client_processes
from a2a_proxy.cli.command.client_processes import ClientProcesses
from a2a_proxy.model.wire import ClientProcess

_AGENT = """
import socket, sys
agent = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print(agent.getsockname()[1], client.getsockname()[1], flush=True)
sys.stdin.read()
"""


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def address(sock: socket.socket) -> str:
    return f"127.0.0.1:{sock.getsockname()[1]}"


def learn(processes: ClientProcesses, client: str, listener: str) -> ClientProcess | None:
    asyncio.run(processes.learn(client, listener))
    return processes.get(client)


def test_the_process_and_its_ports_are_found(server: socket.socket, tmp_path: Path) -> None:
    """A process that listens, and connects to the proxy; found again faster, because it is
    known."""
    script = tmp_path / "planner.py"
    script.write_text(_AGENT)
    processes = ClientProcesses()
    command = [sys.executable, str(script), str(server.getsockname()[1])]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        listening, connected = map(int, child.stdout.readline().split())
        client = f"127.0.0.1:{connected}"
        found = ClientProcess(child.pid, "planner", (listening,))
        assert learn(processes, client, address(server)) == found
        assert learn(processes, client, address(server)) == found
        child.stdin.close()
    processes.close()


def test_a_connection_of_this_process_is_its_own(server: socket.socket) -> None:
    processes = ClientProcesses()
    with socket.create_connection(server.getsockname()) as client:
        found = learn(processes, address(client), address(server))
    assert found is not None
    assert found.pid == os.getpid()
    assert server.getsockname()[1] in found.ports
    processes.close()


def test_an_unknown_client_has_no_process(server: socket.socket) -> None:
    """Also one whose port belonged to a known client before."""
    processes = ClientProcesses()
    with socket.create_connection(server.getsockname()) as client:
        text = address(client)
        assert learn(processes, text, address(server)) is not None
    server.accept()[0].close()
    assert learn(processes, text, "127.0.0.1:1") is None
    assert learn(processes, "no address", address(server)) is None
    processes.close()


def test_a_slow_system_delays_a_client_for_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_processes, "_SECONDS", 0.01)
    monkeypatch.setattr(client_processes, "find_inode", lambda *_: time.sleep(0.3))
    processes = ClientProcesses()

    async def wait() -> float:
        began = time.monotonic()
        await processes.learn("127.0.0.1:1", "127.0.0.1:2")
        return time.monotonic() - began

    assert asyncio.run(wait()) < 0.25
    assert processes.get("127.0.0.1:1") is None
    processes.close()


def test_few_clients_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_processes, "_MAX_CLIENTS", 2)
    monkeypatch.setattr(ClientProcesses, "find", lambda *_: ClientProcess(1, "a"))
    processes = ClientProcesses()
    for port in (1, 2, 3):
        assert learn(processes, f"127.0.0.1:{port}", "127.0.0.1:9") is not None
    assert [processes.get(f"127.0.0.1:{port}") is not None for port in (1, 2, 3)] == [
        False,
        True,
        True,
    ]
    processes.close()


@pytest.mark.parametrize("error", [None, OSError])
def test_a_kernel_without_look_ups_has_tables(
    server: socket.socket, monkeypatch: pytest.MonkeyPatch, error: type[OSError] | None
) -> None:
    def refuse(*_: object) -> int:
        if error is not None:
            raise error
        return 0

    monkeypatch.setattr(client_processes, "find_inode", refuse)
    processes = ClientProcesses()
    with socket.create_connection(server.getsockname()) as client:
        found = processes.find(address(client), address(server))
        assert processes.find("127.0.0.1:1", address(server)) is None
    assert found is not None
    assert server.getsockname()[1] in found.ports
    processes.close()
