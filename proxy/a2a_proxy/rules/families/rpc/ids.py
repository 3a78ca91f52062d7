"""Which response belongs to which request (JSON-RPC 2.0, 5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import FrameKind
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import ENVELOPE, EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import http, json_text, rpc, rpc_error, rpc_stream
from a2a_proxy.rules.examples.objects import send, snapshot, status, task
from a2a_proxy.rules.families.rpc.reading import read_envelope

_TASK_PARAMS = {"id": "t1"}
_ANSWER_KINDS = frozenset({FrameKind.RESPONSE, FrameKind.EVENT, FrameKind.ERROR})
_UNREADABLE_REQUEST = frozenset({-32700, -32600})
"""Errors that may come before the agent has found the id: they have null."""


def _parse_error_response(id: Any) -> str:
    return json_text({"jsonrpc": "2.0", "id": id, "error": rpc_error(-32700, text="parse error")})


@rule(
    "A2A-RPC-007",
    "The id of a response is not the one of its request",
    Severity.ERROR,
    section="1.0 9.4.2; JSON-RPC 2.0",
    scope=EvidenceScope.EXCHANGE,
    bindings=ENVELOPE,
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=rpc("GetTask", _TASK_PARAMS, answer={"jsonrpc": "2.0", "id": "1", "result": task()}),
    clean=rpc_stream("SendStreamingMessage", send(), snapshot(), status("COMPLETED", second=1)),
)
def other_id(context: RuleContext) -> Iterator[RuleFinding]:
    """The `id` of a response, or of any event of a stream, is not equal in value and JSON type to the id of the
    request, or is missing. Null is right for -32700 and -32600, and no fault of a server that answers in the agent's
    place.

    Clients find the call that an answer belongs to by comparing ids; 1 and "1" are two of them, and what fits no call
    is dropped.
    """
    frame, asked = context.frame, context.request
    if asked is None or frame.rpc_id == asked.rpc_id or frame.kind not in _ANSWER_KINDS:
        return
    # The ids of a batch are told apart by nobody here; a request without an id is A2A-RPC-017's.
    if not asked.rpc_id or "batch" in (asked.note, frame.note) or "rpc_id" in (*asked.redacted, *frame.redacted):
        return
    if "jsonrpc" not in read_envelope(context) or _are_same_id(asked.rpc_id, frame.rpc_id):
        return
    if frame.rpc_id == "null" and (frame.error_code in _UNREADABLE_REQUEST or context.exchange.status >= 400):
        return
    told = f"has id {frame.rpc_id[:60]}" if frame.rpc_id else "has no id"
    what = "event of the stream" if frame.kind is FrameKind.EVENT else "response"
    yield RuleFinding(summary=f"the {what} {told}, the request has {asked.rpc_id[:60]}", path="id", value=frame.rpc_id)


def _are_same_id(one: str, other: str) -> bool:
    """Two ids as JSON text that mean the same: written otherwise, or as 1 and 1.0."""
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
    "A parse error with an id",
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
    """An error -32700 has an `id` other than null. JSON-RPC wants null where the request could not be read; an agent
    that could read the id means another error, -32600 or -32602.

    -32700 tells a client that it sends broken JSON, which is looked for in the wrong place when the text was fine.
    """
    frame = context.frame
    if frame.error_code == -32700 and frame.rpc_id not in ("", "null"):
        told = f"the parse error -32700 has id {frame.rpc_id[:60]}, it must be null where the text cannot be read"
        yield RuleFinding(summary=told, path="id", value=frame.rpc_id)


@rule(
    "A2A-RPC-017",
    "A request without an id got a response",
    Severity.INFO,
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
    clean=rpc("GetTask", _TASK_PARAMS, task()) + rpc("SendMessage", send(), snapshot("COMPLETED", id="t2"), id="b"),
)
def answered_notification(context: RuleContext) -> Iterator[RuleFinding]:
    """A request without `id`, a notification to JSON-RPC, is answered by a result or an error.

    JSON-RPC forbids that: the client has no call that the answer could belong to.
    """
    frame, asked = context.frame, context.request
    if asked is None or asked.rpc_id or asked.note == "batch" or frame.kind not in _ANSWER_KINDS:
        return
    if "jsonrpc" in read_envelope(context) and asked.size:
        what = "an error" if frame.kind is FrameKind.ERROR else "a result"
        yield RuleFinding(
            summary=f"the request has no `id`, and still got {what} (id {frame.rpc_id or 'missing'})", path="id"
        )
