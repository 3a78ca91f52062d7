"""Shape of an A2A object: its members, the required ones, and the mutually exclusive ones."""

from enum import Enum, auto

import msgspec


class JsonKind(Enum):
    """The JSON form of a member."""

    TEXT = auto()
    BOOL = auto()
    INT32 = auto()
    INT64 = auto()
    """A decimal string or a number. In A2A these are all generations, which have their own
    rules."""
    BYTES = auto()
    ENUM = auto()
    STAMP = auto()
    OBJECT = auto()
    """Any JSON object, defined by the peer."""
    ANY = auto()
    SHAPE = auto()
    MAP = auto()
    """An object with arbitrary names whose values have one shape; without a shape they are
    texts."""


class ShapeMember(msgspec.Struct, frozen=True):
    """One member of an object."""

    kind: JsonKind
    type_name: str = ""
    """Name of the shape or of the enum."""
    is_repeated: bool = False
    """Whether the member is a list."""


class ObjectShape(msgspec.Struct, frozen=True):
    """The shape of one object."""

    name: str
    members: dict[str, ShapeMember]
    required: frozenset[str] = frozenset()
    filled: frozenset[str] = frozenset()
    """Lists that must not be empty."""
    one_of: tuple[str, ...] = ()
    """Members of which exactly one must be set."""
    mark: str = ""
    """Required value of the member `kind`; empty if the object has no `kind`."""
    aliases: dict[str, str] = {}
    """Maps other spellings (snake_case) to the member."""


class Family(Enum):
    """Groups of dialects with the same spelling."""

    NEW = "1.0"
    OLD_PROTO = "0.3 in its protobuf form"
    OLD = "0.3"
    """0.2 and 0.3 in their JSON-RPC form."""
    OLDEST = "0.1"
    """0.1 and the vendor dialect: hardly anything is required."""


class Grammar(msgspec.Struct, frozen=True):
    """All shapes of one form of a dialect family."""

    family: Family
    shapes: dict[str, ObjectShape]
    enums: dict[str, tuple[str, ...]]
    """Values of each enum in the order of their numbers."""
    binary: bool = False
    """Whether the payload was protobuf: default values are absent, and types and spellings are
    always correct."""


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


def camel_case(name: str) -> str:
    """Return the JSON name of a protobuf field: `taskId` for `task_id`."""
    first, *rest = name.split("_")
    return first + "".join(each.capitalize() for each in rest)


def snake_case(name: str) -> str:
    """Return the protobuf name of a JSON member: `task_id` for `taskId`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def parse_shape(name: str, text: str, kind_mark: str = "") -> ObjectShape:
    """Parse a shape from its short form: `id! parts!*:Part timestamp:stamp`.

    `!` means required and `*` a list; without a type the member is a text; `map.Shape` is an object
    with values of that shape.
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
