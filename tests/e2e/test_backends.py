"""A chain of three agents, seen by tracing backends that people run: what they give back is what was recorded.

`python tests/peers/setup.py --soak` installs them, `tests/run -m soak tests/e2e/test_backends.py` runs this.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from a2a_proxy.model.exchange import Exchange
from a2a_proxy.recording.reader import Recording
from support_backends import Mlflow, Phoenix, Seen, mlflow, phoenix
from support_chain import AGENTS, ASKS, talk
from support_peers import missing
from support_proxy import inspect

pytestmark = [pytest.mark.soak, pytest.mark.skipif(bool(missing("traced")), reason=str(missing("traced")))]

SEND, CARD = "SendStreamingMessage", "GetAgentCard"
OTHER = {"grpc": "http/protobuf", "http/protobuf": "grpc"}
NS, US = 1, 1000
"""What the backends keep of a time: MLflow all of it, Phoenix the microsecond."""
CLOCKS_NS = 5_000_000
"""What the clocks of two processes may differ."""


@pytest.fixture(scope="module")
def a_phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phoenix]:
    if why := missing("phoenix"):
        pytest.skip(why)
    with phoenix(tmp_path_factory.mktemp("phoenix")) as running:
        yield running


@pytest.fixture(scope="module")
def a_mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mlflow]:
    if why := missing("mlflow"):
        pytest.skip(why)
    with mlflow(tmp_path_factory.mktemp("mlflow")) as running:
        yield running


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A project of Phoenix for the spans of this test."""
    name = f"test-{abs(hash(request.node.name))}"
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", f"openinference.project.name={name}")
    # Phoenix takes neither.
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    return name


def endpoint(where: Phoenix, protocol: str) -> str:
    return where.grpc if protocol == "grpc" else where.http


def export(path: Path, to: str, protocol: str) -> None:
    inspect(path.parent / "state", "export", "otlp", path, "--endpoint", to, "--protocol", protocol)


def recorded(paths: list[Path]) -> list[Exchange]:
    """All calls of the recordings, in order of time."""
    found: list[Exchange] = []
    for path in paths:
        with Recording(path) as recording:
            found += [row.exchange for row in recording.exchanges()]
    return sorted(found, key=lambda each: each.started)


def ours(spans: list[Seen], name: str) -> list[Seen]:
    """The proxy's spans of this name: the chain has one for each hop, in the order of the hops."""
    return [each for each in spans if each.name == name and "a2a_proxy.binding" in each.attributes]


def of_agents(spans: list[Seen], side: str) -> dict[str, Seen]:
    """The spans that agents and client have sent themselves, by who did."""
    return {each.attributes["actor"]: each for each in spans if each.attributes.get("side") == side}


def check_as_recorded(spans: list[Seen], calls: list[Exchange], unit: int) -> None:
    """Names, times (to so many ns), what is told of each hop, and its events."""
    assert [each.name for each in spans] == [call.operation for call in calls]
    for each, call in zip(spans, calls, strict=True):
        assert abs(each.started - call.started) < unit
        assert abs(each.ended - call.closed) < unit
    hops = ours(spans, SEND)
    assert [hop.attributes["a2a_proxy.binding"] for hop in hops] == ["jsonrpc", "grpc", "http+json"]
    assert [hop.attributes["gen_ai.agent.name"] for hop in hops] == list(AGENTS)
    assert len({hop.attributes["gen_ai.conversation.id"] for hop in hops}) == 1
    assert len({hop.attributes["a2a.task.id"] for hop in hops}) == len(AGENTS)
    for hop, call in zip(hops, [each for each in calls if each.operation == SEND], strict=True):
        assert hop.attributes["a2a.task.id"] == call.task_id
        assert hop.attributes["a2a.task.state"] == "completed"
        told = [each for each in hop.events if each[0] != "a2a_proxy.finding"]
        assert [name for name, _ in told] == ["a2a_proxy.first_event", *["a2a.task.state_change"] * 3]
        assert abs(told[0][1] - call.first_event) < unit
        assert all(call.started - unit < at < call.closed + unit for _, at in hop.events)
        assert not hop.error


def check_one_tree(spans: list[Seen]) -> None:
    """Each agent's spans and the proxy's, every one below who caused it."""
    asking, serving = of_agents(spans, "asking"), of_agents(spans, "serving")
    assert len({each.trace for each in spans}) == 1
    assert asking["caller"].parent == ""
    for who, agent, call, card in zip(ASKS, AGENTS, ours(spans, SEND), ours(spans, CARD), strict=True):
        assert {call.parent, card.parent, serving[agent].parent} == {asking[who].span}
        if agent in asking:
            assert asking[agent].parent == serving[agent].span
        for each in (call, card):
            assert asking[who].started - CLOCKS_NS <= each.started <= each.ended <= asking[who].ended + CLOCKS_NS


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_where_traces_are_forwarded_phoenix_has_one_tree(
    a_phoenix: Phoenix, project: str, tmp_path: Path, protocol: str
) -> None:
    """Sent live, and a second time afterwards over the other protocol: nothing is there twice."""
    words = ("--otlp", endpoint(a_phoenix, protocol), "--otlp-protocol", protocol)
    paths = talk(tmp_path, *words, trace="spans", spans_to=a_phoenix.http, project=project)
    calls = recorded(paths)
    count = len(calls) + len(ASKS) + len(AGENTS)
    live = a_phoenix.spans(project, count)
    check_one_tree(live)
    check_as_recorded([each for each in live if "actor" not in each.attributes], calls, US)
    export(*paths, endpoint(a_phoenix, OTHER[protocol]), OTHER[protocol])
    assert a_phoenix.spans(project, count + 1) == live


def test_three_proxies_make_one_tree_too(a_phoenix: Phoenix, project: str, tmp_path: Path) -> None:
    """Recorded apart, and sent long after."""
    paths = talk(tmp_path, trace="spans", apart=True, spans_to=a_phoenix.http, project=project)
    for path in paths:
        export(path, a_phoenix.http, "http/protobuf")
    calls = recorded(paths)
    found = a_phoenix.spans(project, len(calls) + len(ASKS) + len(AGENTS))
    check_one_tree(found)
    check_as_recorded([each for each in found if "actor" not in each.attributes], calls, US)


def test_where_traces_end_at_each_agent_mlflow_has_links(
    a_mlflow: Mlflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trace a call; those of the chain are joined by links. Sent live and afterwards: nothing is there twice."""
    experiment = a_mlflow.experiment("chain")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"x-mlflow-experiment-id={experiment}")
    # MLflow takes neither.
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    paths = talk(tmp_path, "--otlp", a_mlflow.http, "--otlp-protocol", "http/protobuf")
    calls = recorded(paths)
    live = a_mlflow.spans(experiment, len(calls))
    check_as_recorded(live, calls, NS)
    assert len({each.trace for each in live}) == len(live)
    assert {each.parent for each in live} == {""}
    desk, broker, hotel = ours(live, SEND)
    assert {each.span: each.links for each in live if each.links} == {
        broker.span: ((desk.trace, desk.span, "handoff"),),
        hotel.span: ((broker.trace, broker.span, "handoff"),),
    }
    export(*paths, a_mlflow.http, "http/protobuf")
    assert a_mlflow.spans(experiment, len(calls) + 1) == live
