"""Checks of a file's table definitions, without reading rows.

A table's name may belong to a view, columns may be computed when they are read (which can take
unbounded time), and tables without strict types may hold any value.
"""

import os
import sqlite3

from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.store.row_types import declared_types

_FIND_STRANGE_TABLE = (
    "SELECT name FROM sqlite_master WHERE name IN ({}) AND (type != 'table' OR rootpage = 0) LIMIT "
    "1"
)
_HINT = "it was not written by a2a-proxy, or was changed since; the file was not changed now"


def check_tables(
    file: str | os.PathLike[str], db: sqlite3.Connection, *, writing: bool = False
) -> None:
    """Check the tables of a file.

    Raises RecordingError if a table is a view or has computed columns; with `writing` also if the
    file has triggers, because they would run.
    """
    names = tuple(declared_types())
    strange = db.execute(_FIND_STRANGE_TABLE.format(", ".join("?" * len(names))), names).fetchone()
    if strange is None:
        strange = next(
            (
                name
                for name in names
                if any(column[6] for column in db.execute(f"PRAGMA main.table_xinfo({name})"))
            ),
            None,
        )
    if strange is not None:
        raise RecordingError(
            f"{file} is not a recording: one of its tables is a view or has computed columns", _HINT
        )
    if writing and db.execute("SELECT 1 FROM sqlite_master WHERE type = 'trigger'").fetchone():
        raise RecordingError(f"{file} has triggers, which would run when it is written", _HINT)


def has_strict_types(db: sqlite3.Connection) -> bool:
    """Whether SQLite itself enforces the type of every column."""
    try:
        strict = dict(
            db.execute("SELECT name, strict FROM pragma_table_list WHERE schema = 'main'")
        )
    except sqlite3.OperationalError:  # SQLite before 3.37
        return False
    return all(strict.get(name, True) for name in declared_types())
