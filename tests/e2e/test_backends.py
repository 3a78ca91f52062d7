"""A chain of three agents in real tracing backends: the spans that they return match the recording.

`python tests/peers/setup.py --soak` installs them, `tests/run -m soak tests/e2e/test_backends.py`
runs this.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from a2a_proxy.telemetry.request_outcome import SENT
from a2a_proxy.telemetry.sdk import SdkBackend
from a2a_proxy.telemetry.target import otlp_target
from a2a_proxy.telemetry.values import SpanContextIds, SpanKind, SpanValue
from support_backends import Mlflow, Phoenix, mlflow, phoenix
from support_chain import AGENTS, ASKS, talk
from support_peers import require_peers
from support_proxy import inspect
from support_spans import (
    Seen,
    check_apart,
    check_as_recorded,
    check_chain,
    check_links,
    check_one_tree,
    is_onward,
    recorded,
)

pytestmark = pytest.mark.soak

OTHER = {"grpc": "http/protobuf", "http/protobuf": "grpc"}
NS, US = 1, 1000
"""Precision of the backends' times: MLflow stores ns, Phoenix microseconds."""


@pytest.fixture(scope="module", autouse=True)
def traced() -> None:
    require_peers("traced")


@pytest.fixture(scope="module")
def a_phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phoenix]:
    require_peers("phoenix")
    with phoenix(tmp_path_factory.mktemp("phoenix")) as running:
        yield running


@pytest.fixture(scope="module")
def a_mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mlflow]:
    require_peers("mlflow")
    with mlflow(tmp_path_factory.mktemp("mlflow")) as running:
        yield running


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """Return a Phoenix project for the spans of this test."""
    name = f"test-{abs(hash(request.node.name))}"
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", f"openinference.project.name={name}")
    return name


@pytest.fixture
def experiment(
    a_mlflow: Mlflow, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> str:
    """Create an MLflow experiment for the spans of this test."""
    made = a_mlflow.experiment(request.node.name)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"x-mlflow-experiment-id={made}")
    return made


def endpoint(where: Phoenix, protocol: str) -> str:
    return where.grpc if protocol == "grpc" else where.http


def export(paths: list[Path], to: str, protocol: str) -> None:
    inspect(
        paths[0].parent / "state",
        "export",
        "otlp",
        *paths,
        "--endpoint",
        to,
        "--protocol",
        protocol,
    )


def check_nothing_more(where: Phoenix, project: str, before: list[Seen], protocol: str) -> None:
    """Send one more span: when it is stored, all earlier spans have been processed."""
    now = time.time_ns()
    context = SpanContextIds(uuid.uuid4().hex, uuid.uuid4().hex[:16])
    last = SpanValue(
        name="last",
        kind=SpanKind.INTERNAL,
        context=context,
        parent=None,
        started=now,
        ended=now,
        attributes={},
    )
    backend = SdkBackend(otlp_target(endpoint(where, protocol), protocol, {}))
    assert backend.send_spans({"openinference.project.name": project}, [last]) == SENT
    backend.close()
    *others, seen = where.spans(project, len(before) + 1)
    assert (seen.name, others) == ("last", before)


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_phoenix_shows_forwarded_traces_as_one_tree(
    a_phoenix: Phoenix, project: str, tmp_path: Path, protocol: str
) -> None:
    """Sent live, and again afterwards over the other protocol: no span is stored twice."""
    words = ("--otlp", endpoint(a_phoenix, protocol), "--otlp-protocol", protocol)
    paths = talk(tmp_path, *words, trace="spans", spans_to=a_phoenix.http, project=project)
    calls = recorded(paths)
    count = len(calls) + len(ASKS) + len(AGENTS)
    live = a_phoenix.spans(project, count)
    check_one_tree(live)
    check_as_recorded([each for each in live if "actor" not in each.attributes], calls, US)
    export(paths, endpoint(a_phoenix, OTHER[protocol]), OTHER[protocol])
    check_nothing_more(a_phoenix, project, live, OTHER[protocol])


def test_recordings_of_three_proxies_form_one_tree(
    a_phoenix: Phoenix, project: str, tmp_path: Path
) -> None:
    """Each proxy has a recording of its own; the spans are sent later."""
    paths = talk(tmp_path, trace="spans", apart=True, spans_to=a_phoenix.http, project=project)
    export(paths, a_phoenix.http, "http/protobuf")
    calls = recorded(paths)
    found = a_phoenix.spans(project, len(calls) + len(ASKS) + len(AGENTS))
    check_one_tree(found)
    check_as_recorded([each for each in found if "actor" not in each.attributes], calls, US)


def test_mlflow_shows_links_where_traces_end_at_agents(
    a_mlflow: Mlflow, experiment: str, tmp_path: Path
) -> None:
    """Each call has a trace of its own; links join those of the chain. Sent live and again
    afterwards: no span is stored twice."""
    paths = talk(tmp_path, "--otlp", a_mlflow.http, "--otlp-protocol", "http/protobuf")
    calls = recorded(paths)
    live = a_mlflow.spans(experiment, len(calls))
    check_as_recorded(live, calls, NS)
    check_apart(live)
    check_links(live)
    export(paths, a_mlflow.http, "http/protobuf")
    assert a_mlflow.spans(experiment, len(calls)) == live  # it stores spans before it answers


def test_recordings_of_three_proxies_are_joined_by_links(
    a_mlflow: Mlflow, experiment: str, tmp_path: Path
) -> None:
    """Each proxy has a recording of its own; the spans are sent together."""
    paths = talk(tmp_path, apart=True)
    export(paths, a_mlflow.http, "http/protobuf")
    calls = recorded(paths)
    found = a_mlflow.spans(experiment, len(calls))
    check_as_recorded(found, calls, NS)
    check_apart(found)
    check_links(found)


def test_mlflow_reads_an_exported_file(a_mlflow: Mlflow, experiment: str, tmp_path: Path) -> None:
    """Each line is an OTLP request in JSON. MLflow reads its ids as hexadecimal, but not the ids of
    links, which are missing."""
    paths = talk(tmp_path)
    inspect(tmp_path / "state", "export", "otlp", *paths, "--output", tmp_path / "spans.jsonl")
    for line in (tmp_path / "spans.jsonl").read_bytes().splitlines():
        a_mlflow.take(experiment, line)
    calls = recorded(paths)
    found = a_mlflow.spans(experiment, len(calls))
    check_as_recorded(found, calls, NS)
    check_apart(found)


def test_propagation_joins_agents_without_spans_into_one_tree(
    a_phoenix: Phoenix, project: str, tmp_path: Path
) -> None:
    """Only the proxy creates spans: each call is a child of the call that its agent received."""
    words = ("--propagate", "--otlp", a_phoenix.grpc, "--otlp-protocol", "grpc")
    paths = talk(tmp_path, *words, trace="header")
    spans = a_phoenix.spans(project, 2 * len(recorded(paths)))
    check_as_recorded([each for each in spans if not is_onward(each)], recorded(paths), US)
    check_chain(spans)
    export(paths, a_phoenix.http, "http/protobuf")
    check_nothing_more(a_phoenix, project, spans, "http/protobuf")
