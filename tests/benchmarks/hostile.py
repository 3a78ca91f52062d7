"""How long a good client waits while a hostile one keeps the proxy busy."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import proxies
from load import Caller
from processes import free_port, running

from support_floods import FLOODS

MESSAGES = 300_000
QUIET = "no hostile client"
TOGETHER = "all of them together"
PAUSE_SECONDS = 0.002
AFTER_SECONDS = 0.3
MOST_SECONDS = 20.0


class Waits(msgspec.Struct, frozen=True):
    """What a good client saw beside one kind of hostile one."""

    kind: str
    worst: float
    """The longest round trip, ms."""
    sent: float
    """MiB of the hostile clients that the proxy has taken."""


@contextlib.contextmanager
def agent(folder: Path, messages: int) -> Iterator[int]:
    """The agent of good and hostile clients; its port."""
    port = free_port()
    program = Path(__file__).resolve().parents[1] / "support_floods.py"
    with running([sys.executable, str(program), str(port), str(messages)], port, folder / "agent.err"):
        yield port


def measure(folder: Path, origin: int, messages: int, *options: str) -> list[Waits]:
    """One round: a proxy for each kind, and a good client that asks all the time while the hostile one sends."""
    made = {name: (flood.client(messages), flood.agent_ends) for name, flood in FLOODS.items()}
    kinds = {QUIET: [], **{name: [each] for name, each in made.items()}, TOGETHER: list(made.values())}
    found = []
    for kind, floods in kinds.items():
        with proxies.a2a_proxy(folder, origin, "127.0.0.1", *options) as port:
            found.append(_beside(port, kind, floods))
    return found


def _beside(port: int, kind: str, floods: list[tuple[bytes, bool]]) -> Waits:
    taken = [0] * len(floods)
    threads = [threading.Thread(target=_send, args=(port, *flood, taken, at)) for at, flood in enumerate(floods)]
    worst = 0
    with Caller(port) as caller:
        for _ in range(50):
            caller.ask()
        for thread in threads:
            thread.start()
        until = deadline = time.monotonic() + AFTER_SECONDS
        deadline += MOST_SECONDS
        while time.monotonic() < until:
            worst = max(worst, caller.ask())
            time.sleep(PAUSE_SECONDS)
            if any(thread.is_alive() for thread in threads) and time.monotonic() < deadline:
                until = time.monotonic() + AFTER_SECONDS
        for thread in threads:
            thread.join()
    return Waits(kind, worst / 1e6, sum(taken) / (1 << 20))


def _send(port: int, data: bytes, agent_ends: bool, taken: list[int], at: int) -> None:
    """Send all of it, reading what comes, and wait for the end of the connection."""
    with socket.create_connection(("127.0.0.1", port)) as sock, contextlib.suppress(OSError):
        sock.settimeout(MOST_SECONDS)
        reading = threading.Thread(target=_read, args=(sock,))
        reading.start()
        try:
            while taken[at] < len(data):
                taken[at] += sock.send(memoryview(data)[taken[at] : taken[at] + (1 << 20)])
            if not agent_ends:
                sock.shutdown(socket.SHUT_WR)
        finally:
            reading.join()


def _read(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while sock.recv(1 << 18):
            pass


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as name, agent(Path(name), MESSAGES) as origin:
        for waits in measure(Path(name), origin, MESSAGES, *sys.argv[1:]):
            print(f"{waits.kind:24} {waits.worst:8.1f} ms  {waits.sent:6.1f} MiB", flush=True)
    os._exit(0)
