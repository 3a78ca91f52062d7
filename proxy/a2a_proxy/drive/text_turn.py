"""A further message of a live call, which the recording does not have."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec

from a2a_proxy.drive.plan import ClientAction, ClientTurn, PlannedCall
from a2a_proxy.protocol.canonical_form import canonical_payload
from a2a_proxy.replay.convert.protobuf_bytes import encode_request

_OBJECTS = ("task", "statusUpdate", "artifactUpdate", "message")


def make_text_turn(step: PlannedCall, text: str, event: dict[str, Any]) -> ClientTurn:
    """Return the turn that sends a message with this text, about the task of the agent's newest event (in the 1.0
    form), else about that of the recorded message. Live calls are sent over gRPC only."""
    turn = next(turn for turn in reversed(step.turns) if turn.action is ClientAction.SAY)
    assert turn.frame is not None
    recorded: Any = canonical_payload(turn.frame, step.exchange)
    ids = _ids_of(event) or (_ids_of(recorded) if isinstance(recorded, dict) else {})
    message = {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", **ids, "parts": [{"text": text}]}
    value = {"message": message}
    exchange, schema = step.exchange, turn.frame.schema
    data = encode_request(value, exchange.operation, exchange.dialect, schema)
    frame = msgspec.structs.replace(turn.frame, payload=data, size=len(data), redacted=())
    return ClientTurn(ClientAction.SAY, -1, turn.at, 0, 0, (), frame)


def _ids_of(event: dict[str, Any]) -> dict[str, str]:
    """Return the members of a message that name the task and context of an event."""
    name = next((name for name in _OBJECTS if isinstance(event.get(name), dict)), "")
    holder = event[name] if name else {}
    found = {
        "taskId": holder.get("id" if name == "task" else "taskId"),
        "contextId": holder.get("contextId"),
    }
    return {member: value for member, value in found.items() if isinstance(value, str) and value}
