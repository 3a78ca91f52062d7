"""Two agents behind one origin are two agents everywhere: real servers, the real proxy, its
recording and commands."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from a2a_proxy.model.values import Severity
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.telemetry.span_reader import SpanReader
from support_mock import Replay
from support_peers import TWO_AGENTS, agent, require_peers
from support_proxy import Proxy, inspect, proxy

pytestmark = pytest.mark.peers

NAMES = ("alpha", "beta")
CARD = "/.well-known/agent-card.json"


class Caller:
    """A client of both agents, which has both cards before it calls one."""

    def __init__(self, base_url: str, forward: str = "") -> None:
        self.base_url = base_url
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({"http": forward} if forward else {})
        )

    def fetch(self, path: str, body: dict[str, Any] | None = None) -> bytes:
        """Return the answer to a GET, or to a JSON-RPC call."""
        data = None if body is None else json.dumps({"jsonrpc": "2.0", "id": 1, **body}).encode()
        fields = {"Content-Type": "application/json", "A2A-Version": "1.0"}
        request = urllib.request.Request(self.base_url + path, data, fields)
        with self._opener.open(request, timeout=60) as answer:
            return bytes(answer.read())

    def send(self, name: str, method: str, text: str) -> bytes:
        """Send a text to an agent, in the context of all messages."""
        message = {
            "messageId": f"{name} {method}",
            "contextId": "one",
            "role": "ROLE_USER",
            "parts": [{"text": text}],
        }
        path = json.loads(self.fetch(f"/a2a/{name}{CARD}"))["supportedInterfaces"][0][
            "url"
        ].partition("/a2a/")[2]
        return self.fetch(f"/a2a/{path}", {"method": method, "params": {"message": message}})

    def talk(self, *, asks: bool) -> None:
        """Call both agents; with `asks` the first one asks the second one, through the proxy."""
        for name in NAMES:
            self.fetch(f"/a2a/{name}{CARD}")
        for name in NAMES:
            assert f"{name} says hello".encode() in self.send(name, "SendMessage", "hello")
        text = f"ask {self.base_url}/a2a/beta" if asks else "hello"
        assert b"COMPLETED" in self.send("alpha", "SendStreamingMessage", text)


@pytest.fixture(params=[*TWO_AGENTS, "mounted by --forward"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Proxy, str, bool]]:
    """The stopped proxy, the upstream of both agents, and whether one has asked the other."""
    kind = request.param.partition(" ")[0]
    require_peers(TWO_AGENTS[kind])
    by_forward = kind != request.param
    asks = kind == "mounted" and not by_forward
    with agent(kind) as far:
        way = ("", "", "--forward", "127.0.0.1:0") if by_forward else (f"127.0.0.1:{far.http}",)
        with proxy(tmp_path, *way) as between:
            caller = (
                Caller(far.base_url, between.base_url) if by_forward else Caller(between.base_url)
            )
            caller.talk(asks=asks)
            between.stop()
            yield between, f"127.0.0.1:{far.http}", asks


def test_two_agents_behind_one_origin(run: tuple[Proxy, str, bool]) -> None:
    """Tasks, segments, spans, filters and names tell them apart, the hand-off is seen, and no
    finding is false."""
    between, upstream, asks = run
    alpha, beta = (f"{upstream}/a2a/{name}" for name in NAMES)
    with Recording(between.recording) as recording:
        exchanges = [row.exchange for row in recording.read_exchanges()]
        findings = [row.finding for row in recording.read_findings()]
        tasks = {row.task.agent for row in recording.read_tasks()}
        handoffs = {
            (row.handoff.agent, row.handoff.to_agent, row.handoff.kind)
            for row in recording.read_handoffs()
        }
        (session,) = recording.read_sessions()
        spans = SpanReader(recording, session)
        services = {each.agent: spans.service_name(each) for each in exchanges}
        found = {each.exchange.agent for each in recording.find_exchanges("agent:beta")}
        frames = {each.frame.exchange for each in recording.find_frames("agent:beta")}

    assert [each.summary for each in findings if each.severity >= Severity.WARNING] == []
    assert {each.agent for each in exchanges} == tasks == {alpha, beta}
    assert services == {alpha: "alpha", beta: "beta"}
    assert found == {beta}
    assert frames == {each.id for each in exchanges if each.agent == beta}
    assert ((alpha, beta, "delegation") in handoffs) == asks
    replay = Replay(between.folder / "replay", between.recording)
    for name in reversed(NAMES):  # the requests are equal
        assert f"{name} says hello".encode() in Caller(replay.url).send(
            name, "SendMessage", "hello"
        )
    assert replay.stop() == 0
    lines = inspect(between.state, "segments", between.recording).splitlines()
    assert {
        line.rpartition("  agent ")[2] for line in lines if line.lstrip().startswith("task ")
    } == set(NAMES)
