"""Rules about the events of a stream, and the stream as a whole (A2A 1.0 sections 9.4.2, 11.7;
manual/protocol.md "A2A in event streams")."""

from collections.abc import Iterator
from typing import Any

import msgspec

from a2a_proxy.model.values import EVENT_WRAPPERS, Actor, EventKind, Frame, FrameKind, Severity
from a2a_proxy.protocol.operations import STREAMING_OPERATIONS
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    HTTP,
    JSONRPC,
    REST,
    Dialects,
    EvidenceScope,
    FrameFlag,
    HookPoint,
)
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import (
    json_text,
    rest_error,
    rest_stream,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import send, snapshot, status
from a2a_proxy.rules.families.sse.blocks import is_json_sequence, is_terminated
from a2a_proxy.rules.schema.check import findings_of_kinds
from a2a_proxy.rules.schema.fault import FaultKind
from a2a_proxy.wire.content import is_utf8

_STREAM_PATH = "/message:stream"
_WRAPPERS = tuple(EVENT_WRAPPERS.values())
_DRAFT_MEMBERS = ("messageUpdate",)
"""Members defined by proposals (manual/protocol.md "Fields of the live proposals")."""
_UNREADABLE_KINDS: Any = object()
_EVENTS_TO_COMPLETED = (snapshot("WORKING"), status("COMPLETED"))
_FAILED_EVENTS = rest_error(500, "INTERNAL", "INTERNAL_ERROR")


def _decode_event_data(frame: Frame) -> Any:
    """Return the data of an event as JSON, even if the decoders did not use it."""
    try:
        return msgspec.json.decode(frame.payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _UNREADABLE_KINDS


def _is_complete_event(frame: Frame) -> bool:
    """Whether the event was recorded completely and is one that clients accept."""
    return bool(frame.framing) and not frame.truncated and is_terminated(frame.framing)


def _describe_members(value: object) -> str:
    if not isinstance(value, dict):
        return f"is {json_text(value)[:60]}"
    return f"has the members {', '.join(map(repr, value))}"[:120] if value else "is an empty object"


@rule(
    "A2A-SSE-002",
    "Data of a stream event is not JSON",
    Severity.ERROR,
    section="1.0 9.4.2, 11.7; 0.3 3.3",
    bindings=HTTP,
    trigger_flags=FrameFlag.OTHER,
    flagged=rest_stream(
        "POST", _STREAM_PATH, send(), snapshot("WORKING"), "hello", status("COMPLETED")
    ),
    clean=rest_stream("POST", _STREAM_PATH, send(), *_EVENTS_TO_COMPLETED),
)
def not_json(context: RuleContext) -> Iterator[RuleFinding]:
    """The data of a stream event, with its lines joined, is not valid JSON. Data that is not UTF-8
    is judged by A2A-SSE-009.

    Clients parse every event; in most of them one invalid event ends the whole stream. The agent
    must send one JSON value per event.
    """
    frame = context.frame
    if (
        frame.kind is not FrameKind.UNDECODABLE
        or not _is_complete_event(frame)
        or not is_utf8(frame.payload)
    ):
        return
    if _decode_event_data(frame) is _UNREADABLE_KINDS:
        text = frame.payload[:60].decode("utf-8", "replace")
        told = f"not valid JSON: {text!r}" if text else "empty, which is not valid JSON"
        yield RuleFinding(summary=f"the data of this event is {told}", value=text)


@rule(
    "A2A-SSE-004",
    "Event of a JSON-RPC stream is not a JSON-RPC response",
    Severity.ERROR,
    section="1.0 9.4.2; 0.3 3.3",
    bindings=JSONRPC,
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        json_text(snapshot("WORKING")),
        json_text(status("COMPLETED")),
    ),
    clean=rpc_stream("SendStreamingMessage", send(), *_EVENTS_TO_COMPLETED),
)
def no_response(context: RuleContext) -> Iterator[RuleFinding]:
    """The data of an event on a JSON-RPC stream is valid JSON but not a JSON-RPC response: it is
    not an object, or it has none of `jsonrpc`, `result` and `error`. Often it is a StreamResponse
    without its envelope, which is reported once for each stream and decoded as the event that it
    is.

    Clients read `result`; they drop the event, or end the stream with an error of their own. The
    agent must wrap each event in a JSON-RPC response.
    """
    frame = context.frame
    is_foreign = frame.kind is FrameKind.UNDECODABLE or context.is_bare_event
    if not is_foreign or not _is_complete_event(frame):
        return
    if is_json_sequence(frame.framing) and context.operation not in STREAMING_OPERATIONS:
        return
    if (
        context.is_bare_event
        and context.record.writable_notes().setdefault("bare event", frame.seq) != frame.seq
    ):
        return
    value = _decode_event_data(frame)
    if value is not _UNREADABLE_KINDS and not (
        isinstance(value, dict) and value.keys() & {"jsonrpc", "result", "error"}
    ):
        told = f"the data of this event {_describe_members(value)}"
        yield RuleFinding(summary=f"{told}; expected a JSON-RPC response with `result` or `error`")


@rule(
    "A2A-SSE-005",
    "Event of a REST stream is not a StreamResponse",
    Severity.ERROR,
    section="1.0 11.7",
    dialects=Dialects.V1,
    bindings=REST,
    trigger_flags=FrameFlag.UNCLEAN,
    also_broken=("A2A-SCH-004",),
    flagged=rest_stream(
        "POST",
        _STREAM_PATH,
        send(),
        snapshot("WORKING"),
        {"jsonrpc": "2.0", "id": 1, "result": status("WORKING")},
        status("COMPLETED"),
    ),
    clean=rest_stream("POST", _STREAM_PATH, send(), *_EVENTS_TO_COMPLETED),
)
def no_stream_response(context: RuleContext) -> Iterator[RuleFinding]:
    """The data of an event on a REST stream has none or several of `task`, `message`,
    `statusUpdate` and `artifactUpdate`, and no `error`. A single unknown member that holds an
    object is accepted as an event of a later version; an event in the form of 0.3 is reported by
    A2A-VER-007.

    The member names the type of the event: without it clients do not know the type, with several
    they read only one. The agent must send exactly one of the four.
    """
    frame = context.frame
    if (
        frame.kind is not FrameKind.EVENT
        or frame.event is EventKind.UNKNOWN
        or not _is_complete_event(frame)
    ):
        return
    value = _decode_event_data(frame)
    if value is _UNREADABLE_KINDS:
        return
    found = (
        [name for name in (*_WRAPPERS, *_DRAFT_MEMBERS) if name in value]
        if isinstance(value, dict)
        else []
    )
    if len(found) != 1 and not findings_of_kinds(context, FaultKind.FOREIGN):
        if isinstance(value, dict) and "jsonrpc" in value:
            told = "the data of this event is a JSON-RPC message, which REST does not use"
        else:
            told = f"the data of this event {_describe_members(value)}"
        yield RuleFinding(summary=f"{told}; expected exactly one of {', '.join(_WRAPPERS)}")


@rule(
    "A2A-SSE-008",
    "Event after an error on the same stream",
    Severity.WARNING,
    section="0.1 7.2.1",
    scope=EvidenceScope.EXCHANGE,
    bindings=HTTP,
    trigger_flags=FrameFlag.AFTER_ERROR,
    flagged=rest_stream("POST", _STREAM_PATH, send(), _FAILED_EVENTS, snapshot("COMPLETED")),
    clean=rest_stream("POST", _STREAM_PATH, send(), _FAILED_EVENTS),
)
def after_error(context: RuleContext) -> Iterator[RuleFinding]:
    """An event with data follows an error on the same stream.

    Clients stop reading at an error, so they lose the event and believe that the task failed. The
    agent must end the stream after an error.
    """
    frame = context.frame
    if frame.framing and frame.kind in (FrameKind.EVENT, FrameKind.ERROR, FrameKind.UNDECODABLE):
        what = "another error" if frame.kind is FrameKind.ERROR else "an event"
        yield RuleFinding(
            summary=f"{what} follows an error on the same stream; clients stop at the error"
        )


@rule(
    "A2A-SSE-013",
    "Event stream may be cached",
    Severity.INFO,
    actor=Actor.AGENT,
    section="RFC 9111 5.2.2; HTML 9.2.7",
    hook_points=HookPoint.HEADS,
    bindings=HTTP,
    flagged=rest_stream(
        "POST", _STREAM_PATH, send(), *_EVENTS_TO_COMPLETED, reply_headers={"Cache-Control": None}
    ),
    clean=rest_stream("POST", _STREAM_PATH, send(), *_EVENTS_TO_COMPLETED),
)
def cacheable(context: RuleContext) -> Iterator[RuleFinding]:
    """The response with an event stream has neither `Cache-Control: no-cache` nor `no-store`.

    Gateways and caches may hold such a response back to store it, and clients then get all events
    at the end. The agent should send `Cache-Control: no-cache`.
    """
    if not context.exchange.streaming or context.media_type != "text/event-stream":
        return
    found = ", ".join(context.response_headers("cache-control")).lower()
    if "no-cache" not in found and "no-store" not in found:
        told = f"Cache-Control is {found!r}" if found else "the response has no Cache-Control"
        yield RuleFinding(
            summary=f"{told}; an event stream should have `no-cache` or `no-store`", value=found
        )
