"""The one form in which messages are compared, matched and replayed: 1.0 JSON, whatever carried them
(manual/protocol.md "Canonical form").

The differ, the matcher and the player of a replay, and the servers that ask it, all read a payload through here: what
was recorded and what is asked now cannot be read in two ways.
"""

from __future__ import annotations

from typing import Any

from a2a_proxy.model.exchange import Binding, Dialect, Exchange
from a2a_proxy.model.frame import Frame, FrameKind
from a2a_proxy.protocol.event import decode_payload, normalise
from a2a_proxy.protocol.json_summary import rename_to_camel
from a2a_proxy.protocol.rest_path import match_request_line

_PUSH_OPERATION_MARK = "PushNotificationConfig"


def canonical_payload(frame: Frame, exchange: Exchange) -> Any:
    """The payload in the 1.0 form; the parameters of a REST call from its target; text where it is no JSON."""
    value = canonical_body(frame.payload, frame.schema, exchange.dialect, exchange.operation, frame.kind)
    if frame.kind is FrameKind.REQUEST and exchange.binding is Binding.REST and isinstance(value, dict):
        return {**members_of_target(exchange.method, exchange.target), **value}
    return value


def canonical_body(payload: bytes, schema: str, dialect: Dialect, operation: str, kind: FrameKind) -> Any:
    """The same of bytes that are no frame yet: the body of a call, read as `schema` says (`json` or a message)."""
    value: Any = decode_payload(payload, schema)
    if value is None:
        return payload.decode("utf-8", "backslashreplace") if payload else {}
    if operation:
        value = normalise(payload, schema, dialect, operation, kind)
        if "jsonrpc" in value:  # neither a result nor an error
            value = {name: item for name, item in value.items() if name not in ("jsonrpc", "id")}
    return value


def members_of_target(method: str, target: str) -> dict[str, Any]:
    """What a REST request says in its path and query, as members of the request."""
    found = match_request_line(method, target.encode("latin-1", "replace"))
    if found is None:
        return {}
    made: dict[str, Any] = rename_to_camel({name: _query_value(value) for name, value in found.query if value})
    push = _PUSH_OPERATION_MARK in found.operation.name
    if found.task_id:
        made["taskId" if push else "id"] = found.task_id
    return {**made, "id": found.config_id} if found.config_id else made


def _query_value(word: str) -> Any:
    """A query parameter as the JSON value that it stands for."""
    if word in ("true", "false"):
        return word == "true"
    return int(word) if word.isascii() and word.isdigit() and len(word) < 16 else word
