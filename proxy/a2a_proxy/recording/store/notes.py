"""Reading and writing of notes and bookmarks in a recording's tables."""

import sqlite3
from collections.abc import Iterable

import msgspec

from a2a_proxy.model.values import Note
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.rows import NoteRow
from a2a_proxy.recording.store.row_types import DAMAGED_HINT

_PUT_NOTE = """INSERT INTO note (session, exchange, seq, at, bookmark, body)
  VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET at = excluded.at, bookmark = excluded.bookmark, body = excluded.body"""
_NOTES = """SELECT n.id, n.session, body, session.started + at, exchange, seq, bookmark
  FROM note n JOIN session ON session.id = n.session {} ORDER BY n.session, exchange, seq"""

_ROWS = list[tuple[int, int, str, int, int, int, int]]


def store_notes(db: sqlite3.Connection, session: int, started: int, notes: Iterable[Note]) -> None:
    """Store notes of a session that began at `started` (ns), within the caller's transaction."""
    rows = (
        (session, note.exchange, note.seq, note.at - started, note.bookmark, note.text)
        for note in notes
    )
    db.executemany(_PUT_NOTE, rows)


def read_notes(db: sqlite3.Connection, session: int | None = None) -> list[NoteRow]:
    """Return all notes, or the notes of one session, by session, exchange and frame."""
    of, fixed = ("", ()) if session is None else ("WHERE n.session = ?", (session,))
    try:
        rows = msgspec.convert(db.execute(_NOTES.format(of), fixed).fetchall(), _ROWS)
    except msgspec.ValidationError as wrong:
        raise RecordingError("the notes of the recording are not valid", DAMAGED_HINT) from wrong
    return [
        NoteRow(number, owner, Note(body, at, exchange, seq, bool(bookmark)))
        for number, owner, body, at, exchange, seq, bookmark in rows
    ]
