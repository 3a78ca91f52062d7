"""A chain of three a2a-sdk agents with a proxy before each: a client calls the desk over JSON-RPC,
the desk calls the broker over gRPC, the broker calls the hotel over REST. Each fetches the card of
the next agent first.

The agents run in the environment `traced`, which `tests/peers/setup.py --soak` makes.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from support_peers import CLIENT_SECONDS, Agent, agent, command
from support_proxy import Proxy

AGENTS = ("desk", "broker", "hotel")
ASKS = {"caller": "JSONRPC", "desk": "GRPC", "broker": "HTTP+JSON"}
"""The binding with which each of them calls the next agent, as cards name it."""
ANSWER = "room 12"


def talk(
    folder: Path, *words: str, trace: str = "none", apart: bool = False, **spans: str
) -> list[Path]:
    """Run the chain once, with these arguments of `a2a-proxy`, and return the recordings: one, or
    with `apart` one for each of the three proxies.

    `trace` and `spans` (`spans_to`, `project`) are for agents and client: see
    `tests/peers/traced/hop.py`.
    """
    book = folder / "book.json"
    told = ["--book", str(book), "--trace", trace]
    told += [
        word for name, value in spans.items() for word in (f"--{name.replace('_', '-')}", value)
    ]
    with ExitStack() as stack:
        agents = [stack.enter_context(agent("traced", name, *told)) for name in AGENTS]
        running = stack.enter_context(_proxies(folder, agents, words, apart))
        listens = [
            route["listen"][0] for each in running for route in each.said("start")[0]["routes"]
        ]
        where = zip(ASKS.items(), listens, strict=True)
        book.write_text(
            json.dumps({who: [binding, f"http://{listen}"] for (who, binding), listen in where})
        )
        line = [*command("client", "traced"), "caller", *told]
        done = subprocess.run(
            line, capture_output=True, text=True, timeout=CLIENT_SECONDS, check=False
        )
        assert (done.returncode, done.stdout) == (0, f"{ANSWER}\n"), done.stderr
        for each in running:
            each.stop()
        return [each.recording for each in running]


@contextmanager
def _proxies(
    folder: Path, agents: list[Agent], words: tuple[str, ...], apart: bool
) -> Iterator[list[Proxy]]:
    """Start one proxy that listens for each agent, or one proxy for each agent."""
    running: list[Proxy] = []
    try:
        for number, some in enumerate([[each] for each in agents] if apart else [agents]):
            own = folder / f"proxy-{number}"
            own.mkdir()
            first, *others = some
            more = [word for far in others for word in _route(far)]
            running.append(
                Proxy(own, f"127.0.0.1:{first.http}", first.grpc_target, *more, *words).start()
            )
        yield running
    finally:
        for each in running:
            each.kill()


def _route(far: Agent) -> tuple[str, ...]:
    return (
        *("--listen", "127.0.0.1:0"),
        *("--upstream", f"127.0.0.1:{far.http}"),
        *("--upstream-grpc", far.grpc_target),
    )
