"""Conversion of values to rows and back, by the field table.

The conversions are compiled, as those of dataclasses are, because a loop over the fields takes
twice as long. Fields whose encoding has no column of its own (bits, header lists, values with rows
of their own) are left to the callers.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Any, Generic, TypeVar

import msgspec

from a2a_proxy.model.fields import Encoding, Field, fields_of
from a2a_proxy.recording.read.rows import make_key, split_key
from a2a_proxy.recording.store.codec import (
    Column,
    pack_int,
    pack_json,
    pack_text,
    unpack_int,
    unpack_text,
)
from a2a_proxy.recording.store.columns import stored_fields
from a2a_proxy.recording.store.intern import Interner
from a2a_proxy.recording.store.row_types import absolute_time, declared_types, json_reader

_Value = TypeVar("_Value", bound=msgspec.Struct)

_PACKS = {
    Encoding.KEY: "make_key(session, {0})",
    Encoding.TIME: "{0} - started if {0} else None",
    Encoding.PEER_NUMBER: "None if {0} is None else pack_int({0})",
    Encoding.WORD: "word({0})",
    Encoding.IDENT: "ident({0})",
    Encoding.TEXT: "pack_text({0})",
    Encoding.LIST: "list_number({0}) if {0} else 0",
    Encoding.JSON: "None if {0} == default_{1} else pack_json({0})",
}
"""Conversion of a member `{0}`, whose name is `{1}`, to its column. Without an entry the column
holds the member."""
_UNPACKS = {
    Encoding.KEY: "split_key({0})[1]",
    Encoding.NUMBER: "type_{1}({0})",
    Encoding.TIME: "absolute_time(start, {0})",
    Encoding.PEER_NUMBER: "default_{1} if {0} is None else unpack_int({0})",
    Encoding.WORD: "words[{0}]",
    Encoding.IDENT: "idents[{0}]",
    Encoding.TEXT: "unpack_text({0})",
    Encoding.LIST: "decode_{1}(words[{0}])",
    Encoding.JSON: "default_{1} if {0} is None else decode_{1}({0})",
}
"""Conversion of a column `{0}` to its member, whose name is `{1}`."""


def insert_sql(table: str) -> str:
    """Return the statement that stores a row, from `INTO`."""
    return f"INTO {table} VALUES ({', '.join('?' * len(declared_types()[table]))})"


class RowPacker(Generic[_Value]):
    """Converts values of one kind to rows of one session."""

    def __init__(
        self,
        kind: type[_Value],
        session: int,
        started: int,
        words: Interner,
        idents: Interner,
        **special: Callable[[Any], Column],
    ) -> None:
        """`special`: converters of fields that the table does not decide."""
        fields = stored_fields(kind)
        known: dict[str, Any] = {"session": session, "started": started, "make_key": make_key}
        known |= {"word": words.row_number, "list_number": words.list_number}
        known |= {"ident": idents.row_number, "pack_int": pack_int}
        known |= {"pack_text": pack_text, "pack_json": pack_json}
        known |= {f"default_{field.name}": field.default for field in fields}
        known |= {f"special_{name}": convert for name, convert in special.items()}
        columns = (
            f"special_{field.name}(value.{field.name})"
            if field.name in special
            else _PACKS.get(field.encoding, "{0}").format(f"value.{field.name}", field.name)
            for field in fields
        )
        self.pack: Callable[[_Value], tuple[Column, ...]] = eval(
            f"lambda value: ({', '.join(columns)},)", known
        )
        """Returns the columns of a value."""
        self._ident_names = [f.name for f in fields if f.encoding is Encoding.IDENT]

    def idents_of(self, values: Iterable[_Value]) -> Iterator[str]:
        """Yield the identifiers of the values, so that the interner learns them at once."""
        return (getattr(value, name) for value in values for name in self._ident_names)


def row_unpacker(
    kind: type[_Value], words: Any, idents: Any, **special: Callable[[Any, int], Any]
) -> Callable[..., _Value]:
    """Return a function that builds a value from its columns, the start of the session (ns since
    the epoch), and members without a column.

    `words` and `idents` map row numbers to texts; `special` are converters of fields that the table
    does not decide.
    """
    fields = stored_fields(kind)
    known: dict[str, Any] = {"kind": kind, "words": words, "idents": idents, "split_key": split_key}
    known |= {"absolute_time": absolute_time, "unpack_int": unpack_int, "unpack_text": unpack_text}
    known |= {f"default_{field.name}": field.default for field in fields}
    known |= {f"type_{field.name}": field.type for field in fields}
    known |= {f"decode_{field.name}": json_reader(field.type) for field in fields}
    known |= {f"special_{name}": convert for name, convert in special.items()}
    places = {field.name: place for place, field in enumerate(fields)}
    members = (
        _unpack_expression(field, places[field.name], field.name in special)
        if field.name in places
        else f"more['{field.name}']"
        for field in fields_of(kind)
    )
    unpack: Callable[..., _Value] = eval(
        f"lambda row, start, **more: kind({', '.join(members)})", known
    )
    return unpack


def _unpack_expression(field: Field, place: int, special: bool) -> str:
    column = f"row[{place}]"
    if special:
        return f"special_{field.name}({column}, start)"
    if field.type is int and field.encoding is Encoding.NUMBER:
        return column
    expression = _UNPACKS.get(field.encoding, "{0}").format(column, field.name)
    is_enum = isinstance(field.type, type) and issubclass(field.type, StrEnum)
    return f"type_{field.name}({expression})" if is_enum else expression
