"""The canonical form in which messages are compared, matched and replayed: 1.0 JSON for every
binding (manual/protocol.md "Canonical form").

The differ, the matcher, the player of a replay and its servers all read payloads through this
module, so a recorded payload and a live one cannot be read in two ways.
"""

from typing import Any

from a2a_proxy.model.values import Binding, Dialect, Exchange, Frame, FrameKind
from a2a_proxy.protocol.event import decode_payload, normalise_event
from a2a_proxy.protocol.json_summary import rename_to_camel
from a2a_proxy.protocol.rest_path import match_request_line

_PUSH_OPERATION_MARK = "PushNotificationConfig"


def canonical_payload(frame: Frame, exchange: Exchange) -> Any:
    """Return the payload in 1.0 form, with the parameters in a REST target; text if it is not
    JSON."""
    value = canonical_body(
        frame.payload, frame.schema, exchange.dialect, exchange.operation, frame.kind
    )
    if (
        frame.kind is FrameKind.REQUEST
        and exchange.binding is Binding.REST
        and isinstance(value, dict)
    ):
        return {**members_of_target(exchange.method, exchange.target), **value}
    return value


def canonical_body(
    payload: bytes, schema: str, dialect: Dialect, operation: str, kind: FrameKind
) -> Any:
    """Return the canonical form of a body that is not a frame yet, read according to `schema`
    (`json` or a message)."""
    value: Any = decode_payload(payload, schema)
    if value is None:
        return payload.decode("utf-8", "backslashreplace") if payload else {}
    if operation:
        value = normalise_event(payload, schema, dialect, operation, kind)
        if "jsonrpc" in value:  # neither a result nor an error
            value = {name: item for name, item in value.items() if name not in ("jsonrpc", "id")}
    return value


def members_of_target(method: str, target: str) -> dict[str, Any]:
    """Return the members of a request that REST has in the path and query."""
    found = match_request_line(method, target.encode("latin-1", "replace"))
    if found is None:
        return {}
    made: dict[str, Any] = rename_to_camel(
        {name: _query_value(value) for name, value in found.query if value}
    )
    push = _PUSH_OPERATION_MARK in found.operation.name
    if found.task_id:
        made["taskId" if push else "id"] = found.task_id
    return {**made, "id": found.config_id} if found.config_id else made


def _query_value(word: str) -> Any:
    """Convert a query parameter to its JSON value."""
    if word in ("true", "false"):
        return word == "true"
    return int(word) if word.isascii() and word.isdigit() and len(word) < 16 else word
