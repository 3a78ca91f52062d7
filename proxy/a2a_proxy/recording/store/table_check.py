"""Are a file's tables what they seem? A name may be that of a view, columns may be worked out when they are read, which
can take for ever, and tables without types may hold anything. No row of them is read here.
"""

from __future__ import annotations

import os
import sqlite3

from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.store.row_types import declared_types

_FIND_STRANGE_TABLE = "SELECT name FROM sqlite_master WHERE name IN ({}) AND (type != 'table' OR rootpage = 0) LIMIT 1"
_HINT = "it was not made by a2a-proxy, or changed since; this one was left as it is"


def check_tables(file: str | os.PathLike[str], db: sqlite3.Connection, *, writing: bool = False) -> None:
    """Raises RecordingError where a table is none, or works out its columns; for who writes, also where there are
    triggers: they would run."""
    names = tuple(declared_types())
    strange = db.execute(_FIND_STRANGE_TABLE.format(", ".join("?" * len(names))), names).fetchone()
    if strange is None:
        strange = next((name for name in names if _has_generated_columns(db, name)), None)
    if strange is not None:
        raise RecordingError(f"{file} is not a recording: what it calls its tables are none", _HINT)
    if writing and db.execute("SELECT 1 FROM sqlite_master WHERE type = 'trigger'").fetchone():
        raise RecordingError(f"{file} has triggers, which would run when it is written", _HINT)


def has_strict_types(db: sqlite3.Connection) -> bool:
    """SQLite itself sees to it that no column holds another type than it should."""
    try:
        strict = dict(db.execute("SELECT name, strict FROM pragma_table_list WHERE schema = 'main'"))
    except sqlite3.OperationalError:  # SQLite before 3.37
        return False
    return all(strict.get(name, True) for name in declared_types())


def _has_generated_columns(db: sqlite3.Connection, table: str) -> bool:
    return any(column[6] for column in db.execute(f"PRAGMA main.table_xinfo({table})"))
