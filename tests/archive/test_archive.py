"""Recordings into an archive and out again."""

import json
from pathlib import Path
from typing import Any

import pytest

from a2a_proxy.archive import segment
from a2a_proxy.archive.bring import bring
from a2a_proxy.archive.find import Wanted
from a2a_proxy.archive.keep import Keeper
from a2a_proxy.archive.place import Place
from a2a_proxy.recording.cassette import open_any, write_cassette
from a2a_proxy.recording.cassette_out import Selection
from a2a_proxy.recording.reader import Recording
from a2a_proxy.recording.rows import CHOSEN

RECORDINGS = Path(__file__).parents[2] / "recordings"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "archive").mkdir()
    return Place((tmp_path / "archive").as_uri())


def put(place: Place, recording: Recording) -> int:
    sessions = recording.sessions()
    return sum(Keeper(place, "here", recording, session).put(rest=True) for session in sessions)


def content(folder: str) -> dict[str, bytes]:
    top = Path(folder.removeprefix("file://"))
    return {str(file.relative_to(top)): file.read_bytes() for file in top.rglob("*") if file.is_file()}


def cassette(recording: Recording, file: Path, keys: set[int] | None = None, what: str = "") -> list[Any]:
    """All lines but what the last one says of those before."""
    selection = None if keys is None else Selection(recording, keys, f"{CHOSEN}{what}")
    write_cassette(recording, file, selection=selection)
    return [json.loads(line) for line in file.read_bytes().splitlines()]


@pytest.mark.parametrize("rows", [3, 200_000])
def test_a_task_comes_back_as_a_trimmed_recording(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """Also where its calls lie in many segments."""
    monkeypatch.setattr(segment, "ROWS", rows)
    with open_any(RECORDINGS / "lossy.a2a.jsonl") as recording:
        put(place, recording)
        task = next(row.finding.task_id for row in recording.findings() if row.finding.task_id)
        keys = {row.key for row in recording.exchanges() if row.exchange.task_id == task}
        trimmed = cassette(recording, tmp_path / "trimmed.a2a.jsonl", keys, "task T")

    bring(place, Wanted(idents=(("task", task),)), "task T", tmp_path / "back.a2a.db")

    with Recording(tmp_path / "back.a2a.db") as back:
        assert cassette(back, tmp_path / "back.a2a.jsonl") == trimmed
