"""Fields of a recorded protobuf message that its schema does not have: they go on into the message of now.

A newer agent, or one with fields of its own, is so replayed with all that it said. What is in such fields nobody can
read: identifiers in them stay as they were recorded.
"""

from __future__ import annotations

from google.protobuf.message import Message

from a2a_proto import ParseError, parse
from a2a_proxy.protocol.schema import split_schema


def add_unknown_fields(data: bytes, recorded: bytes, schema: str) -> bytes:
    """A message with the unknown fields of the recorded one that it was made of, at any depth. Both have the schema."""
    line, name = split_schema(schema)
    try:
        old: Message = parse(line, name, recorded)  # type: ignore[arg-type]
    except ParseError:  # then nobody could make anything of it either
        return data
    whole = old.ByteSize()
    old.DiscardUnknownFields()
    if old.ByteSize() == whole:
        return data
    made: Message = parse(line, name, data)  # type: ignore[arg-type]
    _copy_unknown_fields(parse(line, name, recorded), made)  # type: ignore[arg-type]
    return made.SerializeToString(deterministic=True)


def _copy_unknown_fields(old: Message, made: Message) -> None:
    bare = type(old)()
    bare.CopyFrom(old)
    for field, _ in bare.ListFields():
        bare.ClearField(field.name)
    made.MergeFromString(bare.SerializeToString())
    for field, value in old.ListFields():
        if field.message_type is None:
            continue
        other = getattr(made, field.name)
        if isinstance(value, Message):
            if made.HasField(field.name):
                _copy_unknown_fields(value, other)
        elif not field.message_type.GetOptions().map_entry:
            for one, two in zip(value, other, strict=False):
                _copy_unknown_fields(one, two)
        elif field.message_type.fields_by_name["value"].message_type is not None:
            for key in value:
                if key in other:
                    _copy_unknown_fields(value[key], other[key])
