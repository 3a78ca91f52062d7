"""How a recording becomes a script, and when it is refused."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from a2a_proxy.recording.cassette.file import open_recording_or_cassette, read_cassette
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import make_key
from a2a_proxy.recording.write.note_writer import NotePlace, write_note
from a2a_proxy.replay.core.script import LineKind, ScriptSide
from a2a_proxy.replay.load import load_script
from support_replay import SAMPLES, sample


def copy(name: str, folder: Path, **changes: str) -> Path:
    """A sample as a recording, with some words in the place of others."""
    text = next(each for each in SAMPLES if each.name == f"{name}.a2a.jsonl").read_text()
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    cassette, path = folder / "edited.a2a.jsonl", folder / f"{name}.a2a.db"
    cassette.write_text(text)
    read_cassette(cassette, path, verify=False)
    return path


def changed(path: Path, *statements: str) -> Recording:
    with sqlite3.connect(path) as db:
        for each in statements:
            db.execute(each)
    db.close()
    return Recording(path)


def test_a_call_in_canonical_form() -> None:
    script = sample("demo")
    assert [call.operation for call in script.calls] == [
        *(
            "SendStreamingMessage",
            "SendMessage",
            "SendMessage",
            "GetTask",
            "SendStreamingMessage",
            "GetTask",
        )
    ]
    assert [call.operation for call in script.cards] == ["GetAgentCard"]
    rest = script.calls[3]
    assert rest.request == {"id": "9fd084a2-bcb5-4df3-b657-a3d7ec83f7a7"}
    assert [line.what for line in rest.lines] == [LineKind.ERROR, LineKind.END]
    assert rest.status == 404
    grpc = script.calls[4]
    assert [line.place for line in grpc.lines] == [f"#6.{number}" for number in range(2, 9)]
    assert grpc.lines[-1].status == 0
    assert list(grpc.lines[2].value) == ["artifactUpdate"]


def test_a_cancelled_call_ends_with_the_cancel() -> None:
    cancelled = next(call for call in sample("live-bidi").calls if call.place == "#5")
    assert [(line.side, line.what) for line in cancelled.lines][-1] == (
        ScriptSide.CLIENT,
        LineKind.RESET,
    )


def test_redacted_headers_are_not_sent() -> None:
    for path in SAMPLES:
        for call in sample(path.name.removesuffix(".a2a.jsonl")).calls:
            assert not any(b"redacted-" in value for _, value in call.answer_headers)


def test_missing_sessions_and_agents_are_refused() -> None:
    with open_recording_or_cassette(SAMPLES[0]) as recording:
        with pytest.raises(RecordingError, match="has no session 9"):
            load_script(recording, session=9)
        with pytest.raises(RecordingError, match="has no call to the agent nobody:1") as wrong:
            load_script(recording, agent="nobody:1")
        assert wrong.value.hint.startswith("its agents are: 127.0.0.1:")


def test_an_incomplete_capture_serves_its_complete_calls(tmp_path: Path) -> None:
    path = copy("demo", tmp_path)
    with changed(
        path, "UPDATE session SET complete = 'the proxy was killed; complete until noon'"
    ) as recording:
        script = load_script(recording)
        assert (len(script.calls), script.missing) == (
            6,
            "the proxy was killed; complete until noon",
        )
    with changed(
        path, "UPDATE session SET complete = complete || '; only 3 and what that needs'"
    ) as recording:
        assert load_script(recording).missing == "the proxy was killed; complete until noon"
    with changed(path, "UPDATE session SET complete = 'only 3 and what that needs'") as recording:
        assert load_script(recording).missing == ""
    with changed(path, "UPDATE session SET complete = '', ended = NULL") as recording:
        assert load_script(recording).missing == "the session has no end"


def test_a_call_open_at_the_end_is_refused_alone(tmp_path: Path) -> None:
    path = copy("demo", tmp_path)
    statements = (
        f"UPDATE exchange SET closed = NULL, how = 0 WHERE id = {make_key(1, 2)}",
        "DELETE FROM frame WHERE exchange = 2 AND seq > 3",
    )
    with changed(path, *statements) as recording:
        refused = {
            call.place: call.refusal for call in load_script(recording).calls if call.refusal
        }
        assert refused == {"#2": "it was not captured to its end"}
        call = load_script(recording, allow_incomplete=True).calls[0]
    assert not call.refusal
    assert [line.what for line in call.lines] == [LineKind.MESSAGE] * 3 + [LineKind.CUT]
    assert call.lines[-1].note == "the recording ends here"


def test_a_recording_without_a_complete_call_is_refused(tmp_path: Path) -> None:
    path = copy("demo", tmp_path)
    with (
        changed(path, "UPDATE exchange SET closed = NULL, how = 0") as recording,
        pytest.raises(
            RecordingError, match="has no call that can be replayed: #2: it was not captured"
        ) as wrong,
    ):
        load_script(recording)
    assert "--allow-incomplete" in wrong.value.hint


def test_calls_without_payloads_are_not_served(tmp_path: Path) -> None:
    with (
        changed(
            copy("demo", tmp_path), """UPDATE session SET redaction = '["metadata-only"]'"""
        ) as recording,
        pytest.raises(RecordingError, match="its payloads were not recorded"),
    ):
        load_script(recording)


def test_an_author_pins_a_gate_by_a_note(tmp_path: Path) -> None:
    path = copy("live-bidi", tmp_path)
    write_note(path, NotePlace(1, 3, 10), 1, text="gate: after #3.9")
    with Recording(path) as recording:
        call = next(call for call in load_script(recording).calls if call.place == "#3")
    assert {line.number: line.after for line in call.lines if line.after >= 0} == {10: 9}


LABEL = "redacted-0123456789ab"


def test_only_a_call_with_an_unknown_redaction_label_is_refused(tmp_path: Path) -> None:
    with Recording(copy("demo", tmp_path, Morning=LABEL)) as recording:
        refused = {
            call.place: call.refusal for call in load_script(recording).calls if call.refusal
        }
        assert refused == dict.fromkeys(
            ("#2", "#6", "#7"),
            "it would deliver a redaction label in place of "
            f"a credential that no client sent before: {LABEL}",
        )
        assert not any(call.refusal for call in load_script(recording, allow_redacted=True).calls)


def test_a_redaction_label_sent_by_the_client_is_accepted(tmp_path: Path) -> None:
    """The agent repeats a value of the client: the current client supplies it."""
    with Recording(copy("demo", tmp_path, Lisbon=LABEL, Morning=LABEL, Porto=LABEL)) as recording:
        assert load_script(recording).calls
