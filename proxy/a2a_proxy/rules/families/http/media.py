"""Rules about content types of A2A over HTTP (A2A 1.0 sections 9.1, 11.1)."""

from collections.abc import Iterator
from typing import Any

import msgspec

from a2a_proxy.model.values import Actor, Frame, FrameKind, Severity
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.bindings.other import is_certain_call
from a2a_proxy.protocol.operations import STREAMING_OPERATIONS
from a2a_proxy.rules.context import RuleContext, strip_parameters
from a2a_proxy.rules.define.conditions import (
    CARD,
    JSONRPC,
    REST,
    WEBHOOK,
    EvidenceScope,
    FrameFlag,
    HookPoint,
)
from a2a_proxy.rules.define.rule import SENDERS, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rest, rpc, rpc_error
from a2a_proxy.rules.examples.objects import TASK_PARAMS, send, snapshot, task
from a2a_proxy.rules.facts.json_text import find_bad_member

_A2A_TYPE, _JSON_TYPE, _EVENT_STREAM_TYPE = (
    "application/a2a+json",
    "application/json",
    "text/event-stream",
)


_GATEWAY_STATUSES = frozenset({401, 403, 404, 405, 407, 413, 429, 502, 503, 504})
"""HTTP statuses that gateways, access control and routing answer themselves, without the agent."""


def content_types(context: RuleContext) -> tuple[str, str]:
    """Return the `Content-Type` fields of request and response."""
    found: tuple[str, str] | None = context.cache.get("types")
    if found is None:
        found = context.cache["types"] = (
            context.request_header("content-type"),
            context.response_header("content-type"),
        )
    return found


def format_media_type(kind: str) -> str:
    """Return a media type as summaries show it."""
    return f"`{kind[:80]}`" if kind else "missing"


def is_refused_by_agent(context: RuleContext) -> bool:
    """Whether a JSON object with an HTTP error answers what is certainly an A2A call, and it is not
    an answer that servers in front of an agent give by themselves: certain statuses, and 5xx
    without a member `error`."""
    exchange, value = context.exchange, context.value
    return (
        isinstance(value, dict)
        and exchange.status >= 400
        and exchange.status not in _GATEWAY_STATUSES
        and (exchange.status < 500 or "error" in value)
        and is_certain_call(exchange, context.session.facts.get_card(context.record.agent))
    )


def _check_foreign_answer(context: RuleContext, expected: str) -> Iterator[RuleFinding]:
    """Report an answer to a certain A2A call that is not JSON and not declared as JSON, for example
    an HTML page."""
    status = context.exchange.status
    if (
        status in _GATEWAY_STATUSES
        or not (status // 100 == 2 or status >= 400)
        or not _is_foreign(context.frame)
    ):
        return
    if is_certain_call(context.exchange, context.session.facts.get_card(context.record.agent)):
        kind = strip_parameters(content_types(context)[1])
        told = (
            f"the answer to {context.operation} is not A2A: HTTP {status} with content type "
            f"{format_media_type(kind)}"
        )
        severity = Severity.WARNING if status >= 400 else Severity.ERROR
        yield RuleFinding(summary=f"{told}, expected {expected}", value=kind, severity=severity)


def _is_foreign(frame: Frame) -> bool:
    """Whether the frame is a body that is not JSON."""
    if frame.kind not in (FrameKind.OTHER, FrameKind.ERROR) or not frame.size:
        return False
    if frame.payload.lstrip()[:1] not in (b"{", b"["):
        return True
    try:
        msgspec.json.decode(frame.payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return not frame.truncated
    return False


@rule(
    "A2A-HTTP-001",
    "Content type of a JSON-RPC request is not application/json",
    Severity.ERROR,
    actor=Actor.CLIENT,
    section="1.0 9.1; 0.3 3.2.1",
    hook_points=HookPoint.HEADS,
    bindings=JSONRPC,
    flagged=rpc("GetTask", TASK_PARAMS, task(), headers={"Content-Type": "text/plain"}),
    clean=rpc(
        "GetTask", TASK_PARAMS, task(), headers={"Content-Type": "application/json; charset=utf-8"}
    ),
)
def type_of_call(context: RuleContext) -> Iterator[RuleFinding]:
    """A JSON-RPC request has a content type other than `application/json` (parameters are ignored),
    or none.

    Agents decide by the content type how to read a body: many answer 415, or find no body. The
    client must send `Content-Type: application/json`.
    """
    kind = strip_parameters(content_types(context)[0])
    if kind != _JSON_TYPE and context.request is not None:
        told = (
            f"the content type of the JSON-RPC request is {format_media_type(kind)}, it must be "
            f"`{_JSON_TYPE}`"
        )
        yield RuleFinding(summary=told, value=kind, seq=context.request.seq)


@rule(
    "A2A-HTTP-002",
    "Content type of a JSON-RPC response is not application/json",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="1.0 9.1; 0.3 3.2.1",
    hook_points=(HookPoint.HEADS, HookPoint.ANSWER),
    scope=EvidenceScope.EXCHANGE,
    bindings=JSONRPC,
    trigger_flags=FrameFlag.FIRST,
    flagged=rpc("GetTask", TASK_PARAMS, task(), reply_headers={"Content-Type": "text/html"}),
    clean=rpc("GetTask", TASK_PARAMS, task()),
)
def type_of_response(context: RuleContext) -> Iterator[RuleFinding]:
    """A JSON-RPC response that is not a stream has a content type other than `application/json`, or
    none. If it is not JSON either, for example an HTML page, it is a warning for an HTTP status of
    400 or above. Not judged are statuses with which gateways answer (401, 403, 404, 405, 407, 413,
    429, 502, 503, 504), and the success of a streaming call (A2A-HTTP-003).

    Clients that check the content type first take the response for the error page of a proxy; of a
    page they can only tell that the call failed. The agent, or a proxy that changes the response,
    must send JSON-RPC with `Content-Type: application/json`.
    """
    if context.frame_or_none is None:
        kind = strip_parameters(content_types(context)[1])
        if kind != _JSON_TYPE:
            context.record.writable_notes()["other type"] = kind
        return
    notes = context.record.notes
    if notes is None or "other type" not in notes or context.exchange.streaming:
        return
    if _is_foreign(context.frame):
        asked, is_streaming = context.request, context.operation in STREAMING_OPERATIONS
        if (
            asked is not None
            and asked.rpc_id
            and not (is_streaming and context.exchange.status // 100 == 2)
        ):
            yield from _check_foreign_answer(context, "JSON-RPC")
    elif (
        context.frame.kind not in (FrameKind.OTHER, FrameKind.EVENT)
        and isinstance(context.value, dict)
        and "jsonrpc" in context.value
    ):
        kind = notes["other type"]
        yield RuleFinding(
            summary=f"the content type of the JSON-RPC response is "
            f"{format_media_type(kind)}, it must "
            f"be "
            f"`{_JSON_TYPE}`",
            value=kind,
        )


@rule(
    "A2A-HTTP-008",
    "Content type of a REST body is not application/a2a+json",
    Severity.WARNING,
    section="1.0 11.1",
    hook_points=(HookPoint.HEADS, HookPoint.ANSWER),
    bindings=REST,
    trigger_flags=FrameFlag.FIRST,
    flagged=rest(
        "POST",
        "/message:send",
        send(),
        snapshot("COMPLETED"),
        headers={"Content-Type": "text/json"},
    ),
    clean=rest("POST", "/message:send", send(), snapshot("COMPLETED")),
)
def type_of_rest(context: RuleContext) -> Iterator[RuleFinding]:
    """The body of a REST request, or of a successful response that is not a stream, has a content
    type other than `application/a2a+json` and `application/json`. `application/json`, which was
    correct in 1.0.0, is reported once for each agent and each client as information: since 1.0.1
    `application/a2a+json` should be used. In every version: an answer is not JSON, for example an
    HTML page. It is an error, and a warning if its HTTP status is 400 or above. Not judged are
    statuses with which gateways answer (401, 403, 404, 405, 407, 413, 429, 502, 503, 504), and the
    success of a streaming call (A2A-HTTP-003).

    The receiver may not know how to read the body; `application/a2a+json` also lets gateways
    distinguish A2A from other JSON. The sender must set it: the client for requests, the agent for
    responses.
    """
    if context.frame_or_none is None:
        asked = context.request
        if asked is not None and asked.size and context.is_v1:
            kind = strip_parameters(content_types(context)[0])
            yield from _check_json_type(
                kind, "request", context.session.client_notes(context.record.client), asked.seq
            )
        return
    kind, is_success = (
        strip_parameters(content_types(context)[1]),
        context.exchange.status // 100 == 2,
    )
    if (
        kind == _A2A_TYPE
        or context.exchange.streaming
        or (is_success and context.operation in STREAMING_OPERATIONS)
    ):
        return
    if _is_foreign(context.frame):
        if kind != _JSON_TYPE and not kind.endswith("+json"):
            yield from _check_foreign_answer(context, "JSON")
    elif is_success and context.frame.size and context.is_v1:
        yield from _check_json_type(kind, "response", context.agent.notes, -1)


def _check_json_type(
    kind: str, side: str, notes: dict[str, Any], seq: int
) -> Iterator[RuleFinding]:
    if kind == _A2A_TYPE:
        return
    told = f"the content type of the {side} is {format_media_type(kind)}"
    if kind != _JSON_TYPE:
        yield RuleFinding(
            summary=f"{told}, it should be `{_A2A_TYPE}`", value=kind, seq=seq, actor=SENDERS[side]
        )
    elif not notes.get("rest as json"):
        notes["rest as json"] = True
        yield RuleFinding(
            summary=f"{told}, since 1.0.1 it should be `{_A2A_TYPE}`",
            value=kind,
            seq=seq,
            severity=Severity.INFO,
            actor=SENDERS[side],
        )


@rule(
    "A2A-HTTP-009",
    "JSON-RPC error with an HTTP status other than 200",
    Severity.INFO,
    section="1.0 9.5; 0.3 8",
    scope=EvidenceScope.EXCHANGE,
    bindings=JSONRPC,
    trigger_flags=FrameFlag.ERROR,
    flagged=rpc("SendMessage", send(), error=rpc_error(-32603, text="boom"), status=500),
    clean=rpc("SendMessage", send(), error=rpc_error(-32603, text="boom")),
)
def error_status(context: RuleContext) -> Iterator[RuleFinding]:
    """A JSON-RPC error is sent with an HTTP status other than 200. The specification leaves the
    status open; all SDKs send 200.

    Many HTTP libraries discard the body of such a response or raise an error of their own, and the
    JSON-RPC error code is lost. The agent should send 200.
    """
    status = context.exchange.status
    if status != 200 and isinstance(context.value, dict) and "jsonrpc" in context.value:
        told = (
            f"the agent sends error {context.frame.error_code} with HTTP status {status}, usual is "
            f"200"
        )
        yield RuleFinding(summary=told, value=str(status))


@rule(
    "A2A-HTTP-015",
    "JSON is not UTF-8",
    Severity.WARNING,
    section="1.0 14.1.1; RFC 8259 8.1",
    hook_points=(HookPoint.HEADS, HookPoint.REQUEST, HookPoint.ANSWER),
    bindings=JSONRPC | REST | WEBHOOK | CARD,
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=rpc(
        "GetTask",
        TASK_PARAMS,
        task(),
        headers={"Content-Type": "application/json; charset=latin1"},
    ),
    clean=rpc(
        "GetTask", TASK_PARAMS, task(), headers={"Content-Type": "application/json; charset=UTF-8"}
    ),
)
def not_utf8(context: RuleContext) -> Iterator[RuleFinding]:
    """The content type of a JSON body names a character set other than UTF-8, or the body has bytes
    that are not valid UTF-8.

    JSON between systems must be UTF-8: the receiver refuses the text, or reads wrong characters.
    The sender (client or agent) must encode JSON as UTF-8.
    """
    if context.frame_or_none is None:
        for field, side in zip(content_types(context), ("request", "response"), strict=True):
            if "charset" in field.lower():
                yield from _check_charset(field, side)
        return
    frame = context.frame
    data = frame.payload
    if data.isascii() and b"\0" not in data[:4]:
        return
    if frame.truncated or frame.kind is FrameKind.COMMENT or frame.note == "body broke off":
        return
    kind = (
        context.request_header if frame.direction is Direction.TO_AGENT else context.response_header
    )
    if not _is_json_type(strip_parameters(kind("content-type"))) or frame.schema == "bytes":
        return
    try:
        data.decode()
    except UnicodeDecodeError as error:
        byte = f"0x{data[error.start]:02x}"
        member = find_bad_member(data)
        told = f"byte {byte} at offset {error.start} of the JSON text is not valid UTF-8"
        yield RuleFinding(
            summary=f"{told}, in `{member}`" if member else told, path=member, value=byte
        )
        return
    if b"\0" in data[:4]:
        yield RuleFinding(
            summary="the JSON text is UTF-16 or UTF-32, it must be UTF-8", value=data[:4].hex()
        )


def _is_json_type(kind: str) -> bool:
    return kind in (_JSON_TYPE, _EVENT_STREAM_TYPE) or kind.endswith("+json")


_UTF8_NAMES = frozenset({"", "utf-8", "utf8", "us-ascii", "ascii"})
"""Names of UTF-8 and of ASCII, a subset of it."""


def _check_charset(field: str, side: str) -> Iterator[RuleFinding]:
    if not _is_json_type(strip_parameters(field)) or strip_parameters(field) == _EVENT_STREAM_TYPE:
        return
    named = [part.partition("=") for part in field.split(";")[1:]]
    charset = next(
        (value.strip(" \t\"'") for name, _, value in named if name.strip().lower() == "charset"), ""
    )
    if charset.lower() not in _UTF8_NAMES:
        told = f"the content type of the {side} says `{charset[:40]}`, JSON must be UTF-8"
        yield RuleFinding(summary=told, value=charset, seq=-1, actor=SENDERS[side])
