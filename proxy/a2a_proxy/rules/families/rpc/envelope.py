"""Rules about the members of the JSON-RPC envelope (A2A 1.0 section 9.3; JSON-RPC 2.0)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.values import FrameKind, Severity
from a2a_proxy.protocol.schema import JSON
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import ENVELOPE, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc
from a2a_proxy.rules.examples.objects import task
from a2a_proxy.rules.families.rpc.reading import (
    is_from_client,
    json_kind,
    read_envelope,
    short_json,
)

_TASK_PARAMS = {"id": "t1"}
_MESSAGE_HOOKS = (HookPoint.REQUEST, HookPoint.ANSWER)
_REQUEST_MEMBERS = frozenset({"jsonrpc", "id", "method", "params"})
_RESPONSE_MEMBERS = frozenset({"jsonrpc", "id", "result", "error"})


@rule(
    "A2A-RPC-002",
    '`jsonrpc` is missing or is not "2.0"',
    Severity.ERROR,
    section="1.0 9.3; 0.3 6.11.1; JSON-RPC 2.0",
    hook_points=_MESSAGE_HOOKS,
    bindings=ENVELOPE,
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=rpc("GetTask", _TASK_PARAMS, task(), envelope={"jsonrpc": None}),
    clean=rpc("GetTask", _TASK_PARAMS, task()),
)
def version(context: RuleContext) -> Iterator[RuleFinding]:
    """A JSON-RPC request, a response or the data of an event lacks the member `jsonrpc`, or its
    value is not the string "2.0".

    Libraries use this member to distinguish JSON-RPC 2.0 from 1.0. They reject a message without it
    or parse it by other rules. The sender (the client for a request, the agent for a response) must
    add `"jsonrpc": "2.0"`.
    """
    value = read_envelope(context)
    if not value or value.get("jsonrpc") == "2.0":
        return
    if is_from_client(context) and not value.keys() & _REQUEST_MEMBERS:
        return  # no member of a call is present: the first thing missing is `method`
    side = "request" if is_from_client(context) else "response"
    found = value.get("jsonrpc")
    if "jsonrpc" in value:
        told = f'`jsonrpc` of the {side} is {short_json(found)}; it must be the string "2.0"'
        yield RuleFinding(summary=told, path="jsonrpc", value=short_json(found))
    else:
        told = f'no member `jsonrpc` in the {side}; it must be the string "2.0"'
        yield RuleFinding(summary=told, path="jsonrpc")


@rule(
    "A2A-RPC-008",
    "A response has both `result` and `error`, or neither",
    Severity.ERROR,
    section="1.0 9.4; 0.3 6.11.2; JSON-RPC 2.0",
    bindings=ENVELOPE,
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=rpc("GetTask", _TASK_PARAMS, answer={"jsonrpc": "2.0", "id": 1}),
    clean=rpc("GetTask", _TASK_PARAMS, task()),
)
def one_outcome(context: RuleContext) -> Iterator[RuleFinding]:
    """A JSON-RPC response, or the data of an event, has both `result` and `error`, or neither. A
    `result` of null counts as present. If one of the two is null and the other is not, a warning is
    reported, because 0.1 libraries write responses this way. A success response whose whole body is
    a JSON string, number or boolean has neither member.

    Clients check one of the two members first: with both they may take a failure for a success,
    with neither they wait for an answer that has already arrived. The agent must send exactly one
    of them.
    """
    value = read_envelope(context)
    if is_from_client(context) or not ("jsonrpc" in value or "id" in value):
        if _is_scalar_answer(context):
            told = (
                f"the response is {json_kind(context.value)}; it must be an object with `result` "
                f"or `error`"
            )
            yield RuleFinding(summary=told, value=short_json(context.value))
        return
    result, error = "result" in value, "error" in value
    if result and error:
        empty = [name for name in ("error", "result") if value[name] is None]
        if len(empty) == 1:
            told = (
                f"`{empty[0]}` is null; the agent must leave it out when the other member is "
                f"present"
            )
            yield RuleFinding(summary=told, path=empty[0], severity=Severity.WARNING)
        else:
            yield RuleFinding(
                summary="the response has both `result` and `error`; exactly one is allowed",
                path="error",
            )
    elif not result and value.get("error") is None:
        told = (
            "`error` is null and `result` is missing"
            if error
            else "the response has neither `result` nor `error`"
        )
        yield RuleFinding(summary=f"{told}; exactly one is required", path="result")


def _is_scalar_answer(context: RuleContext) -> bool:
    """Whether the answer to an A2A call is a JSON string, number or boolean, which cannot have
    members."""
    frame = context.frame
    if (
        frame.kind is not FrameKind.OTHER
        or frame.framing
        or frame.truncated
        or frame.schema != JSON
    ):
        return False
    return (
        context.exchange.status == 200
        and bool(context.operation)
        and isinstance(context.value, (str, int, float))
    )


@rule(
    "A2A-RPC-016",
    "Unknown member in the JSON-RPC envelope",
    Severity.INFO,
    section="JSON-RPC 2.0",
    hook_points=_MESSAGE_HOOKS,
    bindings=ENVELOPE,
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=rpc(
        "GetTask", _TASK_PARAMS, answer={"jsonrpc": "2.0", "id": 1, "result": task(), "ts": 5}
    ),
    clean=rpc("GetTask", _TASK_PARAMS, task()),
)
def unknown_member(context: RuleContext) -> Iterator[RuleFinding]:
    """A request has a top-level member other than `jsonrpc`, `id`, `method` and `params`, or a
    response has one other than `jsonrpc`, `id`, `result` and `error`.

    Strict parsers reject the message; all others ignore the member, so its content is lost. The
    sender (client or agent) should move it into `params` or `result`, for example into `metadata`.
    """
    value = read_envelope(context)
    if "jsonrpc" not in value or context.frame.kind is FrameKind.COMMENT:
        return
    request = is_from_client(context)
    unknown = sorted(value.keys() - (_REQUEST_MEMBERS if request else _RESPONSE_MEMBERS))
    if unknown:
        names = ", ".join(f"`{name[:40]}`" for name in unknown[:3])
        side = "request" if request else "response"
        told = (
            f"the {side} has the unknown top-level {'member' if len(unknown) == 1 else 'members'} "
            f"{names}"
        )
        path = (
            "" if context.frame.redacted else unknown[0]
        )  # the name is unknown, whatever the value
        yield RuleFinding(summary=told, path=path, value=short_json(value[unknown[0]]))
