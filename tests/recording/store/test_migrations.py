"""Older recordings are read unchanged, and migrated to the newest schema by a writer."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from a2a_proxy.model.task import Support, Task
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.store.database import open_writable
from a2a_proxy.recording.store.schema import SCHEMA_VERSION
from a2a_proxy.recording.store.version_1 import generation_ranges
from a2a_proxy.recording.write.writer import Writer
from support_recording import event_frames, facts

DATA = Path(__file__).parents[2] / "data"
"""`version_1`: a stream with the generations 2 3 5 8 and a GetTask, as the first version recorded it."""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old.a2a.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript((DATA / "version_1.sql").read_text())
        db.execute("PRAGMA journal_mode = WAL")
    return path


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


def content(recording: Recording) -> list[object]:
    exchanges = [row.exchange for row in recording.read_exchanges()]
    return [*exchanges, *recording.read_tasks(), *recording.read_findings(), *recording.frames_after(0)]


def only(recording: Recording) -> Task:
    (row,) = recording.read_tasks()
    return row.task


def test_an_old_recording_is_read_without_changing_it(old: Path) -> None:
    """That version kept missing numbers, but not the stream that left them out."""
    with Recording(old) as recording:
        task, exchanges = only(recording), [row.exchange for row in recording.read_exchanges()]
    assert (task.generation, task.seen, task.missed) == (8, ((3, 3), (5, 5), (8, 8)), ())
    assert task.support is Support.YES
    assert [each.current_generation for each in exchanges] == [None, None]
    assert version(old) == 1


def test_writing_migrates_to_the_newest_schema(old: Path) -> None:
    """Its rows are read as before, and new columns are available."""
    with Recording(old) as recording:
        before = content(recording)
    writer = Writer(old, facts(2))
    writer.write(event_frames(1))
    writer.close()
    assert version(old) == SCHEMA_VERSION
    with Recording(old) as recording:
        assert content(recording)[: len(before)] == before
        columns = {row[0] for row in recording.db.execute("SELECT name FROM pragma_table_info('tasks')")}
        assert {"seen", "missed", "support"} <= columns
        steps = recording.db.execute("SELECT name FROM _sqlite_migrations ORDER BY id").fetchall()
        assert len(steps) == SCHEMA_VERSION


def test_filters_on_newer_columns_work_on_an_old_recording(old: Path) -> None:
    """A filter that looks at a column that came later, in a file that is only read."""
    with Recording(old) as recording:
        assert list(recording.find_exchanges("trace:4bf9")) == []
    assert version(old) == 1


def test_a_migrated_recording_has_the_tables_of_a_new_one(old: Path, tmp_path: Path) -> None:
    """Column by column, in order: rows are read by position. And its indexes."""
    open_writable(old).close()
    open_writable(tmp_path / "new.a2a.db").close()
    assert tables(old) == tables(tmp_path / "new.a2a.db")


def tables(path: Path) -> dict[str, list[object]]:
    with closing(sqlite3.connect(path)) as db:
        names = [row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")]
        indexes = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'index' ORDER BY name").fetchall()
        return {"": indexes} | {name: db.execute(f"PRAGMA table_info({name})").fetchall() for name in names}


def test_a_cassette_of_version_1_is_read() -> None:
    with open_recording_or_cassette(DATA / "version_1.a2a.jsonl") as recording:
        task = only(recording)
    assert (task.seen, task.missed, task.support) == (((3, 3), (5, 5), (8, 8)), (), Support.YES)


@pytest.mark.parametrize(
    ("highest", "missed", "ranges"),
    [
        (0, [], []),
        (7, [], [(7, 7)]),
        (7, [4], [(3, 3), (5, 7)]),
        (9, [5, 6, 8], [(4, 4), (7, 7), (9, 9)]),
    ],
)
def test_generation_ranges_of_version_1_are_derived(
    highest: int, missed: list[int], ranges: list[tuple[int, int]]
) -> None:
    assert generation_ranges(highest, missed) == ranges
