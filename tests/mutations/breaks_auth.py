"""Credentials that are missing, in the wrong place, or of another kind than the card declares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mutations.breaks_card import change, extended, fetch
from mutations.breaks_ext import message
from mutations.breaks_push import AWAY, hooks_afar, rename
from support_mutations import Ex, Msg, Talk, Want, mutation

SDK = ("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-1.x-grpc")
V0_3 = ("sdk-0.3-jsonrpc", "sdk-0.3-rest", "sdk-0.3-grpc")
HTTP = ("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-0.3-jsonrpc", "sdk-0.3-rest")
ANN, BEN = "Bearer t0ken-of-ann-1234", "Bearer t0ken-of-ben-5678"
KEY = "k-1234567890abcdef"
AFAR = "http://agent.example.com"


def lookup(talk: Talk) -> Ex:
    """Return the first GetTask call."""
    return talk.first("GetTask")


def authenticate(call: Ex, value: str | None = ANN) -> None:
    """Set these credentials on every call, or none."""
    call.set("authorization" if call.grpc else "Authorization", value)


def _all(talk: Talk) -> None:
    for call in talk.exchanges:
        if call.operation != "GetAgentCard":
            authenticate(call)


def _secured(talk: Talk) -> None:
    """The cards require a bearer token, and every call has one."""
    v1 = {
        "securitySchemes": {"bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
        "securityRequirements": [{"schemes": {"bearer": {"list": []}}}],
    }
    old = {
        "securitySchemes": {"bearer": {"type": "http", "scheme": "Bearer"}},
        "security": [{"bearer": []}],
    }
    for call in talk.all("GetAgentCard"):
        change(call, lambda card: card.update(v1 if "supportedInterfaces" in card else old))
    _all(talk)


def _afar(talk: Talk) -> None:
    """The agent is on a public host over http."""
    for call in talk.exchanges:
        call.upstream = AFAR


@mutation(*SDK, *V0_3, "concurrent-grpc", prepare=_afar)
def a_token_in_plain_text(talk: Talk) -> Iterator[Want]:
    """To a host that is not this machine."""
    call = talk.exchanges[2]
    authenticate(call)
    yield Want("A2A-AUTH-001", call)


@mutation("sdk-1.x-jsonrpc", "sdk-0.3-rest", prepare=_afar)
def a_cookie_in_plain_text(talk: Talk) -> Iterator[Want]:
    """In the request for the card."""
    call = fetch(talk)
    call.set("Cookie", "session=5f2a9c81d0")
    yield Want("A2A-AUTH-001", call)


@mutation(*SDK, *V0_3, "dialect-0.2", prepare=_secured)
def a_call_without_credentials_is_served(talk: Talk) -> Iterator[Want]:
    """The card requires credentials."""
    call = lookup(talk)
    authenticate(call, None)
    yield Want("A2A-AUTH-002", call)


@mutation("concurrent-grpc", "demo", prepare=_secured)
def a_stream_without_credentials_is_served(talk: Talk) -> Iterator[Want]:
    """The card requires credentials."""
    call = talk.first("SendStreamingMessage")
    authenticate(call, None)
    yield Want("A2A-AUTH-002", call)


@mutation(*HTTP, "dialect-0.2")
def a_401_without_a_challenge(talk: Talk) -> Iterator[Want]:
    """The client cannot find out which credentials to obtain."""
    call = lookup(talk)
    call.status = 401
    call.answers = [Msg(b'{"detail":"Unauthorized"}', call.ended, "json")]
    yield Want("A2A-AUTH-003", call)


@mutation(*HTTP, "concurrent-grpc")
def the_card_is_refused_without_a_challenge(talk: Talk) -> Iterator[Want]:
    """The request for the card is refused without a challenge."""
    call = fetch(talk)
    call.status = 401
    call.answers = [Msg(b'{"detail":"Unauthorized"}', call.ended, "json")]
    yield Want("A2A-AUTH-003", call)


@mutation("sdk-1.x-rest", "sdk-0.3-rest", "sdk-1.x-jsonrpc", "dialect-0.2")
def a_key_in_the_url(talk: Talk) -> Iterator[Want]:
    """The URL is written to logs."""
    call = lookup(talk)
    call.target += f"{'&' if '?' in call.target else '?'}api_key={KEY}"
    yield Want("A2A-AUTH-004", call)


@mutation("sdk-1.x-grpc", "demo", "js-to-0.3")
def a_key_in_the_url_of_the_card(talk: Talk) -> Iterator[Want]:
    """In the first request of the conversation."""
    call = fetch(talk)
    call.target += f"?access_token={KEY}"
    yield Want("A2A-AUTH-004", call)


@mutation(*SDK, "js-three-bindings", "sdk-0.3-jsonrpc", "sdk-0.3-rest", prepare=_all)
def the_extended_card_for_everybody(talk: Talk) -> Iterator[Want]:
    """The request has no token."""
    call = extended(talk)
    authenticate(call, None)
    yield Want("A2A-AUTH-005", call, call.answers[0])


@mutation(*SDK, prepare=_all)
def a_refusal_that_tells_of_a_task(talk: Talk) -> Iterator[Want]:
    """Another client learns that the task exists."""
    call = lookup(talk)
    authenticate(call, BEN)
    _deny(call)
    yield Want("A2A-AUTH-006", call, call.answers[0] if call.answers else None)
    if call.method == "GetTask" and not call.grpc:
        yield Want("A2A-HTTP-009", call, call.answers[0])


def _deny(call: Ex) -> None:
    """Answer with 403 or its equivalent."""
    if call.grpc:
        call.answers, call.trailers = [], []
        call.set("grpc-status", "7", reply=True)
        call.set("grpc-message", "not yours", reply=True)
        return
    call.status = 403
    rest = b'{"error":{"code":403,"status":"PERMISSION_DENIED","message":"not yours"}}'
    ident = call.requests[0].value["id"] if call.requests else ""
    rpc = (
        f'{{"jsonrpc":"2.0","id":"{ident}","error":{{"code":-32603,"message":"not yours"}}}}'
    ).encode()
    call.answers = [Msg(rpc if ident else rest, call.ended, "json")]


@mutation(*SDK, *V0_3, prepare=_secured)
def a_key_where_a_token_is_declared(talk: Talk) -> Iterator[Want]:
    """The card declares no API key."""
    call = lookup(talk)
    authenticate(call, None)
    call.set("x-api-key", KEY)
    yield Want("A2A-AUTH-007", call)


@mutation(*SDK, prepare=_secured)
def a_password_where_a_token_is_declared(talk: Talk) -> Iterator[Want]:
    """Basic in place of Bearer."""
    call = lookup(talk)
    authenticate(call, "Basic YW5uOnBhNTV3MHJk")
    yield Want("A2A-AUTH-007", call)


def _logs_in(talk: Talk) -> None:
    """A task that waits for input waits for credentials instead."""
    for call in talk.exchanges:
        for answer in call.answers:
            answer.data = answer.data.replace(b"INPUT_REQUIRED", b"AUTH_REQUIRED")
            if call.grpc and call.operation != "GetAgentCard":
                _relabel(answer)


def _relabel(answer: Msg) -> None:
    value = answer.value
    for each in value.values():
        status = each.get("status") if isinstance(each, dict) else None
        if status and status.get("state") == "TASK_STATE_INPUT_REQUIRED":
            status["state"] = "TASK_STATE_AUTH_REQUIRED"
            answer.put(value)


@mutation(*SDK, prepare=_logs_in)
def a_token_in_a_message(talk: Talk) -> Iterator[Want]:
    """To a task that waits for credentials."""
    call = next(each for each in talk.all("SendMessage") if "taskId" in _sent(each))
    text = "here it is: Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl"
    call.requests[0].edit(lambda asked: message(asked).update(parts=[{"text": text}]))
    yield Want("A2A-AUTH-008", call, call.requests[0])


def _sent(call: Ex) -> dict[str, Any]:
    value = call.requests[0].value
    return message(value.get("params", value))


@mutation(*SDK, *V0_3, prepare=hooks_afar)
def a_webhook_gets_its_token_in_plain_text(talk: Talk) -> Iterator[Want]:
    """http, not https."""
    call = talk.first("CreateTaskPushNotificationConfig")
    for each in (call.requests[0], call.answers[0]):
        rename(each, AWAY, "http://client.example.com/hook")
    yield Want("A2A-AUTH-010", call, call.requests[0])
    yield Want("A2A-PUSH-002", call, call.requests[0])
