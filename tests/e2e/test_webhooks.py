"""Push notifications with `--webhooks`: SDK clients and agents notice nothing, and each delivery is on its task."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.finding import Severity
from a2a_proxy.recording.read.reader import Recording
from support_peers import Agent, agent, missing, normalise, run_client
from support_proxy import Proxy

pytestmark = pytest.mark.peers

SCENARIOS = {"sdk1": ["push", "webhook"], "sdk03": ["push", "webhook"], "js24": ["push"]}
AGENTS = {"sdk1": "sdk1", "sdk03": "sdk03", "js24": "sdk1"}
BINDINGS = ("jsonrpc", "rest", "grpc")


def webhooks_port() -> int:
    """Return a free port, which stays the same for several runs of the proxy."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
    return port


def between(folder: Path, far: Agent, port: int) -> Proxy:
    folder.mkdir(exist_ok=True)
    return Proxy(folder, f"127.0.0.1:{far.http}", far.grpc_target, "--webhooks", f"127.0.0.1:{port}").start()


def deliveries(path: Path) -> list[Any]:
    with Recording(path) as recording:
        return [row.exchange for row in recording.read_exchanges() if row.exchange.binding is Binding.WEBHOOK]


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("kind", SCENARIOS)
def test_clients_notice_nothing(kind: str, binding: str, tmp_path: Path) -> None:
    """Their transcripts, with what their webhooks received, are those without the proxy."""
    if why := missing(kind, AGENTS[kind]):
        pytest.skip(why)
    with agent(AGENTS[kind]) as far:
        run = lambda base, target: asyncio.run(run_client(kind, binding, SCENARIOS[kind], base, target))  # noqa: E731
        direct = normalise(run(far.base_url, far.grpc_target))
        one = between(tmp_path, far, webhooks_port())
        try:
            relayed = normalise(run(one.base_url, one.address))
            one.stop()
        finally:
            one.kill()
    assert relayed == direct
    found = deliveries(one.recording)
    posts = [event for streams in relayed.values() for event in streams.get("webhook", [])]
    assert len(found) == len(posts)
    assert {each.status for each in found} <= {200}
    with Recording(one.recording) as recording:
        tasks = {
            row.exchange.task_id for row in recording.read_exchanges() if row.exchange.operation.startswith("Send")
        }
        assert {each.task_id for each in found} <= tasks - {""}
        errors = [row.finding for row in recording.read_findings() if row.finding.severity is Severity.ERROR]
        (session,) = recording.read_sessions()
    assert (session.how, session.lost) == ("clean", 0)
    assert session.edits >= 3
    assert [each.summary for each in errors] == []
    assert all(each.target == "/hook" for each in found)
