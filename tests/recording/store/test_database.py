"""Opening a recording: what is refused, the errors, and that nothing is created or changed."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import sys
import threading
import time
from pathlib import Path

import pytest

from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.store import database, schema
from a2a_proxy.recording.store.database import open_private, open_writable
from a2a_proxy.recording.store.file_header import check_writable
from a2a_proxy.recording.write.writer import Writer, resume_writer
from support_recording import event_frames, facts


def _state(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def _make(path: Path) -> None:
    writer = Writer(path, facts())
    writer.open()
    writer.close()


def _refused(path: Path, message: str) -> None:
    """Reader and writer refuse it alike, and leave everything as it was."""
    folder = next(parent for parent in path.parents if parent.is_dir())
    before = _state(folder)
    attempts = (
        lambda: Recording(path),
        lambda: Writer(path, facts()),
        lambda: resume_writer(path, facts().uuid),
    )
    for attempt in attempts:
        with pytest.raises(RecordingError, match=message) as caught:
            attempt()
        assert str(path) in caught.value.message
        assert caught.value.hint
    assert _state(folder) == before


def test_not_a_database(tmp_path: Path):
    """A text file."""
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\n" * 50)
    _refused(path, "is not a recording")


def test_an_empty_file(tmp_path: Path):
    """It may be somebody's; it stays empty."""
    path = tmp_path / "empty.db"
    path.touch()
    _refused(path, "is empty")


def test_a_database_of_another_program(tmp_path: Path):
    """Somebody's bookmarks are not turned into a recording."""
    path = tmp_path / "bookmarks.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE bookmark (url)")
    db.commit()
    db.close()
    _refused(path, "another program")


@pytest.mark.parametrize("version", [schema.SCHEMA_VERSION + 1, 13, -1, 0])
def test_another_schema(tmp_path: Path, version: int):
    """Said as what to do: upgrade."""
    path = tmp_path / "new.a2a.db"
    _make(path)
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {version}")
    db.commit()
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    _refused(path, "newer a2a-proxy")


def test_a_newer_schema_still_in_the_log(tmp_path: Path):
    """Also where the main file does not say so yet."""
    path = tmp_path / "new.a2a.db"
    _make(path)
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {schema.SCHEMA_VERSION + 1}")
    for attempt in (lambda: Recording(path), lambda: Writer(path, facts()).open()):
        with pytest.raises(RecordingError, match="newer a2a-proxy"):
            attempt()
    db.close()


@pytest.mark.skipif(sys.platform == "darwin", reason="file names are UTF-8 there")
def test_a_file_name_that_is_not_utf_8_is_opened(tmp_path: Path):
    """File names are bytes; a name that is not UTF-8 is opened and closed as any other."""
    path = tmp_path / os.fsdecode(b"\xff run?#%.a2a.db")
    made = Writer(tmp_path / "run.a2a.db", facts(1))
    made.write(event_frames(1))
    made.finish(1)
    (tmp_path / "run.a2a.db").rename(path)
    with Recording(path) as recording:
        assert len(recording.read_sessions()) == 1


def test_a_folder(tmp_path: Path):
    """Named instead of a file."""
    folder = tmp_path / "folder"
    folder.mkdir()
    _refused(folder, "is not a file")


def test_a_missing_recording(tmp_path: Path):
    """Readers make none."""
    path = tmp_path / "none.a2a.db"
    for attempt in (
        lambda: Recording(path),
        lambda: resume_writer(path, "x"),
        lambda: Writer(path, facts(), create=False),
    ):
        with pytest.raises(RecordingError, match="there is no recording"):
            attempt()
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder(tmp_path: Path):
    """Is not made; the hint says how."""
    path = tmp_path / "no" / "r.a2a.db"
    with pytest.raises(RecordingError, match="does not exist") as caught:
        check_writable(path)
    assert caught.value.hint == f"create it first: mkdir -p {path.parent}"
    assert list(tmp_path.iterdir()) == []


def test_a_file_used_as_a_folder(tmp_path: Path):
    """The same for everybody, root included."""
    (tmp_path / "file").touch()
    for attempt in (lambda p: Writer(p, facts()), Recording):
        with pytest.raises(RecordingError, match="is not a folder"):
            attempt(tmp_path / "file" / "r.a2a.db")


def test_a_folder_without_permission(tmp_path: Path):
    """A recording cannot be made there."""
    tmp_path.chmod(0o500)
    try:
        if os.access(tmp_path, os.W_OK):
            pytest.skip("this user may write everywhere")
        with pytest.raises(RecordingError, match="no permission"):
            check_writable(tmp_path / "r.a2a.db")
    finally:
        tmp_path.chmod(0o700)


def test_a_locked_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Somebody holds the write lock longer than we wait; afterwards the same write succeeds."""
    monkeypatch.setattr("a2a_proxy.recording.store.database.BUSY_SECONDS", 0.05)
    path = tmp_path / "r.a2a.db"
    writer = Writer(path, facts())
    writer.open()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(RecordingError, match="locked"):
        writer.write(event_frames(3))
    other.execute("ROLLBACK")
    other.close()
    writer.write(event_frames(3))
    with Recording(path) as recording:
        assert [row.frame for row in recording.frames_after(0)] == event_frames(3)


def test_resuming_a_missing_session_is_an_error(tmp_path: Path):
    """Resuming says which one."""
    path = tmp_path / "r.a2a.db"
    _make(path)
    with pytest.raises(RecordingError, match="has no session x"):
        resume_writer(path, "x")


def test_text_columns_are_not_converted_without_strict_tables(monkeypatch: pytest.MonkeyPatch):
    """SQLite before 3.37: texts that look like numbers stay texts."""
    monkeypatch.setattr(database, "_STRICT_SINCE", (99,))
    db = open_private()
    script = " ".join(
        row[0] for row in db.execute("SELECT sql FROM sqlite_schema WHERE type = 'table'")
    )
    assert "STRICT" not in script
    assert " ANY" not in script
    writer = Writer.on_connection(db, facts())
    writer.write(event_frames(3))
    assert [
        row.frame for row in Recording.from_connection(db, "old").frames_after(0)
    ] == event_frames(3)
    db.execute("INSERT INTO text (value) VALUES ('7.0')")
    assert db.execute("SELECT typeof(value) FROM text ORDER BY id DESC").fetchone() == ("text",)


def test_tables_are_strict_if_sqlite_supports_it():
    """A wrong type is refused."""
    if sqlite3.sqlite_version_info < (3, 37):
        pytest.skip("this SQLite knows no STRICT")
    with pytest.raises(sqlite3.IntegrityError):
        open_private().execute(
            "INSERT INTO note (session, exchange, seq, at, "
            "bookmark, body) VALUES (1, 1, 0, 'x', 0, 'b')"
        )


def test_a_stale_wal_is_not_replayed_into_a_new_database(tmp_path: Path) -> None:
    """SQLite cannot tell that `-wal` belonged to a recording that was deleted."""
    path = tmp_path / "r.db"
    first = open_writable(path)
    first.execute("INSERT INTO text (value) VALUES ('old')")
    (tmp_path / "kept").write_bytes((tmp_path / "r.db-wal").read_bytes())
    first.close()
    path.unlink()
    (tmp_path / "kept").rename(tmp_path / "r.db-wal")
    second = open_writable(path)
    assert second.execute("SELECT count(*) FROM text").fetchone() == (0,)
    second.close()


def test_creating_a_recording_is_exclusive(tmp_path: Path) -> None:
    """Who finds no file throws away the log of a deleted one; that log may be of a file that
    appeared meanwhile."""
    path = tmp_path / "r.a2a.db"
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    creating = threading.Thread(target=lambda: open_writable(path).close(), daemon=True)
    creating.start()
    while not list(tmp_path.iterdir()):
        time.sleep(0.001)
    creating.join(0.5)
    assert creating.is_alive()
    assert not path.exists()
    os.close(folder)
    creating.join(120)
    assert path.exists()
