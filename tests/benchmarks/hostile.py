"""The delay of a normal client while a hostile one keeps the proxy busy."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import proxies
from load import Caller
from processes import free_port, running

sys.path.append(str(Path(__file__).resolve().parents[1]))

from support_floods import FAULT as FAULT
from support_floods import FLOODS, send

QUIET = "no hostile client"
TOGETHER = "all of them together"
WARM_UP = 50
PAUSE_SECONDS = 0.002
AFTER_SECONDS = 0.3
MOST_SECONDS = 20.0


@contextlib.contextmanager
def agent(folder: Path, messages: int) -> Iterator[int]:
    """Run the agent of normal and hostile clients; yield its port."""
    port = free_port()
    program = Path(__file__).resolve().parents[1] / "support_floods.py"
    with running(
        [sys.executable, str(program), str(port), str(messages)], port, folder / "agent.err"
    ):
        yield port


def measure(folder: Path, origin: int, messages: int, *options: str) -> dict[str, float]:
    """Return the longest round trip of a normal client, ms, beside each kind of hostile client,
    each with a proxy of its own."""
    made = {name: (flood.client(messages), flood.agent_ends) for name, flood in FLOODS.items()}
    kinds = {
        QUIET: [],
        **{name: [each] for name, each in made.items()},
        TOGETHER: list(made.values()),
    }
    found = {}
    for kind, floods in kinds.items():
        with proxies.a2a_proxy(folder, origin, "127.0.0.1", *options) as port:
            found[kind] = _beside(port, floods)
    return found


def _beside(port: int, floods: list[tuple[bytes, bool]]) -> float:
    threads = [threading.Thread(target=send, args=(port, *flood, MOST_SECONDS)) for flood in floods]
    with Caller(port) as caller:
        for _ in range(WARM_UP):
            caller.ask()
        for thread in threads:
            thread.start()
        worst, end = 0, time.monotonic() + AFTER_SECONDS
        while time.monotonic() < end:
            worst = max(worst, caller.ask())
            time.sleep(PAUSE_SECONDS)
            if any(thread.is_alive() for thread in threads):
                end = time.monotonic() + AFTER_SECONDS
    return worst / 1e6
