"""Attributes of a call's span."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from a2a_proxy.model.values import Binding, Connection, ConnectionTls
from a2a_proxy.model.wire import CertificateFacts, ClientProcess, TlsFacts
from a2a_proxy.telemetry.attributes import (
    call_attributes,
    close_reason,
    error_type,
    path_template,
    span_name,
)
from a2a_proxy.telemetry.call_facts import (
    CallFacts,
    CardFetch,
    CardIdentity,
    PushDelivery,
    RequestFacts,
    context_of_headers,
    parse_request,
)
from a2a_proxy.telemetry.events import CallEvents
from a2a_proxy.telemetry.message_content import DirectionContent, MessageContent
from a2a_proxy.telemetry.span import call_span
from a2a_proxy.telemetry.span_options import SpanOptions
from a2a_proxy.telemetry.values import SpanContextIds, SpanKind
from support_inspect import TASK, exchange
from support_recording import STARTED

CONTEXT = SpanContextIds("1" * 32, "2" * 16)


def known(**more: Any) -> CallFacts:
    connection = Connection(1, "10.0.0.9:5000", "127.0.0.1:9000", "https://agent", STARTED)
    return CallFacts(
        exchange=exchange(1, **more),
        connection=connection,
        request=RequestFacts(),
        context=CONTEXT,
        parent=None,
    )


def test_a_stream_has_client_operation_and_outcome_attributes() -> None:
    attributes = call_attributes(
        known(rpc_id='"7"', bytes_to_agent=300, half_close="agent"), CallEvents()
    )
    assert attributes == {
        "a2a.method.name": "SendStreamingMessage",
        "a2a.protocol.version": "1.0",
        "a2a_proxy.wire.version": "1.0",
        "a2a_proxy.wire.method": "SendStreamingMessage",
        "a2a_proxy.binding": "jsonrpc",
        "a2a.task.id": TASK,
        "a2a.task.state": "completed",
        "a2a_proxy.exchange": 1,
        "rpc.system.name": "jsonrpc",
        "rpc.method": "SendStreamingMessage",
        "jsonrpc.request.id": "7",
        "jsonrpc.protocol.version": "2.0",
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "network.protocol.version": "1.1",
        "http.request.method": "POST",
        "url.path": "/rpc",
        "http.response.status_code": 200,
        "server.address": "agent",
        "server.port": 443,
        "client.address": "10.0.0.9",
        "a2a_proxy.stream": True,
        "a2a_proxy.stream.first_event_ms": 2.0,
        "a2a_proxy.stream.events": 2,
        "a2a_proxy.stream.bytes_in": 300,
        "a2a_proxy.stream.bytes_out": 0,
        "a2a_proxy.stream.max_gap_ms": 0.0,
        "a2a_proxy.stream.close_reason": "server_end",
        "a2a_proxy.stream.half_close_first": "server",
        "a2a_proxy.upstream.latency_ms": 1.0,
    }


def test_a_call_on_a_websocket_has_no_http_method() -> None:
    """Its method is that of JSON-RPC."""
    attributes = call_attributes(known(binding=Binding.WEBSOCKET, rpc_id='"7"'), CallEvents())
    assert attributes["network.protocol.name"] == "websocket"
    assert "http.request.method" not in attributes
    names = ("rpc.method", "a2a_proxy.wire.method")
    assert {attributes[each] for each in names} == {"SendStreamingMessage"}


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({}, ""),
        ({"states": ("failed",)}, ""),
        ({"error": "TASK_NOT_FOUND -32001: no such task"}, "TASK_NOT_FOUND"),
        ({"error": "-32001: gone", "error_code": -32001}, "TASK_NOT_FOUND"),
        ({"error": "-31999: ?", "error_code": -31999}, "-31999"),
        ({"error": "UNAVAILABLE: no", "grpc_status": 14}, "UNAVAILABLE"),
        ({"error": "99: ?", "grpc_status": 99}, "UNKNOWN"),
        ({"error": "HTTP 404: Not Found", "status": 404}, "404"),
        ({"how": "client cancel"}, "client_cancelled"),
        ({"how": "agent reset"}, "stream_cut"),
        ({"how": "proxy stopped"}, "proxy_stop"),
        ({"ours": True, "status": 502, "error": "HTTP 502: no agent"}, "refused"),
    ],
)
def test_error_types_are_a_small_set(more: dict[str, Any], word: str) -> None:
    assert error_type(exchange(1, **more)) == word
    assert bool(call_span(known(**more), CallEvents()).error) is bool(word)


@pytest.mark.parametrize(
    ("method", "target", "template"),
    [
        ("GET", "/v1/tasks/7f%2F1?historyLength=1", "/v1/tasks/{id}"),
        ("POST", "/ten/tasks/a:b:cancel", "/ten/tasks/{id}:cancel"),
        (
            "GET",
            "/tasks/t/pushNotificationConfigs/c",
            "/tasks/{id}/pushNotificationConfigs/{configId}",
        ),
        ("GET", "/tasks/tasks", "/tasks/{id}"),
        ("POST", "/message:send", "/message:send"),
        ("GET", "/favicon.ico", "/favicon.ico"),
    ],
)
def test_path_templates_have_no_ids(method: str, target: str, template: str) -> None:
    assert (
        path_template(exchange(1, binding=Binding.REST, method=method, target=target)) == template
    )


SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("how", "silent", "reason"),
    [
        ("complete", 0, "server_end"),
        ("client cancel", 0, "client_cancel"),
        ("agent reset", 29, "rst"),
        ("agent reset", 30, "idle"),
        ("agent gone", 3, "agent_gone"),
        ("agent gone", 60, "idle"),
        ("client gone", 60, "client_gone"),
        ("proxy killed", 60, "proxy_stop"),
    ],
)
def test_close_reason_distinguishes_idle_timeouts(how: str, silent: int, reason: str) -> None:
    ended = exchange(1, how=how, closed=exchange(1).started + (100 + silent) * SECOND)
    assert close_reason(ended, exchange(1).started + 100 * SECOND) == reason
    assert close_reason(exchange(1, closed=0, how=""), 0) == ""


def test_cards_pushes_and_subscriptions_have_their_own_attributes() -> None:
    card = CardIdentity("Desk", "2", signed=True)
    first, later = (
        call_attributes(
            msgspec.structs.replace(
                known(operation="GetAgentCard"), fetch=CardFetch(card, changed)
            ),
            CallEvents(),
        )
        for changed in (None, True)
    )
    assert (first["a2a_proxy.card.version"], first["a2a_proxy.card.signature"]) == ("2", "signed")
    assert "a2a_proxy.card.changed" not in first
    assert later["a2a_proxy.card.changed"] is True
    pushed = msgspec.structs.replace(
        known(binding=Binding.WEBHOOK), delivery=PushDelivery(3, token=False)
    )
    attributes = call_attributes(pushed, CallEvents())
    assert (attributes["a2a_proxy.push.attempt"], attributes["a2a_proxy.push.token_match"]) == (
        3,
        False,
    )
    resumed = call_attributes(msgspec.structs.replace(known(), resumed_from=7), CallEvents())
    assert resumed["a2a_proxy.stream.resumed_from"] == 7


def test_compat_options_add_the_names_of_other_tools() -> None:
    content = MessageContent(DirectionContent(text="Plan a day"), DirectionContent(text="Done"))
    facts = msgspec.structs.replace(known(context_id="c"), content=content)
    plain = call_span(facts, CallEvents()).attributes
    assert not [
        name
        for name in plain
        if name.startswith(("kong", "openinference", "langfuse", "session", "input"))
    ]
    made = call_span(
        facts, CallEvents(), SpanOptions(compat=("kong", "openinference", "langfuse"))
    ).attributes
    assert {name: value for name, value in made.items() if name not in plain} == {
        "kong.a2a.operation": "SendStreamingMessage",
        "kong.a2a.protocol.version": "1.0",
        "kong.a2a.task.id": TASK,
        "kong.a2a.task.state": "completed",
        "kong.a2a.context.id": "c",
        "kong.a2a.streaming": True,
        "kong.a2a.ttfb_latency": 2.0,
        "kong.a2a.sse_events_count": 2,
        "openinference.span.kind": "AGENT",
        "session.id": "c",
        "input.value": "Plan a day",
        "output.value": "Done",
        "langfuse.observation.type": "agent",
        "langfuse.observation.input": "Plan a day",
        "langfuse.observation.output": "Done",
    }


def test_the_proposed_conventions_have_three_names_of_their_own() -> None:
    asked = RequestFacts("m1", ("a", "b"))
    where = "http://agent:1/.well-known/agent-card.json"
    facts = msgspec.structs.replace(known(), request=asked, card_url=where)
    made = call_span(facts, CallEvents(), SpanOptions(compat=("semconv",))).attributes
    plain = call_span(facts, CallEvents()).attributes
    assert {name: value for name, value in made.items() if name not in plain} == {
        "a2a.message.referenced_task_ids": ("a", "b"),
        "a2a.protocol.binding": "JSONRPC",
        "a2a.agent.card.url": where,
    }
    assert made["a2a.message.reference_task_ids"] == ("a", "b")


@pytest.mark.parametrize(
    ("binding", "name"),
    [
        (Binding.GRPC, "GRPC"),
        (Binding.REST, "HTTP+JSON"),
        (Binding.STDIO, None),
        (Binding.CARD, None),
    ],
)
def test_bindings_have_the_names_of_agent_cards(binding: Binding, name: str | None) -> None:
    made = call_span(
        known(binding=binding), CallEvents(), SpanOptions(compat=("semconv",))
    ).attributes
    assert made.get("a2a.protocol.binding") == name
    assert "a2a.agent.card.url" not in made
    assert "a2a.message.referenced_task_ids" not in made


def test_span_names_are_few_and_a_push_is_a_consumer_span() -> None:
    assert span_name(exchange(1, operation="", method="tools/list")) == "unknown"
    pushed = call_span(
        known(binding=Binding.WEBHOOK, operation=""), CallEvents(), SpanOptions("server")
    )
    assert (pushed.name, pushed.kind) == ("push_notification", SpanKind.CONSUMER)
    assert call_span(known(), CallEvents(), SpanOptions("server")).kind is SpanKind.SERVER


def test_request_fields_are_attributes() -> None:
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    message = {"referenceTaskIds": ["a", 1, "b"], "metadata": {"traceparent": parent}}
    request = parse_request({"message": message, "tenant": "acme"}, "m1")
    assert request == RequestFacts(
        "m1", ("a", "b"), "acme", SpanContextIds(parent[3:35], parent[36:52])
    )
    message = {"metadata": {"traceparent": parent, "tracestate": "a=1"}}
    assert parse_request({"message": message}, "").parent == SpanContextIds(
        parent[3:35], parent[36:52], "a=1"
    )
    assert parse_request(
        {"jsonrpc": "2.0", "params": {"id": "t", "metadata": {"traceparent": parent}}}, ""
    ).parent
    for odd in (
        None,
        "text",
        [],
        {"message": 1, "metadata": []},
        {"message": {"metadata": {"traceparent": 1}}},
    ):
        assert parse_request(odd, "") == RequestFacts()
    made = CallFacts(
        exchange=exchange(1),
        connection=None,
        request=request,
        context=CONTEXT,
        parent=None,
        card=CardIdentity("Desk", "2"),
    )
    attributes = call_attributes(made, CallEvents())
    assert (attributes["a2a.message.reference_task_ids"], attributes["a2a.tenant"]) == (
        ("a", "b"),
        "acme",
    )
    assert (attributes["gen_ai.agent.name"], attributes["gen_ai.agent.version"]) == ("Desk", "2")


def test_tracestate_is_kept_only_with_a_valid_traceparent() -> None:
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    headers = ((b"TraceState", b"a=1"), (b"tracestate", b"b=2"))
    found = context_of_headers(exchange(1, traceparent=parent, request_headers=headers))
    assert found == SpanContextIds(parent[3:35], parent[36:52], "a=1,b=2")
    assert context_of_headers(exchange(1, traceparent="odd", request_headers=headers)) is None


def test_the_peer_is_the_agent_except_for_a_server() -> None:
    facts = msgspec.structs.replace(known(), service="desk")
    assert call_span(facts, CallEvents()).attributes["peer.service"] == "desk"
    assert "peer.service" not in call_span(facts, CallEvents(), SpanOptions("server")).attributes


def test_any_address_is_accepted() -> None:
    """Of an agent or of a client; an invalid address is exported unchanged."""
    facts = known()
    assert facts.connection is not None
    odd = msgspec.structs.replace(facts.connection, client="[y]:z", upstream="http://[x")
    attributes = call_attributes(msgspec.structs.replace(facts, connection=odd), CallEvents())
    assert (attributes["server.address"], attributes["client.address"]) == ("http://[x", "[y]:z")


def test_the_process_of_the_client_has_attributes() -> None:
    facts = known()
    assert facts.connection is not None
    found = msgspec.structs.replace(
        facts.connection, client_process=ClientProcess(71, "planner", (8001,))
    )
    attributes = call_attributes(msgspec.structs.replace(facts, connection=found), CallEvents())
    assert (
        attributes["a2a_proxy.client.process.pid"],
        attributes["a2a_proxy.client.process.name"],
    ) == (
        71,
        "planner",
    )


def test_tls_handshakes_have_attributes() -> None:
    """By the names of OpenTelemetry where they exist; the agent's have a prefix."""
    facts = known()
    assert facts.connection is not None
    ours = CertificateFacts("ab" * 32, ("localhost",), "2027-02-20T16:57:57Z")
    theirs = CertificateFacts("cd" * 32, verified=True)
    tls = ConnectionTls(
        TlsFacts("TLSv1.3", "TLS_AES_256_GCM_SHA384", "h2", "localhost", ours, theirs),
        TlsFacts("TLSv1.2", "ECDHE", "http/1.1", "", theirs),
    )
    found = msgspec.structs.replace(facts.connection, tls=tls)
    attributes = call_attributes(msgspec.structs.replace(facts, connection=found), CallEvents())
    shown = {
        name: value
        for name, value in attributes.items()
        if "tls" in name and value not in (None, "")
    }
    assert shown == {
        "tls.established": True,
        "tls.protocol.name": "tls",
        "tls.protocol.version": "1.3",
        "tls.cipher": "TLS_AES_256_GCM_SHA384",
        "tls.next_protocol": "h2",
        "tls.client.server_name": "localhost",
        "tls.server.hash.sha256": "AB" * 32,
        "tls.server.not_after": "2027-02-20T16:57:57Z",
        "a2a_proxy.tls.server.names": ("localhost",),
        "a2a_proxy.tls.server.verified": False,
        "tls.client.hash.sha256": "CD" * 32,
        "a2a_proxy.tls.client.verified": True,
        "a2a_proxy.upstream.tls.established": True,
        "a2a_proxy.upstream.tls.protocol.name": "tls",
        "a2a_proxy.upstream.tls.protocol.version": "1.2",
        "a2a_proxy.upstream.tls.cipher": "ECDHE",
        "a2a_proxy.upstream.tls.next_protocol": "http/1.1",
        "a2a_proxy.upstream.tls.server.hash.sha256": "CD" * 32,
        "a2a_proxy.upstream.tls.server.verified": True,
    }
