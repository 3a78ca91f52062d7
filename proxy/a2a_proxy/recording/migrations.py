"""Schema changes in order, each applied once to a file. A new version of the tables is one more function at the end."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING

from a2a_proxy.recording.schema import statements

if TYPE_CHECKING:
    from sqlite_utils import Database

_STRICT_SINCE = (3, 37)


def m001_tables(db: sqlite3.Connection) -> None:
    """The first tables."""
    script = statements(strict=sqlite3.sqlite_version_info >= _STRICT_SINCE)
    for statement in script.split(";\n"):  # `executescript` would end the migration's transaction
        if statement.strip():
            db.execute(statement)


STEPS = (m001_tables,)
"""In order; the number of a step is the `user_version` after it."""


def apply(db: sqlite3.Connection) -> None:
    """Bring a file to the newest schema, and write down in it what was done; what is already there is left alone."""
    from sqlite_utils import Database, Migrations

    migrations = Migrations("a2a-proxy")
    for version, step in enumerate(STEPS, 1):
        migrations(name=step.__name__)(_versioned(step, version))
    migrations.apply(Database(db))


def create(db: sqlite3.Connection) -> None:
    """The newest schema in an empty private database: nobody will ask what was done to it."""
    for step in STEPS:
        step(db)


def _versioned(step: Callable[[sqlite3.Connection], None], version: int) -> Callable[[Database], None]:
    def migrate(db: Database) -> None:
        step(db.conn)
        db.conn.execute(f"PRAGMA user_version = {version}")

    return migrate
