"""Schema migrations in order, each applied once to a file. A new schema version adds one function at the end."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING

from a2a_proxy.recording.store import note_schema, segment_schema
from a2a_proxy.recording.store.codec import pack_json, unpack_int, unpack_json
from a2a_proxy.recording.store.rule_titles import store_titles
from a2a_proxy.recording.store.schema import (
    RULES,
    SINCE_2,
    SINCE_6,
    SINCE_7,
    SINCE_9,
    SINCE_10,
    SINCE_11,
    SINCE_12,
    SINCE_13,
    VIEW_NAMES,
    VIEWS,
    adapt_script,
    table_script,
)
from a2a_proxy.recording.store.version_1 import generation_ranges

if TYPE_CHECKING:
    from sqlite_utils import Database

_STRICT_SINCE = (3, 37)


def m001_tables(db: sqlite3.Connection) -> None:
    """Create the first tables."""
    _run_script(db, table_script(strict=_supports_strict()))


def m002_generations(db: sqlite3.Connection) -> None:
    """Add the columns on generations to exchanges, and the generations seen to tasks."""
    _add_columns(db, SINCE_2)
    numbered = db.execute("SELECT id, generation, missed FROM task WHERE generation <> 0").fetchall()
    for task, generation, missed in numbered:
        seen = pack_json(generation_ranges(unpack_int(generation), unpack_json(missed)))
        db.execute("UPDATE task SET seen = ?, missed = '[]', support = 1 WHERE id = ?", (seen, task))


def m003_segments(db: sqlite3.Connection) -> None:
    """Add segments, interruptions and hand-offs."""
    _run_script(db, adapt_script(segment_schema.TABLES, strict=_supports_strict()))


def m004_notes(db: sqlite3.Connection) -> None:
    """Replace the table of notes: notes and bookmarks, each with its position."""
    _run_script(db, adapt_script(note_schema.TABLE, strict=_supports_strict()))


def m005_findings_by_place(db: sqlite3.Connection) -> None:
    """Index the findings by their exchange and frame."""
    db.execute("CREATE INDEX finding_place ON finding (session, exchange, seq)")


def m006_redaction(db: sqlite3.Connection) -> None:
    """Add the column that describes which traffic was not recorded."""
    _add_columns(db, SINCE_6)


def m007_traces_that_go_on(db: sqlite3.Connection) -> None:
    """Add the column for the trace context that the proxy sent to the agent."""
    _add_columns(db, SINCE_7)


def m008_rule_titles(db: sqlite3.Connection) -> None:
    """Add the titles of the rules that findings name, for the view `findings`."""
    _run_script(db, adapt_script(RULES, strict=_supports_strict()))
    store_titles(db, {number for (number,) in db.execute("SELECT DISTINCT rule FROM finding")})


def m009_client_processes(db: sqlite3.Connection) -> None:
    """Add the column for the process of a connection's client."""
    _add_columns(db, SINCE_9)


def m010_agent_names(db: sqlite3.Connection) -> None:
    """Add the column for the names of the agents."""
    _add_columns(db, SINCE_10)


def m011_tls_handshakes(db: sqlite3.Connection) -> None:
    """Add the column for the TLS handshakes of a connection."""
    _add_columns(db, SINCE_11)


def m012_signed_cards(db: sqlite3.Connection) -> None:
    """Add the column for the signatures of cards."""
    _add_columns(db, SINCE_12)


def m013_faults(db: sqlite3.Connection) -> None:
    """Keep the faults that the proxy made on purpose."""
    _add_columns(db, SINCE_13)


STEPS = (
    m001_tables,
    m002_generations,
    m003_segments,
    m004_notes,
    m005_findings_by_place,
    m006_redaction,
    m007_traces_that_go_on,
    m008_rule_titles,
    m009_client_processes,
    m010_agent_names,
    m011_tls_handshakes,
    m012_signed_cards,
    m013_faults,
)
"""In order; the number of a step is the `user_version` after it."""


def apply_migrations(db: sqlite3.Connection) -> None:
    """Migrate a file to the newest schema and record the applied migrations in it. Steps applied before are skipped."""
    from sqlite_utils import Database, Migrations

    migrations = Migrations("a2a-proxy")
    for version, step in enumerate(STEPS, 1):
        migrations(name=step.__name__)(_with_version(step, version))
    migrations.apply(Database(db))


def create_schema(db: sqlite3.Connection) -> None:
    """Create the newest schema in an empty private database, without a record of the migrations."""
    for step in STEPS:
        step(db)
    _make_views(db)


def _with_version(step: Callable[[sqlite3.Connection], None], version: int) -> Callable[[Database], None]:
    def migrate(db: Database) -> None:
        for name in VIEW_NAMES:  # a table cannot be changed while a view refers to it
            db.conn.execute(f"DROP VIEW IF EXISTS {name}")
        step(db.conn)
        if version == len(STEPS):
            _make_views(db.conn)
        db.conn.execute(f"PRAGMA user_version = {version}")

    return migrate


def _make_views(db: sqlite3.Connection) -> None:
    _run_script(db, VIEWS)
    _run_script(db, segment_schema.VIEWS)
    _run_script(db, note_schema.VIEW)


def _add_columns(db: sqlite3.Connection, since: dict[str, dict[str, str]]) -> None:
    for table, columns in since.items():
        for name, kind in columns.items():
            db.execute(adapt_script(f"ALTER TABLE {table} ADD COLUMN {name} {kind}", strict=_supports_strict()))


def _supports_strict() -> bool:
    return sqlite3.sqlite_version_info >= _STRICT_SINCE


def _run_script(db: sqlite3.Connection, script: str) -> None:
    for statement in script.split(";\n"):  # `executescript` would end the migration's transaction
        if statement.strip():
            db.execute(statement)
