"""Private descriptor pools, and message classes made from them. Nothing here reaches protobuf's default pool."""

from __future__ import annotations

from functools import cache
from pkgutil import get_data

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from a2a_proto.errors import ParseError
from a2a_proto.lines import SCHEMA_SETS, SchemaSet


@cache
def pool(schema_set: SchemaSet) -> DescriptorPool:
    """The pool of a line, with the well-known types that it uses. The same object every time.

    Raises KeyError where there is no such line.
    """
    data = get_data(__package__, SCHEMA_SETS[schema_set].descriptor_path)
    if data is None:
        raise FileNotFoundError(SCHEMA_SETS[schema_set].descriptor_path)
    made = DescriptorPool()
    for file in FileDescriptorSet.FromString(data).file:
        made.AddSerializedFile(file.SerializeToString())
    return made


@cache
def message_class(schema_set: SchemaSet, name: str) -> type[Message]:
    """The class of a message, by full name (`lf.a2a.v1.Task`, `google.protobuf.Struct`) or short (`Task`).

    Its `FromString` is the fast way to parse (about 0.3 us for a small message): keep it where that matters. Messages
    of two lines do not mix, not even their Structs; carry them across as bytes. Raises KeyError where the line has no
    such message.
    """
    package = SCHEMA_SETS[schema_set].package
    full = name if name.startswith((package + ".", "google.protobuf.")) else f"{package}.{name}"
    return GetMessageClass(pool(schema_set).FindMessageTypeByName(full))


def parse(schema_set: SchemaSet, name: str, data: bytes) -> Message:
    """Read one message. Fields that the line does not know are kept, and come out again on serialising.

    Raises ParseError where the bytes are no such message or nest deeper than 100 messages (JSON in a part takes two or
    more a level, so about 45 levels), KeyError where there is no such message in the line.
    """
    try:
        return message_class(schema_set, name).FromString(data)
    except DecodeError as error:
        raise ParseError(f"{len(data)} bytes are no {name} of {schema_set}") from error
