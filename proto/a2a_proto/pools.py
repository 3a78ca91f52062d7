"""Private descriptor pools and the message classes created from them. protobuf's default pool is
never used."""

from functools import cache
from pkgutil import get_data
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from a2a_proto.errors import ParseError
from a2a_proto.schema_sets import SCHEMA_SETS, SchemaSet


@cache
def pool(schema_set: SchemaSet) -> DescriptorPool:
    """Return the pool of a schema set, including the well-known types that it uses. Always the same
    object.

    Raises KeyError if the schema set does not exist.
    """
    data = get_data(__package__, SCHEMA_SETS[schema_set].descriptor_path)
    if data is None:
        raise FileNotFoundError(SCHEMA_SETS[schema_set].descriptor_path)
    made = DescriptorPool()
    for file in FileDescriptorSet.FromString(data).file:
        made.AddSerializedFile(file.SerializeToString())
    return made


def package_files(schema_set: SchemaSet) -> list[Any]:
    """Return the descriptors of the files in the package of a schema set, each after the files that
    import it.

    Raises KeyError if the schema set does not exist.
    """
    source = SCHEMA_SETS[schema_set]
    found = [pool(schema_set).FindFileByName(source.proto)]
    for file in found:  # grows on the way
        found += [
            each
            for each in file.dependencies
            if each.package == source.package and each not in found
        ]
    return found


@cache
def message_class(schema_set: SchemaSet, name: str) -> type[Message]:
    """Return the class of a message, by its full name (`lf.a2a.v1.Task`, `google.protobuf.Struct`)
    or short name (`Task`).

    Its `FromString` is the fast way to parse (about 0.3 us for a small message): keep the class
    where speed matters. Messages of two schema sets do not mix, not even their Structs; transfer
    them as bytes. Raises KeyError if the schema set has no such message.
    """
    package = SCHEMA_SETS[schema_set].package
    full = name if name.startswith((package + ".", "google.protobuf.")) else f"{package}.{name}"
    return GetMessageClass(pool(schema_set).FindMessageTypeByName(full))


def parse(schema_set: SchemaSet, name: str, data: bytes) -> Message:
    """Parse one message. Fields that the schema set does not define are kept and serialised again.

    Raises ParseError if the bytes are not such a message or nest deeper than 100 messages (JSON in
    a part takes at least two messages per level, so about 45 levels), and KeyError if the schema
    set has no such message.
    """
    try:
        return message_class(schema_set, name).FromString(data)
    except DecodeError as error:
        raise ParseError(f"{len(data)} bytes are not a {name} of {schema_set}") from error
