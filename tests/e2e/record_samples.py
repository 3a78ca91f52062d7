"""Record the sample cassettes in `recordings/` again, with the real proxy between real agents and
clients.

    python tests/e2e/record_samples.py [NAME ...]

Needs the environments that `tests/peers/setup.py` creates. Ids, times and ports differ from run to
run, the stories do not.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import support_framework_calls as tables
from a2a_proxy.recording.cassette.file import write_cassette
from a2a_proxy.recording.read.reader import Recording
from peers.stdio.story import tell
from support_cli import until
from support_frameworks import Player
from support_frameworks import run_client as run_framework_client
from support_peers import agent, run_client
from support_proxy import Proxy, environment, program, proxy
from support_three_agents import ask, chain, routes

SAMPLES = Path(__file__).resolve().parents[2] / "recordings"
SUFFIX = ".a2a.jsonl"
DEMO, LOSSY, STDIO_STORY, THREE_AGENTS = "demo", "lossy", "stdio", "three-agents"
STDIO = Path(__file__).resolve().parents[1] / "peers" / "stdio" / "story.py"
ALL = ("jsonrpc", "rest", "grpc")
FULL = [
    "card",
    "unary",
    "streaming",
    "parts",
    "input",
    "subscribe",
    "cancel",
    "push",
    "failures",
    "errors",
]
SHORT = ["card", "unary", "streaming", "input", "cancel", "failures", "errors"]
STORIES: dict[str, tuple[str, str, tuple[str, ...], list[str]]] = {
    **{f"sdk-1.x-{binding}": ("sdk1", "sdk1", (binding,), FULL) for binding in ALL},
    **{f"sdk-0.3-{binding}": ("sdk03", "sdk03", (binding,), FULL) for binding in ALL},
    "js-three-bindings": ("sdk1", "js", ALL, ["card", "streaming", "input", "subscribe"]),
    "js-to-0.3": ("sdk03", "js", ALL, ["card", "streaming", "input"]),
    "concurrent-grpc": ("sdk1", "sdk1", ("grpc",), ["concurrent"]),
    "generations": ("generations", "generations", ALL, ["gap", "poll", "precondition"]),
    "dialect-0.1": ("0_1", "0_1", ("jsonrpc",), [*SHORT, "push"]),
    "dialect-0.2": ("0_2", "0_2", ("jsonrpc",), [*SHORT, "push", "subscribe"]),
    "dialect-vendor": ("vendor", "vendor", ("jsonrpc",), ["streaming", "failures", "errors"]),
}
"""Name -> agent, client, bindings one after another, scenarios (`tests/peers/clients`)."""

LIVE = {
    "live-bidi": {
        "approval",
        "approval-closed",
        "configured",
        "lost",
        "over",
        "refused",
        "shared",
        "watched",
    }
    | {"answered", "unknown", "idle", "cancelled", "packed"},
    "live-1975": {"talk"},
    "live-2153": {"uplink"},
}
"""Name -> stories of `tests/peers/live`; their peers need no environment of their own."""

FRAMEWORK = "frameworks/"
FRAMEWORKS: dict[str, tuple[str, tuple[tables.Call, ...] | str]] = {
    "fasta2a": ("fasta2a", tables.FASTA2A),
    "adk": ("adk", tables.ADK),
    "a2akit": ("a2akit", tables.A2AKIT),
    "a2akit-rest": ("a2akit --rest", tables.A2AKIT_REST),
    "agno": ("agno", tables.AGNO),
    "js03": ("js03", tables.JS03),
    "langgraph": ("langgraph", tables.LANGGRAPH),
    "pythona2a": ("pythona2a", tables.PYTHONA2A),
    "beeai": ("beeai", "beeai"),
    "beeai-jsonrpc": ("beeai --jsonrpc", tables.BEEAI),
    "handler": ("sdk1 --first HTTP+JSON", "handler"),
}
"""Name after `frameworks/` -> agent with its options, and the calls of the tests or a client."""


async def play(name: str, folder: Path) -> Path:
    """Record a story and return the path."""
    agent_kind, client, bindings, scenarios = STORIES[name]
    with (
        agent(agent_kind) as far,
        proxy(folder, f"127.0.0.1:{far.http}", far.grpc_target) as between,
    ):
        for binding in bindings:
            await run_client(
                client, binding, scenarios, between.base_url, between.address if far.grpc else ""
            )
        await asyncio.to_thread(between.stop)
    return between.recording


async def play_framework(name: str, folder: Path) -> Path:
    """Record the calls to a framework's agent and return the path."""
    peer, caller = FRAMEWORKS[name.removeprefix(FRAMEWORK)]
    kind, *options = peer.split()
    with (
        agent(kind, *options) as far,
        proxy(folder, f"127.0.0.1:{far.http}", far.grpc_target) as between,
    ):
        if isinstance(caller, str):
            await asyncio.to_thread(run_framework_client, caller, between.base_url)
        else:
            await Player(between.base_url).play(caller)
        await asyncio.to_thread(between.stop)
    return between.recording


async def play_live(name: str, folder: Path) -> Path:
    """Record live stories and return the path."""
    from peers.live.agent import LiveAgent
    from peers.live.client import LiveClient
    from peers.live.payloads import card
    from peers.live.proposals import PROPOSALS
    from peers.live.stories import STORIES as BIDI
    from peers.live.story import parts

    told = [story for story in (*BIDI, *PROPOSALS) if story.name in LIVE[name]]
    far = LiveAgent(parts(told), card(streaming=True, bidiStreaming=True))
    with proxy(folder, await far.start()) as between:
        client = LiveClient(between.address, far, told[0].version)
        await client.card("card")
        for story in told:
            await story.client(client)
        await client.close()
        await asyncio.to_thread(between.stop)
    await far.stop()
    return between.recording


async def play_three_agents(folder: Path) -> Path:
    """Record a chain of three agents, each with a listener of one proxy, and return the path."""
    async with chain(pause=0.08) as (agents, ports):
        between = Proxy(folder, f"127.0.0.1:{ports[0]}", "", *routes(ports))
        try:
            await asyncio.to_thread(between.start)
            await ask([route["listen"][0] for route in between.said("start")[0]["routes"]], agents)
            await asyncio.to_thread(between.stop)
        finally:
            await asyncio.to_thread(between.kill)
    return between.recording


def play_demo(folder: Path, more: str = "") -> Path:
    """Record the demo and return the path."""
    line = [program("a2a-proxy"), "demo", *more.split(), "--record", "demo.a2a"]
    subprocess.run(
        line, cwd=folder, env=environment(folder / "state"), check=True, stdout=subprocess.DEVNULL
    )
    return folder / "demo.a2a"


def play_stdio(folder: Path) -> Path:
    """Record the story of a stdio agent and return the path."""
    line = [
        program("a2a-proxy"),
        "stdio",
        "--record",
        "stdio.a2a",
        "--",
        "python3",
        str(STDIO.name),
    ]
    shutil.copy(STDIO, folder)
    tell(line, folder, environment(folder / "state"))
    path = folder / "stdio.a2a"
    until(lambda: _is_whole(path))  # the recorder continues after the proxy has exited
    return path


def _is_whole(path: Path) -> bool:
    if not path.exists():
        return False
    with Recording(path) as recording:
        return [bool(session.how) for session in recording.read_sessions()] == [True]


async def make(name: str) -> None:
    """Record a story and move its cassette to its place."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        own = {
            DEMO: play_demo,
            LOSSY: partial(play_demo, more="--lossy"),
            STDIO_STORY: play_stdio,
        }.get(name)
        played = (
            play_live if name in LIVE else play_framework if name.startswith(FRAMEWORK) else play
        )
        told = partial(played, name) if name != THREE_AGENTS else play_three_agents
        path = own(folder) if own is not None else await told(folder)
        target = SAMPLES / (name + SUFFIX)
        with Recording(path) as recording:
            write_cassette(recording, target, overwrite=True)
    target.chmod(0o644)
    print(target.name, target.stat().st_size, "bytes")


async def main() -> None:
    """Record the samples on the command line, or all of them."""
    frameworks = [FRAMEWORK + name for name in FRAMEWORKS]
    for name in sys.argv[1:] or [
        DEMO,
        LOSSY,
        STDIO_STORY,
        THREE_AGENTS,
        *STORIES,
        *LIVE,
        *frameworks,
    ]:
        await make(name)


if __name__ == "__main__":
    asyncio.run(main())
