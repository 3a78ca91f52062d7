"""Who sent a frame, and the frame in words: `agent's event`."""

from __future__ import annotations

from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.finding import Actor
from a2a_proxy.model.frame import Frame, FrameKind

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
