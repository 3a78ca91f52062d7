"""The field table: how each field of a stored value is stored, written, shown and redacted.

The row of a field is the annotation beside its name:

    started: Time
    extensions: Annotated[PeerWord, Row(json=None, label="extensions")] = ""

Columns and views of recordings, lines of cassettes and archives, JSON output, the facts on the
screen and the redactor's lists are derived from it. A field without annotation has the encoding of
its type.
"""

from enum import Enum, IntEnum, StrEnum, auto
from functools import cache
from typing import Annotated, Any, get_args, get_origin

import msgspec


class Encoding(Enum):
    """What a field holds, and with it the encoding of its column."""

    KEY = auto()
    """The number within the session; the column holds the session's number too."""
    NUMBER = auto()
    """A count, a flag, an enumeration or a reference: it fits in 64 bits."""
    PEER_NUMBER = auto()
    """A number that a peer chose, of any size."""
    STATE = auto()
    """A `TaskState` number, or any other number that a peer sent."""
    TIME = auto()
    """ns since the epoch, 0 if it has not happened; stored relative to the session's start."""
    WORD = auto()
    """One of few texts, interned."""
    TEXT = auto()
    IDENT = auto()
    """An identifier, interned."""
    LIST = auto()
    """One of few lists of texts or numbers, interned."""
    JSON = auto()
    HEADERS = auto()
    """In the payload blocks, with the other header lists of the value."""
    BITS = auto()
    """In `flags`, with the other bits of the value."""
    NONE = auto()
    """Not in the row of the value."""


class Row(msgspec.Struct, frozen=True):
    """The row of a field in the table, besides its encoding."""

    column: str = ""
    """Name of the column, if it is not the field's."""
    json: str | None = ""
    """Key in JSON output, if it is not the field's; None if the field is not part of it."""
    null: bool = False
    """Whether JSON output has null instead of the default."""
    label: str = ""
    """Name for people; empty if the value is shown together with others, or not at all."""
    redacted: bool = False
    """Whether it is a text that may hold a secret, which the redactor replaces."""


_REDACTED = Row(redacted=True)
Key = Annotated[int, Encoding.KEY]
PeerNumber = Annotated[int, Encoding.PEER_NUMBER]
StateNumber = Annotated[int, Encoding.STATE]
Time = Annotated[int, Encoding.TIME]
Word = Annotated[str, Encoding.WORD]
PeerWord = Annotated[str, Encoding.WORD, _REDACTED]
"""A word that a peer chose."""
Text = Annotated[str, Encoding.TEXT, _REDACTED]
Ident = Annotated[str, Encoding.IDENT, _REDACTED]


class Field(msgspec.Struct, frozen=True):
    """A stored field, with all that its row says."""

    name: str
    type: Any
    """The type without annotations."""
    default: Any
    """`msgspec.NODEFAULT` if it is required."""
    encoding: Encoding
    row: Row

    @property
    def column(self) -> str:
        """Name of its column."""
        return self.row.column or self.name

    @property
    def key(self) -> str:
        """Key in JSON output."""
        return self.row.json or self.name


@cache
def fields_of(kind: type[msgspec.Struct]) -> tuple[Field, ...]:
    """Return the rows of the table for a Struct, in the order of its fields."""
    return tuple(map(_read_row, msgspec.structs.fields(kind)))


@cache
def redacted_names(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the names of the texts that the redactor replaces."""
    return tuple(field.name for field in fields_of(kind) if field.row.redacted)


def _read_row(field: msgspec.structs.FieldInfo) -> Field:
    kind, *notes = get_args(field.type) if get_origin(field.type) is Annotated else (field.type,)
    encodings = [note for note in notes if isinstance(note, Encoding)]
    rows = [note for note in notes if isinstance(note, Row)]
    row = rows[-1] if rows else Row()
    made = field.default_factory is not msgspec.NODEFAULT
    return Field(
        field.name,
        kind,
        field.default_factory() if made else field.default,
        encodings[-1] if encodings else _encoding_of(kind),
        msgspec.structs.replace(row, redacted=any(each.redacted for each in rows)),
    )


def _encoding_of(kind: Any) -> Encoding:
    """Return the encoding of a type that has no annotation."""
    if kind in (int, bool) or (isinstance(kind, type) and issubclass(kind, IntEnum)):
        return Encoding.NUMBER
    if kind is str or (isinstance(kind, type) and issubclass(kind, StrEnum)):
        return Encoding.WORD
    return Encoding.JSON
