"""Calls in another binding or dialect than the recorded one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from a2a_proxy.drive.request import CallError, CallTarget, RequestedTarget, translate_request
from a2a_proxy.model.values import Binding, Dialect
from support_drive import step

ASKED = {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}
HEADERS = (
    (b"Content-Type", b"application/json"),
    (b"A2A-Version", b"1.0"),
    (b"X-Story", b"s"),
    (b"Host", b"a"),
)


def sent_request(
    binding: Binding, dialect: Dialect, operation: str = "SendMessage", value: Any = None
) -> Any:
    return translate_request(
        value or ASKED, CallTarget(binding, dialect, operation, True), HEADERS, 7
    )


def test_a_call_is_translated_to_older_json_rpc() -> None:
    """Its method and shapes, without a version header; data and metadata of the client are
    unchanged."""
    made = sent_request(Binding.JSONRPC, Dialect.V0_3)
    body = msgspec.json.decode(made.payload)
    assert (body["method"], body["id"], made.rpc_id) == ("message/send", 7, "7")
    assert body["params"]["message"]["parts"] == [{"kind": "text", "text": "hi"}]
    assert [name for name, _ in made.headers] == [b"X-Story", b"Accept", b"Content-Type"]


def test_rest_requests_carry_ids_in_the_path() -> None:
    made = sent_request(Binding.REST, Dialect.V1_0, "GetTask", {"id": "t-1", "historyLength": 2})
    assert (made.method, made.target, made.payload) == ("GET", "/tasks/t-1?historyLength=2", b"")
    assert (b"A2A-Version", b"1.0") in made.headers
    assert b"Content-Type" not in dict(made.headers)


def test_grpc_requests_use_the_package_of_the_dialect() -> None:
    assert sent_request(Binding.GRPC, Dialect.V1_0).target == "/lf.a2a.v1.A2AService/SendMessage"
    assert sent_request(Binding.GRPC, Dialect.V0_3).target == "/a2a.v1.A2AService/SendMessage"


def test_streaming_calls_accept_event_streams() -> None:
    assert (b"Accept", b"text/event-stream") in sent_request(
        Binding.JSONRPC, Dialect.V1_0, "SendStreamingMessage"
    ).headers


def test_a_request_without_form_in_the_target_is_an_error() -> None:
    with pytest.raises(CallError, match=r"SendMessage cannot be expressed in 1\.0 over grpc"):
        sent_request(Binding.GRPC, Dialect.V1_0, value={"message": {"parts": "none"}})


@pytest.mark.parametrize(
    ("operation", "binding", "dialect", "why"),
    [
        (
            "SendLiveMessage",
            Binding.REST,
            None,
            "live streams are sent over gRPC only, not over rest",
        ),
        ("ListTasks", Binding.JSONRPC, Dialect.V0_2, ""),
        ("ListTasks", Binding.GRPC, Dialect.V0_3, ""),
        ("SendLiveMessage", Binding.GRPC, Dialect.V0_3, "SendLiveMessage is not in 0.3 over grpc"),
        ("SendMessage", Binding.REST, Dialect.V0_1, "SendMessage is not in 0.1 over rest"),
        ("SendMessage", Binding.STDIO, None, ""),
        (
            "SendMessage",
            Binding.WEBSOCKET,
            None,
            "calls cannot be sent over a WebSocket; choose another binding: --binding jsonrpc",
        ),
        ("SendMessage", None, None, ""),
    ],
)
def test_untranslatable_calls_have_a_reason(
    operation: str, binding: Binding | None, dialect: Dialect | None, why: str
) -> None:
    assert RequestedTarget(binding, dialect).obstacle_of(step(1, 1, 2, operation=operation)) == why


@pytest.mark.parametrize(
    ("operation", "recorded", "binding", "why"),
    [
        (
            "GetAgentCard",
            Binding.CARD,
            Binding.STDIO,
            "it is an HTTP request, which a stdio agent does not answer",
        ),
        (
            "",
            Binding.JSONRPC,
            Binding.STDIO,
            "it is an HTTP request, which a stdio agent does not answer",
        ),
        (
            "",
            Binding.STDIO,
            Binding.JSONRPC,
            "it is not an A2A operation, so it cannot be sent over jsonrpc",
        ),
        ("", Binding.STDIO, Binding.STDIO, ""),
        ("", Binding.JSONRPC, Binding.REST, ""),
    ],
)
def test_calls_that_keep_their_binding_need_its_transport(
    operation: str, recorded: Binding, binding: Binding, why: str
) -> None:
    call = step(1, 1, 2, operation=operation, binding=recorded)
    assert RequestedTarget(binding).obstacle_of(call) == why


def test_a_card_request_is_not_translated() -> None:
    call = step(1, 1, 2, operation="GetAgentCard", binding=Binding.CARD)
    speech = RequestedTarget(Binding.GRPC, Dialect.V1_0).target_of(call)
    assert (speech.binding, speech.is_translated) == (Binding.CARD, False)
