"""Several recordings copied into one: order, numbers, notes and sessions; each row once."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from a2a_inspect.data.joined.fill import JoinProcess
from a2a_proxy.model.values import Finding, Severity
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.joined.numbers import file_of
from a2a_proxy.recording.read.multi_reader import MultiReader
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.tools.merge import merge_sessions
from a2a_proxy.recording.tools.prune import remove_sessions
from a2a_proxy.recording.write.note_writer import NotePlace, write_note
from a2a_proxy.recording.write.writer import Writer
from support_inspect import MS, TASK, changes, exchange, live, status
from support_recording import STARTED, facts
from support_several import OTHER, begin, call, pair

ROOT = Path(__file__).parents[3]


_UUID = "00000000-0000-0000-0000-0000000000ff"


def filling(tmp_path: Path, *files: Path) -> JoinProcess:
    """Of these into `joined`, in this process."""
    writer = Writer(tmp_path / "joined", facts(255, started=STARTED))
    writer.open()
    writer.close()
    return JoinProcess(str(tmp_path / "joined"), _UUID, [str(path) for path in files])


@contextmanager
def joined_demo(tmp_path: Path) -> Iterator[Recording]:
    with Recording(tmp_path / "joined") as recording:
        yield recording


def test_calls_are_ordered_by_time_and_name_their_file(tmp_path: Path) -> None:
    """And so are their frames; a task that both saw at one agent is one, one of another agent
    another."""
    filling(tmp_path, *pair(tmp_path)).copy_new_rows()

    with joined_demo(tmp_path) as recording:
        rows = [row.exchange for row in recording.read_exchanges()]
        assert [row.id for row in rows] == [1, 2, 3, 4, 5]
        assert [file_of(row.connection, 2) for row in rows] == [0, 1, 0, 1, 0]
        assert [row.started for row in rows] == sorted(row.started for row in rows)
        frames = [row.frame for row in recording.frames_after(0)]
        assert [(frame.exchange, frame.seq) for frame in frames] == [
            (n, seq) for n in range(1, 6) for seq in (0, 1)
        ]
        assert [
            (row.task.task_id, row.task.agent, row.task.exchanges) for row in recording.read_tasks()
        ] == [
            (TASK, "agent-1:8000", (1, 3)),
            (TASK, "agent-2:8000", (2,)),
            (OTHER, "agent-2:8000", (4,)),
        ]
        (session,) = recording.read_sessions()
        assert (session.how, session.complete) == ("clean", "complete")
        assert session.ended == STARTED + 11_000 * MS


def test_joining_samples_loses_nothing(tmp_path: Path) -> None:
    """Counted per kind, and what points at an exchange still points at the same one."""
    names = ("generations", "sdk-1.x-jsonrpc", "live-2153")
    files = [ROOT / "recordings" / f"{name}.a2a.jsonl" for name in names]
    filling(tmp_path, *files).copy_new_rows()
    counted = [0] * 8
    operations = []
    for path in files:
        with open_recording_or_cassette(path) as recording:
            counted = [a + b for a, b in zip(counted, counts(recording), strict=True)]
            operations += about(recording)
    with joined_demo(tmp_path) as recording:
        assert counts(recording) == counted
        assert sorted(about(recording)) == sorted(operations)


def counts(recording: Recording) -> list[int]:
    known = recording.count_rows()
    cut = (recording.read_segments(), recording.read_interruptions(), recording.read_handoffs())
    return [
        known.connections,
        known.exchanges,
        known.frames,
        known.tasks,
        known.findings,
        *(len(list(x)) for x in cut),
    ]


def about(recording: Recording) -> list[str]:
    """What findings, tasks, gaps, segments and interruptions point at, in words that no number
    changes."""
    calls = {
        row.exchange.id: f"{row.exchange.operation} {row.exchange.started}"
        for row in recording.read_exchanges()
    }
    calls[0] = ""
    segments = {row.segment.id: row.segment.began for row in recording.read_segments()}
    return [
        *(
            f"{each.finding.rule} {calls[each.finding.exchange]}"
            for each in recording.read_findings()
        ),
        *(
            f"{each.task.task_id} {[calls[number] for number in each.task.exchanges]}"
            for each in recording.read_tasks()
        ),
        *(
            f"{calls[gap.exchange]} {calls[gap.by]}"
            for each in recording.read_tasks()
            for gap in each.task.missed
        ),
        *(
            f"{calls[each.segment.exchange]} {calls[each.segment.last_exchange]}"
            for each in recording.read_segments()
        ),
        *(
            f"{each.interruption.kind} {segments[each.interruption.segment]}"
            for each in recording.read_interruptions()
        ),
    ]


def test_later_rows_are_added_once(tmp_path: Path) -> None:
    """A call that ends, a frame, a finding, a file that was not there, a run after all had ended;
    each once."""
    one, two = tmp_path / "one.a2a.db", tmp_path / "two.a2a.db"
    first = begin(one, 1)
    first.write([status(1, 0, "one")], changes=changes(live(1)))
    joined = filling(tmp_path, one, two)
    joined.copy_new_rows()
    with joined_demo(tmp_path) as recording:
        assert [row.exchange.closed for row in recording.read_exchanges()] == [0]
        assert recording.read_sessions()[0].how == ""

        found = Finding("A2A-X-001", Severity.ERROR, STARTED, "lost", 1, 1, 1)
        first.write([status(1, 1, "two")], [found], changes(exchange(1)))
        second = begin(two, 2)
        call(second, 2, 1, 3)
        joined.copy_new_rows()
        joined.copy_new_rows()
        assert [bool(row.exchange.closed) for row in recording.read_exchanges()] == [True, True]
        frames = [(row.frame.exchange, row.frame.seq) for row in recording.frames_after(0)]
        assert frames == [(1, 0), (1, 1), (2, 0), (2, 1)]
        assert [(row.finding.exchange, row.finding.seq) for row in recording.read_findings()] == [
            (1, 1)
        ]

        first.finish(STARTED + 9_000 * MS)
        second.finish(STARTED + 9_000 * MS, complete="3 bytes are missing")
        joined.copy_new_rows()
        assert (recording.read_sessions()[0].how, recording.read_sessions()[0].complete) == (
            "clean",
            "3 bytes are missing",
        )
        again = begin(one, 3)
        call(again, 3, 1, 10)
        joined.copy_new_rows()
        assert recording.count_rows().exchanges == 3
        assert recording.read_sessions()[0].how == ""
        again.finish(STARTED + 11_000 * MS)
        joined.copy_new_rows()
        assert recording.read_sessions()[0].how == "clean"


def test_a_damaged_file_is_reported_in_the_session(tmp_path: Path) -> None:
    """What could be read stays."""
    first, second = pair(tmp_path)
    with contextlib.closing(sqlite3.connect(second)) as db:
        db.execute("UPDATE block SET data = x'00'")
        db.commit()
    joined = filling(tmp_path, first, second)
    with pytest.raises(RecordingError) as wrong:
        joined.copy_new_rows()
    joined.mark_incomplete(wrong.value.message)
    with joined_demo(tmp_path) as recording:
        assert "cannot be read" in recording.read_sessions()[0].complete


def test_a_session_in_two_files_is_read_from_the_more_complete_one(tmp_path: Path) -> None:
    """An old copy, named first, hides nothing."""
    writer = begin(tmp_path / "live.a2a.db", 1)
    call(writer, 1, 1, 1)
    with MultiReader([tmp_path / "live.a2a.db"]) as several:
        merge_sessions(several, tmp_path / "old.a2a.db")
    call(writer, 1, 2, 2)
    writer.finish(STARTED + 3_000 * MS)
    filling(tmp_path, tmp_path / "old.a2a.db", tmp_path / "live.a2a.db").copy_new_rows()
    with joined_demo(tmp_path) as recording:
        assert recording.count_rows().exchanges == 2
        assert recording.count_rows().frames == 4


def test_a_session_stays_with_its_file_when_a_fuller_copy_appears(tmp_path: Path) -> None:
    """Rows that were copied from the first file are not copied from the other one as well."""
    writer = begin(tmp_path / "live.a2a.db", 1)
    call(writer, 1, 1, 1)
    joined = filling(tmp_path, tmp_path / "full.a2a.db", tmp_path / "live.a2a.db")
    joined.copy_new_rows()
    call(writer, 1, 2, 2)
    with MultiReader([tmp_path / "live.a2a.db"]) as several:
        merge_sessions(several, tmp_path / "full.a2a.db")
    joined.copy_new_rows()
    call(writer, 1, 3, 3)
    joined.copy_new_rows()
    with joined_demo(tmp_path) as recording:
        assert [row.exchange.id for row in recording.read_exchanges()] == [1, 2, 3]
        assert [file_of(row.exchange.connection, 2) for row in recording.read_exchanges()] == [
            1,
            1,
            1,
        ]
        assert recording.count_rows().frames == 6
    writer.finish(STARTED + 5_000 * MS)


def test_pruned_rows_stay_and_reused_numbers_are_new_rows(tmp_path: Path) -> None:
    """A session that gets the number of one that has gone, and rows that get theirs, are new."""
    path = tmp_path / "a.a2a.db"
    for number in (1, 2):
        writer = begin(path, number)
        call(writer, number, 1, number)
        call(writer, number, 2, number + 2)
        writer.finish(STARTED + 5_000 * MS)
    joined = filling(tmp_path, path)
    joined.copy_new_rows()
    remove_sessions(path, [2])
    writer = begin(path, 3)
    assert writer.session == 2
    call(writer, 3, 1, 9)
    joined.copy_new_rows()
    with joined_demo(tmp_path) as recording:
        rows = [
            (row.exchange.id, (row.exchange.started - STARTED) // (1000 * MS))
            for row in recording.read_exchanges()
        ]
        assert rows == [(1, 1), (2, 2), (3, 3), (4, 4), (5, 9)]
        assert sorted(row.frame.exchange for row in recording.frames_after(0)) == [
            1,
            1,
            2,
            2,
            3,
            3,
            4,
            4,
            5,
            5,
        ]
    writer.finish(STARTED + 10_000 * MS)


def test_notes_are_copied(tmp_path: Path) -> None:
    """With their calls; also notes written later."""
    first, second = pair(tmp_path)
    write_note(second, NotePlace(1, 2), STARTED, text="of its own")
    joined = filling(tmp_path, first, second)
    joined.copy_new_rows()
    write_note(first, NotePlace(1, 3, 1), STARTED, bookmark=True)
    joined.copy_new_rows()
    with joined_demo(tmp_path) as recording:
        notes = [
            (row.note.exchange, row.note.seq, row.note.text, row.note.bookmark)
            for row in recording.read_notes()
        ]
    assert notes == [(4, -1, "of its own", False), (5, 1, "", True)]
