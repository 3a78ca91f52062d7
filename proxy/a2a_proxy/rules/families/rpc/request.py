"""Rules about JSON-RPC requests (A2A 1.0 section 9.3; JSON-RPC 2.0)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.values import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import ENVELOPE, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import http, json_text, rpc, rpc_error
from a2a_proxy.rules.examples.objects import task
from a2a_proxy.rules.families.rpc.reading import (
    json_kind,
    operation_name,
    read_envelope,
    short_json,
)

_TASK_PARAMS = {"id": "t1"}
_METHODS_WITHOUT_PARAMS = frozenset({"GetExtendedAgentCard", "ListTasks"})


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
    clean=rpc("GetTask", _TASK_PARAMS, task()),
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
        json_text({"jsonrpc": "2.0", "method": "CancelTask", "params": _TASK_PARAMS}),
        answer="",
        status=204,
    ),
    clean=rpc("CancelTask", _TASK_PARAMS, task("CANCELED")),
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
    flagged=rpc("GetTask", _TASK_PARAMS, task(), id={"n": 1}),
    clean=rpc("GetTask", _TASK_PARAMS, task(), id="req-1"),
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
    clean=rpc("GetTask", _TASK_PARAMS, task()),
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
