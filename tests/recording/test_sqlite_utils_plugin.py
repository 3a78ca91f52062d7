"""The SQL functions in `sqlite-utils`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from importlib.metadata import entry_points
from pathlib import Path

import msgspec
import pytest

from a2a_proxy.recording import sqlite_utils_plugin
from a2a_proxy.recording.write.writer import Writer
from support_recording import event_frames, facts

UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"


def test_the_plugin_registers_payload(tmp_path: Path):
    """A connection that `sqlite-utils` prepares can read payloads."""
    stored = event_frames(2)
    path = tmp_path / "r.a2a.db"
    Writer(path, facts()).write(stored)
    db = sqlite3.connect(path)
    sqlite_utils_plugin.prepare_connection(db)
    assert [row[0] for row in db.execute("SELECT payload(id) FROM frame")] == [
        frame.payload for frame in stored
    ]
    db.close()


def test_message_ids_are_found_in_payload_or_row(tmp_path: Path):
    """`message_id(id)`: in the payload, in the row, or none; the view `frames` needs no
    function."""
    base = event_frames(1)[0]
    inside = f'{{"messageId":"{UUID}"}}'.encode()
    stored = [
        msgspec.structs.replace(base, seq=seq, message_id=ident, payload=payload, size=len(payload))
        for seq, (ident, payload) in enumerate(
            [(UUID, inside), (UUID, b"{}"), ("plain", b"{}"), ("", b"{}")]
        )
    ]
    path = tmp_path / "r.a2a.db"
    Writer(path, facts()).write(stored)
    with closing(sqlite3.connect(path)) as db:
        assert len(db.execute("SELECT * FROM frames").fetchall()) == 4
        sqlite_utils_plugin.prepare_connection(db)
        found = [row[0] for row in db.execute("SELECT message_id(id) FROM frames ORDER BY seq")]
        assert found == [UUID, UUID, "plain", None]
        assert db.execute("SELECT message_id(99)").fetchone() == (None,)


def test_the_plugin_is_installed():
    """The entry point names it."""
    found = [point for point in entry_points(group="sqlite_utils") if point.name == "a2a_proxy"]
    if not found:
        pytest.skip("installed before the entry point was declared")
    assert found[0].load() is sqlite_utils_plugin
