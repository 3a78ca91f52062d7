"""Canonical JSON as protobuf bytes of a gRPC message."""

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
"""Maximum nesting of JSON. Protobuf allows this many messages, and JSON in a part takes two of them for each level."""
_TIMESTAMP_FIELDS = frozenset({"timestamp", "statusTimestampAfter"})


def encode_answer(value: Any, operation: str, dialect: Dialect, schema: str = "") -> bytes:
    """Encode one message of an agent. `schema` names a protobuf message other than the operation's own, for a live
    proposal.

    Raises RenderError if the value is not such a message.
    """
    converted = convert_answer(value, operation, dialect, Binding.GRPC)
    return _encode_message(converted, schema or _schema_of(operation, dialect, response=True), "event")


def encode_request(value: Any, operation: str, dialect: Dialect, schema: str = "") -> bytes:
    """Encode one message of a client. Raises RenderError as `encode_answer` does."""
    converted = convert_request(value, operation, dialect, Binding.GRPC)
    return _encode_message(converted, schema or _schema_of(operation, dialect, response=False), "message")


def _schema_of(operation: str, dialect: Dialect, *, response: bool) -> str:
    row: Operation = OPERATION_BY_NAME[operation]
    return schema_of(schema_set_of(dialect), message_names(row, dialect)[response])


def _encode_message(value: Any, schema: str, wrapper: str) -> bytes:
    if schema == "google.protobuf.Empty":
        return b""
    if not isinstance(value, dict):
        raise RenderError(f"this is not a {schema}")
    if schema.endswith(f"@{MEDIA_SCHEMA_SET}") and (wrapper == "message" or set(value) & _EVENT_MEMBERS):
        value = value if wrapper == "message" and "message" not in value else {wrapper: value}
    line, name = split_schema(schema)
    data: bytes = from_dict(line, name, _add_zones(value), lenient=True).SerializeToString(deterministic=True)  # type: ignore[arg-type]
    return data


def _add_zones(value: Any, depth: int = 0) -> Any:
    """Add the zone that protobuf requires to times of 0.x, which often lack it and then mean UTC."""
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
