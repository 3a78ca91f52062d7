"""Resources, and names of services."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from a2a_proxy.model.values import Connection
from a2a_proxy.recording.read.rows import SessionFacts, SessionRow
from a2a_proxy.telemetry.call_facts import CardIdentity
from a2a_proxy.telemetry.logs import frame_log
from a2a_proxy.telemetry.otlp_json import logs_object, spans_object
from a2a_proxy.telemetry.services import ServiceNames, is_service_named, session_resource
from a2a_proxy.telemetry.values import SpanContextIds, SpanKind, SpanValue, service_resource
from support_inspect import MS, status
from support_recording import STARTED, facts

CARD = CardIdentity("Desk agent", "1")
SPAN = SpanValue(
    name="x",
    kind=SpanKind.INTERNAL,
    context=SpanContextIds("1" * 32, "2" * 16),
    parent=None,
    started=1,
    ended=2,
    attributes={},
)


def session(
    names: Sequence[str], upstreams: Sequence[str] = ("agent:8000", "https://other (port 443)")
) -> SessionFacts:
    return msgspec.structs.replace(
        facts(),
        listens=("127.0.0.1:9000, [::1]:9000", "0.0.0.0:9001")[: len(upstreams)],
        upstreams=tuple(upstreams),
        names=tuple(names),
    )


def connection(
    listen: str = "127.0.0.1:9000", upstream: str = "agent:8000", kind: str = ""
) -> Connection:
    return Connection(1, "127.0.0.1:5000", listen, upstream, STARTED, kind=kind)


@pytest.mark.parametrize(
    ("names", "where", "name"),
    [
        ((), connection(), "Desk agent"),
        (("desk", ""), connection(), "desk"),
        (("desk", ""), connection("[::1]:9000"), "desk"),
        (("", "clerk"), connection(), "Desk agent"),
        (("desk", "clerk"), connection("192.168.0.7:9001", "https://other"), "clerk"),
        (("desk", "clerk"), connection("127.0.0.1:40000", "agent:8001"), "desk"),
        (("desk", "clerk"), connection("127.0.0.1:40000", "else:8001"), "Desk agent"),
    ],
)
def test_the_users_name_precedes_that_of_the_card(
    names: Sequence[str], where: Connection, name: str
) -> None:
    """A listener that a card opened has the name of the only pair with the agent's host."""
    assert ServiceNames(session(names)).find_name(where, CARD) == name


def test_a_host_of_two_agents_names_neither() -> None:
    given = ServiceNames(session(("desk", "clerk"), ("agent:8000", "agent:8001")))
    assert given.find_name(connection("127.0.0.1:40000", "agent:8002"), None) == "agent:8002"


@pytest.mark.parametrize(
    ("where", "name"),
    [
        (connection(), "agent:8000"),
        (connection(upstream="https://agent"), "agent:443"),
        (connection(upstream="http://[::1]:7"), "[::1]:7"),
        (connection(upstream="odd"), "odd"),
        (connection("stdio", "/usr/bin/agent --card x", "stdio"), "agent"),
        (None, ""),
    ],
)
def test_without_a_name_the_address_names_the_service(where: Connection | None, name: str) -> None:
    assert ServiceNames(session(())).find_name(where, None) == name
    assert ServiceNames(session(())).find_name(where, CardIdentity("  ", "1")) == name


def test_the_standard_variables_name_the_service() -> None:
    row = SessionRow(id=1, facts=facts(), ended=STARTED + MS, complete="3 bytes missing", lost=3)
    assert session_resource(row, {}) == {
        "service.name": "a2a-proxy",
        "telemetry.distro.name": "a2a-proxy",
        "telemetry.distro.version": "test",
        "a2a_proxy.session.id": facts().uuid,
        "a2a_proxy.capture.complete": False,
        "a2a_proxy.capture.missing_bytes": 3,
    }
    variables = {
        "OTEL_SERVICE_NAME": "desk",
        "OTEL_RESOURCE_ATTRIBUTES": "team=a%20b,service.name=x,odd",
    }
    named = session_resource(row, variables)
    assert (named["service.name"], named["team"]) == ("desk", "a b")
    assert [
        is_service_named(each)
        for each in (variables, {"OTEL_RESOURCE_ATTRIBUTES": "service.name=x"}, {})
    ] == [
        True,
        True,
        False,
    ]
    assert service_resource(named, "") == named
    assert service_resource(named, "clerk")["service.name"] == "clerk"


def test_spans_and_logs_are_grouped_by_service() -> None:
    named = [
        msgspec.structs.replace(SPAN, service=service) for service in ("desk", "clerk", "desk")
    ]
    made = spans_object({"service.name": "a2a-proxy", "team": "a"}, named)["resourceSpans"]
    assert [len(each["scopeSpans"][0]["spans"]) for each in made] == [2, 1]
    values = [
        [pair["value"]["stringValue"] for pair in each["resource"]["attributes"]] for each in made
    ]
    assert values == [["desk", "a"], ["clerk", "a"]]
    log = frame_log(status(1, 1, "x"), SPAN.context, "desk")
    (group,) = logs_object({"service.name": "a2a-proxy"}, [log])["resourceLogs"]
    assert group["resource"]["attributes"][0]["value"] == {"stringValue": "desk"}
