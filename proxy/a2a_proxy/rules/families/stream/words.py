"""Operations, event names and state names shared by the rules about streams."""

from datetime import UTC, datetime

from a2a_proxy.model.values import Frame
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.facts.naming import event_phrase, state_label

SEND_STREAM = ("SendStreamingMessage",)
SUBSCRIBE_STREAM = ("SubscribeToTask",)
STREAMS = SEND_STREAM + SUBSCRIBE_STREAM
"""Operations with a stream, without live streams, which have rules of their own (A2A-LIVE)."""
WITH_LIVE = (*STREAMS, "SendLiveMessage", "ReconnectToTask")
"""Operations with a stream, including live streams."""


def event_and_state(frame: Frame) -> str:
    """Return an event in words with its state: `a status update (working)`."""
    name = event_phrase(frame, "something else")
    return f"{name} ({state_label(frame.state)})" if frame.state else name


def status_time(context: RuleContext) -> int:
    """Return the time at which a frame's status was set, ns; 0 without a readable timestamp."""
    status = context.object.get("status")
    text = status.get("timestamp") if isinstance(status, dict) else None
    try:
        when = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return 0
    return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1e9) if when else 0
