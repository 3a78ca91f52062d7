"""Renders messages in protobuf's canonical JSON form (manual/protocol.md "JSON encoding"), and gRPC
status details.

Slow compared with parsing (about 10 us per message): meant for display and export, not for the hot
path.
"""

import json
from base64 import b64encode
from typing import Any

from google.protobuf.json_format import Error as JsonFormatError
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import DecodeError, Message

from a2a_proto.errors import RenderError
from a2a_proto.pools import message_class, parse, pool
from a2a_proto.schema_sets import SchemaSet


def to_dict(message: Message) -> dict[str, Any]:
    """Return a message as ProtoJSON: lowerCamel names, int64 as decimal strings, bytes as base64,
    defaults left out.

    Fields are ordered by number, members of maps and Structs by name, because protobuf's own order
    of these differs from process to process. Unknown fields are left out. Raises RenderError if the
    message has no JSON form.
    """
    pool: Any = (
        message.DESCRIPTOR.file.pool
    )  # otherwise an Any inside would be looked up in the default pool
    try:
        rendered: dict[str, Any] = _sort_members(
            message.DESCRIPTOR, MessageToDict(message, descriptor_pool=pool)
        )
    except (JsonFormatError, DecodeError, TypeError, ValueError) as error:
        raise RenderError(f"{message.DESCRIPTOR.full_name} has no JSON form: {error}") from error
    return rendered


def to_json(message: Message) -> str:
    """Return `to_dict` as compact JSON text with non-ASCII characters unescaped. Raises
    RenderError."""
    return json.dumps(to_dict(message), ensure_ascii=False, separators=(",", ":"))


def from_dict(
    schema_set: SchemaSet, name: str, value: dict[str, Any], *, lenient: bool = False
) -> Message:
    """Return the message that a ProtoJSON object represents; the inverse of `to_dict`.

    If `lenient`, members that the message does not define are ignored.

    Raises RenderError if `value` does not represent such a message, KeyError if the schema set has
    no such message.
    """
    private: Any = pool(schema_set)
    try:
        made = message_class(schema_set, name)()
        return ParseDict(value, made, ignore_unknown_fields=lenient, descriptor_pool=private)
    except (JsonFormatError, TypeError, ValueError) as error:
        raise RenderError(f"this is not a {name} of {schema_set}: {error}") from error


def read_status(data: bytes) -> dict[str, Any]:
    """Return `grpc-status-details-bin`, already decoded from base64, as ProtoJSON: `code`,
    `message`, `details`.

    A detail of a known type has its fields next to `@type`; any other has `value`, its bytes in
    base64. Raises ParseError if the bytes are not a google.rpc.Status.
    """
    status: Any = parse("rpc", "Status", data)
    rendered: dict[str, Any] = {"code": status.code, "message": status.message}
    if status.details:
        rendered["details"] = [_render_detail(detail) for detail in status.details]
    return rendered


_SPECIAL_JSON_FORMS = frozenset(
    f"google.protobuf.{name}" for name in ("Any", "ListValue", "Struct", "Value")
)
"""Messages whose JSON form differs from the JSON form of their fields."""


def _sort_members(descriptor: Any, value: Any) -> Any:
    """Return the JSON form of a message of this type, or of a list of them, with sorted maps and
    integral numbers as int."""
    if descriptor.full_name in _SPECIAL_JSON_FORMS:
        return _whole_numbers(value)
    if isinstance(value, list):
        return [_sort_members(descriptor, each) for each in value]
    if not isinstance(value, dict):  # Timestamp, Duration and similar types are rendered as strings
        return value
    fields = {field.json_name: field for field in descriptor.fields}
    return {name: _sort_field(fields[name], each) for name, each in value.items()}


def _sort_field(field: Any, value: Any) -> Any:
    kind = field.message_type
    if kind is None:
        return value
    if not kind.GetOptions().map_entry:
        return _sort_members(kind, value)
    entry = kind.fields_by_name["value"]
    return {name: _sort_field(entry, value[name]) for name in sorted(value)}


def _whole_numbers(value: Any) -> Any:
    """Convert integral doubles of a Struct, where exact, to int, which is how other languages print
    them."""
    if isinstance(value, dict):
        return {name: _whole_numbers(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [_whole_numbers(each) for each in value]
    return (
        int(value)
        if isinstance(value, float) and value.is_integer() and abs(value) < 2**53
        else value
    )


def _render_detail(detail: Any) -> dict[str, Any]:
    try:
        return to_dict(detail)
    except RenderError:
        return {"@type": detail.type_url, "value": b64encode(detail.value).decode("ascii")}
