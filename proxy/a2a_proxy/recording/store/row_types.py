"""Type checks of rows. A file may be damaged or malicious, so no column is trusted to hold its
type.

The expected types are those of this program's schema, whatever the tables of the file declare.
Checking a row costs a microsecond, because combinations of types are cached.
"""

import functools
import json
import re
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec

from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.store.schema import TABLES

DAMAGED_HINT = "the file is damaged; what can be saved: sqlite3 FILE .recover"
ROW_ERRORS = (
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    msgspec.MsgspecError,
)
"""Errors that decoding raises on values of the wrong type or content."""
_MAX_CACHED_ROWS = 4096
"""Combinations of types that are cached for a table; an intact file has about ten."""
_TYPES: dict[str, set[type]] = {
    "INTEGER": {int},
    "TEXT": {str},
    "BLOB": {bytes},
    "ANY": {int, str, bytes},
}

_COLUMN = re.compile(r'"?([a-z_0-9]+)"? (INTEGER|TEXT|BLOB|ANY)\b')

Row = tuple[Any, ...]
_P = ParamSpec("_P")
_Self = TypeVar("_Self")
_Value = TypeVar("_Value")
_Reader = Callable[Concatenate[_Self, Row, _P], _Value]


def check_row(table: str) -> Callable[[_Reader[_Self, _P, _Value]], _Reader[_Self, _P, _Value]]:
    """Make a method that builds a value from a row of this table raise RecordingError for invalid
    rows."""
    columns, known = tuple(declared_types()[table].values()), set[tuple[type, ...]]()

    def decorate(make: _Reader[_Self, _P, _Value]) -> _Reader[_Self, _P, _Value]:
        def make_row(self: _Self, row: Row, /, *args: _P.args, **more: _P.kwargs) -> _Value:
            try:
                types = tuple(map(type, row))
                if types not in known:
                    for allowed, found in zip(columns, types, strict=True):
                        if found not in allowed:
                            raise TypeError(found.__name__)
                    if len(known) < _MAX_CACHED_ROWS:
                        known.add(types)
                return make(self, row, *args, **more)
            except ROW_ERRORS as wrong:
                place = next(iter(row), None)
                raise RecordingError(
                    f"row {place!r} of table {table} is not valid", DAMAGED_HINT
                ) from wrong

        functools.update_wrapper(make_row, make)
        return make_row

    return decorate


def json_reader(kind: Any) -> Callable[[str | None], Any]:
    """Return a function that decodes JSON of `pack_json` to a value of this type.

    NULL and the empty text are the empty list.

    It raises one of the errors that `check_row` expects.
    """
    decoder = msgspec.json.Decoder(kind)

    def read(text: str | None) -> Any:
        try:
            return decoder.decode(text or "[]")
        except msgspec.DecodeError:  # msgspec rejects lone surrogates
            return msgspec.convert(json.loads(text or "[]"), kind)

    return read


def check_time(at: int) -> int:
    """Return `at`, in ns since the epoch. Raises ValueError: it does not fit in the 63 bits of a
    recording."""
    if not 0 <= at < 1 << 63:
        raise ValueError("a time is before 1970 or after 2262")
    return at


def absolute_time(zero: int, at: int | None) -> int:
    """Return the time of a column that is relative to `zero`, in ns since the epoch; 0 for NULL.
    Raises ValueError: `check_time`."""
    return 0 if at is None else check_time(zero + at)


@functools.cache
def declared_types() -> dict[str, dict[str, frozenset[type]]]:
    """Return the types that each column of each table may hold, in their order."""
    return {
        name: {
            match[1]: _column_types(part)
            for part in map(str.strip, body.split(","))
            if (match := _COLUMN.match(part))
        }
        for name, body in re.findall(r"CREATE TABLE (\w+) \((.*?)\) STRICT", TABLES, re.DOTALL)
    }


def _column_types(column: str) -> frozenset[type]:
    kind = column.split()[1]
    never_null = "NOT NULL" in column or "PRIMARY KEY" in column
    return frozenset(_TYPES[kind] if never_null else _TYPES[kind] | {type(None)})
