"""Rules about JSON-RPC errors (A2A 1.0 section 9.5)."""

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Actor, Dialect, EventKind, Severity
from a2a_proxy.protocol.errors import RPC_REASONS, RPC_REASONS_0_1
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    ENVELOPE,
    Dialects,
    EvidenceScope,
    FrameFlag,
    HookPoint,
)
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc, rpc_error
from a2a_proxy.rules.examples.objects import TASK_PARAMS, send, snapshot
from a2a_proxy.rules.families.rpc.reading import json_kind, read_envelope, short_json
from a2a_proxy.rules.state.records import ExchangeRecord

_METHOD_NOT_FOUND = -32601
_A2A_STATES = frozenset(int(state) for state in TaskState if state)
_MAX_PATHS = _MAX_METHODS = 32


@rule(
    "A2A-RPC-009",
    "Malformed JSON-RPC error object",
    Severity.ERROR,
    section="1.0 9.5; 0.3 8; JSON-RPC 2.0",
    bindings=ENVELOPE,
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=rpc("SendMessage", send(), answer={"jsonrpc": "2.0", "id": 1, "error": "boom"}),
    clean=rpc("SendMessage", send(), error=rpc_error(-32603, text="boom")),
)
def malformed(context: RuleContext) -> Iterator[RuleFinding]:
    """The `error` of a JSON-RPC response is not an object with an integer `code` and a string
    `message`.

    Clients decide by the code whether to retry, to change the request or to give up; without it
    they can only give up, and many fail while reading the error. The agent must send both members.
    """
    error = read_envelope(context).get("error")
    if error is None:
        return
    if not isinstance(error, dict):
        told = f"`error` is {json_kind(error)}; it must be an object with `code` and `message`"
        yield RuleFinding(summary=told, path="error", value=short_json(error))
        return
    code, message = error.get("code"), error.get("message")
    if isinstance(code, bool) or not isinstance(code, int):
        told = f"`error.code` is {json_kind(code)}" if "code" in error else "`error` has no `code`"
        yield RuleFinding(
            summary=f"{told}; it must be an integer", path="error.code", value=short_json(code)
        )
    if not isinstance(message, str):
        told = (
            f"`error.message` is {json_kind(message)}"
            if "message" in error
            else "`error` has no `message`"
        )
        yield RuleFinding(
            summary=f"{told}; it must be a string", path="error.message", value=short_json(message)
        )


@rule(
    "A2A-RPC-010",
    "`data` of a JSON-RPC error is not an array of typed objects",
    Severity.ERROR,
    section="1.0 3.3.2, 9.5",
    dialects=Dialects.V1,
    bindings=ENVELOPE,
    trigger_flags=FrameFlag.ERROR,
    flagged=rpc(
        "SendMessage",
        send(),
        error=rpc_error(-32602, text="no such role") | {"data": {"field": "role"}},
    ),
    clean=rpc("GetTask", TASK_PARAMS, error=rpc_error(-32001, "TASK_NOT_FOUND", "no such task")),
)
def untyped_data(context: RuleContext) -> Iterator[RuleFinding]:
    """The `data` of a JSON-RPC error is not an array, or one of its elements is not an object with
    a string `@type`.

    Since A2A 1.0, clients find the ErrorInfo object, which holds the reason of the error, by its
    `@type`. They do not find it in any other form. The agent must send `data` as an array of
    objects with `@type`.
    """
    error = read_envelope(context).get("error")
    data = error.get("data") if isinstance(error, dict) else None
    if data is None:
        return
    if not isinstance(data, list):
        told = f"`error.data` is {json_kind(data)}; it must be an array of objects with `@type`"
        yield RuleFinding(
            summary=told,
            path="" if context.frame.redacted else "error.data",
            value=short_json(data),
        )
        return
    for index, item in enumerate(data):
        if not isinstance(item, dict) or not isinstance(item.get("@type"), str):
            told = f"`error.data[{index}]` is {json_kind(item)} without a string `@type`"
            yield RuleFinding(summary=told, path=f"error.data[{index}]", value=short_json(item))
            return


@rule(
    "A2A-RPC-011",
    "Unknown JSON-RPC method answered with success",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="1.0 9.5; 0.3 8.1; JSON-RPC 2.0",
    hook_points=(HookPoint.HEADS, HookPoint.ANSWER),
    scope=EvidenceScope.EXCHANGE,
    bindings=ENVELOPE,
    trigger_flags=FrameFlag.FIRST,
    flagged=rpc("SendMessage", send(), snapshot("COMPLETED"))
    + rpc("tasks/foo", TASK_PARAMS, {}, id=2),
    clean=rpc("SendMessage", send(), snapshot("COMPLETED"))
    + rpc(
        "tasks/foo",
        TASK_PARAMS,
        error=rpc_error(_METHOD_NOT_FOUND, text="no method tasks/foo"),
        id=2,
    ),
)
def unknown_method(context: RuleContext) -> Iterator[RuleFinding]:
    """A request calls a method that no version of A2A defines, and the agent answers with a result.
    An error -32602 or -32603 in place of -32601 is a warning. Reported once for each method of an
    agent. Judged only on paths that serve A2A: an earlier or a later call or the card says so, or
    (low confidence) the result has the form of A2A. Not judged if the client or the agent uses
    extensions, which may define methods of their own.

    A client with a misspelled or newer method takes the answer for success and never learns that it
    was not understood. The agent must answer -32601 (method not found).
    """
    if context.frame_or_none is None:
        yield from _remember_path(context)
        return
    exchange, asked = context.exchange, context.request
    if exchange.operation or asked is None or context.record.answers != 1 or asked.note == "batch":
        return
    value = read_envelope(context)
    if "jsonrpc" not in value or not exchange.method or _has_extensions(context):
        return
    if not _is_a2a_path(context):
        if "result" in value:
            yield from _judge_unproven_path(context)
        return
    if "result" in value:
        if _is_new_answer(context, "a result"):
            yield RuleFinding(summary=_result_summary(exchange.method[:60]), path="result")
    elif (code := context.frame.error_code) in (-32602, -32603) and _is_new_answer(
        context, str(code)
    ):
        told = (
            f"`{exchange.method[:60]}` is not a method of A2A; the agent must answer error -32601 "
            f"but sent"
        )
        yield RuleFinding(
            summary=f"{told} {code}", path="error.code", value=str(code), severity=Severity.WARNING
        )


def _is_new_answer(context: RuleContext, answer: str, method: str = "") -> bool:
    """Whether the agent answers this method (by default that of the exchange) in this way for the
    first time; later methods than the first 32 count as new.
    """
    answers = context.agent.notes.setdefault("unknown methods", [])
    key = f"{(method or context.exchange.method)[:60]} {answer}"
    if key in answers:
        return False
    if len(answers) < _MAX_METHODS:
        answers.append(key)
    return True


def _judge_unproven_path(context: RuleContext) -> Iterator[RuleFinding]:
    """Report a result that has the form of A2A; keep others until a later call shows that the path
    serves A2A."""
    frame, record, method = context.frame, context.record, context.exchange.method[:60]
    if frame.state in _A2A_STATES or (frame.event is EventKind.MESSAGE and frame.message_id):
        if _is_new_answer(context, "a result"):
            yield RuleFinding(summary=_result_summary(method), path="result", is_sure=False)
        return
    pending = context.agent.notes.setdefault("unproven results", {})
    if len(pending) < _MAX_METHODS:
        pending.setdefault(
            f"{_path_of(context)} {method}", [record.id, record.connection, frame.seq]
        )


def _result_summary(method: str) -> str:
    return (
        f"`{method}` is not a method of A2A; the agent must answer error -32601 but sent a result"
    )


def _remember_path(context: RuleContext) -> Iterator[RuleFinding]:
    """Remember the path of an A2A call, because other JSON-RPC services behind the same address are
    not judged. Report the results for unknown methods that came from this path before."""
    if not context.exchange.operation:
        return
    notes, path = context.agent.notes, _path_of(context)
    paths = notes.setdefault("rpc paths", [])
    if path in paths:
        return
    if len(paths) < _MAX_PATHS:
        paths.append(path)
    pending = notes.get("unproven results", {})
    for key in [key for key in pending if key.startswith(f"{path} ")]:
        number, connection, seq = pending.pop(key)
        method = key.removeprefix(f"{path} ")
        if not _has_extensions(context) and _is_new_answer(context, "a result", method):
            earlier = ExchangeRecord(
                number, connection, context.record.agent, context.binding, "", 0
            )
            yield RuleFinding(
                summary=_result_summary(method), path="result", seq=seq, track=earlier
            )


def _path_of(context: RuleContext) -> str:
    return context.exchange.target.partition("?")[0]


def _is_a2a_path(context: RuleContext) -> bool:
    """Whether the path serves A2A, as far as the traffic until now shows."""
    path = _path_of(context)
    interfaces = context.session.facts.get_card(context.record.agent).interfaces
    return path in context.agent.notes.get("rpc paths", ()) or any(
        each.binding.upper() == "JSONRPC" and each.path == path.rstrip("/") for each in interfaces
    )


def _has_extensions(context: RuleContext) -> bool:
    """Whether the client activates extensions or the agent's card declares some."""
    capabilities = (context.agent.any_card or {}).get("capabilities")
    declared = capabilities.get("extensions") if isinstance(capabilities, dict) else None
    return bool(
        declared
        or context.request_header("a2a-extensions")
        or context.request_header("x-a2a-extensions")
    )


@rule(
    "A2A-RPC-015",
    "JSON-RPC error code that A2A does not define",
    Severity.INFO,
    section="1.0 9.5; 0.3 8",
    bindings=ENVELOPE,
    trigger_flags=FrameFlag.ERROR,
    flagged=rpc("GetTask", TASK_PARAMS, error=rpc_error(-32042, text="out of paper")),
    clean=rpc("GetTask", TASK_PARAMS, error=rpc_error(-32001, "TASK_NOT_FOUND", "no such task")),
)
def undefined_code(context: RuleContext) -> Iterator[RuleFinding]:
    """The code of a JSON-RPC error is defined neither by JSON-RPC nor by A2A. -32000 and the other
    codes that JSON-RPC leaves to implementations count as undefined.

    A client that was not written for this agent does not know whether to retry, to change the
    request or to give up. The agent should use the A2A code that fits, or -32603 (internal error).
    """
    frame, dialect = context.frame, context.exchange.dialect
    if frame.error_code in RPC_REASONS or dialect is Dialect.VENDOR:
        return
    if dialect is Dialect.V0_1 and frame.error_code in RPC_REASONS_0_1:
        return
    error = read_envelope(context).get("error")
    code = error.get("code") if isinstance(error, dict) else None
    if type(code) is int and "jsonrpc" in read_envelope(context):
        yield RuleFinding(
            summary=f"error code {code} is defined neither by A2A nor by JSON-RPC",
            path="error.code",
            value=str(code),
        )
