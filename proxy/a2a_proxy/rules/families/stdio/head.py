"""Rules about the header block of a message (manual/protocol.md "Stdio framing")."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.values import FrameKind, Severity
from a2a_proxy.model.wire import REASON_BROKE_OFF, REASON_CUT_SHORT
from a2a_proxy.rules.context import RuleContext, strip_parameters
from a2a_proxy.rules.define.conditions import STDIO, Dialects, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import json_text
from a2a_proxy.rules.examples.objects import send, snapshot, task
from a2a_proxy.rules.examples.pipe import (
    HEADER_BLOCK,
    PLAIN_HEADER_BLOCK,
    UP,
    VERSIONED_HEADER_BLOCK,
    pipe_bytes,
    pipe_call,
    pipe_response,
    pipe_script,
)
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
)

_TASK_PARAMS = {"id": "t1"}
_CLEAN_PIPE = pipe_script(pipe_call("GetTask", _TASK_PARAMS), pipe_response(task()))
_CONTENT_TYPES = frozenset(
    {"application/json", "application/a2a+json", "application/vscode-jsonrpc"}
)
_KNOWN_CHARSETS = frozenset({"utf-8", "utf8"})
_KNOWN_FIELDS = frozenset({"content-length", "content-type", "traceparent", "tracestate"})
_REQUEST_TEXT = json_text({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": send("é")})
_COMPLETED_STEP = pipe_response(snapshot("COMPLETED"))


@rule(
    "A2A-STDIO-001",
    "Content-Length is missing",
    Severity.ERROR,
    section="stdio proposal, Required Headers",
    hook_points=EVERYWHERE,
    bindings=STDIO,
    trigger_flags=FrameFlag.FRAMED,
    flagged=pipe_script(
        pipe_call("GetTask", _TASK_PARAMS),
        pipe_response(task(), head="Content-Type: application/json\r\n\r\n"),
    ),
    clean=_CLEAN_PIPE,
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


@rule(
    "A2A-STDIO-002",
    "Content-Type is missing",
    Severity.ERROR,
    section="stdio proposal, Required Headers",
    hook_points=EVERYWHERE,
    bindings=STDIO,
    trigger_flags=FrameFlag.FRAMED,
    flagged=pipe_script(
        pipe_call("GetTask", _TASK_PARAMS),
        pipe_response(task(), head="Content-Length: {size}\r\n\r\n"),
    ),
    clean=_CLEAN_PIPE,
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


@rule(
    "A2A-STDIO-003",
    "Header lines do not end with CRLF",
    Severity.ERROR,
    section="stdio proposal, grammar",
    hook_points=EVERYWHERE,
    bindings=STDIO,
    trigger_flags=FrameFlag.FRAMED,
    flagged=pipe_script(
        pipe_call("GetTask", _TASK_PARAMS),
        pipe_response(task(), head=PLAIN_HEADER_BLOCK.replace("\r\n", "\n")),
    ),
    clean=_CLEAN_PIPE,
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


@rule(
    "A2A-STDIO-004",
    "Content-Length is wrong",
    Severity.ERROR,
    section="stdio proposal, Required Headers",
    hook_points=EVERYWHERE,
    bindings=STDIO,
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


@rule(
    "A2A-STDIO-006",
    "Content-Type is not JSON",
    Severity.WARNING,
    section="stdio proposal, Required Headers",
    hook_points=EVERYWHERE,
    bindings=STDIO,
    trigger_flags=FrameFlag.FRAMED,
    flagged=pipe_script(
        pipe_call("GetTask", _TASK_PARAMS),
        pipe_response(task(), head="Content-Length: {size}\r\nContent-Type: text/plain\r\n\r\n"),
    ),
    clean=pipe_script(
        pipe_call("GetTask", _TASK_PARAMS),
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


@rule(
    "A2A-STDIO-015",
    "Unknown or repeated header field",
    Severity.INFO,
    section="stdio proposal, Required Headers",
    hook_points=EVERYWHERE,
    scope=EvidenceScope.SESSION,
    bindings=STDIO,
    trigger_flags=FrameFlag.FRAMED,
    flagged=pipe_script(
        pipe_call("GetTask", _TASK_PARAMS),
        pipe_response(task(), head=f"{HEADER_BLOCK}Foo: 1\r\n\r\n"),
    ),
    clean=pipe_script(
        pipe_call(
            "GetTask",
            _TASK_PARAMS,
            head=f"{HEADER_BLOCK}A2A-Version: 1.0\r\ntraceparent: 00-{'a' * 32}-{'b' * 16}-01\r\n"
            f"\r\n",
        ),
        pipe_response(task()),
    ),
)
def unknown_field(context: RuleContext) -> Iterator[RuleFinding]:
    """A header block has a field other than Content-Length, Content-Type, fields that begin with
    A2A- and the fields of trace context, or a field occurs twice. Reported once for each name and
    sender.

    An unknown field has no defined meaning, so the receiver ignores it; of a repeated field it
    reads either one. The sender (client or agent) should leave it out.
    """
    names = [field.name for field in header_fields(context.frame) if field.name]
    for name in dict.fromkeys(names):
        known = name in _KNOWN_FIELDS or name.startswith(("a2a-", "x-a2a-"))
        twice = names.count(name) > 1
        if (twice or not known) and is_first_time(
            context, f"{sender_name(context.frame)} field {name}"[:100]
        ):
            what = "occurs twice in a header block" if twice else "is an unknown header field"
            yield RuleFinding(
                summary=f"`{name[:40]}` {what} of the {sender_name(context.frame)}", value=name
            )


@rule(
    "A2A-STDIO-019",
    "1.0 request without A2A-Version",
    Severity.WARNING,
    section="1.0 3.6.1, 12.3",
    hook_points=HookPoint.REQUEST,
    dialects=Dialects.V1,
    bindings=STDIO,
    trigger_flags=FrameFlag.ASKS,
    also_broken=("A2A-VER-001",),
    flagged=pipe_script(
        pipe_call("GetTask", _TASK_PARAMS, head=PLAIN_HEADER_BLOCK), pipe_response(task())
    ),
    clean=_CLEAN_PIPE,
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
