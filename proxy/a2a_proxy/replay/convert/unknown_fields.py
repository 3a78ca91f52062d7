"""Copying of fields that are not in the schema from a recorded protobuf message to the replayed one.

So the messages of a newer agent, or of one with its own fields, are replayed completely. Identifiers in such fields
stay as recorded, because the fields cannot be decoded.
"""

from __future__ import annotations

from google.protobuf.message import Message

from a2a_proto import ParseError, parse
from a2a_proxy.protocol.schema import split_schema


def add_unknown_fields(data: bytes, recorded: bytes, schema: str) -> bytes:
    """Return a message with the unknown fields, at any depth, of the recorded one it was built from. Both have the
    schema."""
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
