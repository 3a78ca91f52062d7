"""Notes and bookmarks: written beside a recorder, kept by cassettes, deleted with their session."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from a2a_proxy.model.values import Note
from a2a_proxy.recording.cassette.file import (
    open_recording_or_cassette,
    read_cassette,
    write_cassette,
)
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.tools.prune import remove_sessions
from a2a_proxy.recording.write.note_writer import NotePlace, write_note
from support_inspect import changes, exchange, live, request, sample, status, writer
from support_recording import STARTED

AT = STARTED + 5_000_000_000


def noted(path: Path) -> dict[tuple[int, int, int], Note]:
    """What is written in a recording, by place."""
    with open_recording_or_cassette(path) as recording:
        return {
            (row.session, row.note.exchange, row.note.seq): row.note
            for row in recording.read_notes()
        }


def test_a_place_has_one_note(tmp_path: Path) -> None:
    """Text and bookmark change separately; a note with neither is deleted."""
    path = sample(tmp_path / "a.db")
    assert write_note(path, NotePlace(1, 2, 1), AT, text="look") == Note("look", AT, 2, 1)
    write_note(path, NotePlace(1, 2, 1), AT + 1, bookmark=True)
    write_note(path, NotePlace(1, 2), AT, text="the error")
    write_note(path, NotePlace(1), AT, bookmark=True)
    assert noted(path) == {
        (1, 0, -1): Note("", AT, bookmark=True),
        (1, 2, -1): Note("the error", AT, 2),
        (1, 2, 1): Note("look", AT + 1, 2, 1, True),
    }
    assert write_note(path, NotePlace(1, 2, 1), AT + 2, text="") == Note("", AT + 2, 2, 1, True)
    assert write_note(path, NotePlace(1, 2, 1), AT + 3, bookmark=False) is None
    assert noted(path).keys() == {(1, 0, -1), (1, 2, -1)}


@pytest.mark.parametrize("place", [NotePlace(2), NotePlace(1, 9), NotePlace(1, 2, 7)])
def test_a_note_on_a_missing_place_is_an_error(tmp_path: Path, place: NotePlace) -> None:
    path = sample(tmp_path / "a.db")
    with pytest.raises(RecordingError, match=r"has no (session|exchange|frame)") as wrong:
        write_note(path, place, AT, text="look")
    assert wrong.value.hint == f"list its content: a2a-inspect ls {path}"
    assert noted(path) == {}


def test_notes_are_written_beside_a_recorder(tmp_path: Path) -> None:
    """Its connection stays open; it reads nothing of the notes and goes on."""
    path = tmp_path / "a.db"
    recorder = writer(path)
    recorder.write([request(1)], changes=changes(live(1)))
    write_note(path, NotePlace(1, 1), AT, text="still open")
    recorder.write([status(1, 1, "Thinking")], changes=changes(exchange(1)))
    write_note(path, NotePlace(1, 1, 1), AT, bookmark=True)
    recorder.finish(AT)
    assert noted(path).keys() == {(1, 1, -1), (1, 1, 1)}
    with Recording(path) as recording:
        assert recording.count_rows().frames == 2


def test_a_cassette_keeps_notes(tmp_path: Path) -> None:
    """Exported and imported with their session; notes of sessions left out are dropped."""
    path = sample(tmp_path / "a.db")
    second = writer(path, 2)
    second.write([request(1)], changes=changes(exchange(1)))
    second.finish(AT)
    write_note(path, NotePlace(1, 2, 1), AT, text="line\none \x1b", bookmark=True)
    write_note(path, NotePlace(2, 1), AT, text="the other")
    with Recording(path) as recording:
        write_cassette(recording, tmp_path / "all.a2a.jsonl")
        write_cassette(recording, tmp_path / "two.a2a.jsonl", sessions=[2])
    assert noted(tmp_path / "all.a2a.jsonl") == noted(path)
    assert noted(tmp_path / "two.a2a.jsonl") == {(1, 1, -1): Note("the other", AT, 1)}
    read_cassette(tmp_path / "all.a2a.jsonl", tmp_path / "b.db")
    assert noted(tmp_path / "b.db") == noted(path)


def test_a_cassette_takes_no_notes(tmp_path: Path) -> None:
    path = tmp_path / "a.a2a.jsonl"
    with Recording(sample(tmp_path / "a.db")) as recording:
        write_cassette(recording, path)
    before = path.read_bytes()
    with pytest.raises(
        RecordingError, match="is a cassette: notes can only be written to recordings"
    ) as wrong:
        write_note(path, NotePlace(1), AT, text="x")
    assert f"a2a-inspect cassette read {path} NAME.a2a.db" in wrong.value.hint
    assert path.read_bytes() == before


def test_an_unwritable_recording_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One clear error, for any user: root may write everything, so the check is patched here."""
    path = sample(tmp_path / "a.db")
    before = path.read_bytes()
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(RecordingError, match="permission denied"):
        write_note(path, NotePlace(1), AT, text="x")
    assert path.read_bytes() == before


def test_notes_are_deleted_with_their_session(tmp_path: Path) -> None:
    path = sample(tmp_path / "a.db")
    second = writer(path, 2)
    second.finish(AT)
    write_note(path, NotePlace(1, 2, 1), AT, text="goes")
    write_note(path, NotePlace(2), AT, text="stays")
    remove_sessions(path, [1])
    assert noted(path) == {(2, 0, -1): Note("stays", AT)}
