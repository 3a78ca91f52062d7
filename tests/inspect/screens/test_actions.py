"""Actions on the row under the cursor, by keys: notes, bookmarks, copies, exports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from a2a_inspect.dialogs.copy_menu import FORMS as OFFERED
from a2a_inspect.formats.copying.forms import FORMS
from a2a_inspect.formats.export import unused_path
from a2a_proxy.recording.cassette.file import open_recording_or_cassette, write_cassette
from a2a_proxy.recording.read.reader import Recording
from support_inspect import sample
from support_screen import SMALL, looking


async def test_notes_and_bookmarks(tmp_path: Path) -> None:
    """A sign in the row, the words in the title, all of it in the recording; an empty note is
    deleted."""
    path = sample(tmp_path / "r.db")
    async with looking(path, SMALL) as person:
        await person.sees("OPERATION")
        await person.types("g", "g", "b")
        await person.sees("◆1")
        await person.types("enter", "j", "semicolon")
        await person.sees("Note at #1.1")
        await person.types(*"why?", "enter")
        await person.sees(";1")
        await person.types("enter")
        await person.sees("note: why?")
        with Recording(path) as recording:
            noted = {
                (row.note.exchange, row.note.seq): (row.note.text, row.note.bookmark)
                for row in recording.read_notes()
            }
        assert noted == {(1, -1): ("", True), (1, 1): ("why?", False)}
        await person.types("semicolon")
        await person.sees("Note at #1.1")
        await person.types("ctrl+u", "enter")
        await person.until(lambda: person.misses("note: why?"), "the end of the note")


async def test_read_only_sources_refuse_notes(tmp_path: Path) -> None:
    """A cassette, and a screen that is read-only: each says so."""
    cassette = tmp_path / "r.a2a.jsonl"
    with Recording(sample(tmp_path / "r.db")) as recording:
        write_cassette(recording, cassette)
    async with looking(cassette) as person:
        await person.sees("OPERATION")
        await person.types("b")
        await person.sees("is a cassette")
        person.app.read_only = True
        for key in ("x", "semicolon"):
            await person.types(key)
        await person.sees("read-only: an export", "read-only: a note")


async def test_copying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The menu names missing forms; the chosen form is in the clipboard, and the method is
    reported."""
    monkeypatch.setenv("SSH_TTY", "1")
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    async with looking(sample(tmp_path / "r.db"), SMALL) as person:
        await person.sees("OPERATION")
        await person.types("g", "g", "y")
        await person.sees("Copy #1 as", "grpcurl  (it was not gRPC", "p  Python")
        await person.types("g")
        await person.await_notice("not as grpcurl")
        await person.types("p")
        await person.await_notice("copied with")
        await person.await_notice("OSC 52")
        assert person.app.clipboard.startswith('"""SendStreamingMessage as it was recorded')
        await person.types("enter", "y")
        await person.sees("Copy #1.0 as")
        await person.types("j")
        await person.until(lambda: person.app.clipboard.startswith("{"), "JSON")
        assert "Question 1" in json.dumps(json.loads(person.app.clipboard))


async def test_exporting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is marked, what matches, everything; to a new file in the current folder, whose name is
    told."""
    monkeypatch.chdir(tmp_path)
    async with looking(sample(tmp_path / "r.db")) as person:
        await person.sees("OPERATION")
        await person.types("g", "g", "m", "j", "m", "x")
        await person.sees("2 marked exchanges", "the whole recording", str(tmp_path)[:40])
        assert person.misses("matches of")
        await person.types("s")
        await person.await_notice("2 exchanges written to")
        await person.types("slash", *"err", "enter")
        await person.until(lambda: person.exchanges.total == 1, "one that matches")
        await person.types("x")
        await person.sees("matches of err")
        await person.types("F")
        await person.sees("Export as", "1  jsonl")
        await person.types("1")
        await person.await_notice("1 exchange written to")
    with open_recording_or_cassette(tmp_path / "r-selected.a2a.jsonl") as part:
        assert [row.exchange.id for row in part.read_exchanges()] == [1, 2]
    with open_recording_or_cassette(tmp_path / "r-filtered.a2a.jsonl") as part:
        assert [row.exchange.id for row in part.read_exchanges()] == [2]


async def test_actions_apply_to_the_row_under_the_cursor(tmp_path: Path) -> None:
    """Also where keys come faster than the panes below follow."""
    async with looking(sample(tmp_path / "r.db"), SMALL) as person:
        await person.sees("OPERATION")
        await person.types("g", "g", "j", "j", "k", "y")
        await person.sees("Copy #2 as")


def test_the_copy_menu_lists_every_form() -> None:
    """In the same order."""
    assert [name for _, name, _, _ in OFFERED] == list(FORMS)


def test_unused_file_names_are_numbered(tmp_path: Path) -> None:
    """Counted on where it is taken."""
    first = unused_path(tmp_path, Path("/x/run.a2a.db"), "all", ".a2a.jsonl")
    assert first == tmp_path / "run-all.a2a.jsonl"
    first.touch()
    assert (
        unused_path(tmp_path, Path("run.a2a.jsonl"), "all", ".a2a.jsonl").name
        == "run-all-2.a2a.jsonl"
    )
    assert unused_path(tmp_path, Path("plain"), "all", ".jsonl").name == "plain-all.jsonl"
