"""What the events of a stream hold (A2A 1.0 sections 9.4.2, 11.7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import EventKind, Frame, FrameKind
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import HTTP, JSONRPC, REST, Dialects, EvidenceScope, FrameFlag, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import Raw, json_text, rest_error, rest_stream, rpc_stream
from a2a_proxy.rules.examples.objects import Json, send, snapshot, status
from a2a_proxy.rules.families.sse.blocks import terminated, values
from a2a_proxy.rules.schema.check import hits
from a2a_proxy.rules.schema.fault import FaultKind
from a2a_proxy.rules.state.session_state import lines_of

_STREAM = "/message:stream"
_WRAPPERS = ("task", "message", "statusUpdate", "artifactUpdate")
_DRAFTS = ("messageUpdate",)
"""Members of proposals (manual/protocol.md "Fields of the live proposals")."""
_UNREADABLE: Any = object()
_DONE = (snapshot("WORKING"), status("COMPLETED"))
_FAILED = rest_error(500, "INTERNAL", "INTERNAL_ERROR")


def _error_event(value: Json) -> Raw:
    return Raw(f"event: error\ndata: {json_text(value)}\n\n".encode())


def _read(frame: Frame) -> Any:
    """The data of an event as JSON, also where the decoders had no use for it."""
    try:
        return msgspec.json.decode(frame.payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _UNREADABLE


def _whole(frame: Frame) -> bool:
    """An event of which all octets are here, and which its client takes."""
    return bool(frame.framing) and not frame.truncated and terminated(frame.framing)


def _members(value: object) -> str:
    if not isinstance(value, dict):
        return f"is {json_text(value)[:60]}"
    return f"has the members {', '.join(map(repr, value))}"[:120] if value else "is an empty object"


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@rule(
    "A2A-SSE-002",
    "Event data is not JSON",
    Severity.ERROR,
    section="1.0 9.4.2, 11.7",
    bindings=HTTP,
    when=FrameFlag.OTHER,
    flagged=rest_stream("POST", _STREAM, send(), snapshot("WORKING"), "hello", status("COMPLETED")),
    clean=rest_stream("POST", _STREAM, send(), *_DONE),
)
def not_json(see: RuleContext) -> Iterator[RuleFinding]:
    """The data of an event, its lines joined, does not parse as JSON. Octets that are not UTF-8 are another rule's.

    Clients parse every event: one that fails ends the whole stream in most of them.
    """
    frame = see.frame
    if frame.kind is not FrameKind.UNDECODABLE or not _whole(frame) or not _is_text(frame.payload):
        return
    if _read(frame) is _UNREADABLE:
        text = frame.payload[:60].decode("utf-8", "replace")
        told = f"not JSON: {text!r}" if text else "empty, which is not JSON"
        yield RuleFinding(summary=f"the data of this event is {told}", value=text)


@rule(
    "A2A-SSE-004",
    "Event of a JSON-RPC stream is no JSON-RPC response",
    Severity.ERROR,
    section="1.0 9.4.2",
    bindings=JSONRPC,
    when=FrameFlag.OTHER,
    also=("A2A-RPC-002",),
    flagged=rpc_stream(
        "SendStreamingMessage", send(), json_text(snapshot("WORKING")), snapshot("WORKING"), status("COMPLETED")
    ),
    clean=rpc_stream("SendStreamingMessage", send(), *_DONE),
)
def no_response(see: RuleContext) -> Iterator[RuleFinding]:
    """The data of an event parses, but is no JSON-RPC response: it is no object, or has neither `jsonrpc` nor `result`
    nor `error`, as a bare StreamResponse.

    Clients look for `result`; they drop the event, or end the stream with an error of their own.
    """
    frame = see.frame
    if frame.kind is not FrameKind.UNDECODABLE or not _whole(frame):
        return
    value = _read(frame)
    if value is not _UNREADABLE and not (isinstance(value, dict) and value.keys() & {"jsonrpc", "result", "error"}):
        told = f"the data of this event {_members(value)}"
        yield RuleFinding(summary=f"{told}, a JSON-RPC response with `result` or `error` was expected")


@rule(
    "A2A-SSE-005",
    "Event of a REST stream is no StreamResponse",
    Severity.ERROR,
    section="1.0 11.7",
    lines=Dialects.V1,
    bindings=REST,
    when=FrameFlag.UNCLEAN,
    also=("A2A-SCH-004",),
    flagged=rest_stream(
        "POST",
        _STREAM,
        send(),
        snapshot("WORKING"),
        {"jsonrpc": "2.0", "id": 1, "result": status("WORKING")},
        status("COMPLETED"),
    ),
    clean=rest_stream("POST", _STREAM, send(), *_DONE),
)
def no_stream_response(see: RuleContext) -> Iterator[RuleFinding]:
    """The data of an event has none or several of `task`, `message`, `statusUpdate` and `artifactUpdate`, and no
    `error`. A single member that this version does not know, holding an object, is taken for one of a later version; an
    event of 0.3 is A2A-VER-007.

    The member says what the event is: without it clients cannot tell, with several they take one of them.
    """
    frame = see.frame
    if frame.kind is not FrameKind.EVENT or frame.event is EventKind.UNKNOWN or not _whole(frame):
        return
    value = _read(frame)
    if value is _UNREADABLE:
        return
    found = [name for name in (*_WRAPPERS, *_DRAFTS) if name in value] if isinstance(value, dict) else []
    if len(found) != 1 and not hits(see, FaultKind.FOREIGN):
        told = f"the data of this event {_members(value)}"
        yield RuleFinding(summary=f"{told}, exactly one of {', '.join(_WRAPPERS)} was expected")


@rule(
    "A2A-SSE-007",
    "Errors in streams are framed inconsistently",
    Severity.INFO,
    section="HTML 9.2.6",
    bindings=HTTP,
    when=FrameFlag.ERROR | FrameFlag.FRAMED,
    scope=EvidenceScope.LIVE,
    flagged=rest_stream(
        "POST",
        _STREAM,
        send(),
        snapshot("WORKING"),
        _error_event(status("FAILED")),
    ),
    clean=rest_stream("POST", _STREAM, send(), _error_event(_FAILED)),
)
def error_framing(see: RuleContext) -> Iterator[RuleFinding]:
    """An event is named `error` and holds no error; or an agent that names its errors so sends one without the name,
    or the other way round, on the same binding and protocol line.

    Nothing in A2A says which form is right, so clients are written for the one that the agent shows: those that listen
    for `error` events miss an error without the name, and take the end of the stream for success.
    """
    frame = see.frame
    if not frame.framing:
        return
    named = "error" in values(frame.framing, "event")
    if frame.kind is FrameKind.ERROR:
        forms: dict[str, bool] = see.agent.notes.setdefault("sse_errors", {})
        form = f"{see.binding} {lines_of(see.exchange.dialect)}"
        before = forms.get(form, named)
        forms[form] = named
        if before != named:
            now = "named `error`" if named else "without an event name"
            yield RuleFinding(summary=f"this error comes {now}, an earlier one of this agent did not")
    elif named and frame.kind is FrameKind.EVENT:
        yield RuleFinding(summary="an event named `error` holds no error", value="event: error")


@rule(
    "A2A-SSE-008",
    "Events after an error",
    Severity.WARNING,
    section="0.1 7.2.1",
    scope=EvidenceScope.EXCHANGE,
    bindings=HTTP,
    when=FrameFlag.AFTER_ERROR,
    flagged=rest_stream("POST", _STREAM, send(), _FAILED, snapshot("COMPLETED")),
    clean=rest_stream("POST", _STREAM, send(), _FAILED),
)
def after_error(see: RuleContext) -> Iterator[RuleFinding]:
    """An event with data follows an error on the same stream.

    Clients stop reading at an error, so the event is lost to them, and they believe that the task failed.
    """
    frame = see.frame
    if frame.framing and frame.kind in (FrameKind.EVENT, FrameKind.ERROR, FrameKind.UNDECODABLE):
        what = "another error" if frame.kind is FrameKind.ERROR else "an event"
        yield RuleFinding(summary=f"{what} follows an error on the same stream")
