"""The protobuf class of a frame's payload.

A frame's `schema` is the full name of the message. Some schema sets share a package with another
one (the live proposals with 1.0); their frames name the set too: `lf.a2a.v1.Task@live-2153`.
Therefore each frame can be decoded on its own.
"""

from functools import cache
from typing import Any

from a2a_proto import message_class
from a2a_proxy.model.values import Dialect
from a2a_proxy.protocol.proto_summary import Reader, reader_for

JSON, TEXT, BYTES, TRAILERS = "json", "text", "bytes", "trailers"

MEDIA_SCHEMA_SET = "live-1975"
"""Schema set whose live messages wrap the 1.0 messages, next to media frames."""

_PACKAGE_OF_SET = {
    "0.3": "a2a.v1.",
    "1.0": "lf.a2a.v1.",
    "live-1975": "lf.a2a.v1.",
    "live-2153": "lf.a2a.v1.",
}
_SETS_WITH_SHARED_PACKAGE = frozenset({"live-1975", "live-2153"})


def schema_of(schema_set: str, name: str) -> str:
    """Return the `schema` of message `name` (without package) in one schema set."""
    full = name if "." in name else _PACKAGE_OF_SET[schema_set] + name
    return (
        f"{full}@{schema_set}"
        if schema_set in _SETS_WITH_SHARED_PACKAGE and "." not in name
        else full
    )


def is_protobuf(schema: str) -> bool:
    """Whether the payload is a protobuf message."""
    return "." in schema


def split_schema(schema: str) -> tuple[str, str]:
    """Return schema set and full message name of a protobuf `schema`, as `a2a_proto` expects
    them."""
    full, _, schema_set = schema.partition("@")
    return schema_set or ("0.3" if full.startswith("a2a.v1.") else "1.0"), full


def schema_set_of(dialect: Dialect) -> str:
    """Return the schema set that decodes a dialect."""
    return "0.3" if dialect in (Dialect.V0_1, Dialect.V0_2, Dialect.V0_3) else "1.0"


class MessageDecoder:
    """Decoder of one message type: `parse(bytes)` raises DecodeError, `summarise(message)` does not
    raise."""

    __slots__ = ("parse", "schema", "summarise")

    def __init__(self, schema: str) -> None:
        self.schema = schema
        cls: Any = message_class(*split_schema(schema))
        self.parse: Any = cls.FromString
        self.summarise: Reader = reader_for(cls)


@cache
def decoder_for(schema: str) -> MessageDecoder:
    """Return the decoder of one schema; raises KeyError if the schema set has no such message."""
    return MessageDecoder(schema)
