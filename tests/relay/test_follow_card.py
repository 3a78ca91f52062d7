"""Real SDK clients that fetch the agent card through the proxy and follow it stay on the proxy."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from a2a_proxy.model.wire import ChunkKind
from a2a_proxy.relay.listener_state import EditPolicy
from support_peers import Agent, agent, normalise, require_peers, run_client
from support_relay import relaying

SCENARIOS = ["card", "unary", "streaming", "input", "cancel", "errors"]
SIGNS = {"jsonrpc": b'"method"', "rest": b"/message:send", "grpc": b"PRI * HTTP/2.0"}
"""What tells that a binding was spoken."""
PAIRS = [("sdk1", "sdk1"), ("sdk1", "js"), ("sdk03", "sdk03")]


@pytest.fixture(scope="module")
def far(request: pytest.FixtureRequest) -> Iterator[Agent]:
    """An agent with HTTP and gRPC on two ports; its card lists both."""
    require_peers(request.param)
    with agent(request.param) as running:
        yield running


@pytest.mark.peers
@pytest.mark.parametrize("binding", ["jsonrpc", "rest", "grpc"])
@pytest.mark.parametrize(("far", "client_kind"), PAIRS, indirect=["far"])
async def test_a_client_that_follows_the_card_stays_on_the_proxy(
    far: Agent, client_kind: str, binding: str
) -> None:
    """The proxy knows one upstream, the HTTP port; the card teaches it the port for gRPC."""
    require_peers(client_kind)
    async with relaying(far.http, editing=EditPolicy()) as bench:
        url = f"http://127.0.0.1:{bench.port}"
        direct, followed = await asyncio.gather(
            run_client(
                client_kind, binding, SCENARIOS, far.base_url, far.grpc_target, "--follow-card"
            ),
            run_client(
                client_kind, binding, SCENARIOS, url, f"127.0.0.1:{bench.port}", "--follow-card"
            ),
        )
        assert normalise(followed) == normalise(direct)
        chunks = bench.journal.chunks
        dialed = [chunk.data for chunk in chunks if chunk.kind is ChunkKind.DIALED]
        opened = len([chunk for chunk in chunks if chunk.kind is ChunkKind.OPEN])
        to_grpc = sum(f":{far.grpc}".encode() in data for data in dialed)
        assert opened > 1
        assert (to_grpc > 0) == (binding == "grpc")
        spoken = b"".join(chunk.data for chunk in chunks if chunk.kind is ChunkKind.DATA)
        assert SIGNS[binding] in spoken
        assert any(
            b'"kind":"card"' in chunk.data for chunk in chunks if chunk.kind is ChunkKind.EDIT
        )
