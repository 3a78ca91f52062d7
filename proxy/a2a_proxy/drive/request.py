"""Request to send for a recorded message: other identifiers and credentials, everything else as
recorded."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from a2a_proto import ParseError, parse
from a2a_proxy.drive.ids import DriveIds
from a2a_proxy.drive.plan import ClientAction, ClientTurn, PlannedCall
from a2a_proxy.model.values import Binding, Frame
from a2a_proxy.model.wire import Headers
from a2a_proxy.protocol.canonical_form import canonical_payload
from a2a_proxy.protocol.schema import JSON, is_protobuf, split_schema
from a2a_proxy.replay.convert.protobuf_bytes import encode_request

_LABEL_PATTERN = re.compile(rb"redacted-[0-9a-f]{12}")
_CONNECTION_FIELDS = frozenset(
    {
        *(
            "host",
            "content-length",
            "connection",
            "transfer-encoding",
            "accept-encoding",
            "te",
            "expect",
            "upgrade",
        ),
        *("keep-alive", "http2-settings", "proxy-connection", "trailer"),
    }
)
"""Fields that belong to the connection and are set by the new one."""
_EVENT_OBJECTS = ("task", "statusUpdate", "artifactUpdate", "message")


class DriveRequest(msgspec.Struct, frozen=True):
    """One message of the client, ready to be sent."""

    payload: bytes
    headers: Headers
    """Headers of the call, without those of the connection."""
    target: str
    """The request target on HTTP, the path of the method on gRPC."""
    method: str = "POST"
    """The HTTP method."""
    rpc_id: str = ""
    """The JSON-RPC id as JSON text."""
    framing: str = ""


class Credentials(msgspec.Struct, frozen=True):
    """Headers given by the user, which replace the recorded ones."""

    headers: Headers = ()
    everywhere: frozenset[bytes] = frozenset()
    """Names, in lower case, of the given headers that no recorded call had; every call gets them.
    For the other headers, a recorded call without one may be a call that the agent had to
    refuse."""
    secrets: dict[bytes, bytes] = {}
    """Secret for each label, replaced anywhere in a recorded header, so that calls of several users
    keep their own."""

    def apply_to(self, recorded: Headers) -> tuple[Headers, tuple[str, ...]]:
        """Return the headers to send, and the names of recorded headers that are left out because
        they hold labels."""
        given_names = {name.lower() for name, _ in self.headers}
        recorded_names = {name.lower() for name, _ in recorded} | self.everywhere
        sent_headers: list[tuple[bytes, bytes]] = []
        omitted_names: list[str] = []
        for name, value in recorded:
            low = name.lower()
            if (
                low in given_names
                or low.decode("latin-1") in _CONNECTION_FIELDS
                or low.startswith(b":")
            ):
                continue
            value = _LABEL_PATTERN.sub(lambda label: self.secrets.get(label[0], label[0]), value)
            if _LABEL_PATTERN.search(value):
                omitted_names.append(name.decode("latin-1"))
            else:
                sent_headers.append((name, value))
        sent_headers += [
            (name, value) for name, value in self.headers if name.lower() in recorded_names
        ]
        return tuple(sent_headers), tuple(omitted_names)

    def for_plan(self, steps: Iterable[PlannedCall]) -> Credentials:
        """Return a copy that lists in `everywhere` the headers that none of these calls had."""
        recorded_names = {
            name.lower() for step in steps for name, _ in step.exchange.request_headers
        }
        new_names = frozenset(name.lower() for name, _ in self.headers) - recorded_names
        return Credentials(self.headers, new_names, self.secrets)

    def replaced_names(self, steps: Iterable[PlannedCall]) -> frozenset[str]:
        """Return the names, in lower case, of all headers that get other values in these calls."""
        recorded = (header for step in steps for header in step.exchange.request_headers)
        filled = {
            name
            for name, value in recorded
            if any(label in self.secrets for label in _LABEL_PATTERN.findall(value))
        }
        return frozenset(
            name.decode("latin-1").lower() for name in filled | {name for name, _ in self.headers}
        )


def header_labels(step: PlannedCall) -> Iterator[tuple[str, str]]:
    """Yield the names, in lower case, and labels of the recorded headers that have labels."""
    for name, value in step.exchange.request_headers:
        for label in _LABEL_PATTERN.findall(value):
            yield name.decode("latin-1").lower(), label.decode()


def make_request(
    step: PlannedCall, turn: ClientTurn, ids: DriveIds, credentials: Credentials
) -> DriveRequest:
    """Return the request for a recorded message, with its recorded bytes if no identifier in them
    changes."""
    assert turn.frame is not None
    exchange, frame = step.exchange, turn.frame
    headers, _ = credentials.apply_to(exchange.request_headers)
    method = "POST" if exchange.binding is Binding.JSONRPC else exchange.method
    data = _request_payload(frame, exchange.binding, ids)
    return DriveRequest(
        data, headers, _request_target(step, ids), method, frame.rpc_id, frame.framing
    )


def make_text_turn(step: PlannedCall, text: str, event: dict[str, Any]) -> ClientTurn:
    """Return the turn that sends a message with this text, about the task of the agent's newest
    event (in the 1.0 form), else about that of the recorded message. Live calls are sent over gRPC
    only."""
    turn = next(turn for turn in reversed(step.turns) if turn.action is ClientAction.SAY)
    assert turn.frame is not None
    recorded: Any = canonical_payload(turn.frame, step.exchange)
    ids = _object_ids(event) or (_object_ids(recorded) if isinstance(recorded, dict) else {})
    message = {
        "messageId": str(uuid.uuid4()),
        "role": "ROLE_USER",
        **ids,
        "parts": [{"text": text}],
    }
    value = {"message": message}
    exchange, schema = step.exchange, turn.frame.schema
    data = encode_request(value, exchange.operation, exchange.dialect, schema)
    frame = msgspec.structs.replace(turn.frame, payload=data, size=len(data), redacted=())
    return ClientTurn(ClientAction.SAY, -1, turn.at, 0, 0, (), frame)


def _request_target(step: PlannedCall, ids: DriveIds) -> str:
    """Return the target; REST calls have identifiers in their path and query."""
    target = step.exchange.target
    return ids.rename_text(target) if step.exchange.binding is Binding.REST else target


def _request_payload(frame: Frame, binding: Binding, ids: DriveIds) -> bytes:
    if is_protobuf(frame.schema):
        return _protobuf_payload(frame, ids)
    if frame.schema != JSON:
        return frame.payload
    try:
        value: Any = msgspec.json.decode(frame.payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return frame.payload
    if binding in (Binding.JSONRPC, Binding.STDIO):
        # The envelope has an `id` of its own, which is not a task id.
        renamed = (
            {**value, "params": ids.rename_json(value["params"])}
            if isinstance(value, dict) and "params" in value
            else value
        )
    else:
        renamed = ids.rename_json(value)
    return frame.payload if renamed == value else msgspec.json.encode(renamed)


def _protobuf_payload(frame: Frame, ids: DriveIds) -> bytes:
    line, name = split_schema(frame.schema)
    try:
        message = parse(line, name, frame.payload)  # type: ignore[arg-type]
    except (ParseError, KeyError):
        return frame.payload
    before = message.SerializeToString(deterministic=True)
    ids.rename_protobuf(message)
    after = message.SerializeToString(deterministic=True)
    return frame.payload if after == before else after


def _object_ids(event: dict[str, Any]) -> dict[str, str]:
    """Return the members of a message that name the task and context of an event."""
    name = next((name for name in _EVENT_OBJECTS if isinstance(event.get(name), dict)), "")
    holder = event[name] if name else {}
    found = {
        "taskId": holder.get("id" if name == "task" else "taskId"),
        "contextId": holder.get("contextId"),
    }
    return {member: value for member, value in found.items() if isinstance(value, str) and value}
