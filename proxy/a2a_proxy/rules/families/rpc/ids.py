"""Rules about JSON-RPC ids, which connect a response to its request (JSON-RPC 2.0 section 5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from a2a_proxy.model.values import Actor, FrameKind, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import ENVELOPE, EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import http, json_text, rpc, rpc_error, rpc_stream
from a2a_proxy.rules.examples.objects import send, snapshot, status, task
from a2a_proxy.rules.families.rpc.reading import read_envelope

_TASK_PARAMS = {"id": "t1"}
_ANSWER_KINDS = frozenset({FrameKind.RESPONSE, FrameKind.EVENT, FrameKind.ERROR})
_UNREADABLE_REQUEST = frozenset({-32700, -32600})
"""Errors that may be sent before the agent has read the id; their id is null."""


def _parse_error_response(id: Any) -> str:
    return json_text({"jsonrpc": "2.0", "id": id, "error": rpc_error(-32700, text="parse error")})


@rule(
    "A2A-RPC-007",
    "The id of a response differs from the id of its request",
    Severity.ERROR,
    section="1.0 9.4.2; 0.3 6.11.2; JSON-RPC 2.0",
    scope=EvidenceScope.EXCHANGE,
    bindings=ENVELOPE,
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=rpc("GetTask", _TASK_PARAMS, answer={"jsonrpc": "2.0", "id": "1", "result": task()}),
    clean=rpc_stream("SendStreamingMessage", send(), snapshot(), status("COMPLETED", second=1)),
)
def other_id(context: RuleContext) -> Iterator[RuleFinding]:
    """The `id` of a response, or of any event of a stream, is missing or differs from the request's
    id in value or JSON type. Null is allowed for errors -32700 and -32600, and in an HTTP error
    (status 400 or above) of a server in front of the agent.

    Clients find the call that an answer belongs to by comparing ids. 1 and "1" are different ids;
    an answer that matches no call is dropped. The agent must copy the request's `id` unchanged.
    """
    frame, asked = context.frame, context.request
    if asked is None or frame.rpc_id == asked.rpc_id or frame.kind not in _ANSWER_KINDS:
        return
    # The ids of a batch are not matched here; a request without an id is judged by A2A-RPC-017.
    if (
        not asked.rpc_id
        or "batch" in (asked.note, frame.note)
        or "rpc_id" in (*asked.redacted, *frame.redacted)
    ):
        return
    if "jsonrpc" not in read_envelope(context) or _are_same_id(asked.rpc_id, frame.rpc_id):
        return
    if frame.rpc_id == "null" and (
        frame.error_code in _UNREADABLE_REQUEST or context.exchange.status >= 400
    ):
        return
    told = f"has id {frame.rpc_id[:60]}" if frame.rpc_id else "has no id"
    what = "event of the stream" if frame.kind is FrameKind.EVENT else "response"
    yield RuleFinding(
        summary=f"the {what} {told}, but its request has id {asked.rpc_id[:60]}",
        path="id",
        value=frame.rpc_id,
    )


def _are_same_id(one: str, other: str) -> bool:
    """Whether two ids, as JSON text, have the same value: spelled differently, or 1 and 1.0."""
    try:
        first, second = msgspec.json.decode(one), msgspec.json.decode(other)
    except (ValueError, RecursionError):
        return False
    numbers = _is_number(first) and _is_number(second)
    return bool(first == second) and (numbers or type(first) is type(second))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@rule(
    "A2A-RPC-013",
    "Parse error -32700 with an id",
    Severity.WARNING,
    section="JSON-RPC 2.0",
    scope=EvidenceScope.EXCHANGE,
    bindings=ENVELOPE,
    trigger_flags=FrameFlag.ERROR,
    also_broken=("A2A-RPC-001",),
    flagged=http("POST", "/", "{", answer=_parse_error_response(1)),
    clean=rpc("GetTask", _TASK_PARAMS, error=rpc_error(-32602, text="`id` is required")),
)
def parse_error_with_id(context: RuleContext) -> Iterator[RuleFinding]:
    """An error -32700 (parse error) has an `id` other than null. JSON-RPC requires null for a
    request that could not be parsed.

    A wrong -32700 sends the client's developer looking for broken JSON that does not exist. The
    agent must send `"id": null` with -32700; if it could parse the request, it must answer -32600
    or -32602 with the id instead.
    """
    frame = context.frame
    if frame.error_code == -32700 and frame.rpc_id not in ("", "null"):
        told = f"the parse error -32700 has id {frame.rpc_id[:60]}; its id must be null"
        yield RuleFinding(summary=told, path="id", value=frame.rpc_id)


@rule(
    "A2A-RPC-017",
    "Response to a request without an id",
    Severity.INFO,
    actor=Actor.CLIENT,
    section="JSON-RPC 2.0",
    scope=EvidenceScope.EXCHANGE,
    bindings=ENVELOPE,
    trigger_flags=FrameFlag.FIRST,
    also_broken=("A2A-RPC-005",),
    flagged=http(
        "POST",
        "/",
        json_text({"jsonrpc": "2.0", "method": "GetTask", "params": _TASK_PARAMS}),
        answer=json_text({"jsonrpc": "2.0", "id": None, "result": task()}),
    ),
    clean=rpc("GetTask", _TASK_PARAMS, task())
    + rpc("SendMessage", send(), snapshot("COMPLETED", id="t2"), id="b"),
)
def answered_notification(context: RuleContext) -> Iterator[RuleFinding]:
    """A request without `id`, which is a notification in JSON-RPC, is answered with a result or an
    error.

    JSON-RPC forbids the answer, because the client has no call that it could belong to. The client
    must send an `id` with every A2A call; the agent should not answer a notification.
    """
    frame, asked = context.frame, context.request
    if asked is None or asked.rpc_id or asked.note == "batch" or frame.kind not in _ANSWER_KINDS:
        return
    if "jsonrpc" in read_envelope(context) and asked.size:
        what = "an error" if frame.kind is FrameKind.ERROR else "a result"
        yield RuleFinding(
            summary=f"the request has no `id`, which every A2A call needs; the "
            f"agent answered it with "
            f"{what} "
            f"(id {frame.rpc_id or 'missing'})",
            path="id",
        )
