"""Real proxies at the limits of a machine: the system clock jumps, descriptors run out, thousands
of connections are open, and hundreds of streams run at the same time."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import support_kills
from a2a_proxy.recording.read.reader import Recording
from support_cli import call
from support_kills import Clients, Reach, recorded
from support_process import memory_mib
from support_proxy import Proxy, proxy, running
from support_ways import Way

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="sets limits of processes by prlimit"
)
SECONDS = 120.0
HOUR, YEAR = 3600, 365 * 86400
CLOCK = '''
"""Adds the seconds in a file to the system clock of each Python process that finds this module."""
import time
from collections.abc import AsyncIterator

_now, _now_ns, _file = time.time, time.time_ns, {file!r}


def _jump():
    with open(_file) as file:
        return int(file.read() or 0)


time.time = lambda: _now() + _jump()
time.time_ns = lambda: _now_ns() + _jump() * 10**9
'''
CONNECTIONS = [pytest.param(200, id="200"), pytest.param(2000, id="2000", marks=pytest.mark.soak)]
STREAMS = [pytest.param(50, id="50"), pytest.param(500, id="500", marks=pytest.mark.soak)]
IDLE_BYTES = 16 << 10
"""Memory of the relay for an idle connection."""


async def test_the_system_clock_jumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hours and years, forward and back: everything is recorded, times never decrease, no peer is
    blamed for it."""
    jump = tmp_path / "jump"
    jump.write_text("0")
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(CLOCK.format(file=str(jump)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "clock"))
    clients, reach = Clients(), Reach(Way.PLAIN, tmp_path)
    async with reach.agent() as agent:
        with running(reach.proxy(tmp_path, agent)) as between:
            clients.start(reach, agent, between, 2)
            await clients.begun()
            for seconds in (HOUR, -HOUR, YEAR, -10 * YEAR, 0):
                jump.write_text(str(seconds))
                before = {stream: len(marks) for stream, marks in clients.got.items()}
                async with asyncio.timeout(SECONDS):
                    while any(
                        len(clients.got[stream]) < count + 50 for stream, count in before.items()
                    ):
                        await asyncio.sleep(0.05)
            agent.enough.set()
            await clients.ended()
            summary = await asyncio.to_thread(between.stop)
    assert summary["complete"]
    assert not between.said("trouble"), between.text
    assert dict(recorded(between.recording)) == dict(clients.got)
    with Recording(between.recording) as stored:
        times = [row.frame.began for row in stored.frames_after(0)]
        (session,) = stored.read_sessions()
        assert not [row for row in stored.read_findings() if row.finding.rule.startswith("A2A-LAT")]
    assert abs(times[0] - time.time_ns()) < HOUR * 10**9
    assert session.how == "clean"


@pytest.mark.parametrize("streams", STREAMS)
async def test_parallel_streams(
    tmp_path: Path, streams: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streams of gRPC and SSE, each on a connection of its own, all at the same time."""
    monkeypatch.setattr(
        support_kills, "PAUSE", streams / 1000
    )  # the agent and all clients are this process
    allow_files(4 * streams + 200)
    clients, reach = Clients(), Reach(Way.PLAIN, tmp_path)
    async with reach.agent() as agent:
        with running(reach.proxy(tmp_path, agent)) as between:
            clients.start(reach, agent, between, streams // 2)
            await clients.begun(10)
            agent.enough.set()
            await clients.ended()
            summary = await asyncio.to_thread(between.stop)
    assert summary["complete"]
    assert len(clients.ends) == streams
    assert set(clients.ends.values()) == {"ok"}
    assert dict(recorded(between.recording)) == dict(clients.got)


@pytest.mark.parametrize("connections", CONNECTIONS)
async def test_idle_connections(tmp_path: Path, connections: int) -> None:
    """They cost little memory, another client is served at once, and all of them are recorded."""
    allow_files(2 * connections + 200)
    async with quiet_agent() as port:
        with proxy(tmp_path, f"127.0.0.1:{port}", "", "--quiet") as between:
            await ask(between)
            before = memory_mib(between.process.pid)[0]
            idle = [
                await asyncio.open_connection("127.0.0.1", between.port) for _ in range(connections)
            ]
            began = time.monotonic()
            await ask(between)
            assert time.monotonic() - began < 5
            assert (
                memory_mib(between.process.pid)[0] - before
            ) * 2**20 < connections * IDLE_BYTES + 2**20
            for _, writer in idle:
                writer.close()
            await all_closed(between, connections + 2)
            summary = await asyncio.to_thread(between.stop)
    assert summary["complete"]


async def test_descriptors_run_out(tmp_path: Path) -> None:
    """Clients beyond the limit wait or fail, the proxy continues, and says what to do; nothing
    recorded is lost."""
    async with quiet_agent() as port:
        with proxy(tmp_path, f"127.0.0.1:{port}", "") as between:
            used = len(list(Path(f"/proc/{between.process.pid}/fd").iterdir()))
            resource.prlimit(between.process.pid, resource.RLIMIT_NOFILE, (used + 20, used + 20))
            clients = [socket.socket() for _ in range(60)]
            for client in clients:
                client.setblocking(False)
                client.connect_ex(("127.0.0.1", between.port))
            async with asyncio.timeout(SECONDS):
                while "open files" not in between.text:
                    await asyncio.sleep(0.05)
            for client in clients:
                client.close()
            async with asyncio.timeout(SECONDS):
                while True:
                    with contextlib.suppress(OSError):
                        await ask(between)
                        break
            summary = await asyncio.to_thread(between.stop)
    assert summary["complete"]
    with Recording(between.recording) as stored:
        answers = [(row.exchange.status, row.exchange.how) for row in stored.read_exchanges()]
    assert answers[-1] == (200, "complete")
    assert set(answers[:-1]) <= {(502, "refused")}


def allow_files(count: int) -> None:
    """Let this process open so many files at least; skip the test if the machine does not allow
    it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        pytest.skip(f"the machine allows {hard} open files, this test needs {count}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))


@contextlib.asynccontextmanager
async def quiet_agent() -> AsyncIterator[int]:
    """Run an agent that answers each request with a message; yield its port."""
    answer = (
        b'{"jsonrpc":"2.0","id":1,"result":{"message":{"messageId":"a",'
        b'"role":"ROLE_AGENT","parts":[{"text":"hi"}]}}}'
    )

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(
                    int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
                )
                fields = b"Content-Type: application/json\r\nContent-Length: %d" % len(answer)
                writer.write(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n%b" % (fields, answer))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=4096)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def ask(between: Proxy) -> None:
    """Send one call through the proxy."""
    assert "result" in await asyncio.to_thread(call, between.address)


async def all_closed(between: Proxy, connections: int) -> None:
    """Wait until so many connections are recorded to their end."""
    async with asyncio.timeout(SECONDS):
        while True:
            with Recording(between.recording) as stored:
                if (
                    sum(1 for row in stored.read_connections() if row.connection.closed)
                    == connections
                ):
                    return
            await asyncio.sleep(0.1)
