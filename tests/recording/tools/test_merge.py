"""Several recordings merged into one: nothing lost, nothing twice, sources unchanged."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.multi_reader import MultiReader
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import make_key
from a2a_proxy.recording.tools.merge import UNENDED, merge_sessions, plan_merge
from a2a_proxy.recording.write.note_writer import NotePlace, write_note
from support_inspect import MS, frame
from support_recording import STARTED
from support_several import begin, call, pair

ROOT = Path(__file__).parents[3]
SAMPLES = [
    ROOT / "recordings" / f"{name}.a2a.jsonl"
    for name in ("generations", "sdk-1.x-grpc", "stdio", "live-2153")
]


def content(recording: Recording, session: int) -> list[object]:
    """Everything that a reader says of a session, but for ids of the file."""
    facts = recording.read_session(session)
    assert facts is not None
    exchanges = list(recording.read_exchanges(session))
    connections = [row.connection for row in recording.read_connections(session)]
    return [
        replace(facts, id=0, position=None, snapshot=None),
        connections,
        [row.exchange for row in exchanges],
        [[each.frame for each in recording.read_frames(row.key)] for row in exchanges],
        [
            [each.frame for each in recording.connection_frames(make_key(session, line.id))]
            for line in connections
        ],
        [row.task for row in recording.read_tasks(session)],
        [row.finding for row in recording.read_findings(session)],
        [row.note for row in recording.read_notes(session)],
        [row.segment for row in recording.read_segments(session)],
        [row.interruption for row in recording.read_interruptions(session)],
        [row.handoff for row in recording.read_handoffs(session)],
    ]


def by_uuid(recording: Recording) -> dict[str, list[object]]:
    return {row.facts.uuid: content(recording, row.id) for row in recording.read_sessions()}


def merged(out: Path, *sources: Path) -> dict[str, list[object]]:
    with MultiReader(sources) as several:
        merge_sessions(several, out)
    with Recording(out) as recording:
        assert recording.db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return by_uuid(recording)


def test_sessions_are_copied_unchanged(tmp_path: Path) -> None:
    """Of recordings and of cassettes: artifacts, blobs, findings, redaction marks, notes and
    segments too."""
    files = [*pair(tmp_path), *SAMPLES]
    write_note(files[0], NotePlace(1, 2, 1), STARTED, text="look here", bookmark=True)
    before: dict[str, list[object]] = {}
    for path in files:
        with open_recording_or_cassette(path) as recording:
            before.update(by_uuid(recording))

    assert merged(tmp_path / "out.a2a.db", *files) == before


def test_sessions_and_frames_are_in_the_order_of_their_times(tmp_path: Path) -> None:
    """As if the proxies had written into one file; names differ by session alone."""
    second, first = reversed(pair(tmp_path))
    merged(tmp_path / "out.a2a.db", second, first)

    with Recording(tmp_path / "out.a2a.db") as recording:
        assert [row.facts.upstreams for row in recording.read_sessions()] == [
            ("agent-1:8000",),
            ("agent-2:8000",),
        ]
        assert [(row.session, row.exchange.id) for row in recording.read_exchanges()] == [
            *((1, 1), (1, 2), (1, 3)),
            *((2, 1), (2, 2)),
        ]


def test_frames_of_overlapping_sessions_are_stored_by_time(tmp_path: Path) -> None:
    """A follower of the new file sees both conversations interleaved."""
    writers = [begin(tmp_path / f"{number}.a2a.db", number) for number in (1, 2)]
    for second in range(1, 701):
        call(writers[second % 2], second % 2 + 1, (second + 1) // 2, second)
    for writer in writers:
        writer.finish(STARTED + 2_000_000 * MS)
    merged(tmp_path / "out.a2a.db", tmp_path / "1.a2a.db", tmp_path / "2.a2a.db")

    with Recording(tmp_path / "out.a2a.db") as recording:
        sessions = [row.session for row in recording.frames_after(0, payloads=False)]
    assert len(sessions) == 1400
    assert set(sessions[:1000]) == {1, 2} == set(sessions[-400:])


def test_a_shared_payload_is_stored_once(tmp_path: Path) -> None:
    """By content."""
    big = b'{"a":"' + b"x" * 50_000 + b'"}'
    for number in (1, 2):
        writer = begin(tmp_path / f"{number}.a2a.db", number)
        writer.write([frame(1, 0, big)])
        writer.finish(STARTED)
    merged(tmp_path / "out.a2a.db", tmp_path / "1.a2a.db", tmp_path / "2.a2a.db")

    with Recording(tmp_path / "out.a2a.db") as recording:
        assert recording.db.execute("SELECT count(*) FROM blob").fetchone() == (1,)
        assert [row.frame.payload for row in recording.frames_after(0)] == [big, big]


def test_a_session_in_two_files_is_copied_from_the_more_complete_one(tmp_path: Path) -> None:
    """An older copy of a recording that went on adds nothing."""
    writer = begin(tmp_path / "live.a2a.db", 1)
    call(writer, 1, 1, 1)
    with MultiReader([tmp_path / "live.a2a.db"]) as several:
        (session,) = merge_sessions(several, tmp_path / "early.a2a.db")
        assert session.frames == 2
    call(writer, 1, 2, 2)
    writer.finish(STARTED + 5 * MS)

    files = tmp_path / "early.a2a.db", tmp_path / "live.a2a.db", tmp_path / "copy.a2a.db"
    shutil.copy(files[1], files[2])
    with MultiReader(files) as several:
        taken, left = plan_merge(several)
        assert [(each.member.name, each.frames) for each in taken] == [("live", 4)]
        assert [(each.member.name, each.better.name) for each in left] == [
            ("early", "live"),
            ("copy", "live"),
        ]
    (merged_session,) = merged(tmp_path / "out.a2a.db", *files).values()
    with Recording(files[1]) as recording:
        assert merged_session == content(recording, 1)


def test_an_open_session_is_merged_and_marked_incomplete(tmp_path: Path) -> None:
    """Nobody takes the copy for the session itself: it has ended, and is not whole."""
    writer = begin(tmp_path / "live.a2a.db", 1)
    call(writer, 1, 1, 1)
    with MultiReader([tmp_path / "live.a2a.db"]) as several:
        taken = merge_sessions(several, tmp_path / "out.a2a.db")
        call(writer, 1, 2, 2)
    assert [each.frames for each in taken] == [2]

    with Recording(tmp_path / "out.a2a.db") as recording:
        (session,) = recording.read_sessions()
        assert (session.ended, session.how, session.complete) == (0, "unclean", UNENDED)
        assert [row.exchange.id for row in recording.read_exchanges()] == [1]
    writer.finish(STARTED)


def test_a_source_is_read_as_one_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames written between counting and reading are left out, and none is missed."""
    writer = begin(tmp_path / "live.a2a.db", 1)
    call(writer, 1, 1, 1)
    planned = plan_merge

    def late(several: MultiReader) -> object:
        found = planned(several)
        call(writer, 1, 2, 2)
        return found

    monkeypatch.setattr("a2a_proxy.recording.tools.merge.plan_merge", late)
    with MultiReader([tmp_path / "live.a2a.db"]) as several:
        merge_sessions(several, tmp_path / "out.a2a.db")
        assert several.members[0].recording.count_rows().frames == 4
    with Recording(tmp_path / "out.a2a.db") as recording:
        assert recording.count_rows().frames == 2
        assert recording.count_rows().exchanges == 1


def test_existing_files_and_sources_are_not_overwritten(tmp_path: Path) -> None:
    """Nor a recording that another process has open; and no partial file is left."""
    first, second = pair(tmp_path)
    taken = tmp_path / "taken.a2a.db"
    shutil.copy(first, taken)
    files = sorted(tmp_path.iterdir())
    with MultiReader([first, second]) as several:
        with pytest.raises(RecordingError, match="exists"):
            merge_sessions(several, taken)
        with pytest.raises(RecordingError, match="is one of the recordings to merge"):
            merge_sessions(several, second, overwrite=True)
        (tmp_path / "letter.txt").write_text("no recording")
        with pytest.raises(RecordingError, match="is not a recording"):
            merge_sessions(several, tmp_path / "letter.txt", overwrite=True)
        (tmp_path / "letter.txt").unlink()
        with Recording(taken), pytest.raises(RecordingError, match="open in another program"):
            merge_sessions(several, taken, overwrite=True)
        merge_sessions(several, taken, overwrite=True)
    with Recording(taken) as recording:
        assert recording.count_rows().sessions == 2
    assert sorted(tmp_path.iterdir()) == files


def test_a_damaged_source_leaves_no_file(tmp_path: Path) -> None:
    """The error names it."""
    first, second = pair(tmp_path)
    with closing(sqlite3.connect(second)) as db:
        db.execute("UPDATE block SET data = x'00'")
        db.commit()
    with (
        MultiReader([first, second]) as several,
        pytest.raises(RecordingError, match="recording cannot be read"),
    ):
        merge_sessions(several, tmp_path / "out.a2a.db")
    assert not list(tmp_path.glob("*out*"))
