"""Deletion of whole sessions from a recording, while other processes may write to it.

Transactions are short, so that a writer never waits long. The session is marked first: a session
that was deleted partially, by a process that died, is recognizable and can be deleted again.
"""

import contextlib
import os
import sqlite3

from a2a_proxy.recording.read.rows import key_bounds
from a2a_proxy.recording.store.database import open_writable, transaction, translate_errors

BEING_PRUNED = "being pruned"
"""`session.complete` of a session that is being deleted."""

_BATCH_ROWS = 20_000
"""Rows deleted in one transaction."""
_KEYED_TABLES = ("exchange", "connection", "segment", "interruption", "handoff")
"""Tables whose key contains the session."""
_SESSION_TABLES = ("note", "finding", "task", "frame", "block")
"""Tables with a column that names the session, in the order of deletion."""
_ROW_TABLES = {
    "piece": ("frame", "frame"),
    "artifact": ("task", "task"),
    "block_tail": ("block", "block"),
}
"""Column that names a row of another table, and that table, by table."""
_USED_IDENTS = """SELECT task FROM frame UNION SELECT task + context FROM frame
  UNION SELECT artifact FROM frame UNION SELECT rpc FROM frame
  UNION SELECT task FROM exchange UNION SELECT context FROM exchange
  UNION SELECT rpc FROM exchange UNION SELECT ident FROM task UNION SELECT context FROM task
  UNION SELECT ident FROM artifact UNION SELECT task FROM segment UNION SELECT context FROM segment
  UNION SELECT task FROM interruption UNION SELECT context FROM interruption
  UNION SELECT task FROM handoff UNION SELECT context FROM handoff
  UNION SELECT to_task FROM handoff"""
"""Every identifier that a row still names."""


def remove_sessions(path: str | os.PathLike[str], sessions: list[int]) -> None:
    """Delete these sessions, and return their space to the file system.

    Raises:
        RecordingError: the file cannot be written.
    """
    db = open_writable(path, create=False)
    try:
        with translate_errors(path):
            for session in sessions:
                _remove_session(db, session)
            # Delete identifiers and blobs that are no longer used. Writers cache those that they
            # have used, so they are deleted only if all sessions have ended.
            with transaction(db):
                if not db.execute(
                    "SELECT EXISTS (SELECT 1 FROM session WHERE how = '')"
                ).fetchone()[0]:
                    db.execute(f"DELETE FROM ident WHERE id NOT IN ({_USED_IDENTS})")
                    db.execute("DELETE FROM blob WHERE id NOT IN (SELECT blob FROM piece)")
            db.executescript("PRAGMA incremental_vacuum;")
    finally:
        with contextlib.suppress(sqlite3.Error):
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()


def _remove_session(db: sqlite3.Connection, session: int) -> None:
    db.execute("UPDATE session SET complete = ? WHERE id = ?", (BEING_PRUNED, session))
    for table in _SESSION_TABLES:
        first, last = db.execute(
            f"SELECT min(id), max(id) FROM {table} WHERE session = ?", (session,)
        ).fetchone()
        parts = [(part, column) for part, (column, owner) in _ROW_TABLES.items() if owner == table]
        for low in range(first or 0, (last or -1) + 1, _BATCH_ROWS):
            span = (low, low + _BATCH_ROWS, session)
            with transaction(db):
                for part, column in parts:
                    ids = f"SELECT id FROM {table} WHERE id >= ? AND id < ? AND +session = ?"
                    db.execute(f"DELETE FROM {part} WHERE {column} IN ({ids})", span)
                db.execute(f"DELETE FROM {table} WHERE id >= ? AND id < ? AND +session = ?", span)
    with transaction(db):
        for table in _KEYED_TABLES:
            db.execute(
                f"DELETE FROM {table} WHERE id >= ? AND id < ?",
                key_bounds(session),
            )
        db.execute("DELETE FROM session WHERE id = ?", (session,))
