"""Canonical JSON as protobuf bytes: what a gRPC message is made of."""

from __future__ import annotations

import re
from typing import Any

from a2a_proto import RenderError, from_dict
from a2a_proxy.model.exchange import Binding, Dialect
from a2a_proxy.protocol.operations import OPERATION_BY_NAME, Operation, message_names
from a2a_proxy.protocol.schema import MEDIA_SCHEMA_SET, schema_of, schema_set_of, split_schema
from a2a_proxy.replay.convert.requests import convert_request
from a2a_proxy.replay.convert.responses import convert_answer

_EVENT_MEMBERS = frozenset({"task", "message", "statusUpdate", "artifactUpdate"})
_ZONELESS = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?")
_MAX_DEPTH = 100
"""Levels of JSON; protobuf has no more levels of messages, and JSON in a part takes two of them for each."""
_TIMESTAMP_FIELDS = frozenset({"timestamp", "statusTimestampAfter"})


def encode_answer(value: Any, operation: str, dialect: Dialect, schema: str = "") -> bytes:
    """One message of an agent. `schema` names another protobuf message than the operation's own: a live proposal's.

    Raises RenderError where the value is no such message.
    """
    made = convert_answer(value, operation, dialect, Binding.GRPC)
    return _encode_message(made, schema or _schema_of(operation, dialect, response=True), "event")


def encode_request(value: Any, operation: str, dialect: Dialect, schema: str = "") -> bytes:
    """One message of a client. Raises RenderError as above."""
    made = convert_request(value, operation, dialect, Binding.GRPC)
    return _encode_message(made, schema or _schema_of(operation, dialect, response=False), "message")


def _schema_of(operation: str, dialect: Dialect, *, response: bool) -> str:
    row: Operation = OPERATION_BY_NAME[operation]
    return schema_of(schema_set_of(dialect), message_names(row, dialect)[response])


def _encode_message(value: Any, schema: str, wrapper: str) -> bytes:
    if schema == "google.protobuf.Empty":
        return b""
    if not isinstance(value, dict):
        raise RenderError(f"this is no {schema}")
    if schema.endswith(f"@{MEDIA_SCHEMA_SET}") and (wrapper == "message" or set(value) & _EVENT_MEMBERS):
        value = value if wrapper == "message" and "message" not in value else {wrapper: value}
    line, name = split_schema(schema)
    data: bytes = from_dict(line, name, _add_zones(value), lenient=True).SerializeToString(deterministic=True)  # type: ignore[arg-type]
    return data


def _add_zones(value: Any, depth: int = 0) -> Any:
    """JSON of 0.x often leaves out the zone of a time, which protobuf must have, and then means UTC."""
    if depth > _MAX_DEPTH:
        raise RenderError(f"it nests deeper than {_MAX_DEPTH} levels")
    if isinstance(value, list):
        return [_add_zones(one, depth + 1) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _add_zone(item) if name in _TIMESTAMP_FIELDS else _add_zones(item, depth + 1)
        for name, item in value.items()
    }


def _add_zone(value: Any) -> Any:
    return f"{value}Z" if isinstance(value, str) and _ZONELESS.fullmatch(value) else value
