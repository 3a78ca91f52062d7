"""`a2a-inspect note`: write, list and delete notes and bookmarks of a recording."""

from pathlib import Path

import msgspec

from a2a_inspect.data.notes import note_object, note_words
from a2a_inspect.data.recording_choice import open_recording, resolve_recording
from a2a_inspect.data.references import resolve_place
from a2a_proxy.model.errors import UserError
from a2a_proxy.model.values import Note
from a2a_proxy.present.output import print_json, print_line, print_note
from a2a_proxy.recording.read.rows import NoteRow, label_place
from a2a_proxy.recording.write.note_writer import NotePlace, write_note


class NoteOptions(msgspec.Struct, frozen=True):
    """Options of the note command."""

    words: tuple[str, ...]
    """The place, then the words of the note; empty: list the notes."""
    bookmark: bool | None
    """True sets the bookmark, False removes it, None leaves it unchanged."""
    delete: bool
    as_json: bool


def edit_notes(path: Path | None, options: NoteOptions, now: int) -> None:
    """Write or delete a note or bookmark if the options say so, else list the notes; `now` in ns
    since the epoch.

    Raises:
        UserError: the place does not exist, the recording cannot be written, or the options
        contradict each other.
    """
    text = " ".join(options.words[1:])
    if options.delete and (text or options.bookmark is not None):
        raise UserError("--delete takes a place and nothing else", "write a note, or delete it")
    if not options.words and (options.delete or options.bookmark is not None):
        raise UserError("no place given", "name one: a2a-inspect note RECORDING 2 --bookmark")
    if not text and not options.delete and options.bookmark is None:
        _list_notes(path, options)
        return
    file = resolve_recording(path)
    with open_recording(file) as recording:
        place = resolve_place(recording, options.words[0])
    text_now = "" if options.delete else text or None
    bookmark = False if options.delete else options.bookmark
    note = write_note(file, place, now, text=text_now, bookmark=bookmark)
    _print_notes([] if note is None else [(place.session, note)], place, as_json=options.as_json)


def _list_notes(path: Path | None, options: NoteOptions) -> None:
    with open_recording(path) as recording:
        place = resolve_place(recording, options.words[0]) if options.words else None
        rows = [
            (row.session, row.note)
            for row in recording.read_notes()
            if place is None or _is_within_place(row, place)
        ]
    _print_notes(rows, place, as_json=options.as_json)


def _print_notes(notes: list[tuple[int, Note]], place: NotePlace | None, *, as_json: bool) -> None:
    """Print notes, each with its session."""
    for session, each in notes:
        if as_json:
            print_json(note_object(session, each))
        else:
            print_line(f"{label_place(session, each.exchange, each.seq):10}  {note_words(each)}")
    if not notes:
        at = "" if place is None else f" at {label_place(place.session, place.exchange, place.seq)}"
        print_note(f"no note{at}" if at else "no notes")


def _is_within_place(row: NoteRow, place: NotePlace) -> bool:
    """Return whether the note is about this place or a part of it."""
    if row.session != place.session or (place.exchange and row.note.exchange != place.exchange):
        return False
    return place.seq < 0 or row.note.seq == place.seq
