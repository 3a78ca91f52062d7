"""Canonical JSON as protobuf bytes of a gRPC message, with fields of the recorded one that are not
in the schema."""

import re
from typing import Any

from google.protobuf.message import Message

from a2a_proto import ParseError, RenderError, from_dict, parse
from a2a_proto.shapes.protobuf_shapes import timestamp_members
from a2a_proxy.model.values import EVENT_WRAPPERS, Binding, Dialect
from a2a_proxy.protocol.operations import OPERATION_BY_NAME, Operation, message_names
from a2a_proxy.protocol.schema import MEDIA_SCHEMA_SET, schema_of, schema_set_of, split_schema
from a2a_proxy.replay.convert.requests import convert_request
from a2a_proxy.replay.convert.responses import convert_answer

_ZONELESS = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?")
_MAX_DEPTH = 100
"""Maximum nesting of JSON. Protobuf allows this many messages; an object in a part takes three of
them."""


def encode_answer(value: Any, operation: str, dialect: Dialect, schema: str = "") -> bytes:
    """Encode one message of an agent. `schema` names a protobuf message other than the operation's
    own, for a live proposal.

    Raises RenderError if the value is not such a message.
    """
    converted = convert_answer(value, operation, dialect, Binding.GRPC)
    return _encode_message(
        converted, schema or _schema_of(operation, dialect, response=True), "event"
    )


def encode_request(value: Any, operation: str, dialect: Dialect, schema: str = "") -> bytes:
    """Encode one message of a client. Raises RenderError as `encode_answer` does."""
    converted = convert_request(value, operation, dialect, Binding.GRPC)
    return _encode_message(
        converted, schema or _schema_of(operation, dialect, response=False), "message"
    )


def _schema_of(operation: str, dialect: Dialect, *, response: bool) -> str:
    row: Operation = OPERATION_BY_NAME[operation]
    return schema_of(schema_set_of(dialect), message_names(row, dialect)[response])


def _encode_message(value: Any, schema: str, wrapper: str) -> bytes:
    if schema == "google.protobuf.Empty":
        return b""
    if not isinstance(value, dict):
        raise RenderError(f"this is not a {schema}")
    wraps = wrapper == "message" or any(name in value for name in EVENT_WRAPPERS.values())
    if schema.endswith(f"@{MEDIA_SCHEMA_SET}") and wraps:
        value = value if wrapper == "message" and "message" not in value else {wrapper: value}
    line, name = split_schema(schema)
    made = from_dict(line, name, _add_zones(value), lenient=True)  # type: ignore[arg-type]
    data: bytes = made.SerializeToString(deterministic=True)
    try:
        parse(line, name, data)  # type: ignore[arg-type]
    except (
        ParseError
    ) as error:  # versions of protobuf differ in what they encode, and agree in what they decode
        raise RenderError(f"no peer can decode it: {error}") from error
    return data


def _add_zones(value: Any, depth: int = 0) -> Any:
    """Add the zone that protobuf requires to times of 0.x, which often lack it and then mean
    UTC."""
    if depth > _MAX_DEPTH:
        raise RenderError(f"it nests deeper than {_MAX_DEPTH} levels")
    if isinstance(value, list):
        return [_add_zones(one, depth + 1) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _add_zone(item) if name in timestamp_members() else _add_zones(item, depth + 1)
        for name, item in value.items()
    }


def _add_zone(value: Any) -> Any:
    return f"{value}Z" if isinstance(value, str) and _ZONELESS.fullmatch(value) else value


def add_unknown_fields(data: bytes, recorded: bytes, schema: str) -> bytes:
    """Return a message with the unknown fields, at any depth, of the recorded one it was built
    from. Both have the schema.

    So the messages of a newer agent, or of one with its own fields, are replayed completely.
    Identifiers in such fields stay as recorded, because the fields cannot be decoded.
    """
    line, name = split_schema(schema)
    try:
        old: Message = parse(line, name, recorded)  # type: ignore[arg-type]
    except ParseError:  # the recorded bytes cannot be decoded, so they have no fields to copy
        return data
    whole = old.ByteSize()
    old.DiscardUnknownFields()
    if old.ByteSize() == whole:
        return data
    converted: Message = parse(line, name, data)  # type: ignore[arg-type]
    _copy_unknown_fields(parse(line, name, recorded), converted)  # type: ignore[arg-type]
    return converted.SerializeToString(deterministic=True)


def _copy_unknown_fields(old: Message, converted: Message) -> None:
    bare = type(old)()
    bare.CopyFrom(old)
    for field, _ in bare.ListFields():
        bare.ClearField(field.name)
    converted.MergeFromString(bare.SerializeToString())
    for field, value in old.ListFields():
        if field.message_type is None:
            continue
        other = getattr(converted, field.name)
        if isinstance(value, Message):
            if converted.HasField(field.name):
                _copy_unknown_fields(value, other)
        elif not field.message_type.GetOptions().map_entry:
            for one, two in zip(value, other, strict=False):
                _copy_unknown_fields(one, two)
        elif field.message_type.fields_by_name["value"].message_type is not None:
            for key in value:
                if key in other:
                    _copy_unknown_fields(value[key], other[key])
