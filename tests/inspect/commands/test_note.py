"""`note`: notes at a place, and where they are shown."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from a2a_inspect.commands import ls, ls_several
from a2a_inspect.commands.note import NoteOptions, edit_notes
from a2a_inspect.commands.show import show_conversation
from a2a_inspect.commands.show_selection import ShowSelection as Shown
from a2a_inspect.data.recording_choice import split_words
from a2a_inspect.data.references import format_place, parse_reference, resolve_place
from a2a_proxy.model.errors import UserError
from a2a_proxy.recording.read.multi_reader import MultiReader
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.write.note_writer import NotePlace
from support_inspect import changes, exchange, request, sample, writer
from support_recording import STARTED

NOW = STARTED + 60_000_000_000


def note_output(
    path: Path,
    capsys: pytest.CaptureFixture[str],
    *words: str,
    bookmark: bool | None = None,
    delete: bool = False,
    as_json: bool = False,
) -> list[str]:
    """What one call of the command prints."""
    edit_notes(path, NoteOptions(words, bookmark, delete, as_json), NOW)
    return capsys.readouterr().out.splitlines()


def test_notes_are_written_listed_and_deleted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A session's place lists all that is noted in it, an exchange's that of its frames too."""
    path = sample(tmp_path / "a.db")
    assert note_output(path, capsys, "2.1", "why", "so", "late?") == [
        "#2.1        note: why so late?"
    ]
    assert note_output(path, capsys, "#2", bookmark=True) == ["#2          bookmark"]
    assert note_output(path, capsys, "1:", "a run\x1b[31m") == ["session 1   note: a run␛[31m"]
    everything = [
        "session 1   note: a run␛[31m",
        "#2          bookmark",
        "#2.1        note: why so late?",
    ]
    assert note_output(path, capsys) == note_output(path, capsys, "1:") == everything
    assert note_output(path, capsys, "2") == everything[1:]
    assert note_output(path, capsys, "2.1", delete=True) == []
    assert note_output(path, capsys, "2", bookmark=False) == []
    assert note_output(path, capsys) == everything[:1]


def second_session(path: Path) -> None:
    second = writer(path, 2)
    second.write([request(1)], changes=changes(exchange(1)))
    second.finish(NOW)


def listed(capsys: pytest.CaptureFixture[str], *paths: Path) -> list[str]:
    """What `ls` prints that tells of sessions and notes."""
    with MultiReader(paths) as several:
        if len(paths) > 1:
            ls_several.list_exchanges(several, as_json=False)
        else:
            ls.list_exchanges(several.members[0].recording, as_json=False)
    return [
        line for line in capsys.readouterr().out.splitlines() if "session" in line or "note" in line
    ]


def test_ls_marks_sessions_with_notes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of one session below it, of several beside each; a bookmark with a text is both."""
    path, other = sample(tmp_path / "a.db"), tmp_path / "b.db"
    assert listed(capsys, path) == []
    for place in ("2", "2.1"):
        note_output(path, capsys, place, "look")
    note_output(path, capsys, "2", bookmark=True)
    assert listed(capsys, path) == [f"2 notes, 1 bookmark; see a2a-inspect note {path}"]
    second_session(other)
    assert [line.endswith("  2 notes, 1 bookmark") for line in listed(capsys, path, other)] == [
        True,
        False,
    ]
    second_session(path)
    first, last = listed(capsys, path)
    assert (first.startswith("session 1, "), first.endswith(", 2 notes, 1 bookmark")) == (
        True,
        True,
    )
    assert (last.startswith("session 2, "), "note" in last) == (True, False)


def test_notes_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = sample(tmp_path / "a.db")
    (line,) = note_output(path, capsys, "2.1", "so", as_json=True)
    assert json.loads(line) == {
        "place": "1:2.1",
        "session": 1,
        "exchange": 2,
        "seq": 1,
        "text": "so",
        "bookmark": False,
        "at": "2027-01-15T08:01:00.000000000Z",
    }


def test_show_prints_notes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Under the session, the exchange and the frame; in JSON with the exchange."""
    path = sample(tmp_path / "a.db")
    for words in (("1:", "the run"), ("2", "the call"), ("2.1", "the frame")):
        note_output(path, capsys, *words)
    with Recording(path) as recording:
        show_conversation(recording, Shown(), as_json=False)
        lines = capsys.readouterr().out.splitlines()
        show_conversation(recording, Shown(), as_json=True)
        objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[1] == "  note: the run"
    call = next(at for at, line in enumerate(lines) if "note: the call" in line)
    assert "#2 " in lines[call - 2]
    assert "TASK_NOT_FOUND" in lines[call - 1]
    frame = next(at for at, line in enumerate(lines) if "note: the frame" in line)
    assert "<--" in lines[frame - 1]
    assert [[each["text"] for each in one["notes"]] for one in objects[:3]] == [
        [],
        ["the call", "the frame"],
        [],
    ]
    assert objects[3]["note"]["text"] == "the run"


@pytest.mark.parametrize(
    ("words", "more", "wrong"),
    [
        (("9", "x"), {}, " has no exchange 9; it has #1 to "),
        (("2.9", "x"), {}, " has no frame 2.9; it has #2.0 to "),
        (("over there", "x"), {}, "is not a place"),
        (("2", "x"), {"delete": True}, "takes a place and nothing else"),
        ((), {"bookmark": True}, "no place given"),
    ],
)
def test_contradictory_arguments_are_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    more: dict[str, bool],
    wrong: str,
) -> None:
    path = sample(tmp_path / "a.db")
    with pytest.raises(UserError, match=wrong):
        note_output(path, capsys, *words, **more)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM note").fetchone() == (0,)


def test_a_place_in_two_sessions_is_ambiguous(tmp_path: Path) -> None:
    """An exchange number in two sessions needs its session; a unique one does not."""
    path = sample(tmp_path / "a.db")
    second = writer(path, 2)
    second.write([request(1)], changes=changes(exchange(1)))
    second.finish(NOW)
    with Recording(path) as recording:
        assert resolve_place(recording, "2:1") == NotePlace(2, 1)
        assert format_place(resolve_place(recording, "3.2")) == "1:3.2"
        with pytest.raises(UserError, match="in several sessions") as wrong:
            resolve_place(recording, "1")
    assert wrong.value.hint == "choose one: #1:1 or #2:1"


@pytest.mark.parametrize("word", ["2", "#2", "1:2", "2.5", "1:2.5", "1:"])
def test_references_are_not_taken_for_recordings(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not taken for the name of a recording, unless a file is called so."""
    monkeypatch.chdir(tmp_path)
    assert parse_reference(word) is not None
    assert split_words((word, "x")) == (None, (word, "x"))
    Path(word).touch()
    assert split_words((word, "x")) == (Path(word), ("x",))


@pytest.mark.parametrize("word", ["", "#", "a.db", "./2", "2.5.1", "-2", "2."])
def test_other_words_are_no_references(word: str) -> None:
    assert not parse_reference(word) is not None
