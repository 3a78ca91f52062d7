"""One frame in plain words, for console, `show` and the screens. Text of peers is made harmless and short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from a2a_proxy.model.chunk import ExitFacts
from a2a_proxy.model.exchange import Dialect
from a2a_proxy.model.frame import EventKind, Frame, FrameKind
from a2a_proxy.protocol.errors import AMBIGUOUS, GrpcOutcome, error_line, mismatch, rest_error, rpc_reason
from a2a_proxy.protocol.event import normalise, plain
from a2a_proxy.protocol.schema import JSON, TEXT, TRAILERS, is_protobuf
from a2a_proxy.protocol.summary import LABELS, generation_or_none
from a2a_proxy.protocol.text import one_line, visible

__all__ = ["describe", "visible"]

LIMIT = 160
"""Characters of a description, at most."""
_QUOTE = 80
_LIVE = frozenset({"SendLiveMessage", "ReconnectToTask"})
_ID = 12
_LABEL = "redacted-"
"""How `redaction` names what it replaces."""


def describe(
    frame: Frame, payload: bytes | None = None, operation: str = "", dialect: Dialect = Dialect.UNKNOWN
) -> str:
    """One line about a frame: `status working "Thinking about it"`. Never raises.

    `payload` is the frame's payload where that is stored elsewhere; None takes the frame's own. `operation` is the
    exchange's: it names calls that carry no name themselves (REST); so is `dialect`: it names error codes that changed.
    """
    content = frame.payload if payload is None else payload
    try:
        if frame.kind is FrameKind.REQUEST:
            line = _request(frame, content, operation)
        elif frame.kind is FrameKind.END and operation in _LIVE:
            line = _half_close(frame, content)
        elif frame.kind is FrameKind.ERROR:
            line = _error(frame, content, dialect)
        else:
            line = _KINDS[frame.kind](frame, content)
    except Exception:  # a description must not stop a screen
        line = frame.kind.name.lower()
    return one_line(f"{line} (made by the proxy)" if frame.ours else line, LIMIT)


def _request(frame: Frame, payload: bytes, operation: str) -> str:
    value = _normal(frame, payload)
    if isinstance(value.get("message"), dict):
        said = _message(value["message"])
        again = operation in _LIVE and frame.task_id and not value["message"].get("parts")
        words = ["reconnect"] if again else ["message", said]
    elif isinstance(value.get("frame"), dict):
        return _media(value["frame"])
    elif frame.event is EventKind.ARTIFACT:
        words = [_artifact(frame, value)]
    elif frame.event is EventKind.PUSH_CONFIG:
        words = ["push config", _text(value.get("url"))]
    else:
        words = [_method(frame, payload) or operation or "request"]
    if frame.task_id:
        words.append(f"for task {_short(frame.task_id)}")
    asked = _asked(frame, value)
    if asked is not None:
        waits = frame.event is not EventKind.MESSAGE
        words.append(f"waits for a generation above {asked}" if waits else f"if the generation is {asked}")
    return _joined(words)


def _asked(frame: Frame, value: dict[str, Any]) -> int | None:
    """`currentGeneration` or `ifGenerationMatch`; 0 is one too, which the frame cannot tell from none."""
    if frame.generation:
        return frame.generation
    said = value.get("currentGeneration", _member(value, "configuration").get("ifGenerationMatch"))
    return generation_or_none(said)


def _told(frame: Frame, payload: bytes) -> str:
    value = _normal(frame, payload)
    if isinstance(value.get("frame"), dict):
        return _media(value["frame"])
    line = _EVENTS[frame.event](frame, value)
    marks = [f"generation {frame.generation}"] if frame.generation else []
    marks += ["final"] if frame.final else []
    marks += [frame.note] if frame.note else []
    return _joined([line, f"[{', '.join(marks)}]" if marks else ""])


def _status(frame: Frame, value: dict[str, Any]) -> str:
    status = _member(_member(value, "statusUpdate"), "status")
    progress = _member(status, "progress")
    count = f"{progress['current']}/{progress['total']}" if {"current", "total"} <= progress.keys() else ""
    said = _member(status, "message")
    text = _quoted(said) if said else _quote(progress.get("message"))
    return _joined(["status", _state(frame.state), count, text])


def _task(frame: Frame, value: dict[str, Any]) -> str:
    task = _member(value, "task")
    artifacts = task.get("artifacts")
    count = len(artifacts) if isinstance(artifacts, list) else 0
    some = _count(count, "artifact") if count else ""
    return _joined(["task", _short(frame.task_id), _state(frame.state), some, _quoted(_status_message(task))])


def _status_message(holder: dict[str, Any]) -> dict[str, Any]:
    return _member(_member(holder, "status"), "message")


def _artifact(frame: Frame, value: dict[str, Any]) -> str:
    artifact = _member(_member(value, "artifactUpdate"), "artifact")
    marks = [word for word, said in (("append", frame.append), ("last", frame.last_chunk)) if said]
    name = _text(artifact.get("name")) or _short(frame.artifact_id)
    return _joined(["artifact", name, f"({', '.join(marks)})" if marks else "", _quoted(artifact)])


def _said(_frame: Frame, value: dict[str, Any]) -> str:
    return _joined(["message", _message(_member(_member(value, "messageUpdate") or value, "message"))])


def _message(message: dict[str, Any]) -> str:
    return _joined([_text(message.get("role")).removeprefix("ROLE_").lower(), _quoted(message)])


def _tasks(_frame: Frame, value: dict[str, Any]) -> str:
    return _count(len(value.get("tasks") or ()), "task")


def _card(_frame: Frame, value: dict[str, Any]) -> str:
    skills = value.get("skills")
    count = len(skills) if isinstance(skills, list) else 0
    return _joined(["agent card", _quote(value.get("name")), _count(count, "skill")])


def _nothing(frame: Frame, value: dict[str, Any]) -> str:
    if frame.event is EventKind.UNKNOWN:
        return f"unknown event {next(iter(value), '')}"
    return frame.kind.name.lower() if value or frame.size else f"{frame.kind.name.lower()} without a body"


_EVENTS: dict[EventKind, Callable[[Frame, dict[str, Any]], str]] = {
    EventKind.STATUS: _status,
    EventKind.TASK: _task,
    EventKind.ARTIFACT: _artifact,
    EventKind.MESSAGE: _said,
    EventKind.TASKS: _tasks,
    EventKind.CARD: _card,
    EventKind.PUSH_CONFIG: lambda _, value: _joined(["push config", _text(value.get("url"))]),
    EventKind.PUSH_CONFIGS: lambda _, value: _count(len(value.get("configs") or ()), "push config"),
    EventKind.NONE: _nothing,
    EventKind.UNKNOWN: _nothing,
}


def _error(frame: Frame, payload: bytes, dialect: Dialect) -> str:
    said = plain(payload, frame.schema)
    value = said if isinstance(said, dict) else {}
    error = _member(value, "error")
    if frame.rpc_id and error:
        known = dialect is not Dialect.UNKNOWN or frame.error_code not in AMBIGUOUS
        reason = rpc_reason(frame.error_code if known else 0, error.get("data"), dialect)
        message = mismatch(reason, _text(error.get("message")), error.get("data"))
        return f"error {error_line(reason, frame.error_code, message)}"
    reason, message = rest_error(value)
    message = mismatch(reason, message, value)
    text = payload[:_QUOTE].decode("utf-8", "replace") if frame.schema == TEXT else ""
    return f"error {error_line(reason, frame.error_code or '', message or text)}"


def _end(frame: Frame, payload: bytes) -> str:
    who = "agent" if frame.direction else "client"
    if frame.schema != TRAILERS:
        return f"end of {who}'s stream"
    pairs = msgspec.json.decode(payload, type=list[tuple[str, str]])
    outcome = GrpcOutcome(tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs))
    return f"end: {outcome.line}" if outcome.line else "end OK"


def _half_close(frame: Frame, payload: bytes) -> str:
    """On a live stream each side ends by itself; the agent's end is that of the call (Q-16)."""
    if not frame.direction:
        return "client half-closed"
    return f"agent half-closed ({_end(frame, payload).removeprefix('end').lstrip(': ')})"


def _media(media: dict[str, Any]) -> str:
    """A piece of sound or video, or what stands around it."""
    mark = _text(media.get("event")).removeprefix("EVENT_").removeprefix("MEDIA_").lower()
    number = f"#{media['seqNum']}" if media.get("seqNum") else ""
    flow = f"modality {media['modalityIndex']}" if media.get("modalityIndex") else ""
    part = _member(media, "part")
    raw = part.get("raw")
    size = _count(len(raw.rstrip("=")) * 3 // 4, "octet") if isinstance(raw, str) else _quote(part.get("text"))
    return _joined(["media", mark, number, flow, _text(part.get("mediaType")), size])


_NO_PEER = {
    "lost": "broke off: octets were not captured",
    "proxy stopped": "the proxy stopped",
    "proxy killed": "the proxy was killed",
}
"""Notes of a cut that neither side made."""


def _cut(frame: Frame, _payload: bytes) -> str:
    if frame.note in _NO_PEER:
        return _NO_PEER[frame.note]
    if frame.note.startswith(("exited with", "killed by")):
        return f"agent {frame.note}"
    return f"{'agent' if frame.direction else 'client'} broke off: {frame.note}"


def _comment(_frame: Frame, payload: bytes) -> str:
    return _joined(["comment", _quote(payload.decode("utf-8", "replace"))]) if payload else "event without data"


def _control(frame: Frame, payload: bytes) -> str:
    who = "agent" if frame.direction else "client"
    detail = plain(payload, JSON) if frame.note in ("exit", "signal") else None
    if not isinstance(detail, dict):
        return f"{who} {'closes its side' if frame.note == 'eof' else frame.note}"
    if frame.note == "signal":
        return f"signal {_text(detail.get('signal'))} passed on to the agent"
    return f"agent {msgspec.convert(detail, ExitFacts).words}"


def _log(_frame: Frame, payload: bytes) -> str:
    return f"log {payload.decode('utf-8', 'replace')}"


def _other(frame: Frame, payload: bytes) -> str:
    if not frame.exchange:  # of a pipe, where all is A2A or nothing
        return _joined([f"{frame.note}:", _quote(payload[:200].decode("utf-8", "replace"))])
    words = (
        [f"{_count(frame.size, 'octet')} that {'are' if frame.size != 1 else 'is'} not A2A"]
        if frame.size
        else ["no body"]
    )
    return _joined([*words, _quote(payload[:200].decode("utf-8", "replace")) if frame.schema in (JSON, TEXT) else ""])


def _undecodable(frame: Frame, _payload: bytes) -> str:
    return f"undecodable: {frame.note}"


_KINDS: dict[FrameKind, Callable[[Frame, bytes], str]] = {
    FrameKind.RESPONSE: _told,
    FrameKind.EVENT: _told,
    FrameKind.COMMENT: _comment,
    FrameKind.END: _end,
    FrameKind.CUT: _cut,
    FrameKind.CONTROL: _control,
    FrameKind.LOG: _log,
    FrameKind.OTHER: _other,
    FrameKind.UNDECODABLE: _undecodable,
}

_OPERATIONS = {EventKind.TASKS: "ListTasks", EventKind.CARD: "GetExtendedAgentCard"}
_OPERATIONS |= {EventKind.PUSH_CONFIG: "CreateTaskPushNotificationConfig"}
_OPERATIONS |= {EventKind.PUSH_CONFIGS: "ListTaskPushNotificationConfigs"}
"""An operation whose answer has the shape; a frame alone does not know its own."""


def _normal(frame: Frame, payload: bytes) -> dict[str, Any]:
    """The payload in 1.0 form; the frame's shape stands in for dialect and operation."""
    operation = _OPERATIONS.get(frame.event, "SendStreamingMessage")
    # A status update that stands in a unary answer cannot be told from a task but by what the frame says.
    kind = FrameKind.EVENT if frame.event is EventKind.STATUS else frame.kind
    return normalise(payload, frame.schema, Dialect.UNKNOWN, operation, kind)


def _method(frame: Frame, payload: bytes) -> str:
    """How a call without a message names itself."""
    if frame.schema == JSON:
        value = msgspec.json.decode(payload)
        return _text(value.get("method")) if isinstance(value, dict) else ""
    return (
        frame.schema.partition("@")[0].rpartition(".")[2].removesuffix("Request") if is_protobuf(frame.schema) else ""
    )


def _quoted(holder: dict[str, Any]) -> str:
    """The content of a message or artifact: its text, or what its first part is."""
    parts = [part for part in holder.get("parts") or () if isinstance(part, dict)]
    text = "".join(_text(part.get("text")) for part in parts)
    return _quote(text) if text or not parts else f"<{_part(parts[0])}>"


def _part(part: dict[str, Any]) -> str:
    name = _text(part.get("filename")) or _text(part.get("mediaType"))
    kind = next((kind for kind in ("raw", "url", "data") if kind in part), "empty")
    return _joined([{"raw": "file", "url": "link", "data": "data"}.get(kind, "part"), name])


def _quote(text: object) -> str:
    if not isinstance(text, str) or not text:
        return ""
    return f'"{text[: _QUOTE - 1]}…"' if len(text) > _QUOTE else f'"{text}"'


def _state(number: int) -> str:
    return LABELS[number] if 0 < number < len(LABELS) else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _short(identifier: str) -> str:
    """The beginning of a long id. A label stays whole: all labels begin alike."""
    if identifier.startswith(_LABEL):
        return identifier
    return identifier[:8] if len(identifier) > _ID else identifier


def _member(holder: dict[str, Any], name: str) -> dict[str, Any]:
    value = holder.get(name)
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _joined(words: list[str]) -> str:
    return " ".join(word for word in words if word)
