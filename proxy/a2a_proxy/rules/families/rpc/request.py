"""Rules about JSON-RPC requests, and ids, which connect a response to its request (A2A 1.0 section
9.3; JSON-RPC 2.0)."""

from collections.abc import Iterator
from typing import Any

import msgspec

from a2a_proxy.model.values import Actor, FrameKind, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import ENVELOPE, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import http, json_text, rpc, rpc_error, rpc_stream
from a2a_proxy.rules.examples.objects import TASK_PARAMS, send, snapshot, status, task
from a2a_proxy.rules.families.rpc.reading import (
    json_kind,
    operation_name,
    read_envelope,
    short_json,
)

_METHODS_WITHOUT_PARAMS = frozenset({"GetExtendedAgentCard", "ListTasks"})
_ANSWER_KINDS = frozenset({FrameKind.RESPONSE, FrameKind.EVENT, FrameKind.ERROR})
_UNREADABLE_REQUEST = frozenset({-32700, -32600})
"""Errors that may be sent before the agent has read the id; their id is null."""


def _error_response(code: int, text: str) -> str:
    return json_text({"jsonrpc": "2.0", "id": 1, "error": rpc_error(code, text=text)})


@rule(
    "A2A-RPC-004",
    "`method` is missing or not a string",
    Severity.ERROR,
    section="1.0 9.3; 0.3 6.11.1; JSON-RPC 2.0",
    hook_points=HookPoint.REQUEST,
    bindings=ENVELOPE,
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=http(
        "POST",
        "/",
        json_text({"jsonrpc": "2.0", "id": 1, "params": {}}),
        answer=_error_response(-32600, "no method"),
    ),
    clean=rpc("GetTask", TASK_PARAMS, task()),
)
def method(context: RuleContext) -> Iterator[RuleFinding]:
    """A JSON-RPC request has no member `method`, or its value is not a string.

    The agent cannot know which operation is called: it answers -32600, or takes the text for a
    response. The client must send the name of the method.
    """
    value = read_envelope(context)
    if not value or isinstance(value.get("method"), str):
        return
    if "method" not in value:
        yield RuleFinding(summary="the request has no member `method`", path="method")
    else:
        found = value["method"]
        yield RuleFinding(
            summary=f"`method` is {json_kind(found)}; it must be a string",
            path="method",
            value=short_json(found),
        )


@rule(
    "A2A-RPC-005",
    "JSON-RPC request without an id",
    Severity.WARNING,
    section="0.3 6.11.1; JSON-RPC 2.0",
    hook_points=HookPoint.REQUEST,
    bindings=ENVELOPE,
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=http(
        "POST",
        "/",
        json_text({"jsonrpc": "2.0", "method": "CancelTask", "params": TASK_PARAMS}),
        answer="",
        status=204,
    ),
    clean=rpc("CancelTask", TASK_PARAMS, task("CANCELED")),
)
def no_id(context: RuleContext) -> Iterator[RuleFinding]:
    """A request for an A2A method has no member `id`. In JSON-RPC this makes it a notification, but
    every A2A method has an answer.

    An agent that follows JSON-RPC does not answer a notification, so the client never learns the
    outcome of its call. The client must send an `id`.
    """
    value = read_envelope(context)
    if value and "id" not in value and operation_name(value):
        told = (
            f"`{value['method']}` is called without `id`, so the agent need not answer; the client "
            f"must send an `id`"
        )
        yield RuleFinding(summary=told, path="id")


@rule(
    "A2A-RPC-006",
    "The id of a request is neither a string nor an integer",
    Severity.ERROR,
    section="0.3 6.11.1; JSON-RPC 2.0",
    hook_points=HookPoint.REQUEST,
    bindings=ENVELOPE,
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=rpc("GetTask", TASK_PARAMS, task(), id={"n": 1}),
    clean=rpc("GetTask", TASK_PARAMS, task(), id="req-1"),
)
def type_of_id(context: RuleContext) -> Iterator[RuleFinding]:
    """The `id` of a JSON-RPC request is neither a string nor an integer. Null is a warning:
    JSON-RPC allows it but advises against it, and the types of A2A 0.3 exclude it.

    The client finds the answer to its call by comparing ids: a fraction may be rounded, null is the
    id of answers to unreadable requests, and most libraries reject other types. The client must
    send a string or an integer.
    """
    found = read_envelope(context).get("id", "")
    if found is None:
        told = "the `id` of the request is null; it should be a string or an integer"
        yield RuleFinding(summary=told, path="id", value="null", severity=Severity.WARNING)
    elif isinstance(found, bool) or not isinstance(found, (str, int, float)):
        told = f"the `id` of the request is {json_kind(found)}; it must be a string or an integer"
        yield RuleFinding(summary=told, path="id", value=short_json(found))
    elif isinstance(found, float) and not found.is_integer():
        told = f"the `id` of the request is {short_json(found)}; it must be a string or an integer"
        yield RuleFinding(summary=told, path="id", value=short_json(found))


@rule(
    "A2A-RPC-012",
    "`params` is not an object",
    Severity.ERROR,
    section="1.0 9.3; 0.3 6.11.1; JSON-RPC 2.0",
    hook_points=HookPoint.REQUEST,
    bindings=ENVELOPE,
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=rpc("GetTask", ["t1"], error=rpc_error(-32602, text="params must be an object")),
    clean=rpc("GetTask", TASK_PARAMS, task()),
)
def params(context: RuleContext) -> Iterator[RuleFinding]:
    """The `params` of an A2A method are not an object, or they are missing. Only
    GetExtendedAgentCard and ListTasks may be called without `params`.

    The parameters of A2A have names: an agent cannot find the task id or the message in an array or
    a scalar. The client must send an object.
    """
    value = read_envelope(context)
    operation = operation_name(value)
    found = value.get("params")
    if (
        not operation
        or isinstance(found, dict)
        or (found is None and operation in _METHODS_WITHOUT_PARAMS)
    ):
        return
    if "params" in value:
        told = f"`params` of `{value['method']}` is {json_kind(found)}; it must be an object"
        yield RuleFinding(summary=told, path="params", value=short_json(found))
    else:
        yield RuleFinding(
            summary=f"`{value['method']}` is called without `params`; it needs an object",
            path="params",
        )


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
    flagged=rpc("GetTask", TASK_PARAMS, answer={"jsonrpc": "2.0", "id": "1", "result": task()}),
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
    clean=rpc("GetTask", TASK_PARAMS, error=rpc_error(-32602, text="`id` is required")),
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
        json_text({"jsonrpc": "2.0", "method": "GetTask", "params": TASK_PARAMS}),
        answer=json_text({"jsonrpc": "2.0", "id": None, "result": task()}),
    ),
    clean=rpc("GetTask", TASK_PARAMS, task())
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
