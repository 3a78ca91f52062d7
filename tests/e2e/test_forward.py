"""Real clients that use the proxy by environment variables behave as without it, and everything is recorded."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from a2a_proxy.recording.read.reader import Recording
from support_account import lines, match, told
from support_peers import Transcript, agent, missing, normalise, run_client
from support_proxy import proxy

SCENARIOS = [
    "card",
    "streaming",
    "failures",
    "errors",
    "concurrent",
    "unary",
    "parts",
    "input",
    "cancel",
    "push",
    "big",
]
CLIENTS = {"sdk1": ("jsonrpc", "rest"), "sdk03": ("jsonrpc", "rest")}


def proxy_variables(address: str) -> dict[str, str]:
    """Return the variables with which HTTP and gRPC clients use a proxy, for this machine too."""
    names = ("HTTP_PROXY", "http_proxy", "grpc_proxy")
    empty = dict.fromkeys(("NO_PROXY", "no_proxy", "no_grpc_proxy"), "")
    return {**dict.fromkeys(names, f"http://{address}"), **empty}


@pytest.mark.peers
@pytest.mark.parametrize(("kind", "bindings"), CLIENTS.items(), ids=CLIENTS)
def test_sdk_clients(tmp_path: Path, kind: str, bindings: tuple[str, ...]) -> None:
    """The transcripts of each binding are those without the proxy, each event is recorded once, and every connection
    has the agent as its upstream."""
    if why := missing(kind):
        pytest.skip(why)

    async def run_all(base_url: str, grpc: str, variables: dict[str, str]) -> dict[str, list[Transcript]]:
        seen = await asyncio.gather(
            *(run_client(kind, each, SCENARIOS, base_url, grpc, variables=variables) for each in bindings)
        )
        return dict(zip(bindings, seen, strict=True))

    with agent(kind) as far:
        with proxy(tmp_path, "", "", "--forward", "127.0.0.1:0") as between:
            forwarded = asyncio.run(run_all(far.base_url, far.grpc_target, proxy_variables(between.address)))
            summary = between.stop()
        direct = asyncio.run(run_all(far.base_url, far.grpc_target, {}))
    for binding in bindings:
        assert normalise(direct[binding]) == normalise(forwarded[binding])
    account = [line for binding, seen in forwarded.items() for line in lines(binding, seen, frozenset())]
    with Recording(tmp_path / "recording.a2a") as recording:
        match(told(recording), account)
        assert {(line.binding, line.scenario, line.stream): line.untold for line in account if line.untold} == {}
        upstreams = Counter(row.connection.upstream for row in recording.read_connections())
        assert set(upstreams) <= {f"127.0.0.1:{far.http}", far.grpc_target}
        exchanges = Counter(str(row.exchange.binding) for row in recording.read_exchanges())
        assert set(bindings) <= set(exchanges)
    assert summary["complete"]
