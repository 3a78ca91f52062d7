"""Columns of the values that have a row of their own, by the field table: their declarations, and
their SQL in views."""

from enum import IntEnum
from functools import cache

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.fields import Encoding, Field, fields_of
from a2a_proxy.recording.store.codec import pack_json

_UNSTORED = (Encoding.NONE, Encoding.BITS, Encoding.HEADERS)
"""Encodings without a column of the field's own."""
_TYPES = {
    Encoding.KEY: "INTEGER PRIMARY KEY",
    Encoding.PEER_NUMBER: "ANY",
    Encoding.TEXT: "ANY",
    Encoding.JSON: "TEXT",
}
STATE_LABELS = {state.value: state.label for state in TaskState}
"""Names of task states by their numbers."""


@cache
def stored_fields(kind: type[msgspec.Struct]) -> tuple[Field, ...]:
    """Return the fields that have a column, in the order of the columns."""
    return tuple(field for field in fields_of(kind) if field.encoding not in _UNSTORED)


def columns_sql(kind: type[msgspec.Struct]) -> str:
    """Return the declarations of the columns."""
    return ",\n  ".join(map(_column_sql, stored_fields(kind)))


def _column_sql(field: Field) -> str:
    never_null = field.encoding not in (Encoding.KEY, Encoding.JSON) and not (
        field.default is None or (field.encoding is Encoding.TIME and field.default == 0)
    )
    words = (f'"{field.column}"', _TYPES.get(field.encoding, "INTEGER"), "NOT NULL" * never_null)
    return " ".join(filter(None, words))


def view_sql(kind: type[msgspec.Struct], table: str) -> str:
    """Return the columns of a view of rows of `table`, which is joined with `session`; the key is
    left out."""
    fields = (field for field in stored_fields(kind) if field.encoding is not Encoding.KEY)
    return ", ".join(_expression_sql(field, table) for field in fields)


def _expression_sql(field: Field, table: str) -> str:
    column = f'{table}."{field.column}"'
    if field.encoding in (Encoding.WORD, Encoding.LIST):
        column = text_sql(column)
    elif field.encoding is Encoding.IDENT:
        column = ident_sql(column)
    elif field.encoding is Encoding.TIME:
        column = f"session.started + {column}"
    elif field.encoding is Encoding.STATE:
        column = enum_sql(column, STATE_LABELS)
    elif field.encoding is Encoding.JSON and field.default is not None:
        column = f"coalesce({column}, '{pack_json(field.default)}')"
    elif isinstance(field.type, type) and issubclass(field.type, IntEnum):
        column = enum_sql(column, lower_names(field.type))
    return column if column == f'{table}."{field.name}"' else f'{column} AS "{field.name}"'


def text_sql(column: str) -> str:
    """Return the SQL for an interned text."""
    return f"(SELECT value FROM text WHERE id = {column})"


def ident_sql(column: str) -> str:
    """Return the SQL for an interned identifier."""
    return (
        f"CASE WHEN {column} < 0 THEN -1 - {column} ELSE (SELECT value FROM ident_text i WHERE "
        f"i.id = {column}) END"
    )


def enum_sql(column: str, names: dict[int, str]) -> str:
    """Return the SQL for the name of a stored number: NULL for 0, the number itself if it has no
    name."""
    cases = " ".join(f"WHEN {number} THEN '{name}'" for number, name in names.items() if number)
    return f"CASE {column} WHEN 0 THEN NULL {cases} ELSE {column} END"


def lower_names(kind: type[IntEnum]) -> dict[int, str]:
    """Return the names of an enumeration in lower case by their numbers."""
    return {each.value: each.name.lower() for each in kind}
