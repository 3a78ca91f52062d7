"""Frames as JSON objects with stable names."""

import msgspec

from a2a_proxy.model.event import state_label
from a2a_proxy.model.values import EventKind, Exchange, Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.present import text
from a2a_proxy.protocol.decoded import find_frame_extensions, readable_payload

_KIND_NAMES = {kind: kind.name.lower() for kind in FrameKind}
_EVENT_NAMES = {event: event.name.lower() if event else None for event in EventKind}


def frame_object(frame: Frame, exchange: Exchange) -> dict[str, object]:
    """Return a frame as JSON with stable names, without unknown members."""
    facts: dict[str, object] = {
        "seq": frame.seq,
        "direction": "to_agent" if frame.direction is Direction.TO_AGENT else "to_client",
        "kind": _KIND_NAMES[frame.kind],
        "at": text.format_utc(frame.at),
        "event": _EVENT_NAMES[frame.event],
        "task_id": frame.task_id,
        "context_id": frame.context_id,
        "message_id": frame.message_id,
        "artifact_id": frame.artifact_id,
        "state": state_label(frame.state),
        "generation": frame.generation or None,
        "append": frame.append or None,
        "last_chunk": frame.last_chunk or None,
        "final": frame.final or None,
        "error_code": frame.error_code or None,
        "rpc_id": frame.rpc_id,
        "note": frame.note,
        "size": frame.size,
        "truncated": frame.truncated or None,
        "ours": frame.ours or None,
        "redacted": list(frame.redacted) or None,
        "extensions": [msgspec.to_builtins(use) for use in find_frame_extensions(frame, exchange)]
        or None,
        "payload": readable_payload(frame, exchange),
    }
    return {name: value for name, value in facts.items() if value not in (None, "")}
