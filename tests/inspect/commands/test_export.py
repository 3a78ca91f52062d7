"""`export`: the whole recording or matching exchanges, to a file or a pipe; never over an existing
file."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from a2a_inspect.commands.export import ExportOptions, export_recording
from a2a_inspect.data.redacted_view import RedactionOptions
from a2a_inspect.formats.export import new_file
from a2a_inspect.formats.registry import FORMATS
from a2a_proxy.model.errors import UserError
from a2a_proxy.recording.cassette.file import (
    open_recording_or_cassette,
    read_cassette,
    write_cassette,
)
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.write.note_writer import NotePlace, write_note
from support_inspect import sample
from support_recording import STARTED

RECORDINGS = Path(__file__).parents[3] / "recordings"
DEMO = RECORDINGS / "demo.a2a.jsonl"


@pytest.mark.parametrize("name", ["demo", "stdio", "live-2153", "sdk-1.x-grpc"])
def test_a_full_export_equals_the_cassette(name: str, tmp_path: Path) -> None:
    """Byte for byte."""
    path = RECORDINGS / f"{name}.a2a.jsonl"
    export_recording(ExportOptions(path), tmp_path / "out.a2a.jsonl", "jsonl")
    assert (tmp_path / "out.a2a.jsonl").read_bytes() == path.read_bytes()


def test_matching_exchanges_are_exported_whole(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of an exchange that matches all frames are there, with its task, findings and connection; of
    others nothing."""
    with open_recording_or_cassette(DEMO) as recording:
        task = next(
            row.exchange.task_id
            for row in recording.read_exchanges()
            if row.exchange.operation == "SendMessage"
        )
    target = tmp_path / "part.a2a.jsonl"
    export_recording(ExportOptions(DEMO, f"task:{task}"), target, "jsonl")
    with open_recording_or_cassette(target) as part, open_recording_or_cassette(DEMO) as whole:
        kept = [row.exchange for row in part.read_exchanges()]
        card = next(
            row.exchange
            for row in whole.read_exchanges()
            if row.exchange.operation == "GetAgentCard"
        )
        assert kept == [card, *(row.exchange for row in whole.find_exchanges(f"task:{task}"))]
        for one in kept:
            key = 1 << 40 | one.id
            assert [row.frame for row in part.read_frames(key)] == [
                row.frame for row in whole.read_frames(key)
            ]
        assert [row.task.task_id for row in part.read_tasks()] == [task]
        assert {number for row in part.read_tasks() for number in row.task.exchanges} == {
            one.id for one in kept[1:]
        }
        assert {row.connection.id for row in part.read_connections()} == {
            one.connection for one in kept
        }
        assert (
            part.read_sessions()[0].complete == f"only what matches task:{task} and the agent card"
        )
        found = [
            row.finding
            for row in whole.read_findings()
            if row.finding.exchange in {one.id for one in kept}
        ]
        assert [row.finding for row in part.read_findings()] == found
    assert (
        capfd.readouterr().err
        == f"{len(kept)} exchange{'s' * (len(kept) > 1)} written to {target}\n"
    )


def test_only_a_cassette_file_has_the_agent_card_too(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A replay of it would answer 404 to its clients. In other formats, and on a terminal, only the
    matches are."""
    for form, target in (
        ("jsonl", tmp_path / "a.a2a.jsonl"),
        ("har", tmp_path / "a.har"),
        ("jsonl", None),
    ):
        export_recording(ExportOptions(DEMO, "op:SendMessage"), target, form)
        written = capfd.readouterr().out if target is None else target.read_text()
        assert ("agent-card.json" in written) == (target is not None and form == "jsonl")


def test_a_missing_folder_is_named_with_the_command_that_creates_it(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        export_recording(ExportOptions(DEMO), tmp_path / "no" / "such" / "x.a2a.jsonl", "jsonl")
    assert caught.value.hint == f"create the folder first: mkdir -p {tmp_path}/no/such"


@pytest.mark.parametrize("form", ["jsonl", "har"])
def test_the_filter_is_not_exported_under_a_redaction_policy(form: str, tmp_path: Path) -> None:
    """A filter may name a person whom the policy redacts; without a policy the filter is in the
    file."""
    path, where = sample(tmp_path / "a.db"), 'text:"ann@example.org" OR op:SendStreamingMessage'
    export_recording(ExportOptions(path, where), tmp_path / "told", form)
    assert b"ann@example.org" in (tmp_path / "told").read_bytes()
    export_recording(
        ExportOptions(path, where, RedactionOptions(("pii",))), tmp_path / "clean", form
    )
    assert b"what was chosen" in (tmp_path / "clean").read_bytes()
    assert b"ann@example.org" not in (tmp_path / "clean").read_bytes()


def test_notes_are_exported(tmp_path: Path) -> None:
    """Notes of the session and of exported rows."""
    path = sample(tmp_path / "a.db")
    for place in (NotePlace(1), NotePlace(1, 2), NotePlace(1, 2, 1), NotePlace(1, 3)):
        write_note(path, place, STARTED, text="here")
    export_recording(ExportOptions(path, "err"), tmp_path / "part.a2a.jsonl", "jsonl")
    with open_recording_or_cassette(tmp_path / "part.a2a.jsonl") as part:
        assert [(row.note.exchange, row.note.seq) for row in part.read_notes()] == [
            (0, -1),
            (2, -1),
            (2, 1),
        ]


def test_a_part_becomes_a_recording(tmp_path: Path) -> None:
    """And a cassette again, the same one."""
    export_recording(ExportOptions(DEMO, "op:SendMessage"), tmp_path / "part.a2a.jsonl", "jsonl")
    read_cassette(tmp_path / "part.a2a.jsonl", tmp_path / "part.db")
    with Recording(tmp_path / "part.db") as recording:
        write_cassette(recording, tmp_path / "again.a2a.jsonl")
    assert (tmp_path / "again.a2a.jsonl").read_bytes() == (tmp_path / "part.a2a.jsonl").read_bytes()


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_is_never_replaced(form: str, tmp_path: Path) -> None:
    target = tmp_path / "there"
    target.write_text("mine")
    with pytest.raises(UserError, match="exists"):
        export_recording(ExportOptions(DEMO), target, form)
    assert target.read_text() == "mine"


def test_a_file_created_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    """Somebody else has taken the name while this was written."""
    target = tmp_path / "x.a2a.jsonl"
    file = new_file(target)
    file.__enter__().write(b"ours")
    target.write_text("theirs")
    with pytest.raises(RecordingError, match="exists"):
        file.__exit__(None, None, None)
    assert [(path, path.read_text()) for path in tmp_path.iterdir()] == [(target, "theirs")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_killed_export_leaves_no_partial_file(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ctrl-C; afterwards the signal does what it did before."""
    before = signal.getsignal(number)
    monkeypatch.setattr(
        "a2a_inspect.formats.jsonl.write_jsonl", lambda *_: signal.raise_signal(number)
    )
    signal.signal(number, signal.SIG_DFL)
    try:
        with pytest.raises(KeyboardInterrupt):
            export_recording(ExportOptions(DEMO), tmp_path / "x", "jsonl")
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", FORMATS)
def test_a_missing_folder_is_an_error(form: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot write"):
        export_recording(ExportOptions(DEMO), tmp_path / "no" / "x.a2a.jsonl", form)


def test_an_export_without_matches_is_an_error(tmp_path: Path) -> None:
    """An error, and no file."""
    for where, message in (("task:nothing", "nothing matches"), ("tsak:x", "unknown field")):
        with pytest.raises(UserError, match=message) as wrong:
            export_recording(ExportOptions(DEMO, where), tmp_path / "x", "jsonl")
        if where == "task:nothing":
            assert wrong.value.hint == f"list the exchanges: a2a-inspect ls {DEMO}"
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("form", FORMATS)
def test_a_damaged_recording_leaves_no_file_behind(form: str, tmp_path: Path) -> None:
    """What cannot be finished is not begun under its name."""
    path = sample(tmp_path / "a.db")
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE block SET data = zeroblob(9)")
        db.execute("DELETE FROM block_tail")
        db.commit()
    with pytest.raises(UserError):
        export_recording(ExportOptions(path), tmp_path / "x.a2a.jsonl", form)
    assert not (tmp_path / "x.a2a.jsonl").exists()


def test_a_dash_is_standard_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """As for `check`; no file is called so."""
    monkeypatch.chdir(tmp_path)
    export_recording(ExportOptions(DEMO), Path("-"), "jsonl")
    assert capfdbinary.readouterr().out == DEMO.read_bytes()
    assert list(tmp_path.iterdir()) == []
