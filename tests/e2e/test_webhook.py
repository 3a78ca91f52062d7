"""The webhook of a2a-handler with the proxy before it: it receives what it receives without, and
each notification is recorded and judged with the stream of its task."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from a2a_proxy.model.values import Binding, FrameKind, Severity
from support_frameworks import anonymous, run_client
from support_peers import agent, require_peers
from support_proxy import Proxy, finished

pytestmark = [pytest.mark.peers, pytest.mark.soak]


def received(base_url: str) -> list[Any]:
    """Return what the webhook has received so far."""
    with urllib.request.urlopen(f"{base_url}/notifications", timeout=10) as response:
        listed = json.load(response)["notifications"]
    assert isinstance(listed, list)
    return listed


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON", "GRPC"])
def test_a_webhook_behind_the_proxy_receives_the_same(binding: str, tmp_path: Path) -> None:
    require_peers("sdk1", "handler")
    with agent("sdk1", "--first", binding) as far, agent("handler") as hook:
        direct = anonymous(run_client(f"handler --push-url {hook.base_url}/webhook", far.base_url))
        alone = received(hook.base_url)
        place = f"127.0.0.1:{hook.http}"
        more = ("--listen", "127.0.0.1:0", "--upstream", place, "--upstream-grpc", place)
        between = Proxy(tmp_path, f"127.0.0.1:{far.http}", far.grpc_target, *more).start()
        try:
            to_agent, to_hook = [route["listen"][0] for route in between.said("start")[0]["routes"]]
            relayed = anonymous(
                run_client(f"handler --push-url http://{to_hook}/webhook", f"http://{to_agent}")
            )
            with finished(between) as recording:
                exchanges = [
                    row
                    for row in recording.read_exchanges()
                    if row.exchange.binding is Binding.WEBHOOK
                ]
                frames = [row.frame for row in recording.frames_after(0)]
                errors = {
                    row.finding.rule
                    for row in recording.read_findings()
                    if row.finding.severity is Severity.ERROR
                }
        finally:
            between.kill()
        through = received(hook.base_url)[len(alone) :]
    assert len(alone) == 9
    assert relayed == direct
    assert anonymous(through) == anonymous(alone)
    assert [row.exchange.status for row in exchanges] == [200] * len(through)
    assert len({row.exchange.task_id for row in exchanges}) == 1
    assert not [frame for frame in frames if frame.kind is FrameKind.UNDECODABLE]
    assert errors == set()
