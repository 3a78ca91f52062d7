"""Rules about the lines of an event stream (manual/protocol.md "Event stream format"; HTML
standard, section 9.2.6)."""

from collections.abc import Iterator

from a2a_proxy.model.values import Actor, Frame, FrameKind, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import HTTP, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import RawBytes, json_text, rest_stream
from a2a_proxy.rules.examples.objects import chunk, send, snapshot, status
from a2a_proxy.rules.families.sse.blocks import (
    BYTE_ORDER_MARK,
    DATA_MARK,
    NUL_MARK,
    block_fields,
    field_values,
    has_misplaced_bom,
    is_json_sequence,
    is_terminated,
)
from a2a_proxy.rules.state.repeated_update import LINE_SEPARATORS, MAX_SDK_EVENT
from a2a_proxy.wire.content import is_utf8

_KNOWN_FIELDS = frozenset({"data", "event", "id", "retry"})
_EVENT_NAMES = frozenset({"", "message", "error"})
_MAX_NOTED_VALUES = 64
"""Number of names and ids remembered for one stream."""
_STREAM_PATH = "/message:stream"
_EVENTS_TO_COMPLETED = (snapshot("WORKING"), status("COMPLETED"))
_COMPLETED = json_text(status("COMPLETED"))


def _raw_block(text: str) -> RawBytes:
    return RawBytes(text.encode())


def _quote_value(value: str) -> str:
    return repr(value.replace(NUL_MARK, "\0"))[:80]


def _new_values(context: RuleContext, kind: str, values: list[str]) -> list[str]:
    """Return the values that this stream has not contained before, each once, and remember them."""
    known: list[str] = context.record.writable_notes().setdefault(kind, [])
    found = [each for each in dict.fromkeys(values) if each not in known]
    known += found
    del known[:-_MAX_NOTED_VALUES]
    return found


@rule(
    "A2A-SSE-001",
    "Stream event without data",
    Severity.INFO,
    section="HTML 9.2.6; 1.0 9.4.2",
    bindings=HTTP,
    trigger_flags=FrameFlag.OTHER,
    flagged=rest_stream(
        "POST",
        _STREAM_PATH,
        send(),
        snapshot("WORKING"),
        RawBytes(b"event: ping\n\n"),
        status("COMPLETED"),
    ),
    clean=rest_stream(
        "POST",
        _STREAM_PATH,
        send(),
        snapshot("WORKING"),
        RawBytes(b": ping\n\n"),
        status("COMPLETED"),
    ),
)
def no_data(context: RuleContext) -> Iterator[RuleFinding]:
    """A block of an event stream has an event name or unknown fields but no line of data. Comments
    are not judged, nor are `id` and `retry` alone, which have an effect without data. Lines broken
    by a byte order mark are judged by A2A-SSE-009.

    Clients drop a block without data, so its content never arrives. The agent must send data with
    the event; for a keep-alive it should send a comment (`: ping`).
    """
    frame = context.frame
    if (
        frame.kind is not FrameKind.COMMENT
        or not is_terminated(frame.framing)
        or has_misplaced_bom(frame.framing)
    ):
        return
    names = [name for name, _ in block_fields(frame.framing) if name not in ("id", "retry")]
    if names:
        told = ", ".join(f"`{_quote_value(name)[1:-1]}`" for name in dict.fromkeys(names))
        yield RuleFinding(
            summary=f"an event block has {told} but no data: clients drop it",
            value=frame.framing.strip(),
        )


@rule(
    "A2A-SSE-003",
    "Stream ends without an empty line after the last event",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="HTML 9.2.6; 1.0 9.4.2, 11.7",
    hook_points=(HookPoint.ANSWER, HookPoint.CLOSED),
    scope=EvidenceScope.EXCHANGE,
    bindings=HTTP,
    trigger_flags=FrameFlag.FRAMED,
    flagged=rest_stream(
        "POST",
        _STREAM_PATH,
        send(),
        snapshot("WORKING"),
        _raw_block(f"data: {_COMPLETED}\n"),
    ),
    clean=rest_stream("POST", _STREAM_PATH, send(), *_EVENTS_TO_COMPLETED),
)
def unterminated(context: RuleContext) -> Iterator[RuleFinding]:
    """An event stream ends without the empty line that must follow its last event. A stream that
    was cut off is not judged.

    Clients that follow the standard discard that event; often it is the event with the terminal
    state. The agent must write an empty line after every event.
    """
    frame = context.frame_or_none
    if frame is not None:
        if not is_terminated(frame.framing):
            context.record.writable_notes()["unterminated"] = frame.seq
        return
    seq = (context.record.notes or {}).get("unterminated")
    if seq is not None and context.exchange.how == "complete":
        yield RuleFinding(
            summary="the stream ends without an empty line after its last "
            "event: clients discard it",
            seq=seq,
        )


@rule(
    "A2A-SSE-015",
    "Body of an event stream has no events",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="HTML 9.2.6; 1.0 9.4.2, 11.7",
    scope=EvidenceScope.EXCHANGE,
    bindings=HTTP,
    trigger_flags=FrameFlag.FIRST,
    flagged=rest_stream("POST", _STREAM_PATH, send(), _raw_block(json_text(snapshot("COMPLETED")))),
    clean=rest_stream("POST", _STREAM_PATH, send(), *_EVENTS_TO_COMPLETED),
)
def no_events(context: RuleContext) -> Iterator[RuleFinding]:
    """The content type of a response is `text/event-stream`, but its body is JSON, one object a
    line or a single one, or a page. Its objects are read and judged like events.

    Clients look for lines such as `data: {...}`, find none, and wait or return nothing, also where
    the body is an error. The agent, or a server in front of it, must send server-sent events, or
    one JSON object as `application/json`.
    """
    frame = context.frame
    if context.media_type != "text/event-stream" or context.exchange.status // 100 != 2:
        return
    if is_json_sequence(frame.framing) and frame.kind is not FrameKind.UNDECODABLE:
        found = "JSON"
    elif frame.payload.lstrip()[:1] == b"<" and frame.kind is FrameKind.OTHER:
        found = "a page"
    else:
        return
    yield RuleFinding(
        summary=f"the body of the event stream is {found}, it must be lines such as "
        "`data: {...}`: clients find no event in it",
        value=frame.payload[:80].decode("utf-8", "replace"),
    )


@rule(
    "A2A-SSE-016",
    "Legal event stream that released SDKs cannot read",
    Severity.INFO,
    actor=Actor.AGENT,
    section="HTML 9.2.5, 9.2.6",
    scope=EvidenceScope.EXCHANGE,
    bindings=HTTP,
    trigger_flags=FrameFlag.FRAMED | FrameFlag.UNUSUAL,
    flagged=rest_stream(
        "POST",
        _STREAM_PATH,
        send(),
        snapshot("WORKING"),
        _raw_block(f"data: {_COMPLETED}\r\r"),
    ),
    clean=rest_stream(
        "POST",
        _STREAM_PATH,
        send(),
        snapshot("WORKING"),
        _raw_block(f"data: {_COMPLETED}\r\n\r\n"),
    ),
)
def hard_to_read(context: RuleContext) -> Iterator[RuleFinding]:
    """An event has a form that the standard allows, but with which a released A2A SDK fails: lines
    that end with CR (carriage return) alone, before 1.0 data on several lines, more than 4 MiB, a
    byte order mark before it, or U+0085, U+2028 or U+2029 in its data. Each form is reported once
    for a stream.

    The clients named return nothing, lose the event, or end the stream with an error. The agent
    should end lines with LF or CRLF, write JSON on one line and escape these characters, and send
    large content as several chunks or as a `url`.
    """
    frame = context.frame
    if context.media_type != "text/event-stream" or is_json_sequence(frame.framing):
        return
    for form, told, effect in _unread_forms(frame):
        if form == "lines" and context.is_v1:
            continue
        if _new_values(context, "unread_forms", [form]):
            yield RuleFinding(
                summary=f"{told}, which is legal, but the {effect}",
                value=frame.framing[:80] or form,
            )


def _unread_forms(frame: Frame) -> Iterator[tuple[str, str, str]]:
    """Yield each form of an event that an SDK cannot read, in words, and with the SDK and what it
    does. Each was reproduced with the versions named."""
    framing, count = frame.framing, frame.framing.count(DATA_MARK)
    if "\r" in framing and "\n" not in framing:
        told = "the lines of this stream end with CR alone"
        yield "CR", told, "JavaScript SDK (0.3.13, 1.3.0) finds no event in it"
    if count > 1:
        told = f"the data of this event has {count} lines"
        yield "lines", told, "JavaScript SDK 0.3.13 takes each for an event of its own and fails"
    if framing.startswith(BYTE_ORDER_MARK):
        told = "the stream begins with a byte order mark"
        yield "BOM", told, "Python SDK (0.3.26, 1.3.0) loses the first event"
    if frame.size > MAX_SDK_EVENT:
        told = f"this event has {frame.size:,} bytes"
        yield "size", told, "JavaScript SDK 1.3.0 reads at most 4 MiB and fails"
    for character in () if frame.payload.isascii() else LINE_SEPARATORS:
        if character in frame.payload:
            name = f"U+{ord(character.decode()):04X}"
            told = f"the data of this event has {name} unescaped"
            yield "separator", told, "Python SDK 1.3.0 ends the line there and fails"
            return


@rule(
    "A2A-SSE-006",
    "Unknown field or event name in an event stream",
    Severity.INFO,
    section="HTML 9.2.6",
    bindings=HTTP,
    trigger_flags=FrameFlag.FRAMED,
    flagged=rest_stream(
        "POST",
        _STREAM_PATH,
        send(),
        snapshot("WORKING"),
        _raw_block(f"event: status\ndata: {_COMPLETED}\n\n"),
    ),
    clean=rest_stream("POST", _STREAM_PATH, send(), *_EVENTS_TO_COMPLETED),
)
def unknown_field(context: RuleContext) -> Iterator[RuleFinding]:
    """An event has a field other than `data`, `event`, `id` and `retry`, or an event name other
    than `message` and `error`. Each name is reported once per stream.

    Browsers pass a named event only to listeners for that name, and A2A defines no names: a client
    that listens for messages never sees it. Unknown fields are ignored. The agent should leave both
    out.
    """
    framing = context.frame.framing
    found = list(block_fields(framing))
    for name in _new_values(
        context, "sse_fields", [name for name, _ in found if name not in _KNOWN_FIELDS]
    ):
        yield RuleFinding(
            summary=f"unknown field {_quote_value(name)}: clients ignore it", value=name
        )
    for name in _new_values(
        context,
        "sse_names",
        [value for key, value in found if key == "event" and value not in _EVENT_NAMES],
    ):
        yield RuleFinding(
            summary=f"the event is named {_quote_value(name)}; A2A defines no "
            f"event names, clients may "
            f"not see it",
            value=f"event: {name}",
        )


@rule(
    "A2A-SSE-009",
    "Event stream is not UTF-8",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="HTML 9.2.6; RFC 8259 8.1",
    hook_points=(HookPoint.HEADS, HookPoint.ANSWER),
    bindings=HTTP,
    trigger_flags=FrameFlag.UNCLEAN | FrameFlag.OTHER | FrameFlag.FRAMED,
    also_broken=("A2A-HTTP-015",),
    flagged=rest_stream(
        "POST",
        _STREAM_PATH,
        send(),
        snapshot("WORKING"),
        RawBytes(b'data: {"message":"\xff\xfe"}\n\n'),
        status("COMPLETED"),
    ),
    clean=rest_stream(
        "POST", _STREAM_PATH, send(), snapshot("WORKING"), chunk("ÿþ"), status("COMPLETED")
    ),
)
def not_utf8(context: RuleContext) -> Iterator[RuleFinding]:
    """The data of an event is not valid UTF-8, or the response declares another charset. A byte
    order mark anywhere except at the start of the stream is a warning.

    Event streams are UTF-8 whatever charset is declared: clients show replacement characters or
    reject the JSON. A byte order mark inside the stream becomes part of the field name, and clients
    ignore the line. The agent must send UTF-8, and without a byte order mark.
    """
    frame = context.frame_or_none
    if frame is None:
        yield from _check_charset(context)
    elif frame.framing:
        if not frame.truncated and not is_utf8(frame.payload):
            yield RuleFinding(summary="the data of this event is not valid UTF-8")
        if has_misplaced_bom(frame.framing):
            told = (
                "a byte order mark inside the stream: clients ignore its line as an unknown field"
            )
            yield RuleFinding(summary=told, severity=Severity.WARNING)


def _check_charset(context: RuleContext) -> Iterator[RuleFinding]:
    if not context.exchange.streaming or context.media_type != "text/event-stream":
        return
    for parameter in context.response_header("content-type").split(";")[1:]:
        name, _, value = parameter.strip().partition("=")
        charset = value.strip().strip('"').lower()
        if name.strip().lower() == "charset" and charset not in ("utf-8", "utf8"):
            yield RuleFinding(
                summary=f"the response declares charset {charset!r}; event streams are UTF-8",
                value=charset,
            )


@rule(
    "A2A-SSE-010",
    "Client resumes by event id, or event ids are unusable",
    Severity.INFO,
    actor=Actor.EITHER,
    section="1.0 3.1.6; HTML 9.2.6",
    hook_points=(HookPoint.HEADS, HookPoint.ANSWER),
    scope=EvidenceScope.EXCHANGE,
    bindings=HTTP,
    trigger_flags=FrameFlag.FRAMED,
    flagged=rest_stream(
        "POST", _STREAM_PATH, send(), *_EVENTS_TO_COMPLETED, headers={"Last-Event-ID": "7"}
    ),
    clean=rest_stream("POST", _STREAM_PATH, send(), *_EVENTS_TO_COMPLETED),
)
def event_ids(context: RuleContext) -> Iterator[RuleFinding]:
    """A client sends `Last-Event-ID` to resume a stream; or the `id` of an event contains U+0000,
    or occurred before on the same stream.

    A2A does not resume streams by event id: a client that relies on it misses events or starts its
    task again. It must call SubscribeToTask instead. Clients ignore an id with U+0000 and cannot
    distinguish events with equal ids; the agent should leave ids out.
    """
    frame = context.frame_or_none
    if frame is None:
        asked = context.request_header("last-event-id") if context.exchange.streaming else ""
        if asked:
            yield RuleFinding(
                summary=f"the client sends Last-Event-ID: {asked[:60]}; A2A "
                f"resumes by SubscribeToTask"
            )
        return
    found = [each for each in field_values(frame.framing, "id") if each]
    if not found:
        return
    for each in found:
        if NUL_MARK in each:
            yield RuleFinding(
                summary="the id of this event contains U+0000: clients ignore it",
                value=_quote_value(each),
            )
    for each in set(found) - set(_new_values(context, "sse_ids", found)):
        yield RuleFinding(
            summary=f"the event id {_quote_value(each)} occurred on this stream before",
            value=_quote_value(each),
        )
