"""Strict twins of the A2A protobuf messages, so that the parser itself recognises valid messages.

A twin has the same field numbers: mandatory fields are required, enums are closed and
have no unspecified value, messages have one text part, and rare fields are omitted. The parser
keeps omitted fields as unknown fields.
"""

from functools import cache
from typing import Any

from google.protobuf.descriptor_pb2 import (
    EDITION_2023,
    DescriptorProto,
    FeatureSet,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from a2a_proto import SchemaSet, message_class
from a2a_proto.shapes.shape import camel_case
from a2a_proxy.protocol.strict.plain_objects import PLAIN_MEMBERS

_FIELDS = PLAIN_MEMBERS | {"Part": "text!"}
"""Fields of each twin by their JSON names in snake case; `!` marks a required field. A list with
`!` has exactly one element."""
_ROLES = {
    "Message": ("Role", (1, 2)),
    "AgentMessage": ("AgentRole", (2,)),
    "AgentAnswer": ("AgentRole", (2,)),
}
_SAYS = {
    "TaskStatus": "AgentMessage",
    "StreamResponse": "AgentAnswer",
    "SendMessageResponse": "AgentAnswer",
}
"""Messages that contain an agent's message, each with the twin used for it; an answer's message
needs a context."""
_LABEL = FieldDescriptorProto.Label


@cache
def twin(line: SchemaSet, name: str) -> type[Message]:
    """Return the class that parses a message strictly. Raises KeyError if the message has no
    twin."""
    return GetMessageClass(_make_pool(line).FindMessageTypeByName(f"strict.{name}"))


@cache
def _make_pool(line: SchemaSet) -> DescriptorPool:
    file = FileDescriptorProto(
        name="strict.proto", package="strict", syntax="editions", edition=EDITION_2023
    )
    file.options.features.enum_type = FeatureSet.CLOSED
    found: dict[str, Any] = {}
    for name in ("StreamResponse", "SendMessageResponse"):
        _gather_messages(message_class(line, name).DESCRIPTOR, found)
    pool = DescriptorPool()
    for known in sorted({field.message_type.file for each in found.values() for field in each.fields
                         if field.message_type is not None and not _is_ours(field.message_type)},
                        key=lambda each: str(each.name)):  # fmt: skip
        copy = FileDescriptorProto()
        known.CopyToProto(copy)
        pool.AddSerializedFile(copy.SerializeToString())
        file.dependency.append(copy.name)
    for name, descriptor in found.items():
        _copy_message(file.message_type.add(name=name), descriptor, name)
    for name in ("AgentMessage", "AgentAnswer"):
        _copy_message(file.message_type.add(name=name), found["Message"], name)
    _copy_enum(file, "TaskState", range(1, 9))
    for name, numbers in sorted(set(_ROLES.values())):
        _copy_enum(file, name, numbers)
    pool.AddSerializedFile(file.SerializeToString())
    return pool


def _is_ours(descriptor: Any) -> bool:
    return not descriptor.full_name.startswith("google.protobuf.")


def _gather_messages(descriptor: Any, found: dict[str, Any]) -> None:
    """Collect a message and the messages inside it that have a twin."""
    if descriptor.name in found or descriptor.name not in _FIELDS:
        return
    found[descriptor.name] = descriptor
    for field in descriptor.fields:
        if field.message_type is not None:
            _gather_messages(field.message_type, found)


def _copy_message(made: DescriptorProto, descriptor: Any, name: str) -> None:
    fields = {
        camel_case(word.rstrip("!")): word.endswith("!")
        for word in _FIELDS[descriptor.name].split()
    }
    if descriptor.name.endswith("Response"):
        made.oneof_decl.add(name="payload")
    for field in descriptor.fields:
        if field.json_name not in fields:
            continue
        required = fields[field.json_name] or (name == "AgentAnswer" and field.name == "context_id")
        many = field.is_repeated and not required
        label = _LABEL.LABEL_REPEATED if many else _LABEL.LABEL_OPTIONAL
        one = made.field.add(name=field.name, number=field.number, type=field.type, label=label)
        if required:
            one.options.features.field_presence = FeatureSet.LEGACY_REQUIRED
        if made.oneof_decl:
            one.oneof_index = 0
        if field.enum_type is not None:
            one.type_name = "strict." + (
                _ROLES[name][0] if field.name == "role" else field.enum_type.name
            )
        elif field.message_type is not None:
            one.type_name = _type_of(field.message_type, name)


def _type_of(inner: Any, name: str) -> str:
    if not _is_ours(inner):
        return str(inner.full_name)
    own: str = inner.name
    return f"strict.{_SAYS.get(name, own) if own == 'Message' else own}"


def _copy_enum(file: FileDescriptorProto, name: str, numbers: Any) -> None:
    made = file.enum_type.add(name=name)
    for number in numbers:
        made.value.add(name=f"{name}_{number}", number=number)
