"""The string field of a message that is not valid UTF-8, which protobuf parsers report only as a
failure."""

from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from a2a_proto.live import read_varint
from a2a_proto.pools import message_class
from a2a_proto.schema_sets import SchemaSet

_MAX_DEPTH = 100
_VARINT, _LENGTH_DELIMITED = 0, 2
_FIXED_SIZES = {1: 8, 5: 4}


def find_bad_text(schema_set: SchemaSet, name: str, data: bytes) -> str:
    """Return the path of the first string field that is not valid UTF-8
    (`status.message.messageId`), or an empty string if there is none before the end of the message
    or before bytes that are no field.

    Raises KeyError if the schema set has no such message.
    """
    return _find_in_message(message_class(schema_set, name).DESCRIPTOR, data, 0)


def _find_in_message(descriptor: Any, data: bytes, depth: int) -> str:
    at = 0
    while 0 <= at < len(data):
        key, at = read_varint(data, at)
        field = descriptor.fields_by_number.get(key >> 3)
        if at < 0:
            return ""
        if key & 7 == _VARINT:
            _, at = read_varint(data, at)
        elif key & 7 in _FIXED_SIZES:
            at += _FIXED_SIZES[key & 7]
        elif key & 7 != _LENGTH_DELIMITED:
            return ""
        else:
            size, at = read_varint(data, at)
            if at < 0 or at + size > len(data):
                return ""
            found = _bad_text_of(field, data[at : at + size], depth) if field is not None else ""
            if found:
                return found
            at += size
    return ""


def _bad_text_of(field: FieldDescriptor, content: bytes, depth: int) -> str:
    """Return the path of the field, or of a field inside it, if it is not valid UTF-8."""
    if field.type == FieldDescriptor.TYPE_STRING:
        try:
            content.decode()
        except UnicodeDecodeError:
            return str(field.json_name)
    elif field.type == FieldDescriptor.TYPE_MESSAGE and depth < _MAX_DEPTH:
        assert field.message_type is not None
        inner = _find_in_message(field.message_type, content, depth + 1)
        return f"{field.json_name}.{inner}" if inner else ""
    return ""
