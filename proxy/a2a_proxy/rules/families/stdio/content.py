"""Rules about the bytes on the pipe: framed JSON-RPC messages and nothing else (manual/protocol.md
"Stdio")."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.values import FrameKind, Severity
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.bindings.stdio import NOTE_NOT_JSON, NOTE_NOT_JSONRPC
from a2a_proxy.protocol.conversation import NOTE_STRAY
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import STDIO, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import json_text
from a2a_proxy.rules.examples.objects import task
from a2a_proxy.rules.examples.pipe import (
    DOWN,
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
    has_header_block,
    is_first_time,
    sender_name,
    session_notes,
)

_TASK_PARAMS = {"id": "t1"}
_CLEAN_PIPE = pipe_script(pipe_call("GetTask", _TASK_PARAMS), pipe_response(task()))
_MAX_SHOWN_LENGTH = 60


@rule(
    "A2A-STDIO-005",
    "Bytes outside the messages on the pipe",
    Severity.WARNING,
    section="stdio proposal; Language Server Protocol, base protocol",
    hook_points=HookPoint.CONNECTION,
    bindings=STDIO,
    flagged=pipe_script(
        pipe_bytes(DOWN, "Starting agent...\n"),
        pipe_call("GetTask", _TASK_PARAMS),
        pipe_response(task()),
    ),
    clean=_CLEAN_PIPE,
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


@rule(
    "A2A-STDIO-007",
    "Content of a message is not JSON-RPC",
    Severity.ERROR,
    section="stdio proposal; JSON-RPC 2.0",
    hook_points=EVERYWHERE,
    bindings=STDIO,
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=pipe_script(
        pipe_call("GetTask", _TASK_PARAMS), pipe_message(DOWN, [task()]), pipe_response(task())
    ),
    clean=_CLEAN_PIPE,
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


@rule(
    "A2A-STDIO-014",
    "Newline-delimited JSON instead of header blocks",
    Severity.WARNING,
    section="stdio proposal, grammar",
    hook_points=EVERYWHERE,
    scope=EvidenceScope.SESSION,
    bindings=STDIO,
    trigger_flags=FrameFlag.FRAMED,
    flagged=pipe_script(
        pipe_call("GetTask", _TASK_PARAMS),
        pipe_bytes(DOWN, json_text({"jsonrpc": "2.0", "id": 1, "result": task()}) + "\n"),
    ),
    clean=_CLEAN_PIPE,
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
