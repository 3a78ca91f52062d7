"""Names of tasks, contexts and objects in finding summaries."""

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import EVENT_WRAPPERS, Actor, Binding, EventKind, Frame, FrameKind
from a2a_proxy.model.wire import Direction

_REDACTION_PREFIX = "redacted-"
_EVENT_PHRASES = {
    EventKind.TASK: "a Task",
    EventKind.MESSAGE: "a Message",
    EventKind.STATUS: "a status update",
    EventKind.ARTIFACT: "an artifact update",
}


def are_different(one: str, other: str) -> bool:
    """Whether both ids are known and differ. Ids that contain a redaction label cannot be
    compared."""
    return (
        bool(one and other)
        and one != other
        and _REDACTION_PREFIX not in one
        and _REDACTION_PREFIX not in other
    )


def event_phrase(frame: Frame, other: str = "an answer") -> str:
    """Return the kind of an answer with its article, or `other` if it is no event."""
    return _EVENT_PHRASES.get(frame.event, other)


def state_label(state: int) -> str:
    """Return the name of a state in texts of findings: `input-required`, or `unknown-123` for a
    number that A2A does not define.
    """
    return TaskState(state).label


def object_prefix(frame: Frame, v1: bool, operation: str) -> str:
    """Return the path prefix of an answer's object in the result, with a trailing dot. 1.0 wraps
    objects, except a task returned by GetTask or CancelTask.
    """
    wraps = v1 and operation not in ("GetTask", "CancelTask")
    return f"{EVENT_WRAPPERS.get(frame.event, 'message')}." if wraps else ""


_KIND_NAMES = {
    FrameKind.REQUEST: "request",
    FrameKind.RESPONSE: "response",
    FrameKind.EVENT: "event",
    FrameKind.ERROR: "error",
    FrameKind.COMMENT: "comment",
    FrameKind.END: "end of stream",
    FrameKind.CUT: "disconnection",
    FrameKind.CONTROL: "control frame",
    FrameKind.OTHER: "message",
    FrameKind.UNDECODABLE: "undecodable bytes",
    FrameKind.LOG: "log line",
}


def frame_sender(frame: Frame, binding: Binding) -> Actor:
    """Return the sender of a frame; the requests to a webhook are the agent's."""
    is_request = frame.direction is Direction.TO_AGENT
    return Actor.CLIENT if is_request is not (binding is Binding.WEBHOOK) else Actor.AGENT


def frame_phrase(frame: Frame, binding: Binding) -> str:
    """Return the sender and the kind of a frame: `agent's event`."""
    return f"{frame_sender(frame, binding)}'s {_KIND_NAMES[frame.kind]}"
