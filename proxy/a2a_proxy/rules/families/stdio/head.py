"""Rules about the bytes on the pipe: header blocks, framed JSON-RPC messages, and nothing else
(manual/protocol.md "Stdio", "Stdio framing")."""

from collections.abc import Iterator

from a2a_proxy.model.values import FrameKind, Severity
from a2a_proxy.model.wire import REASON_BROKE_OFF, REASON_CUT_SHORT, Direction
from a2a_proxy.protocol.bindings.rpc_calls import NOTE_NOT_JSON, NOTE_NOT_JSONRPC
from a2a_proxy.protocol.conversation import NOTE_STRAY
from a2a_proxy.rules.context import RuleContext, strip_parameters
from a2a_proxy.rules.define.conditions import Dialects, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding
from a2a_proxy.rules.examples.conversation import json_text
from a2a_proxy.rules.examples.objects import TASK_PARAMS, send, snapshot, task
from a2a_proxy.rules.examples.pipe import (
    CLEAN_PIPE,
    DOWN,
    PLAIN_HEADER_BLOCK,
    UP,
    VERSIONED_HEADER_BLOCK,
    pipe_bytes,
    pipe_call,
    pipe_message,
    pipe_response,
    pipe_script,
)
from a2a_proxy.rules.families.rpc.reading import find_json_error, is_whole_text, json_kind
from a2a_proxy.rules.families.stdio.reading import (
    EVERYWHERE,
    HANDSHAKE_METHODS,
    RIGHT_TYPES,
    has_header_block,
    header_fields,
    header_values,
    is_first_time,
    sender_name,
    session_notes,
    stdio_rule,
)

_CONTENT_TYPES = frozenset(
    {"application/json", "application/a2a+json", "application/vscode-jsonrpc"}
)
_KNOWN_CHARSETS = frozenset({"utf-8", "utf8"})
_REQUEST_TEXT = json_text({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": send("é")})
_COMPLETED_STEP = pipe_response(snapshot("COMPLETED"))
_MAX_SHOWN_LENGTH = 60


@stdio_rule(
    "A2A-STDIO-001",
    "Content-Length is missing",
    Severity.ERROR,
    section="stdio proposal, Required Headers",
    hook_points=EVERYWHERE,
    trigger_flags=FrameFlag.FRAMED,
    flagged=pipe_script(
        pipe_call("GetTask", TASK_PARAMS),
        pipe_response(task(), head="Content-Type: application/json\r\n\r\n"),
    ),
    clean=CLEAN_PIPE,
)
def no_length(context: RuleContext) -> Iterator[RuleFinding]:
    """The header block of a message has no Content-Length.

    The receiver cannot know where the message ends, so it waits indefinitely or closes the
    connection. The sender (client or agent) must write the field.
    """
    if has_header_block(context.frame) and not header_values(context.frame, "content-length"):
        yield RuleFinding(
            summary=f"the {sender_name(context.frame)}'s message has no Content-Length"
        )


@stdio_rule(
    "A2A-STDIO-002",
    "Content-Type is missing",
    Severity.ERROR,
    section="stdio proposal, Required Headers",
    hook_points=EVERYWHERE,
    trigger_flags=FrameFlag.FRAMED,
    flagged=pipe_script(
        pipe_call("GetTask", TASK_PARAMS),
        pipe_response(task(), head="Content-Length: {size}\r\n\r\n"),
    ),
    clean=CLEAN_PIPE,
)
def no_type(context: RuleContext) -> Iterator[RuleFinding]:
    """The header block of a message has no Content-Type. It is a warning if the peers began with a
    handshake, because a variant of the stdio proposal makes Content-Type optional.

    Both fields are mandatory, and a strict receiver rejects the message; only the Language Server
    Protocol, from which the framing comes, allows the omission. The sender (client or agent) must
    write the field.
    """
    if has_header_block(context.frame) and not header_values(context.frame, "content-type"):
        variant = context.frame.note in HANDSHAKE_METHODS or "handshake" in session_notes(context)
        severity = Severity.WARNING if variant else None
        yield RuleFinding(
            summary=f"the {sender_name(context.frame)}'s message has no Content-Type",
            severity=severity,
        )


@stdio_rule(
    "A2A-STDIO-003",
    "Header lines do not end with CRLF",
    Severity.ERROR,
    section="stdio proposal, grammar",
    hook_points=EVERYWHERE,
    trigger_flags=FrameFlag.FRAMED,
    flagged=pipe_script(
        pipe_call("GetTask", TASK_PARAMS),
        pipe_response(task(), head=PLAIN_HEADER_BLOCK.replace("\r\n", "\n")),
    ),
    clean=CLEAN_PIPE,
)
def line_ends(context: RuleContext) -> Iterator[RuleFinding]:
    """A line of the header block, or the empty line after it, ends with LF instead of CRLF.

    A receiver that searches for CRLF CRLF never finds the end of the block. Common causes in the
    sender (client or agent) are a runtime that converts line ends on standard output, and printing
    the block with the platform's line ends. The sender must write CRLF in binary mode.
    """
    found = [field for field in header_fields(context.frame) if not field.crlf]
    if found:
        count = f"{len(found)} of {len(header_fields(context.frame))} lines"
        yield RuleFinding(
            summary=f"{count} of the {sender_name(context.frame)}'s header "
            f"block end with LF instead "
            f"of CRLF"
        )


@stdio_rule(
    "A2A-STDIO-004",
    "Content-Length is wrong",
    Severity.ERROR,
    section="stdio proposal, Required Headers",
    hook_points=EVERYWHERE,
    trigger_flags=FrameFlag.FRAMED,
    flagged=pipe_script(
        pipe_bytes(UP, VERSIONED_HEADER_BLOCK.format(size=len(_REQUEST_TEXT)) + _REQUEST_TEXT),
        _COMPLETED_STEP,
    ),
    clean=pipe_script(
        pipe_bytes(
            UP, VERSIONED_HEADER_BLOCK.format(size=len(_REQUEST_TEXT.encode())) + _REQUEST_TEXT
        ),
        _COMPLETED_STEP,
    ),
)
def wrong_length(context: RuleContext) -> Iterator[RuleFinding]:
    """Content-Length is not a decimal number of bytes, or it occurs several times with different
    values, or the content of that many bytes is not exactly one JSON value: the sender counted
    characters instead of bytes, or the message was cut short.

    The receiver takes the rest of the message for the next header block, or waits for bytes that
    never arrive; it cannot read anything after that. The sender (client or agent) must count bytes.
    The recording resumes at the next header block.
    """
    frame = context.frame
    said = [value for value in header_values(frame, "content-length") if value != RIGHT_TYPES]
    wrong = [value for value in said if not _is_same_length(value, frame.size)]
    no_value = frame.note in (REASON_CUT_SHORT, REASON_BROKE_OFF)
    if (
        not (said if no_value else wrong)
        or (wrong and frame.note == REASON_BROKE_OFF)
        or frame.truncated
    ):
        return
    value = (wrong or said)[0][:40]
    if no_value:
        told = (
            f"Content-Length is {value}, but after {frame.size} bytes the content is not a JSON "
            f"value"
        )
    else:
        told = f"Content-Length is {value}, but the content has {frame.size} bytes"
        if not frame.redacted and _is_same_length(
            value, len(frame.payload.decode("utf-8", "replace"))
        ):
            told += f" ({value} characters)"
    yield RuleFinding(summary=told, value=value)


def _is_same_length(value: str, size: int) -> bool:
    return value.isascii() and value.isdigit() and int(value[:20]) == size


@stdio_rule(
    "A2A-STDIO-006",
    "Content-Type is not JSON",
    Severity.WARNING,
    section="stdio proposal, Required Headers",
    hook_points=EVERYWHERE,
    trigger_flags=FrameFlag.FRAMED,
    flagged=pipe_script(
        pipe_call("GetTask", TASK_PARAMS),
        pipe_response(task(), head="Content-Length: {size}\r\nContent-Type: text/plain\r\n\r\n"),
    ),
    clean=pipe_script(
        pipe_call("GetTask", TASK_PARAMS),
        pipe_response(
            task(),
            head="Content-Length: {size}\r\nContent-Type: application/json; charset=utf-8\r\n\r\n",
        ),
    ),
)
def other_type(context: RuleContext) -> Iterator[RuleFinding]:
    """Content-Type is not application/json, application/a2a+json or application/vscode-jsonrpc, or
    its charset is not UTF-8.

    The content is always JSON-RPC; a receiver that checks the type rejects it, or decodes it with
    the wrong charset. The sender (client or agent) should write application/json.
    """
    for value in header_values(context.frame, "content-type"):
        charset = _charset_of(value)
        if strip_parameters(value) not in _CONTENT_TYPES:
            yield RuleFinding(
                summary=f"Content-Type is {value[:60]}; it should be application/json", value=value
            )
        elif charset and charset not in _KNOWN_CHARSETS:
            yield RuleFinding(
                summary=f"the charset of Content-Type is {charset[:40]}; JSON is UTF-8", value=value
            )


def _charset_of(value: str) -> str:
    for parameter in value.split(";")[1:]:
        name, _, text = parameter.partition("=")
        if name.strip().lower() == "charset":
            return text.strip().strip('"').lower()
    return ""


@stdio_rule(
    "A2A-STDIO-019",
    "1.0 request without A2A-Version",
    Severity.WARNING,
    section="1.0 3.6.1, 12.3",
    hook_points=HookPoint.REQUEST,
    dialects=Dialects.V1,
    trigger_flags=FrameFlag.ASKS,
    also_broken=("A2A-VER-001",),
    flagged=pipe_script(
        pipe_call("GetTask", TASK_PARAMS, head=PLAIN_HEADER_BLOCK), pipe_response(task())
    ),
    clean=CLEAN_PIPE,
)
def no_version(context: RuleContext) -> Iterator[RuleFinding]:
    """The header block of a 1.0 request has no field A2A-Version.

    Header blocks carry what HTTP carries in header fields: without the version, the agent must take
    the client for a 0.3 client. The client must write `A2A-Version: 1.0`.
    """
    frame = context.frame
    if (
        has_header_block(frame)
        and frame.kind is FrameKind.REQUEST
        and context.operation
        and not context.exchange.version_header
    ):
        yield RuleFinding(
            summary=f"`{context.exchange.method[:60]}` is a 1.0 method, but "
            f"its header block has no "
            f"A2A-Version"
        )


@stdio_rule(
    "A2A-STDIO-005",
    "Bytes outside the messages on the pipe",
    Severity.WARNING,
    section="stdio proposal; Language Server Protocol, base protocol",
    hook_points=HookPoint.CONNECTION,
    flagged=pipe_script(
        pipe_bytes(DOWN, "Starting agent...\n"),
        pipe_call("GetTask", TASK_PARAMS),
        pipe_response(task()),
    ),
    clean=CLEAN_PIPE,
)
def stray(context: RuleContext) -> Iterator[RuleFinding]:
    """The pipe carries bytes outside of messages: banners, log lines, stack traces. Consecutive
    bytes are reported once.

    The reader takes them for a header block, and skips them or fails. The sender must write such
    text to standard error; libraries that print to standard output must be configured to do so.
    """
    frame = context.frame
    if frame.kind is not FrameKind.OTHER or frame.note != NOTE_STRAY:
        return
    known = session_notes(context)
    before = known.get(f"{sender_name(frame)} stray")
    known[f"{sender_name(frame)} stray"] = frame.end
    if before != frame.start:
        pipe = "stdin" if frame.direction is Direction.TO_AGENT else "stdout"
        text = frame.payload[:_MAX_SHOWN_LENGTH].decode("utf-8", "replace")
        what = f'"{text}"' if text.strip() else "an empty line"
        yield RuleFinding(summary=f"bytes outside of messages on {pipe}: {what}", value=text)


@stdio_rule(
    "A2A-STDIO-007",
    "Content of a message is not JSON-RPC",
    Severity.ERROR,
    section="stdio proposal; JSON-RPC 2.0",
    hook_points=EVERYWHERE,
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=pipe_script(
        pipe_call("GetTask", TASK_PARAMS), pipe_message(DOWN, [task()]), pipe_response(task())
    ),
    clean=CLEAN_PIPE,
)
def no_message(context: RuleContext) -> Iterator[RuleFinding]:
    """The content of a message is not JSON, is an array or a scalar, or is an object without
    `jsonrpc`. The handshake of a variant of the stdio proposal is reported as information.

    Each message must be one JSON-RPC request, response or notification; the receiver drops anything
    else or ends the connection. The sender (client or agent) must send valid JSON-RPC.
    """
    frame = context.frame
    if frame.note in HANDSHAKE_METHODS and not frame.exchange:
        if is_first_time(context, "handshake"):
            yield RuleFinding(
                summary=f"the {sender_name(frame)} begins with a {frame.note}: "
                f"a variant of the stdio "
                f"proposal",
                severity=Severity.INFO,
            )
    elif frame.note == NOTE_NOT_JSON and not frame.exchange:
        text = frame.payload[:_MAX_SHOWN_LENGTH].decode("utf-8", "replace")
        yield RuleFinding(
            summary=f"the content of the {sender_name(frame)}'s message is not valid JSON",
            value=text,
        )
    elif frame.note == NOTE_NOT_JSONRPC and not frame.exchange:
        told = json_kind(context.value)
        told += (
            " that is neither a request nor a response" if isinstance(context.value, dict) else ""
        )
        yield RuleFinding(
            summary=f"the content of the {sender_name(frame)}'s message is "
            f"{told}; expected a JSON-RPC "
            f"message",
            value=frame.payload[:_MAX_SHOWN_LENGTH].decode("utf-8", "replace"),
        )
    elif frame.exchange and frame.payload and context.value is None:
        if is_whole_text(frame) and (place := find_json_error(frame.payload)) >= 0:
            text = frame.payload.decode("utf-8", "backslashreplace")[:_MAX_SHOWN_LENGTH]
            yield RuleFinding(
                summary=f"the {sender_name(frame)}'s message is not valid JSON "
                f"from byte {place} on",
                value=text,
            )
    elif frame.exchange and isinstance(context.value, dict) and "jsonrpc" not in context.value:
        yield RuleFinding(
            summary=f"the {sender_name(frame)}'s message has no member `jsonrpc`", path="jsonrpc"
        )


@stdio_rule(
    "A2A-STDIO-014",
    "Newline-delimited JSON instead of header blocks",
    Severity.WARNING,
    section="stdio proposal, grammar",
    hook_points=EVERYWHERE,
    scope=EvidenceScope.SESSION,
    trigger_flags=FrameFlag.FRAMED,
    flagged=pipe_script(
        pipe_call("GetTask", TASK_PARAMS),
        pipe_bytes(DOWN, json_text({"jsonrpc": "2.0", "id": 1, "result": task()}) + "\n"),
    ),
    clean=CLEAN_PIPE,
)
def by_lines(context: RuleContext) -> Iterator[RuleFinding]:
    """The client or the agent writes one JSON value per line, without header blocks. Reported once
    for each of the two.

    The receiver waits for a header block with `Content-Length`. Without header blocks, service
    parameters (version, extensions, trace context) cannot be sent either. The sender must write a
    header block before each message.
    """
    frame = context.frame
    message = "\0" in frame.framing and frame.note != NOTE_STRAY
    if (
        message
        and not has_header_block(frame)
        and is_first_time(context, f"{sender_name(frame)} by lines")
    ):
        yield RuleFinding(
            summary=f"the {sender_name(frame)} writes newline-delimited JSON; each message needs a "
            f"header block "
            "with `Content-Length`"
        )
