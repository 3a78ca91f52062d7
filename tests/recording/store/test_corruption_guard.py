"""Errors of queries that bypass the reader are attributed to the file only if its rows are not
valid."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.store.corruption_guard import guard_corruption
from support_hostile import altered


def test_an_error_over_an_invalid_time_names_its_row(tmp_path: Path):
    """Tables that enforce types accept it."""
    path = altered(tmp_path, f"UPDATE finding SET at = {(1 << 63) - 1}")
    with (
        Recording(path) as recording,
        pytest.raises(RecordingError, match="row 1 of table finding is not valid"),
    ):
        _fail_within_the_guard(recording)


def test_an_error_over_valid_rows_is_raised_unchanged(tmp_path: Path):
    with Recording(altered(tmp_path)) as recording, pytest.raises(OverflowError):
        _fail_within_the_guard(recording)


def _fail_within_the_guard(recording: Recording) -> None:
    with guard_corruption(recording):
        raise OverflowError
