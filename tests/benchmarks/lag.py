"""Delay of the recording at a fixed rate, and the time to finish it after a stop."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
from origins import REQUEST
from processes import end, free_port, start, wait_listening, wait_said
from proxies import proxy_command

from a2a_proxy.relay.run import run_loop

CONNECTIONS = 50
SAMPLE = 0.1
DRAIN_SECONDS = 60.0


class Lag(msgspec.Struct, frozen=True):
    """One run."""

    wanted_rate: float
    rate: float
    """Answered requests per second."""
    worst: float
    """Seconds between now and the newest frame in the recording: the worst sample after the first
    second."""
    last: float
    """The same at the end of the load."""
    drain: float
    """Seconds from SIGINT to the end of the proxy, with everything recorded."""
    requests: int
    recorded: int
    """Exchanges in the recording."""


def measure(folder: Path, origin: int, rate: float, seconds: float) -> Lag:
    """Send requests at a fixed rate through a recording proxy."""
    with tempfile.TemporaryDirectory(dir=folder) as state:
        port, log = free_port(), Path(state) / "stderr"
        process = start(
            proxy_command(port, f"127.0.0.1:{origin}", state), log, A2A_PROXY_STATE=state
        )
        wait_listening(process, port, log)
        wait_said(process, "stop with Ctrl-C", log)
        recording = Path(state) / "benchmark.a2a.db"
        try:
            answered, took, lags = run_loop(_load(port, rate, seconds, recording))
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(DRAIN_SECONDS)
            drain = time.monotonic() - began
        finally:
            end(process, signal.SIGTERM, signal.SIGTERM)
        with contextlib.closing(sqlite3.connect(f"file:{recording}?mode=ro", uri=True)) as db:
            recorded = db.execute("SELECT count(*) FROM exchange").fetchone()[0]
    late = [lag for at, lag in lags if at > 1.0] or [0.0]
    return Lag(rate, answered / took, max(late), late[-1], drain, answered, recorded)


async def _load(
    port: int, rate: float, seconds: float, recording: Path
) -> tuple[int, float, list[tuple[float, float]]]:
    request = (
        b"POST / HTTP/1.1\r\nHost: agent\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    )
    request = request % len(REQUEST) + REQUEST
    loop = asyncio.get_running_loop()
    clients = [
        (await loop.create_connection(_Client, "127.0.0.1", port))[1] for _ in range(CONNECTIONS)
    ]
    began, sent, lags = time.monotonic(), 0, []
    sampled = 0.0
    with contextlib.closing(sqlite3.connect(f"file:{recording}?mode=ro", uri=True)) as db:
        while (passed := time.monotonic() - began) < seconds:
            while sent < passed * rate:
                clients[sent % CONNECTIONS].send(request)
                sent += 1
            if passed - sampled >= SAMPLE:
                sampled = passed
                lags.append((passed, _behind(db)))
            await asyncio.sleep(0.005)
        lags.append((seconds, _behind(db)))
    async with asyncio.timeout(30):
        while any(client.waiting for client in clients):
            await asyncio.sleep(0.01)
    took = time.monotonic() - began
    for client in clients:
        client.transport.close()
    await asyncio.sleep(0.1)
    return sum(client.answered for client in clients), took, lags


def _behind(db: sqlite3.Connection) -> float:
    newest = "SELECT started + (SELECT at FROM frame ORDER BY id DESC LIMIT 1) FROM session"
    row = db.execute(newest).fetchone()
    return (time.time_ns() - row[0]) / 1e9 if row and row[0] else 0.0


class _Client(asyncio.Protocol):
    """Sends on demand, and counts answers by their last bytes."""

    def __init__(self) -> None:
        self.answered = self.waiting = 0

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def send(self, request: bytes) -> None:
        self.waiting += 1
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        done = data.count(
            b"HTTP/1.1 200"
        )  # the origin writes each head of 400 bytes at once, so it is never split
        self.answered += done
        self.waiting -= done
