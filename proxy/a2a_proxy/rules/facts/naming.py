"""Names of tasks, contexts and objects in what rules tell."""

from __future__ import annotations

from a2a_proxy.model.frame import EventKind, Frame

_REDACTION_PREFIX = "redacted-"
_EVENT_PHRASES = {
    EventKind.TASK: "a Task",
    EventKind.MESSAGE: "a Message",
    EventKind.STATUS: "a status update",
    EventKind.ARTIFACT: "an artifact update",
}
_EVENT_MEMBERS = {EventKind.TASK: "task.", EventKind.STATUS: "statusUpdate.", EventKind.ARTIFACT: "artifactUpdate."}


def are_different(one: str, other: str) -> bool:
    """Both are known and not the same; what holds a label of the redaction cannot be compared."""
    return bool(one and other) and one != other and _REDACTION_PREFIX not in one and _REDACTION_PREFIX not in other


def event_phrase(frame: Frame) -> str:
    """What an answer is, with its article."""
    return _EVENT_PHRASES.get(frame.event, "an answer")


def object_prefix(frame: Frame, v1: bool, operation: str) -> str:
    """Where the object of an answer stands in the result, with a dot: 1.0 wraps it, except as a task by itself."""
    wraps = v1 and operation not in ("GetTask", "CancelTask")
    return _EVENT_MEMBERS.get(frame.event, "message.") if wraps else ""
