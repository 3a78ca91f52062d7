"""Writing of notes and bookmarks, each with its own connection and a short transaction.

A note may be written while a recorder writes to the same file: neither waits longer than one
transaction.
"""

import contextlib
import os
import sqlite3

import msgspec

from a2a_proxy.model.values import Note
from a2a_proxy.protocol.text import shell_line
from a2a_proxy.recording.cassette.file import is_cassette
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.rows import label_place, make_key
from a2a_proxy.recording.store.database import open_writable, transaction, translate_errors
from a2a_proxy.recording.store.file_header import check_writable
from a2a_proxy.recording.store.notes import store_notes

_SELECT_NOTE = "SELECT body, bookmark FROM note WHERE (session, exchange, seq) = (?, ?, ?)"


class NotePlace(msgspec.Struct, frozen=True):
    """The session, exchange or frame that a note is about."""

    session: int
    exchange: int = 0
    """0: the session itself."""
    seq: int = -1
    """-1: the whole exchange."""


def write_note(
    path: str | os.PathLike[str],
    place: NotePlace,
    at: int,
    *,
    text: str | None = None,
    bookmark: bool | None = None,
) -> Note | None:
    """Write a note, or set or clear a bookmark, and return the stored note.

    None leaves the text or the bookmark unchanged.

    A note without text and bookmark is deleted, and None is returned.

    Raises:
        RecordingError: the file is a cassette, is not writable, or has no such place. Then nothing
        was changed.
    """
    if is_cassette(path):
        command = shell_line("a2a-inspect", "cassette", "read", os.fspath(path), "NAME.a2a.db")
        raise RecordingError(
            f"{os.fspath(path)} is a cassette: notes can only be written to recordings",
            f"convert it to a recording first: {command}",
        )
    check_writable(path)
    with (
        contextlib.closing(open_writable(path, create=False)) as db,
        translate_errors(path),
        transaction(db),
    ):
        if missing := _find_missing(db, place):
            listing = shell_line("a2a-inspect", "ls", os.fspath(path))
            raise RecordingError(f"this recording has no {missing}", f"list its content: {listing}")
        return _change_note(db, place, at, text, bookmark)


def _change_note(
    db: sqlite3.Connection, place: NotePlace, at: int, text: str | None, bookmark: bool | None
) -> Note | None:
    where = (place.session, place.exchange, place.seq)
    before, marked = db.execute(_SELECT_NOTE, where).fetchone() or ("", 0)
    note = Note(
        before if text is None else text,
        at,
        place.exchange,
        place.seq,
        bool(marked) if bookmark is None else bookmark,
    )
    if not note.text and not note.bookmark:
        db.execute("DELETE FROM note WHERE (session, exchange, seq) = (?, ?, ?)", where)
        return None
    (started,) = db.execute("SELECT started FROM session WHERE id = ?", (place.session,)).fetchone()
    store_notes(db, place.session, started, [note])
    return note


def _find_missing(db: sqlite3.Connection, place: NotePlace) -> str:
    """Return the part of the place that the recording does not have, in words; empty if it has the
    place."""
    if not db.execute("SELECT 1 FROM session WHERE id = ?", (place.session,)).fetchone():
        return f"session {place.session}"
    number = make_key(place.session, place.exchange)
    if (
        place.exchange
        and not db.execute("SELECT 1 FROM exchange WHERE id = ?", (number,)).fetchone()
    ):
        return f"exchange {label_place(place.session, place.exchange)}"
    frame = "SELECT 1 FROM frame WHERE (session, exchange, seq) = (?, ?, ?)"
    if (
        place.seq >= 0
        and not db.execute(frame, (place.session, place.exchange, place.seq)).fetchone()
    ):
        return f"frame {label_place(place.session, place.exchange, place.seq)}"
    return ""
