"""Rows are checked against the columns that the schema declares."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from a2a_proxy.model.values import Binding, Changes, Exchange
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.store.database import open_private
from a2a_proxy.recording.store.row_types import absolute_time, check_row, declared_types
from a2a_proxy.recording.write.writer import Writer
from support_recording import facts


def test_the_declared_columns_are_those_of_a_fresh_database():
    """Same columns in the same order, each with the types that its declaration allows."""
    types = {"INTEGER": {int}, "TEXT": {str}, "BLOB": {bytes}, "ANY": {int, str, bytes}}
    with closing(open_private()) as db:
        tables = [
            name
            for (name,) in db.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
            )
        ]
        assert sorted(declared_types()) == tables
        for table in tables:
            columns = db.execute(f"PRAGMA table_info({table})").fetchall()
            fresh = [
                frozenset(types[kind] if required or key else types[kind] | {type(None)})
                for _, _, kind, required, _, key in columns
            ]
            assert list(declared_types()[table].values()) == fresh, table


def test_columns_with_other_types_are_checked(tmp_path: Path):
    """Whatever the tables of the file declare."""
    path = tmp_path / "hostile.a2a.db"
    writer = Writer(path, facts())
    writer.write([], (), Changes([], [Exchange(1, 1, 1, Binding.GRPC, facts().started)], []))
    writer.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute(
            "UPDATE sqlite_master SET sql = replace(sql, "
            "'sent_traceparent ANY', 'sent_traceparent REAL')"
        )
        db.commit()
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE exchange SET sent_traceparent = 1.5")
        db.commit()
    with (
        Recording(path) as recording,
        pytest.raises(RecordingError, match="of table exchange is not valid"),
    ):
        list(recording.read_exchanges())


def test_a_row_with_more_or_fewer_columns_than_declared_is_refused():
    """The schema has no such row."""

    class Rows:
        @check_row("rule")
        def read(self, row: tuple[object, ...]) -> object:
            return row[0]

    assert Rows().read((1, "title")) == 1
    for row in ((1, "title", 3), (1,)):
        with pytest.raises(RecordingError, match="row 1 of table rule is not valid"):
            Rows().read(row)


def test_times_fit_in_the_63_bits_of_a_recording():
    """NULL is 0."""
    largest = (1 << 63) - 1
    assert [absolute_time(*each) for each in ((5, None), (5, -5), (5, largest - 5))] == [
        0,
        0,
        largest,
    ]
    for zero, at in ((5, -6), (5, largest - 4), (-1, 0)):
        with pytest.raises(ValueError, match="before 1970 or after 2262"):
            absolute_time(zero, at)
