"""Which record is blamed for crashed recorders."""

from __future__ import annotations

from pathlib import Path

from a2a_proxy.recorder.crashes import CAREFUL_RECORDS, CrashHistory


def start(folder: Path, at: tuple[int, int] | None, *, first: bool = False) -> CrashHistory:
    """A recorder that begins at a position, and dies at the record there."""
    crashes = CrashHistory(folder, at, is_successor=not first)
    crashes.note_start()
    return crashes


def test_three_crashes_at_one_record_skip_it(tmp_path: Path) -> None:
    """One before anybody was careful, two after it."""
    start(tmp_path, None, first=True)
    start(tmp_path, (1, 500))
    assert start(tmp_path, (1, 500)).next_abandoned((1, 0)) is None
    crashes = start(tmp_path, (1, 500))
    assert crashes.next_abandoned((1, 24)) == (1, 500)
    assert crashes.next_abandoned((1, 501)) is None
    assert start(tmp_path, (1, 900)).next_abandoned((1, 24)) == (1, 500)


def test_crashes_at_different_records_skip_nothing(tmp_path: Path) -> None:
    """Nothing is given up."""
    start(tmp_path, None, first=True)
    for offset in range(10):
        assert start(tmp_path, (1, offset)).next_abandoned((0, 0)) is None


def test_single_record_mode_ends(tmp_path: Path) -> None:
    """After so many records it goes on in large steps; the first recorder never takes small
    ones."""
    assert start(tmp_path, None, first=True).careful_records == 0
    crashes = start(tmp_path, (1, 5))
    for _ in range(CAREFUL_RECORDS):
        assert crashes.careful_records
        crashes.note_commit()
    assert not crashes.careful_records


def test_a_damaged_crash_file_is_ignored(tmp_path: Path) -> None:
    """It counts as no crash."""
    (tmp_path / "crashes.json").write_bytes(b"\x00")
    assert start(tmp_path, (1, 5)).next_abandoned((0, 0)) is None
