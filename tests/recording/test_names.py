"""Names of recordings, and the newest of a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from a2a_proxy.recording.names import newest_recording, recording_name, suggest_names


def test_names_contain_the_start_time_in_utc():
    """In UTC, sorting by time."""
    assert recording_name(1_795_242_600_123_456_789) == "a2a-20261121-063000.123.a2a.db"


def test_the_newest_recording_is_the_one_written_last(tmp_path: Path):
    """By its write-ahead log where it is being written; no folder is no recording."""
    assert newest_recording(tmp_path / "nothing") is None
    assert newest_recording(tmp_path) is None
    for at, name in (
        (30, "b.a2a.db"),
        (20, "c.a2a.db"),
        (10, "a.a2a.db"),
        (40, "a.a2a.db-wal"),
        (90, "x.txt"),
    ):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (at, at))
    assert newest_recording(tmp_path) == tmp_path / "a.a2a.db"
    (tmp_path / "a.a2a.db-wal").unlink()
    assert newest_recording(tmp_path) == tmp_path / "b.a2a.db"


@pytest.mark.parametrize(
    ("missing", "hint"),
    [
        ("los.a2a.jsonl", "did you mean {0}/lossy.a2a.jsonl?"),
        ("lossy", "did you mean {0}/lossy.a2a.jsonl?"),
        ("lossy.a2a.db", "did you mean {0}/lossy.a2a.jsonl?"),
        ("dmeo.a2a.db", "did you mean {0}/demo.a2a.db or {0}/demo.a2a.jsonl?"),
        ("other.db", "check the name"),
        ("none/lossy.a2a.db", "check the name"),
        ("", "check the name"),
    ],
)
def test_similar_names_are_suggested(tmp_path: Path, missing: str, hint: str) -> None:
    """Recordings and cassettes whose names begin so, or are nearly the same; what they end with
    does not count."""
    for name in ("lossy.a2a.jsonl", "demo.a2a.db", "demo.a2a.jsonl", "lossy.txt"):
        (tmp_path / name).touch()
    assert suggest_names(tmp_path / missing) == hint.format(tmp_path)


def test_a_url_is_no_recording() -> None:
    """`a2a-inspect export otlp FILE http://localhost:4318`, without --endpoint."""
    assert (
        suggest_names(Path("http://localhost:4318"))
        == "a URL is the value of an option: --help lists them"
    )
    assert suggest_names(Path("")) == "check the name"


def test_a_recording_elsewhere_may_be_the_newest(tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "state" / "a.a2a.db", tmp_path / "r.db"
    for number, path in enumerate((here, elsewhere)):
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.utime(path, (number, number))
    assert newest_recording(here.parent) == here
    assert newest_recording(here.parent, elsewhere) == elsewhere
