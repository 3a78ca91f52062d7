"""Reading by key and page by page, beside a writer."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import msgspec
import pytest

from a2a_proxy.model.values import Binding, Changes, Connection, Exchange, Finding, Severity, Task
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import PAGE_ROWS, Recording
from a2a_proxy.recording.read.rows import Counts, make_key
from a2a_proxy.recording.write.writer import Writer
from support_recording import STARTED, event_frames, facts


def _exchange(number: int, **more: object) -> Exchange:
    return Exchange(number, 1, 0, Binding.GRPC, STARTED + number, **more)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "r.a2a.db"


def test_rows_are_found_by_key(path: Path):
    """Two sessions of one file: exchanges, frames, findings and tasks of each, by key and in
    order."""
    for number in (1, 2):
        writer = Writer(path, facts(number))
        tasks = [
            Task("a", "7", first=STARTED, last=STARTED),
            Task("b", "x", first=STARTED, last=STARTED),
        ]
        found = [
            Finding("R", Severity.ERROR, STARTED, "s", exchange=n, task_id="7") for n in (1, 2, 1)
        ]
        snapshots = Changes(
            [Connection(1, "c", "l", "u", STARTED)], [_exchange(n) for n in (1, 2, 3)], tasks
        )
        writer.write(event_frames(60, seed=number), found, snapshots)
        writer.finish(STARTED + 1)
    with Recording(path) as recording:
        keys = [make_key(session, number) for session in (1, 2) for number in (1, 2, 3)]
        assert [row.key for row in recording.read_exchanges()] == keys
        assert [row.key for row in recording.read_exchanges(2)] == keys[3:]
        assert [row.key for row in recording.read_exchanges(after=keys[1], limit=3)] == keys[2:5]
        row = recording.read_exchange(keys[4])
        assert row is not None
        assert (row.session, row.exchange) == (2, _exchange(2))
        assert recording.read_exchange(make_key(3, 1)) is None
        frames = list(recording.read_frames(keys[4]))
        assert [row.frame for row in frames] == event_frames(60, seed=2)[20:40]
        assert {row.exchange_key for row in frames} == {keys[4]}
        assert [row.frame.seq for row in recording.read_frames(keys[4], after=3, limit=2)] == [4, 5]
        assert recording.read_frame(frames[0].id) == frames[0]
        assert recording.read_frame(10_000) is None
        some = [frames[3].id, 10_000, frames[0].id]
        assert recording.frames_of(some) == [
            recording.read_frame(each.id, payload=False) for each in (frames[0], frames[3])
        ]
        assert [row.finding.exchange for row in recording.read_findings(1, exchange=keys[0])] == [
            1,
            1,
        ]
        assert [row.session for row in recording.read_findings(exchange=keys[3])] == [2, 2]
        assert [(row.session, row.task.agent) for row in recording.read_task("7")] == [
            (1, "a"),
            (2, "a"),
        ]
        assert recording.read_task("7", "b") == recording.read_task("nothing") == []
        assert [row.task.task_id for row in recording.read_task("x", "b")] == ["x", "x"]
        assert recording.read_connection(make_key(2, 1)) == next(recording.read_connections(2))
        assert recording.read_session(2) == recording.read_sessions()[1]
        assert recording.count_rows() == Counts(2, 2, 6, 120, 4, 6)
        assert recording.count_rows(2) == Counts(1, 1, 3, 60, 2, 3)


def test_task_of_a_session_is_found_without_reading_all(path: Path):
    """Also where its agent is not known; of each of its agents, and of no other session."""
    for number in (1, 2):
        tasks = [Task(f"agent {each % 3}", f"t{each}") for each in range(900)]
        others = [Task(each, "t7") for each in ("agent 0", "agent 2")]
        writer = Writer(path, facts(number))
        writer.write([], [], Changes([], [], [*tasks, *others]))
        writer.finish(STARTED)
    with Recording(path) as recording:
        expected = [each for each in recording.read_tasks(2) if each.task.task_id == "t7"]
        steps: list[None] = []
        recording.db.set_progress_handler(lambda: steps.append(None), 100)
        found = recording.read_task("t7", session=2)
        recording.db.set_progress_handler(None, 0)
        assert found == expected
        assert len(found) == 3
        assert len(steps) < 8
        assert recording.read_task("t7", session=3) == []


def test_frames_outside_exchanges_are_found_by_connection(path: Path):
    """Frames outside any exchange are found by their connection."""
    base = event_frames(1)[0]
    own = [
        msgspec.structs.replace(base, exchange=0, connection=n, seq=s)
        for s in (0, 1)
        for n in (1, 2)
    ]
    Writer(path, facts()).write([*own, base])
    with Recording(path) as recording:
        assert [row.frame for row in recording.connection_frames(make_key(1, 2))] == own[1::2]
        assert [row.exchange_key for row in recording.connection_frames(make_key(1, 2))] == [0, 0]


def test_a_follower_reads_on_while_the_writer_commits(path: Path):
    """Neither waits for the other: each commit is seen at once by an iteration begun before it, and
    is noticed."""
    stored = event_frames(4 * PAGE_ROWS)
    writer = Writer(path, facts())
    writer.write(stored[:PAGE_ROWS])
    with Recording(path) as recording:
        version = recording.data_version()
        assert recording.data_version() == version
        read = []
        for row in recording.frames_after(0):
            read.append(row.frame)
            done = len(read)
            if done % PAGE_ROWS == 1 and done + PAGE_ROWS < len(stored):
                writer.write(stored[done + PAGE_ROWS - 1 : done + 2 * PAGE_ROWS - 1])
                assert recording.data_version() != version
                version = recording.data_version()
            if done % PAGE_ROWS == 7:
                checkpoint = (
                    sqlite3.connect(path, timeout=0)
                    .execute("PRAGMA wal_checkpoint(TRUNCATE)")
                    .fetchone()
                )
                assert checkpoint[0] == 0, "a reader in mid-iteration holds no transaction"
        assert read == stored


def test_a_recording_can_only_be_read(path: Path):
    """No statement through a reader changes the file."""
    Writer(path, facts()).open()
    with Recording(path) as recording, pytest.raises(sqlite3.OperationalError):
        recording.db.execute("DELETE FROM session")


def with_text(recording: Recording, text: str) -> list[int]:
    quoted = text.replace('"', '\\"')
    return [row.id for row in recording.find_frames(f'"{quoted}"')]


def test_text_is_found_in_blocks_and_blobs(path: Path):
    """A search for text finds each frame whose payload has it, in open and closed blocks, in blobs
    and across edges."""
    stored = event_frames(3000)
    base = stored[0]
    for index, payload in (
        (5, b"one needle"),
        (900, b'{"a":"needle ' + b"x" * 5000 + b'"}'),
        (2999, b"nee"),
    ):
        stored[index] = msgspec.structs.replace(base, seq=index, payload=payload, size=len(payload))
    writer = Writer(path, facts())
    for start in range(0, 3000, 500):
        writer.write(stored[start : start + 500])
    with Recording(path) as recording:
        assert with_text(recording, "needle") == [6, 901]
        assert with_text(recording, '"needle xxx') == [901]
        assert with_text(recording, "nee") == [6, 901, 3000]
        assert with_text(recording, "no such text") == []


def test_text_is_found_in_any_json_spelling(path: Path):
    """Quotes and characters outside ASCII, escaped or not."""
    base = event_frames(1)[0]
    spellings = (
        b'{"t":"say \\"\\u00e4\\""}',
        '{"t":"say \\"ä\\""}'.encode(),
        'say "ä"'.encode(),
        b"say a",
    )
    Writer(path, facts()).write([msgspec.structs.replace(base, payload=data) for data in spellings])
    with Recording(path) as recording:
        assert with_text(recording, 'say "ä"') == [1, 2, 3]


def test_sql_can_read_payloads(path: Path):
    """`payload(block, offset, size)` and `payload(id)`, in queries of the caller's own."""
    stored = event_frames(2)
    big = msgspec.structs.replace(stored[1], payload=b"y" * 9000, size=9000)
    Writer(path, facts()).write([stored[0], big])
    with Recording(path) as recording:
        query = "SELECT payload(block, offset, size), payload(id) FROM frame ORDER BY id"
        assert recording.db.execute(query).fetchall() == [
            (stored[0].payload, stored[0].payload),
            (None, big.payload),
        ]
        found = recording.db.execute(
            "SELECT id FROM frame WHERE instr(payload(id), 'yyy')"
        ).fetchall()
        assert found == [(2,)]
        assert recording.db.execute("SELECT payload(77)").fetchone() == (None,)


def test_damage_is_reported_and_the_rest_is_readable(path: Path):
    """A block that cannot be decompressed is an error of that frame, and NULL in SQL."""
    writer = Writer(path, facts())
    writer.write(event_frames(2))
    writer.finish(STARTED + 1)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE block SET data = x'00'")
    db.close()
    with Recording(path) as recording:
        with pytest.raises(RecordingError, match="block 1"):
            next(recording.frames_after(0))
        assert recording.db.execute("SELECT payload(id) FROM frame").fetchall() == [
            (None,),
            (None,),
        ]


def test_a_finished_recording_opens_in_a_read_only_folder(path: Path):
    """A finished recording opens from a read-only folder (nothing is made beside it)."""
    writer = Writer(path, facts())
    writer.write(event_frames(2))
    writer.finish(STARTED + 1)
    os.chmod(path.parent, 0o500)
    try:
        if os.access(path.parent, os.W_OK):
            pytest.skip("this user may write everywhere")
        with Recording(path) as recording:
            assert recording.count_rows().frames == 2
    finally:
        os.chmod(path.parent, 0o700)


def test_reading_leaves_no_file_beside_a_finished_recording(path: Path):
    """SQLite creates a write-ahead log for readers too; an existing one stays, because another
    process uses it."""
    writer = Writer(path, facts())
    writer.write(event_frames(10), [], Changes([], [_exchange(1)], []))
    with Recording(path) as beside:
        assert beside.count_rows().frames == 10
    log = path.with_name(path.name + "-wal")
    assert log.exists()
    writer.finish(STARTED + 1)
    assert list(path.parent.iterdir()) == [path]
    with Recording(path) as one, Recording(path) as other:
        assert one.count_rows() == other.count_rows()
        assert log.exists()
    assert list(path.parent.iterdir()) == [path]


def test_pages_are_read_without_sorting(path: Path):
    """Frames of a session come in the order of storing: with a sort for each page, a long one took
    hours to check."""
    writer = Writer(path, facts(1))
    writer.write(event_frames(60, seed=1), [], Changes([], [_exchange(n) for n in (1, 2, 3)], []))
    writer.finish(STARTED + 1)
    asked: list[str] = []
    with Recording(path) as recording:
        recording.db.set_trace_callback(asked.append)
        assert len(list(recording.frames_after(0, session=1))) == 60
        recording.db.set_trace_callback(None)
        queries = [each for each in asked if "FROM frame" in each]
        plans = [
            str(step)
            for each in queries
            for step in recording.db.execute(f"EXPLAIN QUERY PLAN {each}")
        ]
    assert plans
    assert not [step for step in plans if "TEMP B-TREE" in step]
