"""Notes of a cassette that is recorded again: where they are placed, and which are dropped with a
message."""

from __future__ import annotations

from pathlib import Path

from a2a_proxy.recording.cassette.exporter import Selection
from a2a_proxy.recording.cassette.file import (
    open_recording_or_cassette,
    read_cassette,
    write_cassette,
)
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import make_key
from a2a_proxy.recording.write.note_writer import NotePlace, write_note
from a2a_proxy.testing.teardown import migrate_notes, replace_cassette

LIVE = Path(__file__).parents[2] / "recordings" / "live-bidi.a2a.jsonl"


def test_a_pinned_gate_survives(tmp_path: Path) -> None:
    """Also if its call has another number now; notes without a frame are reported, the others are
    kept."""
    noted, cassette = tmp_path / "noted.a2a.db", tmp_path / "c.a2a.jsonl"
    read_cassette(LIVE, noted)
    with Recording(noted) as recording:
        calls = list(recording.read_exchanges())
        bidi = next(row for row in calls if row.exchange.live_payload)
        gone = next(row for row in calls if row.key != bidi.key)
        frames = [each.frame for each in recording.read_frames(bidi.key, payloads=False)]
        started = recording.read_sessions()[0].facts.started
    number = bidi.exchange.id
    asked = max(frame.seq for frame in frames[:-3] if frame.direction == frames[0].direction)
    line = next(
        frame.seq
        for frame in frames
        if frame.seq > asked and frame.direction != frames[0].direction
    )
    write_note(
        noted, NotePlace(1, number, line), started + 7, text=f"gate: after #{number}.{asked}"
    )
    write_note(noted, NotePlace(1, number), started + 8, bookmark=True)
    write_note(noted, NotePlace(1, gone.exchange.id), started + 9, text="never again")
    write_note(noted, NotePlace(1), started + 10, text="of the session")
    with Recording(noted) as recording:
        write_cassette(recording, cassette)
        before = {(each.note.exchange, each.note.seq): each.note for each in recording.read_notes()}

    anew = tmp_path / "anew.a2a.jsonl"
    with open_recording_or_cassette(LIVE) as recording:
        wanted = {row.key for row in recording.read_exchanges()} - {gone.key}
        write_cassette(recording, anew, selection=Selection(recording, wanted, "all but one"))
    now = tmp_path / "now.a2a.db"
    read_cassette(anew, now)
    assert replace_cassette(now, cassette) == [f"#{gone.exchange.id}: never again"]
    with open_recording_or_cassette(cassette) as recording:
        after = {(each.note.exchange, each.note.seq): each.note for each in recording.read_notes()}
    assert after == {
        place: note for place, note in before.items() if place != (gone.exchange.id, -1)
    }
    assert (number, line) in after


def test_an_unreadable_cassette_is_replaced(tmp_path: Path) -> None:
    """To record it again is what mends it."""
    cassette, now = tmp_path / "c.a2a.jsonl", tmp_path / "now.a2a.db"
    cassette.write_bytes(LIVE.read_bytes()[:3000])
    read_cassette(LIVE, now)
    assert replace_cassette(now, cassette) == []
    assert cassette.read_bytes() == LIVE.read_bytes()


def test_a_note_follows_its_frame(tmp_path: Path) -> None:
    """An agent that now speaks gRPC says the same in other frames."""
    noted, now = tmp_path / "noted.a2a.db", tmp_path / "now.a2a.db"
    for binding, made in (("jsonrpc", noted), ("grpc", now)):
        part = tmp_path / f"{binding}.a2a.jsonl"
        with open_recording_or_cassette(
            LIVE.with_name(f"sdk-1.x-{binding}.a2a.jsonl")
        ) as recording:
            write_cassette(
                recording, part, selection=Selection(recording, {make_key(1, 6)}, "one call")
            )
        read_cassette(part, made)
    write_note(noted, NotePlace(1, 6, 3), 7, text="gate: after #6.2")
    assert migrate_notes(noted, now) == []
    with Recording(now) as recording:
        [row] = recording.read_notes()
    assert (row.note.exchange, row.note.seq, row.note.text) == (6, 4, "gate: after #6.3")
