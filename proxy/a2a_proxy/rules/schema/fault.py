"""One thing that is wrong with a payload."""

from __future__ import annotations

from enum import Enum, auto

import msgspec

from a2a_proxy.model.finding import Severity


class FaultKind(Enum):
    """What is wrong; a rule each."""

    MISSING = auto()
    EMPTY_LIST = auto()
    ENUM = auto()
    ALTERNATIVES = auto()
    SNAKE_CASE = auto()
    TIMESTAMP = auto()
    BASE64 = auto()
    RANGE = auto()
    """Also another JSON type."""
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
    """The whole answer belongs to another line: nothing else is said about it."""


class SchemaFault(msgspec.Struct, frozen=True):
    """Where, and in which words."""

    wrong: FaultKind
    path: str
    """From the root of what the binding wraps."""
    told: str
    """One line, lower case: what stands there and what is expected."""
    value: str = ""
    severity: Severity | None = None
    """Where it is less grave than usual."""


def shown(value: object) -> str:
    """A value for a line of text: JSON-like, short."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value[:60]}"' + ("..." if len(value) > 60 else "")
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return "null" if value is None else str(value)[:60]
