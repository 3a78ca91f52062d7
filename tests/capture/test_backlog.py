"""The age of what the recorder has not stored yet."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from a2a_proxy.capture import file_layout
from a2a_proxy.capture.backlog import oldest_record_after, recording_lag
from a2a_proxy.capture.journal import Journal
from a2a_proxy.capture.record_format import START_POSITION
from a2a_proxy.model.wire import ChunkKind, Direction


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The journal of the session "u" with two records, written at 1,000 and 2,000 ns."""
    monkeypatch.setenv(file_layout.STATE_VARIABLE, str(tmp_path))
    made = file_layout.create_journal(
        file_layout.SessionFile(str(tmp_path / "r.db"), os.getpid(), 0, uuid="u")
    )
    journal = Journal(made.path, lambda _seconds, _call: None)
    for number in (1, 2):
        journal.append(ChunkKind.DATA, Direction.TO_AGENT, 1, number * 1000, b"x" * 10)
    journal.close(3000)
    return made.path


def test_the_age_is_that_of_the_first_record_that_is_not_stored(folder: Path) -> None:
    assert oldest_record_after(folder, START_POSITION) == 1000
    assert recording_lag("u", None, 5000) == 4000


def test_a_recording_with_all_records_is_not_behind(folder: Path) -> None:
    end = (1, (folder / "000001.a2aj").stat().st_size)
    assert recording_lag("u", end, 5000) == 0


def test_a_session_without_a_journal_is_not_behind(folder: Path) -> None:
    assert recording_lag("v", None, 5000) == 0
    assert oldest_record_after(folder / "none", START_POSITION) == 0
