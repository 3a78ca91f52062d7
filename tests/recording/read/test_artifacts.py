"""Artifacts assembled over all exchanges of a task, from the sample recordings of real peers."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_inspect.commands.show import show_conversation
from a2a_inspect.commands.show_selection import ShowSelection
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.artifacts import artifacts_of

_RECORDINGS = Path(__file__).parents[3] / "recordings"


def test_chunks_become_one_artifact() -> None:
    """The demo's plan comes in three chunks and is one artifact of three parts, from the stream
    that brought it."""
    with open_recording_or_cassette(_RECORDINGS / "demo.a2a.jsonl") as recording:
        task = next(recording.read_tasks()).task
        found = artifacts_of(recording, 1, task)["plan"]
    assert [part.text.split(":")[0] for part in found.artifact.parts if part.text] == [
        "Morning",
        "Afternoon",
        "Evening",
    ]
    assert len(found.chunks) == 3
    assert found.complete


@pytest.mark.parametrize("name", sorted(path.name for path in _RECORDINGS.glob("*.a2a.jsonl")))
def test_part_counts_equal_those_of_the_task(name: str) -> None:
    """For every task of every sample: what is put together agrees with what the recorder counted as
    it passed."""
    with open_recording_or_cassette(_RECORDINGS / name) as recording:
        for row in recording.read_tasks():
            found = artifacts_of(recording, row.session, row.task)
            counted = {artifact.artifact_id: artifact.parts for artifact in row.task.artifacts}
            assert {each: len(one.artifact.parts) for each, one in found.items()} == counted


def test_show_prints_artifacts(capsys: pytest.CaptureFixture[str]) -> None:
    """`show --artifacts` has their content below the task's line."""
    with open_recording_or_cassette(_RECORDINGS / "demo.a2a.jsonl") as recording:
        show_conversation(recording, ShowSelection(("#3",), artifacts=True), as_json=False)
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "artifact booking  1 part, complete" in lines
    assert (
        lines[lines.index("artifact booking  1 part, complete") + 1]
        == "Table booked, 19:30, four people"
    )
