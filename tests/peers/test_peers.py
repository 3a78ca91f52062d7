"""The real peers behave the same directly and through a TCP relay: the baseline of the proxy's own
tests.

Every pair runs all its scenarios, in one client process per binding and way, both ways at the same
time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from support_peers import (
    CLIENT_TO_SERVER,
    SERVER_TO_CLIENT,
    Agent,
    Forwarder,
    Transcript,
    agent,
    forwarders,
    normalise,
    require_peers,
    run_client,
)

STREAMS = ["streaming", "slow", "failures", "errors", "concurrent"]
COMMON = [*STREAMS, "card", "unary", "parts", "tricky", "input", "cancel", "push", "big"]
TASKS = [*COMMON, "message-only", "subscribe"]
SCENARIOS = {
    "sdk1": [*TASKS, "webhook", "malformed"],
    "sdk03": [*TASKS, "webhook", "malformed"],
    "js": TASKS,
    "0_1": COMMON,
    "0_2": TASKS,
    "vendor": STREAMS,
}
BINDINGS = ("jsonrpc", "rest", "grpc")
SAME_AGE = [("sdk1", "sdk1"), ("sdk1", "js"), ("sdk03", "sdk03")]
ACROSS_AGES = [("sdk1 --compat", "sdk03"), ("sdk03", "js")]
QUICK = {
    ("sdk1", "sdk1", "grpc"),
    ("sdk1", "js", "rest"),
    ("sdk03", "js", "jsonrpc"),
    ("vendor", "vendor", "jsonrpc"),
}
"""Enough for CI, where all pairs run through the proxy; the others run after a change to a peer:
`tests/run -m soak tests/peers`."""
PAIRS = [
    pytest.param(*pair, marks=() if pair in QUICK else pytest.mark.soak)
    for pair in (
        *(
            (far, client, binding)
            for far, client in (*SAME_AGE, *ACROSS_AGES)
            for binding in BINDINGS
        ),
        *((kind, kind, "jsonrpc") for kind in ("0_1", "0_2", "vendor")),
    )
]


@pytest.fixture(scope="module")
def far(request: pytest.FixtureRequest) -> Iterator[Agent]:
    """Run an agent of the kind (and with the options) that the test names, once for all tests that
    name it."""
    kind, *options = request.param.split()
    require_peers(kind)
    with agent(kind, *options) as running:
        yield running


def broken(seen: list[Transcript]) -> list[str]:
    """Return the scenarios that failed or hung."""
    return [
        one.scenario
        for one in seen
        if any(entry.event["kind"] == "broken" for entry in one.entries)
    ]


@pytest.mark.peers
@pytest.mark.parametrize(("far", "client_kind", "binding"), PAIRS, indirect=["far"])
async def test_peers_behave_the_same_through_a_relay(
    far: Agent, client_kind: str, binding: str
) -> None:
    """The transcripts of a client through a forwarder and without it are equal in every scenario,
    and the agent is deterministic."""
    require_peers(client_kind)
    scenarios = SCENARIOS[client_kind]
    async with forwarders(far) as (http, grpc):
        target = f"127.0.0.1:{grpc.port}" if grpc else ""
        direct, relayed = await asyncio.gather(
            run_client(client_kind, binding, scenarios, far.base_url, far.grpc_target),
            run_client(client_kind, binding, scenarios, f"http://127.0.0.1:{http.port}", target),
        )

    assert broken(direct) == []
    assert scenarios == [one.scenario for one in relayed]
    assert normalise(direct) == normalise(relayed)


@pytest.mark.peers
@pytest.mark.parametrize(("agent_kind", "client_kind"), SAME_AGE)
@pytest.mark.parametrize("binding", BINDINGS)
async def test_a_client_that_follows_the_card_connects_to_the_advertised_address(
    agent_kind: str, client_kind: str, binding: str
) -> None:
    """An agent advertises the configured address, and a client with --follow-card connects only
    there."""
    require_peers(agent_kind, client_kind)
    http, grpc = Forwarder(), Forwarder()
    base, target = f"http://127.0.0.1:{await http.start()}", f"127.0.0.1:{await grpc.start()}"
    with agent(agent_kind, "--advertise-http", base, "--advertise-grpc", target) as far:
        http.target, grpc.target = ("127.0.0.1", far.http), ("127.0.0.1", far.grpc)
        (seen,) = await run_client(client_kind, binding, ["unary"], base, target, "--follow-card")
    carrier = (grpc if binding == "grpc" else http).sent(SERVER_TO_CLIENT)
    await http.stop()
    await grpc.stop()

    assert seen.entries[0].event["state"] == "completed"
    assert b"forty-two" in carrier


async def test_the_forwarder_forwards_and_keeps_bytes_and_half_closes() -> None:
    """The captured bytes are the sent bytes, and an EOF is forwarded while the other direction
    stays open."""

    async def after_eof(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.read()
        writer.write(asked.upper())
        writer.close()

    server = await asyncio.start_server(after_eof, "127.0.0.1", 0)
    forwarder = Forwarder("127.0.0.1", server.sockets[0].getsockname()[1])
    reader, writer = await asyncio.open_connection("127.0.0.1", await forwarder.start())
    writer.write(b"question")
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    await forwarder.stop()
    server.close()

    assert answer == b"QUESTION"
    assert forwarder.sent(CLIENT_TO_SERVER) == b"question"
    assert forwarder.sent(SERVER_TO_CLIENT) == b"QUESTION"
