from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from a2a_proxy.capture.journal_files import (
    MAX_RETRY_SECONDS,
    MIN_RETRY_SECONDS,
    UNCOPIED_BYTES,
    JournalFiles,
    JournalLimits,
)
from a2a_proxy.capture.record_format import segment_numbers
from support_journal import Disk


def test_ending_a_segment_is_retried_with_growing_pauses(tmp_path: Path) -> None:
    """On a full disk an idle segment is due, but tried after longer and longer pauses only; with
    room again it ends."""
    disk, now = Disk(), 100.0
    segments = JournalFiles(
        tmp_path, JournalLimits(segment_seconds=60, keep_free=0), write=disk, now=lambda: now
    )
    assert segments.seconds_until_rotation is None
    assert segments.write([b"header", b"data"]) == 2
    assert segments.seconds_until_rotation == 60
    disk.room = 0
    pauses = []
    now += 60
    for _ in range(7):
        assert segments.seconds_until_rotation == 0
        segments.rotate_if_due()
        assert segments.seconds_until_rotation is not None
        pauses.append(segments.seconds_until_rotation)
        now += segments.seconds_until_rotation
    assert pauses[:2] == [MIN_RETRY_SECONDS, 2 * MIN_RETRY_SECONDS]
    assert pauses[-2:] == [MAX_RETRY_SECONDS, MAX_RETRY_SECONDS]
    assert segment_numbers(tmp_path) == [1]
    disk.room = None
    segments.rotate_if_due()
    assert segment_numbers(tmp_path) == [1, 2]
    assert segments.seconds_until_rotation is None
    segments.close()


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [(OSError(errno.EIO, "Input/output error"), "input/output error"), (OSError("gone"), "gone")],
)
def test_nothing_is_written_if_the_free_space_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: OSError, reason: str
) -> None:
    """Nothing is written to it, and why is known; once it says so again, writing goes on."""
    segments = JournalFiles(tmp_path, JournalLimits(), now=lambda: 100.0)

    def failing(_: object) -> os.statvfs_result:
        raise wrong

    with monkeypatch.context() as patched:
        patched.setattr(os, "statvfs", failing)
        assert segments.write([b"header", b"data"]) == 0
    assert (segments.reason, segments.is_blocked) == (reason, True)
    assert segments.write([b"header", b"data"]) == 2
    assert segments.reason == ""
    segments.close()


def test_what_does_not_fit_beside_the_bytes_to_keep_free_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = [b"header", bytes(52)]
    segments = JournalFiles(tmp_path, JournalLimits(keep_free=1000), now=lambda: 100.0)
    disk = SimpleNamespace(f_bavail=0, f_frsize=1, f_blocks=0)
    monkeypatch.setattr(os, "statvfs", lambda _: disk)
    disk.f_bavail = 1000 + 100
    assert segments.write(record) == 2
    disk.f_bavail = 1000 + 40
    assert segments.write(record) == 0
    assert segments.reason == "the disk is almost full"
    segments.close()


def test_a_deleted_folder_is_created_again(tmp_path: Path) -> None:
    segments = JournalFiles(tmp_path / "j", JournalLimits())
    shutil.rmtree(tmp_path / "j")
    assert segments.write([b"header", b"data"]) == 2
    assert (tmp_path / "j").stat().st_mode & 0o777 == 0o700
    segments.close()


def test_long_records_follow_each_other_in_one_segment(tmp_path: Path) -> None:
    """A new segment begins only when this one is full."""
    segments = JournalFiles(tmp_path, JournalLimits(segment_bytes=10_000, keep_free=0))
    record = [bytes(24), bytes(3_000)]
    for _ in range(4):
        assert segments.write(record) == 2
    assert segment_numbers(tmp_path) == [1]
    assert segments.write(record) == 2
    assert segment_numbers(tmp_path) == [1, 2]
    segments.close()


@pytest.mark.parametrize(
    ("sizes", "calls"),
    [
        ((24, 300, 24, 500), [848]),
        ((24, 20_000, 24, 30_000), [50_048]),
        ((24, 100, 24, UNCOPIED_BYTES, 24, 100), [148, UNCOPIED_BYTES, 124]),
        ((24, UNCOPIED_BYTES, *(24, 100) * 30), [36_512]),
    ],
)
def test_small_pieces_are_written_at_once_and_large_ones_without_a_copy_unless_nearly_all_are_small(
    tmp_path: Path, sizes: tuple[int, ...], calls: list[int]
) -> None:
    written: list[bytes] = []

    def write(_: int, data: bytes | memoryview) -> int:
        written.append(bytes(data))
        return len(data)

    segments = JournalFiles(tmp_path, JournalLimits(keep_free=0), write=write)
    written.clear()
    pieces = [bytes([number]) * size for number, size in enumerate(sizes)]
    assert segments.write(pieces) == len(sizes)
    assert b"".join(written) == b"".join(pieces)
    assert [len(each) for each in written] == calls
    segments.close()


def test_space_of_deleted_segments_is_used_again(tmp_path: Path) -> None:
    """The folder is measured again before the limit is reported."""
    segments = JournalFiles(tmp_path, JournalLimits(segment_bytes=600, max_bytes=1000, keep_free=0))
    assert segments.write([b"", b"", bytes(600)]) == 3
    assert segments.write([b"", b"", bytes(200)]) == 3
    assert segment_numbers(tmp_path) == [1, 2]
    (tmp_path / "000001.a2aj").unlink()
    assert segments.write([b"", b"", bytes(200)]) == 3
    assert segments.write([b"", b"", bytes(800)]) == 0
    assert segments.reason == "it has reached its limit of 1000 bytes"
    segments.close()


def test_a_folder_that_is_deleted_meanwhile_has_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recorder that has finished deletes its journal while a reader waits for it."""
    monkeypatch.setattr(Path, "is_dir", lambda _path: True)  # as it was a moment before
    assert segment_numbers(tmp_path / "journal") == []
