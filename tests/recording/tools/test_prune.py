"""Pruning deletes whole sessions, leaves the others unchanged and shrinks the file."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from a2a_proxy.recording.cassette.file import read_cassette, write_cassette
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.tools.prune import (
    _KEYED_TABLES,
    _ROW_TABLES,
    _SESSION_TABLES,
    remove_sessions,
)
from support_inspect import changes, exchange, request, status, writer
from support_recording import STARTED

SHARED = {"session", "text", "ident", "shape", "blob", "rule"}
"""Tables that do not belong to one session."""


def filled(path: Path, sessions: int, frames: int = 200) -> Path:
    """A recording of several ended sessions with payloads that differ."""
    for number in range(1, sessions + 1):
        made = writer(path, number)
        rows = [
            request(1),
            *(status(1, seq, f"{number} {seq} {'x' * (seq % 97)}") for seq in range(1, frames)),
        ]
        made.write(rows, changes=changes(exchange(1)))
        made.finish(STARTED + 10_000_000_000)
    return path


def rows_of(path: Path, session: int) -> list[tuple[object, ...]]:
    """Everything that a reader says of a session."""
    with Recording(path) as recording:
        (row,) = recording.read_exchanges(session)
        return [(each.frame,) for each in recording.read_frames(row.key)] + [(row.exchange,)]


def test_other_sessions_are_unchanged(tmp_path: Path) -> None:
    """Byte for byte; no table has rows of deleted sessions."""
    path = filled(tmp_path / "a.db", 4)
    before = {session: rows_of(path, session) for session in (1, 3)}

    remove_sessions(path, [2, 4])

    assert {session: rows_of(path, session) for session in (1, 3)} == before
    with Recording(path) as recording:
        assert [row.id for row in recording.read_sessions()] == [1, 3]
        blocks = "SELECT DISTINCT session FROM block UNION SELECT DISTINCT session FROM frame"
        assert recording.db.execute(f"{blocks} ORDER BY 1").fetchall() == [(1,), (3,)]
        assert recording.db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_the_file_shrinks(tmp_path: Path) -> None:
    """Unreferenced identifiers are deleted too."""
    path = filled(tmp_path / "a.db", 3, frames=3000)
    one = filled(tmp_path / "b.db", 1, frames=3000)

    remove_sessions(path, [1, 2])

    assert path.stat().st_size < one.stat().st_size * 1.2


def test_sessions_of_real_samples(tmp_path: Path) -> None:
    """With artifacts, blobs and findings: a session that stays reads as if it had been alone."""
    samples = Path(__file__).parents[3] / "recordings"
    path = tmp_path / "a.db"
    read_cassette(samples / "sdk-1.x-jsonrpc.a2a.jsonl", path)
    filled_number = 2
    made = writer(path, filled_number)
    made.write([request(1)], changes=changes(exchange(1)))
    made.finish(STARTED)

    remove_sessions(path, [filled_number])
    with Recording(path) as recording:
        write_cassette(recording, tmp_path / "again.a2a.jsonl")

    original = (samples / "sdk-1.x-jsonrpc.a2a.jsonl").read_text().splitlines()
    assert (tmp_path / "again.a2a.jsonl").read_text().splitlines()[1:-1] == original[1:-1]


def test_pruning_does_not_disturb_a_writer(tmp_path: Path) -> None:
    """A session being written continues, with its cached identifiers."""
    path = filled(tmp_path / "a.db", 1)
    busy = writer(path, 2)
    busy.write([request(1), status(1, 1, "one")], changes=changes(exchange(1)))
    remove_sessions(path, [1])
    busy.write([status(1, 2, "two")], changes=changes(exchange(1)))
    busy.finish(STARTED)

    with Recording(path) as recording:
        (row,) = recording.read_exchanges(2)
        assert [each.frame.task_id for each in recording.read_frames(row.key)][1:] == [
            row.exchange.task_id
        ] * 2


def test_no_table_is_forgotten(tmp_path: Path) -> None:
    """A new table has to say to whom its rows belong."""
    path = filled(tmp_path / "a.db", 1, frames=2)
    with sqlite3.connect(path) as db:
        tables = {
            name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }

    assert tables - SHARED == {*_KEYED_TABLES, *_SESSION_TABLES, *_ROW_TABLES}
