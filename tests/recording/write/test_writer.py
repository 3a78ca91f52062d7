"""Values written to a recording are read back unchanged."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import ArtifactState, Changes, EventKind, FrameKind, Task
from a2a_proxy.recording.errors import PositionConflict
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.store.blocks import BLOCK_SIZE
from a2a_proxy.recording.store.database import open_private
from a2a_proxy.recording.store.schema import SCHEMA_VERSION
from a2a_proxy.recording.write.task_merge import merge_tasks
from a2a_proxy.recording.write.writer import Writer, resume_writer
from support_inspect import frame
from support_recording import STARTED, changes, event_frames, facts, findings, frames

_slow = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def _same(value: object) -> object:
    """Frames compare by every field, and enums by type too."""
    return msgspec.structs.astuple(value)  # type: ignore[arg-type]


@_slow
@given(
    st.lists(frames(), max_size=8),
    st.lists(findings, max_size=3),
    st.lists(changes(), min_size=1, max_size=2),
)
def test_every_written_value_is_read_back_unchanged(stored, found, snapshots):
    """Any frame, finding, connection, exchange and task, also those that no peer should have
    sent."""
    db = open_private()
    writer = Writer.on_connection(db, facts())
    for snapshot in snapshots:
        writer.write((), (), snapshot)
    writer.write(stored, found)
    recording = Recording.from_connection(db, "test")
    rows = list(recording.frames_after(0))
    assert [_same(row.frame) for row in rows] == [_same(frame) for frame in stored]
    assert [type(row.frame.kind) for row in rows] == [type(frame.kind) for frame in stored]
    assert [recording.read_payload(row) for row in recording.frames_after(0, payloads=False)] == [
        f.payload for f in stored
    ]
    bare = [msgspec.structs.replace(frame, payload=b"") for frame in stored]
    assert [row.frame for row in recording.frames_after(0, payloads=False)] == bare
    assert [row.finding for row in recording.read_findings()] == found
    newest = {(type(v), v.id): v for s in snapshots for v in (*s.connections, *s.exchanges)}
    read = [row.connection for row in recording.read_connections()] + [
        row.exchange for row in recording.read_exchanges()
    ]
    assert {(type(value), value.id): value for value in read} == newest
    kept: dict[tuple[str, str], Task] = {}
    for task in (task for s in snapshots for task in s.tasks):
        before = kept.get((task.agent, task.task_id))
        younger = before is not None and before.first < task.first
        kept[task.agent, task.task_id] = merge_tasks(before, task) if younger else task
    assert {(row.task.agent, row.task.task_id): row.task for row in recording.read_tasks()} == kept
    db.close()


def test_payloads_survive_the_closing_of_blocks(tmp_path: Path):
    """Frames read the same from the open block, from a full one and after the end."""
    stored = event_frames(2 * BLOCK_SIZE // 300)
    path = tmp_path / "r.a2a.db"
    writer = Writer(path, facts())
    for start in range(0, len(stored), 77):
        writer.write(stored[start : start + 77])
    with Recording(path) as recording:
        assert [row.frame for row in recording.frames_after(0)] == stored
        blocks = recording.db.execute("SELECT count(*), count(data) FROM block").fetchone()
        assert blocks[0] == blocks[1] + 1 >= 2
        writer.finish(STARTED + 5)
        assert recording.db.execute("SELECT count(*) FROM block_tail").fetchone() == (0,)
    with Recording(path) as recording:
        assert [row.frame for row in recording.frames_after(0)] == stored


def test_a_repeated_big_payload_is_stored_once(tmp_path: Path):
    """Snapshots that repeat an artifact add a few bytes each, not the artifact."""
    path = tmp_path / "r.a2a.db"
    raw = os.urandom(300_000).hex()
    frame = event_frames(1)[0]
    stored = []
    for number in range(20):
        payload = f'{{"n":{number},"parts":[{{"raw":"{raw}"}}]}}'.encode()
        stored.append(
            msgspec.structs.replace(
                frame, seq=number, payload=payload, size=len(payload), message_id=""
            )
        )
    writer = Writer(path, facts())
    writer.write(stored)
    writer.finish(STARTED + 5)
    with Recording(path) as recording:
        assert [row.frame for row in recording.frames_after(0)] == stored
        assert recording.db.execute("SELECT count(*) FROM blob").fetchone() == (1,)
    assert path.stat().st_size < 800_000


def test_changed_and_removed_artifacts_are_replaced():
    """A task's artifacts are those of its last snapshot."""
    db = open_private()
    writer = Writer.on_connection(db, facts())
    first = Task(
        "agent",
        "t",
        artifacts=tuple(ArtifactState(str(n), first=STARTED, last=STARTED) for n in range(4)),
    )
    changed = (first.artifacts[0], msgspec.structs.replace(first.artifacts[1], chunks=9))
    for artifacts in (first.artifacts, first.artifacts, changed):
        task = msgspec.structs.replace(first, artifacts=artifacts, first=STARTED, last=STARTED)
        writer.write((), (), Changes([], [], [task]))
        assert [row.task for row in Recording.from_connection(db, "x").read_tasks()] == [task]


def test_constructing_a_writer_creates_no_file(tmp_path: Path):
    """A start that fails elsewhere leaves no file."""
    path = tmp_path / "r.a2a.db"
    writer = Writer(path, facts())
    assert list(tmp_path.iterdir()) == []
    writer.open()
    assert path.stat().st_mode & 0o777 == 0o600
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}


def test_the_position_moves_with_the_rows(tmp_path: Path):
    """Position and snapshot are committed with the rows; a second recorder is refused and stores
    nothing."""
    path = tmp_path / "r.a2a.db"
    stored = event_frames(6)
    first = Writer(path, facts())
    first.write(stored[:2], position=(1, 100), snapshot="one")
    second = resume_writer(path, facts().uuid)
    assert (second.position, second.snapshot) == ((1, 100), "one")
    first.write(stored[2:4], position=(1, 200))
    with pytest.raises(PositionConflict):
        second.write(stored[2:4], position=(1, 200))
    second.close()
    third = resume_writer(path, facts().uuid)
    assert (third.position, third.snapshot) == ((1, 200), "one")
    third.write(stored[4:], position=(2, 0), snapshot="two")
    third.finish(STARTED + 9, how="unclean", complete="2 bytes were not captured", lost=2, edits=1)
    with Recording(path) as recording:
        assert [row.frame for row in recording.frames_after(0)] == stored
        session = recording.read_sessions()[0]
        assert session.facts == facts()
        assert (session.ended, session.how, session.lost, session.edits) == (
            STARTED + 9,
            "unclean",
            2,
            1,
        )
        assert (session.position, session.snapshot) == ((2, 0), "two")


def test_a_failed_write_is_rolled_back_and_can_be_repeated(tmp_path: Path):
    """After a rollback the writer believes only the file: identifiers and blocks it had handed out
    are not used."""
    path = tmp_path / "r.a2a.db"
    stored = event_frames(1500)
    writer = Writer(path, facts())
    writer.write(stored[:10])
    broken = Changes([], [msgspec.structs.replace(_exchange(), started="no number")], [])  # type: ignore[arg-type]
    for _ in range(2):
        with pytest.raises(TypeError):
            writer.write(stored[10:], (), broken)
    writer.write(stored[10:])
    with Recording(path) as recording:
        assert [row.frame for row in recording.frames_after(0)] == stored


def _exchange():
    from a2a_proxy.model.values import Binding, Exchange

    return Exchange(1, 1, 1, Binding.GRPC, STARTED)


_KILLED = """
import sys
from contextlib import closing
sys.path[:0] = sys.argv[2:]
from support_recording import event_frames, facts
from a2a_proxy.recording.write.writer import Writer
writer = Writer(sys.argv[1], facts())
for number, frame in enumerate(event_frames(100_000)):
    writer.write([frame], position=(1, number + 1))
    print(number + 1, flush=True)
"""


def test_a_killed_writer_leaves_whole_transactions(tmp_path: Path):
    """SIGKILL at any moment: everything reported as stored is there, frames and position agree, a
    successor continues."""
    path = tmp_path / "r.a2a.db"
    child = subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(path), *sys.path], stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    committed = 0
    while committed < 40:
        committed = int(child.stdout.readline())
    os.kill(child.pid, signal.SIGKILL)
    child.stdout.close()
    child.wait(10)
    writer = resume_writer(path, facts().uuid)
    assert writer.position is not None
    done = writer.position[1]
    assert done >= committed
    writer.write(event_frames(done + 5)[done:], position=(1, done + 5))
    writer.close()
    with Recording(path) as recording:
        assert [row.frame for row in recording.frames_after(0)] == event_frames(done + 5)


_RACE = """
import sys
from contextlib import closing
sys.path[:0] = sys.argv[3:]
from support_recording import event_frames, facts
from a2a_proxy.recording.write.writer import Writer
number = int(sys.argv[2])
sys.stdin.readline()
writer = Writer(sys.argv[1], facts(number))
for start in range(0, 200, 20):
    writer.write(event_frames(200, seed=number)[start:start + 20])
writer.finish(1_800_000_000_000_000_001)
"""


def test_eight_processes_create_one_file_at_once(tmp_path: Path):
    """Each writes its own session into the one recording, and nothing is left lying beside it."""
    path = tmp_path / "r.a2a.db"
    command = [sys.executable, "-c", _RACE, str(path)]
    children = [
        subprocess.Popen(
            [*command, str(number), *sys.path], stdin=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for number in range(1, 9)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"\n")
        child.stdin.flush()
    for child in children:
        _, errors = child.communicate(timeout=60)
        assert child.returncode == 0, errors.decode()
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    with Recording(path) as recording:
        assert len(recording.read_sessions()) == 8
        for session in recording.read_sessions():
            number = int(session.facts.uuid.replace("-", ""), 16)
            read = [row.frame for row in recording.frames_after(0, session=session.id)]
            assert read == event_frames(200, seed=number)


def test_memory_of_a_writer_is_bounded(tmp_path: Path):
    """120,000 frames with fresh identifiers: the writer holds caches of a bounded size, not the
    recording.

    The caches are full after 35 rounds; without a bound the rest would take 8 MiB more.
    """
    script = """
import resource, sys
sys.path[:0] = sys.argv[2:]
from support_recording import event_frames, facts
from a2a_proxy.recording.write.writer import Writer
writer = Writer(sys.argv[1], facts())
def store(rounds):
    for seed in rounds:
        writer.write(event_frames(2000, per_exchange=2, seed=seed))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
early = store(range(36))
print(early, store(range(36, 60)))
"""
    command = [sys.executable, "-c", script, str(tmp_path / "r.a2a.db"), *sys.path]
    early, late = map(
        int, subprocess.run(command, capture_output=True, check=True, timeout=120).stdout.split()
    )
    assert late - early < 4_000, "KiB"


def test_sizes_on_disk(tmp_path: Path):
    """Events of about 300 bytes with a fresh UUID each take at most 150 bytes in a burst, 200 one
    by one."""
    for batch, count, most in ((2000, 40_000, 150), (1, 3000, 200)):
        path = tmp_path / f"{batch}.a2a.db"
        stored = event_frames(count)
        writer = Writer(path, facts())
        for start in range(0, count, batch):
            writer.write(stored[start : start + batch])
        writer.finish(STARTED + 5)
        assert path.stat().st_size / count <= most


def test_the_file_is_a_plain_sqlite_database(tmp_path: Path):
    """Any SQLite tool opens it: integrity, application id and schema version, and views in plain
    words."""
    path = tmp_path / "r.a2a.db"
    writer = Writer(path, facts())
    stored = event_frames(3)
    writer.write(
        [
            msgspec.structs.replace(
                stored[0], message_id="plain", rpc_id='"' + stored[0].task_id + '"'
            )
        ]
    )
    writer.finish(STARTED + 5)
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    row = db.execute("SELECT direction, at, schema, task_id, rpc_id FROM frames").fetchone()
    rpc = '"' + stored[0].task_id + '"'
    assert row == ("to client", stored[0].at, "json", stored[0].task_id, rpc)
    assert db.execute("SELECT count(*) FROM exchanges").fetchone() == (0,)
    assert db.execute("SELECT count(*) FROM tasks").fetchone() == (0,)
    db.close()


def test_views_show_names_for_numbers(tmp_path: Path):
    """Kinds, events and states are words, for every member; an unknown number stays; what is absent
    is NULL."""
    path = tmp_path / "r.a2a.db"
    base = event_frames(1)[0]
    kinds = [msgspec.structs.replace(base, kind=kind, seq=kind) for kind in FrameKind]
    events = [msgspec.structs.replace(base, event=event, seq=100 + event) for event in EventKind]
    states = [
        msgspec.structs.replace(base, state=state, seq=200 + state)
        for state in [*map(int, TaskState), 99]
    ]
    tasks = [Task("a", str(state), state=state, first=STARTED, last=STARTED) for state in (0, 6)]
    with closing(Writer(path, facts())) as writer:
        writer.write(kinds + events + states, [], Changes([], [], tasks))
        writer.finish(STARTED + 5)
    with closing(sqlite3.connect(path)) as db:
        found = [
            row[0] for row in db.execute("SELECT kind FROM frames WHERE seq < 100 ORDER BY seq")
        ]
        assert found == [kind.name.lower() for kind in FrameKind]
        found = [
            row[0]
            for row in db.execute(
                "SELECT event FROM frames WHERE seq BETWEEN 100 AND 199 ORDER BY seq"
            )
        ]
        assert found == [None, *(event.name.lower() for event in EventKind if event)]
        found = [
            row[0] for row in db.execute("SELECT state FROM frames WHERE seq >= 200 ORDER BY seq")
        ]
        assert found == [None, *(state.label for state in TaskState if state), 99]
        assert [row[0] for row in db.execute("SELECT state FROM tasks ORDER BY id")] == [
            None,
            "input-required",
        ]
        assert "message_id" not in [row[1] for row in db.execute("PRAGMA table_info(frames)")]


def test_the_index_of_a_finished_session_is_compact(tmp_path: Path) -> None:
    """Frames of many exchanges at once fill its pages badly; nothing is left to be gained at the
    end."""
    path = tmp_path / "a.db"
    made = Writer(path, facts(1))
    chance, passed = random.Random(1), [0] * 300
    for _ in range(100):
        turn = [chance.randrange(300) for _ in range(100)]
        written = []
        for number in turn:
            written.append(frame(number + 1, passed[number], b"{}"))
            passed[number] += 1
        made.write(written)
    made.finish(STARTED + 1)
    size = path.stat().st_size

    db = sqlite3.connect(path, isolation_level=None)
    db.execute("REINDEX frame_exchange")
    db.executescript("PRAGMA incremental_vacuum;")
    db.close()

    assert path.stat().st_size >= size - 4096
