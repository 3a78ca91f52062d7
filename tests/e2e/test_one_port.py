"""An agent with HTTP and gRPC on one port: SDK clients that follow its card through the proxy stay
on the proxy.

A front that the tests control listens on the port: it recognises HTTP/2 by its preface, and counts
every connection.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from a2a_proxy.recording.read.reader import Recording
from support_account import Line, Told, lines, match, told
from support_peers import (
    CLIENT_TO_SERVER,
    SERVER_TO_CLIENT,
    Forwarder,
    Transcript,
    agent,
    normalise,
    require_peers,
)
from support_peers import run_client as run
from support_proxy import Proxy
from support_thin import thin

BINDINGS = ("jsonrpc", "rest", "grpc")
SCENARIOS = [
    "card",
    "unary",
    "streaming",
    "parts",
    "input",
    "cancel",
    "push",
    "errors",
    "concurrent",
]
PAIRS = [("sdk1", "sdk1"), ("sdk1", "js"), ("sdk03", "sdk03"), ("sdk03", "js")]
CHANGED = frozenset({"append", "name"})
"""Members that the JS SDK omits when it reads the protobuf form of 0.3."""
Seen = dict[str, list[Transcript]]


class OnePort(Forwarder):
    """One port in front of an agent that has two; `came` counts its connections by protocol."""

    def __init__(self) -> None:
        super().__init__()
        self.ports = {"http/1.1": 0, "h2c": 0}
        self.came: Counter[str] = Counter()

    async def _pair(
        self, conn: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            begun = await reader.readexactly(4)
        except (OSError, asyncio.IncompleteReadError):
            writer.transport.abort()
            return
        kind = "h2c" if begun == b"PRI " else "http/1.1"
        self.came[kind] += 1
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.ports[kind])
        far_writer.write(begun)
        try:
            await asyncio.gather(
                self._pump(conn, CLIENT_TO_SERVER, reader, far_writer),
                self._pump(conn, SERVER_TO_CLIENT, far_reader, writer),
            )
        except OSError:  # a reset, or a peer that has closed before its EOF is sent
            writer.transport.abort()
            far_writer.transport.abort()
        finally:
            far_writer.close()
            writer.close()


@dataclass(frozen=True)
class Talk:
    """The transcripts of a pair's clients, directly and through the proxy, with the card followed
    both times."""

    direct: Seen
    followed: Seen
    front: str
    came: Counter[str]
    """Connections that reached the agent while only the proxy's address was passed to the
    clients."""
    recording: Recording
    account: list[Line]
    strangers: list[list[Told]]


@pytest.fixture(scope="module", params=thin(PAIRS, 4), ids="-to-".join)
def talk(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Talk]:
    """Run a pair once for all tests."""
    far, client = request.param
    require_peers(far, client)
    folder = tmp_path_factory.mktemp("talk")
    direct, followed, front = asyncio.run(both_ways(far, client, folder))
    changed = CHANGED if (far, client) == ("sdk03", "js") else frozenset()
    account: list[Line] = []
    for binding, seen in followed.items():
        account += lines(binding, seen, changed if binding != "jsonrpc" else frozenset())
    with Recording(folder / "recording.a2a") as recording:
        strangers = match(told(recording), account)
        address = f"127.0.0.1:{front.port}"
        yield Talk(direct, followed, address, front.came, recording, account, strangers)


async def both_ways(kind: str, client: str, folder: Path) -> tuple[Seen, Seen, OnePort]:
    """Run the clients directly, then through a proxy with one upstream: the front."""
    front = OnePort()
    await front.start()
    address = f"127.0.0.1:{front.port}"
    with agent(kind, "--advertise-http", f"http://{address}", "--advertise-grpc", address) as far:
        front.ports = {"http/1.1": far.http, "h2c": far.grpc}
        direct = await run_all(client, address)
        assert set(front.came) == {"http/1.1", "h2c"}
        front.came.clear()
        between = Proxy(folder, address).start()
        try:
            followed = await run_all(client, between.address)
            await asyncio.to_thread(between.stop)
        finally:
            await asyncio.to_thread(between.kill)
    await front.stop()
    return direct, followed, front


async def run_all(client: str, address: str) -> Seen:
    """Run one process per binding at the same time, each with only the address of the card."""
    where = (f"http://{address}", "", "--follow-card")
    seen = await asyncio.gather(*(run(client, each, SCENARIOS, *where) for each in BINDINGS))
    return dict(zip(BINDINGS, seen, strict=True))


@pytest.mark.peers
def test_clients_behave_as_without_the_proxy(talk: Talk) -> None:
    """Every scenario of every binding is equal, and none failed."""
    for binding in BINDINGS:
        broken = [
            one.scenario
            for one in talk.direct[binding]
            if any(e.event["kind"] == "broken" for e in one.entries)
        ]
        assert broken == []
        assert normalise(talk.followed[binding]) == normalise(talk.direct[binding])


@pytest.mark.peers
def test_every_call_is_recorded(talk: Talk) -> None:
    """The recording contains each stream of each client from beginning to end: no call bypassed the
    proxy."""
    spoken = Counter(row.exchange.binding.value for row in talk.recording.read_exchanges())
    assert {binding: spoken[binding] > 10 for binding in BINDINGS} == dict.fromkeys(BINDINGS, True)
    untold = {
        (line.binding, line.scenario, line.stream): line.untold
        for line in talk.account
        if line.untold
    }
    assert (
        untold,
        [(said[0].exchange.id, [one.event for one in said]) for said in talk.strangers],
    ) == ({}, [])


@pytest.mark.peers
def test_only_the_proxy_connects_to_the_agent(talk: Talk) -> None:
    """The agent's port received the connections of the proxy, of each kind, and no other."""
    made = [row.connection for row in talk.recording.read_connections()]
    assert {one.peer for one in made if one.dialed} == {talk.front}
    assert Counter(one.kind for one in made if one.dialed and one.kind) == talk.came
    assert set(talk.came) == {"http/1.1", "h2c"}
