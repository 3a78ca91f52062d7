"""Short names of files that are read together. Reading several files is tested in tests/api."""

from __future__ import annotations

from a2a_proxy.recording.read.multi_reader import short_names


def test_short_names_are_unambiguous() -> None:
    """Without the ending; with folders where the names alone are the same."""
    assert short_names(["a/travel.a2a.db", "b/hotel.a2a.jsonl", "c/notes.txt"]) == [
        "travel",
        "hotel",
        "notes",
    ]
    assert short_names(["x/a/run.a2a.db", "x/b/run.a2a.db", "one.a2a.db"]) == [
        "a/run.a2a.db",
        "b/run.a2a.db",
        "one",
    ]
    assert short_names(["/p/a/run.a2a.db", "/q/a/run.a2a.db"]) == [
        "p/a/run.a2a.db",
        "q/a/run.a2a.db",
    ]
    assert short_names(["run.a2a.db", "run.a2a.jsonl"]) == ["run.a2a.db", "run.a2a.jsonl"]


def test_a_file_named_twice_has_one_name() -> None:
    """Nothing tells them apart."""
    assert short_names(["/r/run.a2a.db", "/r/run.a2a.db"]) == ["run", "run"]
