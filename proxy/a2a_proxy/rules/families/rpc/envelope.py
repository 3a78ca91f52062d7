"""Rules about the JSON text of requests and responses, and the members of the JSON-RPC envelope
(A2A 1.0 section 9.3; JSON-RPC 2.0; RFC 8259)."""

import json
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.values import Binding, FrameKind, Severity
from a2a_proxy.protocol.operations import STREAMING_OPERATIONS
from a2a_proxy.protocol.schema import JSON
from a2a_proxy.rules.context import RuleContext, strip_parameters
from a2a_proxy.rules.define.conditions import (
    ENVELOPE,
    HTTP,
    JSON_TEXT,
    MESSAGE_HOOKS,
    STDIO,
    FrameFlag,
)
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import http, json_text, rpc, rpc_error
from a2a_proxy.rules.examples.objects import TASK_PARAMS, send, snapshot, task
from a2a_proxy.rules.facts.json_text import find_bad_member
from a2a_proxy.rules.families.http.media import is_refused_by_agent
from a2a_proxy.rules.families.rpc.reading import (
    find_json_error,
    is_from_client,
    is_whole_text,
    json_kind,
    read_envelope,
    short_json,
)
from a2a_proxy.rules.families.sse.blocks import BYTE_ORDER_MARK, DATA_MARK, is_json_sequence
from a2a_proxy.wire.content import is_utf8

_REQUEST_MEMBERS = frozenset({"jsonrpc", "id", "method", "params"})
_PARSE_ERROR_BODY = {"jsonrpc": "2.0", "id": None, "error": rpc_error(-32700, text="parse error")}
_CALL_TEXT = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": TASK_PARAMS}
_BATCH_TEXT = {
    "jsonrpc": "2.0",
    "id": None,
    "error": rpc_error(-32600, text="batches are not supported"),
}
_MAX_DUPLICATES = 1 << 20
"""Size in bytes up to which a payload is searched for duplicate names; larger payloads would delay
the recorder."""


@rule(
    "A2A-RPC-002",
    '`jsonrpc` is missing or is not "2.0"',
    Severity.ERROR,
    section="1.0 9.3; 0.3 6.11.1; JSON-RPC 2.0",
    hook_points=MESSAGE_HOOKS,
    bindings=ENVELOPE,
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=rpc("GetTask", TASK_PARAMS, task(), envelope={"jsonrpc": None}),
    clean=rpc("GetTask", TASK_PARAMS, task()),
)
def version(context: RuleContext) -> Iterator[RuleFinding]:
    """A JSON-RPC request, a response or the data of an event lacks the member `jsonrpc`, or its
    value is not the string "2.0". Not judged are HTTP statuses with which gateways answer (401,
    403, 404, 405, 407, 413, 429, 502, 503, 504), and other 5xx without a member `error`.

    Libraries use this member to distinguish JSON-RPC 2.0 from 1.0. They reject a message without it
    or parse it by other rules. The sender (the client for a request, the agent for a response) must
    add `"jsonrpc": "2.0"`.
    """
    value = read_envelope(context)
    if not value:
        yield from _check_refusal(context)
        return
    if value.get("jsonrpc") == "2.0":
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


def _check_refusal(context: RuleContext) -> Iterator[RuleFinding]:
    """Report an HTTP error whose JSON is no JSON-RPC response, in answer to a request with an
    id."""
    if (
        context.frame.kind is FrameKind.ERROR
        and context.request is not None
        and context.request.rpc_id
        and is_refused_by_agent(context)
        and "jsonrpc" not in context.value
    ):
        status = context.exchange.status
        yield RuleFinding(
            summary=f"the JSON of the HTTP {status} error is no JSON-RPC response: clients cannot "
            "read its error",
            path="jsonrpc",
            value=short_json(context.value),
        )


@rule(
    "A2A-RPC-008",
    "A response has both `result` and `error`, or neither",
    Severity.ERROR,
    section="1.0 9.4; 0.3 6.11.2; JSON-RPC 2.0",
    bindings=ENVELOPE,
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=rpc("GetTask", TASK_PARAMS, answer={"jsonrpc": "2.0", "id": 1}),
    clean=rpc("GetTask", TASK_PARAMS, task()),
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
    "A2A-RPC-001",
    "The body is not valid JSON",
    Severity.ERROR,
    section="1.0 9.1; 0.3 3.2.1; JSON-RPC 2.0; RFC 8259",
    hook_points=MESSAGE_HOOKS,
    bindings=HTTP | STDIO,
    trigger_flags=FrameFlag.UNCLEAN | FrameFlag.FRAMED,
    flagged=http("POST", "/", '{"jsonrpc":"2.0",', answer=json_text(_PARSE_ERROR_BODY)),
    clean=rpc("GetTask", TASK_PARAMS, task()),
)
def not_json(context: RuleContext) -> Iterator[RuleFinding]:
    """A request or a response is not exactly one JSON value: it is empty, ends early, has text
    after its end, or is not UTF-8. On REST only bodies declared as JSON are judged, and no empty
    one that answers a delete. The data of events is judged by A2A-SSE-002, and by A2A-SSE-009 if it
    is not UTF-8.

    The receiver can read nothing of it, not even the id that an error response must name. The
    sender (client or agent) must send valid JSON; if it did, look for a proxy in between that cuts
    or changes bodies.
    """
    frame = context.frame
    if context.binding is Binding.REST and not _is_json_body(context):
        return
    if frame.framing and _is_first_of_several(context):
        yield RuleFinding(summary="the response is several JSON values; it must be one")
    if frame.framing not in ("", f"{BYTE_ORDER_MARK}{DATA_MARK}"):
        return
    if context.is_enveloped and not frame.size and _is_body_missing(context):
        side = "request" if is_from_client(context) else "response"
        yield RuleFinding(
            summary=f"the body of the {side} is empty; it must be one JSON-RPC {side}"
        )
    elif frame.payload and _is_unreadable_json(context) and is_whole_text(frame):
        place = find_json_error(frame.payload)
        if place >= 0 and not _is_empty_result(context):
            what = "request" if is_from_client(context) else "response"
            text = frame.payload.decode("utf-8", "backslashreplace")
            told = f"the {what} is not valid JSON from character {place} on"
            if not is_utf8(frame.payload):
                member = find_bad_member(frame.payload)
                told = (
                    f"the {what} is not valid UTF-8 at byte "
                    f"{place}{f', in `{member}`' if member else ''}"
                )
            yield RuleFinding(summary=told, value=text[:120])


def _is_first_of_several(context: RuleContext) -> bool:
    """Whether the frame is the first of several values in a body that must be one."""
    frame = context.frame
    return (
        context.binding in HTTP
        and is_json_sequence(frame.framing)
        and "[" not in frame.framing
        and context.exchange.streaming
        and context.operation not in STREAMING_OPERATIONS
        and not frame.note.startswith("inside ")
        and context.record.writable_notes().setdefault("several values", frame.seq) == frame.seq
    )


def _is_body_missing(context: RuleContext) -> bool:
    """Whether a body is required. A notification has no answer."""
    if is_from_client(context):
        return context.exchange.method == "POST"
    asked = context.request
    if (
        context.frame.kind is not FrameKind.RESPONSE
        or context.exchange.status != 200
        or context.response_header("content-length") != "0"
    ):
        return False
    return asked is not None and asked.rpc_id not in ("", "null") and bool(context.operation)


def _is_empty_result(context: RuleContext) -> bool:
    """Whether it is the answer to a REST delete and nothing, or null, behind a byte order mark or
    space: its client needs the status only."""
    body = context.frame.payload.removeprefix(BOM_UTF8).strip()
    return context.exchange.method == "DELETE" and body in (b"", b"null")


def _is_json_body(context: RuleContext) -> bool:
    kind = (
        strip_parameters(context.request_header("content-type"))
        if is_from_client(context)
        else context.media_type
    )
    return kind == "application/json" or kind.endswith("+json")


def _is_unreadable_json(context: RuleContext) -> bool:
    """Whether the payload should be JSON and was not decoded as JSON."""
    frame = context.frame
    if frame.schema == JSON and context.value is not None:
        return False
    if not is_from_client(context):
        return context.exchange.status // 100 == 2 and _is_json_body(context)
    return frame.schema == JSON or frame.kind in (FrameKind.OTHER, FrameKind.UNDECODABLE)


@rule(
    "A2A-RPC-003",
    "Batch of JSON-RPC calls",
    Severity.WARNING,
    section="1.0 9.3; 0.3 6.11.1; JSON-RPC 2.0 6",
    hook_points=MESSAGE_HOOKS,
    bindings=ENVELOPE,
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=http(
        "POST", "/", json_text([_CALL_TEXT, _CALL_TEXT | {"id": 2}]), answer=json_text(_BATCH_TEXT)
    ),
    clean=rpc("GetTask", TASK_PARAMS, task()) + rpc("GetTask", TASK_PARAMS, task(), id=2),
)
def batch(context: RuleContext) -> Iterator[RuleFinding]:
    """The body of a request or response is a JSON array. JSON-RPC allows batches of calls, but A2A
    defines one call per POST.

    Agents reject batches with -32600 or answer only a part of them, and no document says which HTTP
    answer a streaming call in a batch gets. The client must send one call per request, the agent
    one response.
    """
    frame = context.frame
    if frame.note != "batch" and (
        frame.kind is not FrameKind.OTHER or frame.payload.lstrip()[:1] != b"["
    ):
        return
    notes = context.record.writable_notes()
    if "batch" not in notes and (frame.note == "batch" or find_json_error(frame.payload) < 0):
        notes["batch"] = True
        side = "request" if is_from_client(context) else "response"
        yield RuleFinding(
            summary=f"the {side} is a JSON array (a batch); A2A allows one call per {side}"
        )


class _ObjectWithDuplicates(dict[str, Any]):
    """A JSON object with duplicate member names."""

    __slots__ = ("duplicate_names",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        seen: set[str] = set()
        self.duplicate_names = sorted({name for name, _ in pairs if name in seen or seen.add(name)})  # type: ignore[func-returns-value]


def _collect_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    return made if len(made) == len(pairs) else _ObjectWithDuplicates(pairs)


def _duplicate_paths(value: Any, path: str) -> Iterator[str]:
    """Yield the paths of duplicate members."""
    if isinstance(value, dict):
        if isinstance(value, _ObjectWithDuplicates):
            yield from (f"{path}.{name}" for name in value.duplicate_names)
        for name, item in value.items():
            yield from _duplicate_paths(item, f"{path}.{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _duplicate_paths(item, f"{path}[{index}]")


@rule(
    "A2A-RPC-018",
    "Duplicate member name in a JSON object",
    Severity.WARNING,
    section="RFC 8259 4",
    hook_points=MESSAGE_HOOKS,
    bindings=JSON_TEXT,
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=rpc(
        "SendMessage",
        send(),
        answer=f'{{"jsonrpc":"2.0","id":1,"id":1,"result":{json_text(snapshot("COMPLETED"))}}}',
    ),
    clean=rpc("SendMessage", send(), snapshot("COMPLETED")),
)
def name_twice(context: RuleContext) -> Iterator[RuleFinding]:
    """An object in a JSON payload has several members of the same name.

    Some parsers take the first value, some the last, and some reject the text, so client and agent
    may see different messages, and a proxy or filter between them may check a value that is not the
    one used. The sender must write each name once.
    """
    frame = context.frame
    if context.value is None or len(frame.payload) > _MAX_DUPLICATES:
        return
    try:
        marked = json.loads(frame.payload, object_pairs_hook=_collect_pairs)
        found = [path[1:] for path in _duplicate_paths(marked, "")]
    except (ValueError, RecursionError):
        return
    for path in found[:3]:
        name = path.rpartition(".")[2]
        yield RuleFinding(
            summary=f"`{name}` occurs twice in one object; parsers take the first or the last",
            path=path,
        )
