"""Notes and bookmarks as text and as JSON, for commands and screens."""

from a2a_inspect.data.references import format_place
from a2a_proxy.model.values import Note
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.write.note_writer import NotePlace


def note_mark(note: Note) -> str:
    """Return one character for a row: `◆` for a bookmark, `;` for a note alone."""
    return "◆" if note.bookmark else ";"


def note_words(note: Note) -> str:
    """Return `note: look here`, `bookmark: look here` or `bookmark`, in one line without control
    characters."""
    word = "bookmark" if note.bookmark else "note"
    return f"{word}: {make_visible(note.text)}" if note.text else word


def note_counts(recording: Recording, session: int) -> str:
    """Return the number of notes of a session: `2 notes, 1 bookmark`; empty without notes."""
    notes = [row.note for row in recording.read_notes(session)]
    counts = (
        (sum(bool(each.text) for each in notes), "note"),
        (sum(each.bookmark for each in notes), "bookmark"),
    )
    return ", ".join(text.format_count(count, what) for count, what in counts if count)


def note_object(session: int, note: Note) -> dict[str, object]:
    """Return a note as JSON with stable names."""
    return {
        "place": format_place(NotePlace(session, note.exchange, note.seq)),
        "session": session,
        "exchange": note.exchange or None,
        "seq": note.seq if note.seq >= 0 else None,
        "text": note.text,
        "bookmark": note.bookmark,
        "at": text.format_utc(note.at),
    }


class SessionNotes:
    """Notes of one session, by place."""

    def __init__(self, recording: Recording, session: int) -> None:
        self._session = session
        self._by_place = {
            (row.note.exchange, row.note.seq): row.note for row in recording.read_notes(session)
        }

    def line_at(self, exchange: int, seq: int = -1) -> list[str]:
        """Return the line about an exchange or frame; an empty list without a note."""
        note = self._by_place.get((exchange, seq))
        return [] if note is None else [note_words(note)]

    def list_objects(self, exchange: int) -> list[dict[str, object]]:
        """Return the notes of an exchange and its frames as JSON; of exchange 0 those of the
        session."""
        return [
            note_object(self._session, note)
            for (number, _), note in self._by_place.items()
            if number == exchange
        ]
