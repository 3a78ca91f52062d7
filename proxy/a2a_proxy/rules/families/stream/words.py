"""Operations, event names and state names shared by the rules about streams."""

from __future__ import annotations

from datetime import UTC, datetime

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.frame import EventKind, Frame
from a2a_proxy.rules.context import RuleContext

SEND_STREAM = ("SendStreamingMessage",)
SUBSCRIBE_STREAM = ("SubscribeToTask",)
STREAMS = SEND_STREAM + SUBSCRIBE_STREAM
"""Operations with a stream, without live streams, which have rules of their own (A2A-LIVE)."""
WITH_LIVE = (*STREAMS, "SendLiveMessage", "ReconnectToTask")
"""Operations with a stream, including live streams."""
CLIENT_LEFT = frozenset({"client cancel", "client gone"})
"""How an exchange ends if the client has left."""

_EVENT_PHRASES = {
    EventKind.TASK: "a Task",
    EventKind.MESSAGE: "a Message",
    EventKind.STATUS: "a status update",
    EventKind.ARTIFACT: "an artifact update",
}


def event_phrase(frame: Frame) -> str:
    """Return an event in words: `a status update (working)`."""
    name = _EVENT_PHRASES.get(frame.event, "something else")
    return f"{name} ({state_label(frame.state)})" if frame.state else name


def state_label(state: int) -> str:
    """Return the name of a state for texts."""
    return TaskState(state).label


def status_time(context: RuleContext) -> int:
    """Return the time at which a frame's status was set, ns; 0 without a readable timestamp."""
    status = context.object.get("status")
    text = status.get("timestamp") if isinstance(status, dict) else None
    try:
        when = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return 0
    return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1e9) if when else 0
