"""One-line descriptions of frames for the console, `show` and the screens. Peers' text is made safe
and shortened."""

from collections.abc import Callable
from typing import Any

import msgspec

from a2a_proxy.model.event import state_label
from a2a_proxy.model.values import FAULT_MARK, Binding, Dialect, EventKind, Frame, FrameKind
from a2a_proxy.model.wire import ExitFacts
from a2a_proxy.protocol.errors import (
    AMBIGUOUS_CODES,
    GrpcOutcome,
    error_line,
    message_with_details,
    read_error_body,
    read_rest_error,
    rpc_reason,
    text_or_empty,
)
from a2a_proxy.protocol.event import decode_payload, normalise_event
from a2a_proxy.protocol.extensions.members import object_member
from a2a_proxy.protocol.extensions.uses import EXTENSIBLE_KINDS, find_extensions
from a2a_proxy.protocol.operations import LIVE_OPERATIONS
from a2a_proxy.protocol.schema import JSON, TEXT, TRAILERS, is_protobuf
from a2a_proxy.protocol.summary import generation_or_none
from a2a_proxy.protocol.text import make_visible, text_of_body, to_one_line

__all__ = ["describe_frame", "make_visible"]

MAX_LENGTH = 160
"""Maximum length of a description in characters."""
_MAX_QUOTE = 80
_MAX_ID = 12
_DATA = "<data>"
"""The content of a message or artifact whose first part has data and no name."""
_MAX_USES = 2
"""Maximum number of uses of extensions in a line."""
_REDACTION_PREFIX = "redacted-"
"""Prefix of the labels that `redaction` puts in place of the original."""


def describe_frame(
    frame: Frame,
    payload: bytes | None = None,
    operation: str = "",
    dialect: Dialect = Dialect.UNKNOWN,
    extensions: str = "",
    binding: Binding = Binding.OTHER,
) -> str:
    """Return one line about a frame: `status working "Thinking about it"`. Never raises.

    `payload` is the frame's payload if that is stored elsewhere; None uses the frame's own. The
    other arguments are those of the exchange: `operation` names calls whose payload has no method
    name (REST), `dialect` selects the meaning of error codes that changed, `extensions` names the
    requested extensions, and `binding` the roles of the peers.
    """
    content = frame.payload if payload is None else payload
    try:
        if frame.kind is FrameKind.REQUEST:
            line = _describe_request(frame, content, operation)
        elif frame.kind is FrameKind.END and operation in LIVE_OPERATIONS:
            line = _describe_half_close(frame, content)
        elif frame.kind is FrameKind.CUT:
            line = _describe_cut(frame, is_delivery=binding is Binding.WEBHOOK)
        elif frame.kind is FrameKind.ERROR:
            line = _describe_error(frame, content, dialect)
        else:
            line = _KIND_DESCRIBERS[frame.kind](frame, content)
        if frame.kind in EXTENSIBLE_KINDS:
            line = _add_extensions(line, _normalise_payload(frame, content), extensions)
    except Exception:  # a description must not stop a screen
        line = frame.kind.name.lower()
    if frame.ours:
        fault = f": {frame.note}" if FAULT_MARK in frame.note and "--fault" not in line else ""
        line = f"{line} (sent by the proxy{fault})"
    return to_one_line(line, MAX_LENGTH)


def _add_extensions(line: str, value: dict[str, Any], requested: str) -> str:
    """Add the first uses of known extensions in braces, and how many more there are; they say more
    than `<data>`."""
    uses = find_extensions(value, requested)
    if not uses:
        return line
    if any(use.place.endswith(".data") for use in uses) and '"' not in line:
        line = line.replace(f" {_DATA}", "", 1)
    more = f" and {len(uses) - _MAX_USES} more" if len(uses) > _MAX_USES else ""
    return f"{line} {{{'; '.join(map(str, uses[:_MAX_USES]))}{more}}}"


def _describe_request(frame: Frame, payload: bytes, operation: str) -> str:
    value = _normalise_payload(frame, payload)
    if isinstance(value.get("message"), dict):
        message = _describe_message(value["message"])
        again = operation in LIVE_OPERATIONS and frame.task_id and not value["message"].get("parts")
        words = ["reconnect"] if again else ["message", message]
    elif isinstance(value.get("frame"), dict):
        return _describe_media(value["frame"])
    elif frame.event is EventKind.ARTIFACT:
        words = [_describe_artifact(frame, value)]
    elif frame.event is EventKind.PUSH_CONFIG:
        words = ["push config", text_or_empty(value.get("url"))]
    else:
        words = [_method_name(frame, payload) or operation or "request"]
    if frame.task_id:
        words.append(f"for task {_shorten_id(frame.task_id)}")
    asked = _expected_generation(frame, value)
    if asked is not None:
        waits = frame.event is not EventKind.MESSAGE
        words.append(
            f"waits for a generation above {asked}" if waits else f"if the generation is {asked}"
        )
    return _join_words(words)


def _expected_generation(frame: Frame, value: dict[str, Any]) -> int | None:
    """Return `currentGeneration` or `ifGenerationMatch`. A 0 is read from the payload: the frame
    has 0 for unset too."""
    if frame.generation:
        return frame.generation
    said = value.get(
        "currentGeneration", object_member(value, "configuration").get("ifGenerationMatch")
    )
    return generation_or_none(said)


def _describe_response(frame: Frame, payload: bytes) -> str:
    value = _normalise_payload(frame, payload)
    if isinstance(value.get("frame"), dict):
        return _describe_media(value["frame"])
    line = _EVENT_DESCRIBERS[frame.event](frame, value)
    marks = [f"generation {frame.generation}"] if frame.generation else []
    marks += ["final"] if frame.final else []
    marks += [frame.note] if frame.note else []
    return _join_words([line, f"[{', '.join(marks)}]" if marks else ""])


def _describe_status(frame: Frame, value: dict[str, Any]) -> str:
    status = object_member(object_member(value, "statusUpdate"), "status")
    progress = object_member(status, "progress")
    count = (
        f"{progress['current']}/{progress['total']}"
        if {"current", "total"} <= progress.keys()
        else ""
    )
    message = object_member(status, "message")
    text = _quote_content(message) if message else _quote_text(progress.get("message"))
    return _join_words(["status", state_label(frame.state), count, text])


def _describe_task(frame: Frame, value: dict[str, Any]) -> str:
    task = object_member(value, "task")
    artifacts = task.get("artifacts")
    count = len(artifacts) if isinstance(artifacts, list) else 0
    some = _count_noun(count, "artifact") if count else ""
    state = state_label(frame.state)
    return _join_words(
        [
            "task",
            _shorten_id(frame.task_id),
            state,
            some,
            _quote_content(_message_of_status(task)),
        ]
    )


def _message_of_status(holder: dict[str, Any]) -> dict[str, Any]:
    return object_member(object_member(holder, "status"), "message")


def _describe_artifact(frame: Frame, value: dict[str, Any]) -> str:
    artifact = object_member(object_member(value, "artifactUpdate"), "artifact")
    marks = [word for word, said in (("append", frame.append), ("last", frame.last_chunk)) if said]
    name = text_or_empty(artifact.get("name")) or _shorten_id(frame.artifact_id)
    return _join_words(
        ["artifact", name, f"({', '.join(marks)})" if marks else "", _quote_content(artifact)]
    )


def _describe_message_event(_frame: Frame, value: dict[str, Any]) -> str:
    return _join_words(
        [
            "message",
            _describe_message(
                object_member(object_member(value, "messageUpdate") or value, "message")
            ),
        ]
    )


def _describe_message(message: dict[str, Any]) -> str:
    return _join_words(
        [text_or_empty(message.get("role")).removeprefix("ROLE_").lower(), _quote_content(message)]
    )


def _describe_task_list(_frame: Frame, value: dict[str, Any]) -> str:
    return _count_noun(len(value.get("tasks") or ()), "task")


def _describe_card(_frame: Frame, value: dict[str, Any]) -> str:
    skills = value.get("skills")
    count = len(skills) if isinstance(skills, list) else 0
    return _join_words(["agent card", _quote_text(value.get("name")), _count_noun(count, "skill")])


def _describe_no_event(frame: Frame, value: dict[str, Any]) -> str:
    if frame.event is EventKind.UNKNOWN:
        return f"unknown event {next(iter(value), '')}"
    return (
        frame.kind.name.lower()
        if value or frame.size
        else f"{frame.kind.name.lower()} without a body"
    )


_EVENT_DESCRIBERS: dict[EventKind, Callable[[Frame, dict[str, Any]], str]] = {
    EventKind.STATUS: _describe_status,
    EventKind.TASK: _describe_task,
    EventKind.ARTIFACT: _describe_artifact,
    EventKind.MESSAGE: _describe_message_event,
    EventKind.TASKS: _describe_task_list,
    EventKind.CARD: _describe_card,
    EventKind.PUSH_CONFIG: lambda _, value: _join_words(
        ["push config", text_or_empty(value.get("url"))]
    ),
    EventKind.PUSH_CONFIGS: lambda _, value: _count_noun(
        len(value.get("configs") or ()), "push config"
    ),
    EventKind.NONE: _describe_no_event,
    EventKind.UNKNOWN: _describe_no_event,
}


def _describe_error(frame: Frame, payload: bytes, dialect: Dialect) -> str:
    said = decode_payload(payload, frame.schema)
    value = said if isinstance(said, dict) else {}
    error = object_member(value, "error")
    if frame.rpc_id and error:
        known = dialect is not Dialect.UNKNOWN or frame.error_code not in AMBIGUOUS_CODES
        reason = rpc_reason(frame.error_code if known else 0, error.get("data"), dialect)
        message = message_with_details(
            reason, text_or_empty(error.get("message")), error.get("data")
        )
        return f"error {error_line(reason, frame.error_code, message)}"
    reason, message = read_error_body(payload) if said is None else read_rest_error(said)
    text = text_of_body(payload[:_MAX_QUOTE]) if frame.schema == TEXT else ""
    return f"error {error_line(reason, frame.error_code or '', message or text or '')}"


def _describe_end(frame: Frame, payload: bytes) -> str:
    who = "agent" if frame.direction else "client"
    if frame.schema != TRAILERS:
        return f"end of {who}'s stream"
    pairs = msgspec.json.decode(payload, type=list[tuple[str, str]])
    outcome = GrpcOutcome(
        tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs)
    )
    return f"end: {outcome.error_text}" if outcome.error_text else "end OK"


def _describe_half_close(frame: Frame, payload: bytes) -> str:
    """Describe the end of one direction of a live stream, where each side ends by itself; the
    agent's end ends the call (Q-16)."""
    if not frame.direction:
        return "client half-closed"
    return f"agent half-closed ({_describe_end(frame, payload).removeprefix('end').lstrip(': ')})"


def _describe_media(media: dict[str, Any]) -> str:
    """Describe a media frame: a piece of sound or video, or a marker around it."""
    mark = text_or_empty(media.get("event")).removeprefix("EVENT_").removeprefix("MEDIA_").lower()
    number = f"#{media['seqNum']}" if media.get("seqNum") else ""
    flow = f"modality {media['modalityIndex']}" if media.get("modalityIndex") else ""
    part = object_member(media, "part")
    raw = part.get("raw")
    size = (
        _count_noun(len(raw.rstrip("=")) * 3 // 4, "byte")
        if isinstance(raw, str)
        else _quote_text(part.get("text"))
    )
    return _join_words(["media", mark, number, flow, text_or_empty(part.get("mediaType")), size])


_CUTS_BY_NO_PEER = {
    "lost": "broke off: bytes were not captured",
    "proxy stopped": "the proxy stopped",
    "proxy killed": "the proxy was killed",
}
"""Note -> description, for cuts that neither peer caused."""


def _describe_cut(frame: Frame, *, is_delivery: bool) -> str:
    if frame.note in _CUTS_BY_NO_PEER:
        return _CUTS_BY_NO_PEER[frame.note]
    if frame.note.startswith(("exited with", "killed by")):
        return f"agent {frame.note}"
    client, server = ("agent", "receiver") if is_delivery else ("client", "agent")
    who = "a2a-proxy" if frame.ours else server if frame.direction else client
    return f"{who} broke off: {frame.note}"


def _describe_comment(_frame: Frame, payload: bytes) -> str:
    return (
        _join_words(["comment", _quote_text(payload.decode("utf-8", "replace"))])
        if payload
        else "event without data"
    )


def _describe_control(frame: Frame, payload: bytes) -> str:
    who = "agent" if frame.direction else "client"
    detail = decode_payload(payload, JSON) if frame.note in ("exit", "signal") else None
    if not isinstance(detail, dict):
        return f"{who} {'closes its side' if frame.note == 'eof' else frame.note}"
    if frame.note == "signal":
        return f"signal {text_or_empty(detail.get('signal'))} passed on to the agent"
    return f"agent {msgspec.convert(detail, ExitFacts).description}"


def _describe_log(_frame: Frame, payload: bytes) -> str:
    return f"log {payload.decode('utf-8', 'replace')}"


def _describe_other(frame: Frame, payload: bytes) -> str:
    if not frame.exchange:  # a message on a pipe that belongs to no call
        return _join_words(
            [f"{frame.note}:", _quote_text(payload[:200].decode("utf-8", "replace"))]
        )
    if not frame.size:
        return "no body"
    text = text_of_body(payload[:200])
    kind = "binary " if text is None else ""
    are = "are" if frame.size != 1 else "is"
    words = f"{_count_noun(frame.size, f'{kind}byte')} that {are} not A2A"
    return _join_words([words, _quote_text(text)])


def _describe_undecodable(frame: Frame, _payload: bytes) -> str:
    return f"undecodable: {frame.note}"


_KIND_DESCRIBERS: dict[FrameKind, Callable[[Frame, bytes], str]] = {
    FrameKind.RESPONSE: _describe_response,
    FrameKind.EVENT: _describe_response,
    FrameKind.COMMENT: _describe_comment,
    FrameKind.END: _describe_end,
    FrameKind.CONTROL: _describe_control,
    FrameKind.LOG: _describe_log,
    FrameKind.OTHER: _describe_other,
    FrameKind.UNDECODABLE: _describe_undecodable,
}

_OPERATION_OF_EVENT = {EventKind.TASKS: "ListTasks", EventKind.CARD: "GetExtendedAgentCard"}
_OPERATION_OF_EVENT |= {EventKind.PUSH_CONFIG: "CreateTaskPushNotificationConfig"}
_OPERATION_OF_EVENT |= {EventKind.PUSH_CONFIGS: "ListTaskPushNotificationConfigs"}
"""Event -> an operation whose response has this shape, because a frame alone does not name its
operation."""


def _normalise_payload(frame: Frame, payload: bytes) -> dict[str, Any]:
    """Return the payload in 1.0 form; the frame's event takes the place of dialect and
    operation."""
    operation = _OPERATION_OF_EVENT.get(frame.event, "SendStreamingMessage")
    # A status update in a unary response has the shape of a task; only the frame's event
    # distinguishes them.
    kind = FrameKind.EVENT if frame.event is EventKind.STATUS else frame.kind
    return normalise_event(payload, frame.schema, Dialect.UNKNOWN, operation, kind)


def _method_name(frame: Frame, payload: bytes) -> str:
    """Return the method name in the payload of a request without a message."""
    if frame.schema == JSON:
        value = msgspec.json.decode(payload)
        return text_or_empty(value.get("method")) if isinstance(value, dict) else ""
    return (
        frame.schema.partition("@")[0].rpartition(".")[2].removesuffix("Request")
        if is_protobuf(frame.schema)
        else ""
    )


def _quote_content(holder: dict[str, Any]) -> str:
    """Return the content of a message or artifact: its text, or a description of its first part."""
    parts = [part for part in holder.get("parts") or () if isinstance(part, dict)]
    text = "".join(text_or_empty(part.get("text")) for part in parts)
    is_text = text or not parts or isinstance(parts[0].get("text"), str)
    return _quote_text(text) if is_text else f"<{_describe_part(parts[0])}>"


def _describe_part(part: dict[str, Any]) -> str:
    name = text_or_empty(part.get("filename")) or text_or_empty(part.get("mediaType"))
    kind = next((kind for kind in ("raw", "url", "data") if kind in part), "empty")
    return _join_words([{"raw": "file", "url": "link", "data": "data"}.get(kind, "part"), name])


def _quote_text(text: object) -> str:
    if not isinstance(text, str) or not text:
        return ""
    return f'"{text[: _MAX_QUOTE - 1]}…"' if len(text) > _MAX_QUOTE else f'"{text}"'


def _count_noun(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _shorten_id(identifier: str) -> str:
    """Return the beginning of a long id. A redaction label is kept whole, because all labels begin
    alike."""
    if identifier.startswith(_REDACTION_PREFIX):
        return identifier
    return identifier[:8] if len(identifier) > _MAX_ID else identifier


def _join_words(words: list[str]) -> str:
    return " ".join(word for word in words if word)
