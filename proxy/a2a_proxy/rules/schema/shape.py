"""What an A2A object may look like: its members, which of them it must have, which exclude each other."""

from __future__ import annotations

from enum import Enum, auto

import msgspec


class JsonKind(Enum):
    """The JSON form of a member."""

    TEXT = auto()
    BOOL = auto()
    INT32 = auto()
    INT64 = auto()
    """A decimal string or a number. All of A2A's are generations, which have rules of their own."""
    BYTES = auto()
    ENUM = auto()
    STAMP = auto()
    OBJECT = auto()
    """Any JSON object: the peer's own."""
    ANY = auto()
    SHAPE = auto()
    MAP = auto()
    """An object with names of the peer's choosing, all values of one shape (or of none, then they are texts)."""


class ShapeMember(msgspec.Struct, frozen=True):
    """One member of an object."""

    kind: JsonKind
    type_name: str = ""
    """Name of the shape or of the enum."""
    is_repeated: bool = False
    """A list of these."""


class ObjectShape(msgspec.Struct, frozen=True):
    """One object."""

    name: str
    members: dict[str, ShapeMember]
    required: frozenset[str] = frozenset()
    filled: frozenset[str] = frozenset()
    """Lists that must have an element."""
    one_of: tuple[str, ...] = ()
    """Exactly one of these must be there."""
    mark: str = ""
    """What the member `kind` must say; empty where the object has none."""
    aliases: dict[str, str] = {}
    """Other spellings (snake_case) -> member."""


class Family(Enum):
    """Lines that spell things alike."""

    NEW = "1.0"
    OLD_PROTO = "0.3 in its protobuf form"
    OLD = "0.3"
    """0.2 and 0.3 as the JSON-RPC objects are written."""
    OLDEST = "0.1"
    """0.1 and the vendor dialect: anything goes, little is required."""
    CANDIDATE = "1.0-rc"


class Grammar(msgspec.Struct, frozen=True):
    """All shapes of one form of one line."""

    family: Family
    shapes: dict[str, ObjectShape]
    enums: dict[str, tuple[str, ...]]
    """Name of an enum -> its values in the order of their numbers."""
    binary: bool = False
    """The payload was protobuf: what is default is absent, types and spellings are right by nature."""


_KIND_NAMES = {
    "text": JsonKind.TEXT,
    "bool": JsonKind.BOOL,
    "int": JsonKind.INT32,
    "int64": JsonKind.INT64,
    "bytes": JsonKind.BYTES,
    "stamp": JsonKind.STAMP,
    "object": JsonKind.OBJECT,
    "any": JsonKind.ANY,
    "map": JsonKind.MAP,
    "TaskState": JsonKind.ENUM,
    "Role": JsonKind.ENUM,
}


def parse_shape(name: str, text: str, kind_mark: str = "") -> ObjectShape:
    """A shape from its short form: `id! parts!*:Part timestamp:stamp`.

    `!` is required, `*` a list, no type text, `map.Shape` an object with values of that shape.
    """
    members: dict[str, ShapeMember] = {}
    required: set[str] = set()
    for word in text.split():
        head, _, of = word.partition(":")
        label = head.rstrip("!*")
        of, _, values = of.partition(".")
        kind = _KIND_NAMES.get(of or "text", JsonKind.SHAPE)
        inner = values or (of if kind in (JsonKind.SHAPE, JsonKind.ENUM) else "")
        members[label] = ShapeMember(kind, inner, "*" in head)
        if "!" in head:
            required.add(label)
    return ObjectShape(name, members, frozenset(required), mark=kind_mark)
