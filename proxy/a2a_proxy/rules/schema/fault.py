"""One schema fault of a payload."""

from enum import Enum, auto

import msgspec

from a2a_proxy.model.values import Severity


class FaultKind(Enum):
    """Kind of fault; each kind has its own rule."""

    MISSING = auto()
    EMPTY_LIST = auto()
    ENUM = auto()
    ALTERNATIVES = auto()
    SNAKE_CASE = auto()
    TIMESTAMP = auto()
    BASE64 = auto()
    RANGE = auto()
    """A number out of range, or another JSON type."""
    ROLE = auto()
    UNKNOWN = auto()
    NOT_OBJECT = auto()
    MEDIA = auto()
    FILE = auto()
    UNMARKED = auto()
    NULL = auto()
    LARGE = auto()
    REMOVED = auto()
    OTHER_ENUM = auto()
    FOREIGN = auto()
    """The whole answer belongs to another dialect; nothing else is reported about it."""


class SchemaFault(msgspec.Struct, frozen=True):
    """Place and description of a fault."""

    wrong: FaultKind
    path: str
    """Path from the root of the content inside the binding's envelope."""
    told: str
    """One line in lower case: the value found and the expected one."""
    value: str = ""
    severity: Severity | None = None
    """Set if this variant has another severity than the rule."""


def format_value(value: object) -> str:
    """Return a value for a line of text, JSON-like and shortened."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value[:60]}"' + ("..." if len(value) > 60 else "")
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return "null" if value is None else str(value)[:60]
