"""Canonical JSON as protobuf octets: what a gRPC message is made of."""

from __future__ import annotations

import re
from typing import Any

from a2a_proto import RenderError, from_dict
from a2a_proxy.model.exchange import Binding, Dialect
from a2a_proxy.protocol.operations import BY_NAME, Operation, messages
from a2a_proxy.protocol.schema import MEDIA_LINE, line_and_name, line_of, schema_of
from a2a_proxy.replay.convert.requests import request
from a2a_proxy.replay.convert.responses import answer

_EVENTS = frozenset({"task", "message", "statusUpdate", "artifactUpdate"})
_ZONELESS = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?")
_DEPTH = 100
"""Levels of JSON; protobuf has no more levels of messages, and JSON in a part takes two of them for each."""
_STAMPS = frozenset({"timestamp", "statusTimestampAfter"})


def answer_octets(value: Any, operation: str, dialect: Dialect, schema: str = "") -> bytes:
    """One message of an agent. `schema` names another protobuf message than the operation's own: a live proposal's.

    Raises RenderError where the value is no such message.
    """
    made = answer(value, operation, dialect, Binding.GRPC)
    return _octets(made, schema or _schema(operation, dialect, response=True), "event")


def request_octets(value: Any, operation: str, dialect: Dialect, schema: str = "") -> bytes:
    """One message of a client. Raises RenderError as above."""
    made = request(value, operation, dialect, Binding.GRPC)
    return _octets(made, schema or _schema(operation, dialect, response=False), "message")


def _schema(operation: str, dialect: Dialect, *, response: bool) -> str:
    row: Operation = BY_NAME[operation]
    return schema_of(line_of(dialect), messages(row, dialect)[response])


def _octets(value: Any, schema: str, wrapper: str) -> bytes:
    if schema == "google.protobuf.Empty":
        return b""
    if not isinstance(value, dict):
        raise RenderError(f"this is no {schema}")
    if schema.endswith(f"@{MEDIA_LINE}") and (wrapper == "message" or set(value) & _EVENTS):
        value = value if wrapper == "message" and "message" not in value else {wrapper: value}
    line, name = line_and_name(schema)
    octets: bytes = from_dict(line, name, _zoned(value), lenient=True).SerializeToString(deterministic=True)  # type: ignore[arg-type]
    return octets


def _zoned(value: Any, depth: int = 0) -> Any:
    """JSON of 0.x often leaves out the zone of a time, which protobuf must have, and then means UTC."""
    if depth > _DEPTH:
        raise RenderError(f"it nests deeper than {_DEPTH} levels")
    if isinstance(value, list):
        return [_zoned(one, depth + 1) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: _stamp(item) if name in _STAMPS else _zoned(item, depth + 1) for name, item in value.items()}


def _stamp(value: Any) -> Any:
    return f"{value}Z" if isinstance(value, str) and _ZONELESS.fullmatch(value) else value
