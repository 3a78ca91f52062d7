from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from a2a_proxy.capture import journal as journal_module
from a2a_proxy.capture import journal_files
from a2a_proxy.capture.journal import Journal
from a2a_proxy.capture.journal_files import JournalLimits
from a2a_proxy.capture.record_format import segment_numbers, segment_path
from a2a_proxy.model.wire import Chunk, ChunkKind, Direction
from support_journal import Disk, Turns, lost, payload, read_all

OPEN, DATA, OURS, LOST, EOF, CLOSED, END = (
    ChunkKind.OPEN,
    ChunkKind.DATA,
    ChunkKind.OURS,
    ChunkKind.LOST,
    ChunkKind.EOF,
    ChunkKind.CLOSED,
    ChunkKind.END,
)
A, B = Direction
ROOMY = JournalLimits(keep_free=0)


def wait_for_writer(journal: Journal) -> None:
    deadline = time.monotonic() + 60
    while journal.get_stats().queued and time.monotonic() < deadline:
        time.sleep(0.001)
    assert not journal.get_stats().queued


def test_appended_records_are_read_in_order(tmp_path: Path) -> None:
    """All records come back in order, then END; files are for the user only."""
    journal = Journal(tmp_path / "j", turns := Turns(), ROOMY)
    draw = random.Random(7)
    sent = [
        Chunk(
            draw.randrange(1, 9),
            draw.choice([OPEN, DATA, OURS, EOF]),
            draw.choice([A, B]),
            1000 + n,
            draw.randbytes(draw.choice([0, 1, 700, 70_000])),
        )
        for n in range(400)
    ]
    for number, chunk in enumerate(sent):
        journal.append(chunk.kind, chunk.direction, chunk.connection, chunk.at, chunk.data)
        if number % 7 == 0:
            turns.turn()
    assert journal.close(9999)
    assert read_all(tmp_path / "j") == [*sent, Chunk(0, END, A, 9999)]
    stats = journal.get_stats()
    assert (stats.appended, stats.lost, stats.queued) == (payload(sent), 0, 0)
    assert stats.position == (1, segment_path(tmp_path / "j", 1).stat().st_size)
    assert (tmp_path / "j").stat().st_mode & 0o777 == 0o700
    assert segment_path(tmp_path / "j", 1).stat().st_mode & 0o777 == 0o600


def test_records_are_handed_over_by_time_or_size(tmp_path: Path) -> None:
    """Small records wait for the timer, of which there is one at a time; 256 KiB go at once."""
    journal = Journal(tmp_path, turns := Turns(), ROOMY)
    for _ in range(10):
        journal.append(DATA, A, 1, 1, b"x" * 100)
    assert len(turns.due) == 1
    assert journal.get_stats().queued == 0
    assert read_all(tmp_path) == []
    turns.turn()
    wait_for_writer(journal)
    assert len(read_all(tmp_path)) == 10
    for _ in range(3):
        journal.append(DATA, A, 1, 1, b"x" * 100_000)
    wait_for_writer(journal)
    assert len(read_all(tmp_path)) == 13
    journal.close(1)


def test_segments_rotate_by_size(tmp_path: Path) -> None:
    """A full segment ends, and the records continue in the next one."""
    journal = Journal(tmp_path, Turns(), JournalLimits(segment_bytes=10_000, keep_free=0))
    for number in range(50):
        journal.append(DATA, A, 1, number, b"x" * 1000)
        journal.flush()
    journal.close(99)
    assert len(segment_numbers(tmp_path)) == journal.get_stats().segments > 4
    assert all(path.stat().st_size <= 11_100 for path in tmp_path.iterdir())
    assert [chunk.at for chunk in read_all(tmp_path)] == [*range(50), 99]


def test_idle_segments_rotate_by_time(tmp_path: Path) -> None:
    """An idle segment is ended after a time; an empty one is not."""
    journal = Journal(tmp_path, Turns(), JournalLimits(segment_seconds=0.05, keep_free=0))
    journal.append(DATA, A, 1, 1, b"x")
    journal.flush()
    deadline = time.monotonic() + 60
    while len(segment_numbers(tmp_path)) < 2 and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(0.2)
    assert segment_numbers(tmp_path) == [1, 2]
    journal.close(2)


def test_short_writes_are_continued(tmp_path: Path) -> None:
    """A disk that accepts a few bytes at a time loses none."""
    disk = Disk()
    journal = Journal(tmp_path, Turns(), ROOMY, write=disk)
    disk.most = 7
    for number in range(20):
        journal.append(DATA, A, 1, number, bytes(range(100)))
    journal.close(20)
    assert [chunk.at for chunk in read_all(tmp_path)] == list(range(21))


def test_a_slow_disk_does_not_delay_appending(tmp_path: Path) -> None:
    """While a write hangs, 20,000 records are taken; then all are there."""
    disk = Disk()
    journal = Journal(tmp_path, turns := Turns(), ROOMY, write=disk)
    disk.open.clear()
    for number in range(20_000):
        journal.append(DATA, A, 1, number, b"x" * 400)
        if number % 100 == 0:
            turns.turn()
    assert journal.get_stats().queued > 5_000_000
    disk.open.set()
    assert journal.close(1)
    assert len(read_all(tmp_path)) == 20_001


def story(journal: Journal, connection: int, at: int, parts: int = 5) -> None:
    journal.append(OPEN, A, connection, at, b"{}")
    for _ in range(parts):
        journal.append(DATA, A, connection, at, b"x" * 100)
        journal.append(DATA, B, connection, at, b"y" * 200)


def test_a_full_queue_is_counted(tmp_path: Path) -> None:
    """Records that do not fit into the queue are lost and reported; the connection becomes
    opaque."""
    disk = Disk()
    journal = Journal(
        tmp_path, turns := Turns(), JournalLimits(queue_bytes=2000, keep_free=0), write=disk
    )
    disk.open.clear()
    story(journal, 1, 1)
    journal.flush()
    for at in range(2, 5):
        journal.append(DATA, A, 1, at, b"x" * 1000)
        journal.append(EOF, A, 1, at, b"")
        journal.flush()
    assert journal.get_stats().lost == 3000
    disk.open.set()
    wait_for_writer(journal)
    turns.turn()
    wait_for_writer(journal)
    assert lost(read_all(tmp_path)) == 3000
    journal.append(DATA, B, 1, 6, b"late")
    story(journal, 2, 7)
    journal.append(CLOSED, A, 1, 8, b"")
    journal.close(9)
    chunks = read_all(tmp_path)
    kinds = [chunk.kind for chunk in chunks if chunk.connection == 1]
    assert kinds == [OPEN, *[DATA] * 10, LOST, EOF, EOF, EOF, LOST, CLOSED]
    assert payload(chunks) + lost(chunks) == journal.get_stats().appended
    assert journal.get_stats().lost == lost(chunks) == 3004
    assert sum(chunk.kind is DATA for chunk in chunks if chunk.connection == 2) == 10


def test_a_full_disk_is_counted(tmp_path: Path) -> None:
    """A write that fails in mid-record: what lay whole before it is read, the rest is told once
    there is room again."""
    disk = Disk()
    journal = Journal(tmp_path, Turns(), ROOMY, write=disk)
    story(journal, 1, 1)
    journal.flush()
    wait_for_writer(journal)
    disk.room = 500
    story(journal, 2, 2)
    journal.append(DATA, A, 1, 2, b"x" * 100)
    journal.flush()
    wait_for_writer(journal)
    assert lost(read_all(tmp_path)) == 0
    disk.room = None
    deadline = time.monotonic() + 60
    while not lost(read_all(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.01)
    story(journal, 3, 3)
    journal.append(DATA, A, 2, 4, b"late")
    for connection in (1, 2, 3):
        journal.append(CLOSED, A, connection, 5, b"")
    journal.close(6)
    chunks = read_all(tmp_path)
    assert payload(chunks) + lost(chunks) == journal.get_stats().appended
    assert journal.get_stats().lost == lost(chunks) > 0
    assert [chunk.kind for chunk in chunks if chunk.connection == 1] == [
        OPEN,
        *[DATA] * 10,
        LOST,
        CLOSED,
    ]
    second = [chunk.kind for chunk in chunks if chunk.connection == 2]
    assert second[:3] == [OPEN, DATA, DATA]
    assert DATA not in second[second.index(LOST) :]
    assert second[-1] is CLOSED
    assert LOST not in [chunk.kind for chunk in chunks if chunk.connection == 3]


@pytest.mark.parametrize("seed", range(30))
def test_written_and_lost_records_add_up(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the disk fails and comes back: appended = read + lost, and no byte follows a hole."""
    monkeypatch.setattr(journal_files, "MIN_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(journal_module, "MIN_RETRY_SECONDS", 0.01)
    draw = random.Random(seed)
    disk = Disk()
    limits = JournalLimits(
        segment_bytes=draw.choice([2000, 10**6]),
        queue_bytes=draw.choice([1000, 10**6]),
        keep_free=0,
    )
    journal = Journal(tmp_path, Turns(), limits, write=disk)
    connection = 0
    for turn in range(60):
        disk.room = draw.choice([None, None, draw.randrange(3000)])
        disk.most = draw.choice([None, 13])
        if turn % 5 == 0:
            connection += 1
            journal.append(OPEN, A, connection, turn, b"{}")
        for _ in range(draw.randrange(6)):
            number = draw.randrange(max(1, connection - 2), connection + 1)
            journal.append(
                draw.choice([DATA, DATA, OURS]),
                draw.choice([A, B]),
                number,
                turn,
                bytes(draw.randrange(400)),
            )
        if turn % 10 == 9 and connection > 3:
            journal.append(CLOSED, A, max(1, connection - 3), turn, b"")
        journal.flush()
        if draw.random() < 0.5:
            wait_for_writer(journal)
        if draw.random() < 0.1:
            time.sleep(0.02)
    disk.room = None
    assert journal.close(99)
    chunks = read_all(tmp_path, 1000)
    stats = journal.get_stats()
    assert payload(chunks) + lost(chunks) == stats.appended
    assert lost(chunks) == stats.lost
    assert chunks[-1].kind is END
    holes: set[int] = set()
    for chunk in chunks:
        if chunk.kind is LOST:
            assert chunk.connection
            holes.add(chunk.connection)
        elif chunk.kind in (DATA, OURS):
            assert chunk.connection not in holes


def test_the_journal_has_a_cap(tmp_path: Path) -> None:
    """At the cap capture stops and is counted; when the reader has deleted segments, new
    connections are captured."""
    journal = Journal(tmp_path, Turns(), JournalLimits(max_bytes=20_000, keep_free=0))
    for connection in range(1, 31):
        journal.append(OPEN, A, connection, connection, b"{}")
        journal.append(DATA, A, connection, connection, b"x" * 1000)
        journal.flush()
        wait_for_writer(journal)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 20_100
    lost_then = journal.get_stats().lost
    assert 10_000 <= lost_then < 20_000
    assert len(segment_numbers(tmp_path)) == 2
    captured = payload(read_all(tmp_path))
    segment_path(tmp_path, 1).unlink()
    journal.append(OPEN, A, 31, 31, b"{}")
    deadline = time.monotonic() + 60
    while journal.get_stats().position[1] <= 24 and time.monotonic() < deadline:
        time.sleep(0.01)
    journal.append(DATA, A, 31, 31, b"x" * 1000)
    journal.close(99)
    chunks = [chunk for chunk in read_all(tmp_path) if b"damage" not in chunk.data]
    assert captured + payload(chunks) + lost(chunks) == journal.get_stats().appended
    assert DATA in [chunk.kind for chunk in chunks if chunk.connection == 31]


def test_the_disk_is_not_filled(tmp_path: Path) -> None:
    """Nothing is written where less would stay free than shall."""
    journal = Journal(tmp_path, Turns(), JournalLimits(keep_free=1 << 60))
    story(journal, 1, 1)
    assert journal.close(2)
    assert journal.get_stats().lost == journal.get_stats().appended == 1500
    assert payload(read_all(tmp_path)) == 0


def test_a_file_size_limit_loses_no_record(tmp_path: Path) -> None:
    """EFBIG, which a real kernel gives for RLIMIT_FSIZE, leads to a new segment and to no loss."""
    script = f"""
import resource
from pathlib import Path
from a2a_proxy.capture.journal import Journal
from a2a_proxy.capture.journal_files import JournalLimits
from a2a_proxy.model.wire import ChunkKind, Direction
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
journal = Journal(Path({str(tmp_path)!r}), lambda *_: None, JournalLimits(keep_free=0))
for number in range(40):
    journal.append(ChunkKind.DATA, Direction.TO_AGENT, 1, number, b"x" * 900)
    journal.flush()
assert journal.close(40)
print(journal.get_stats().lost)
"""
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (result.stdout, result.stderr) == ("0\n", "")
    assert len(segment_numbers(tmp_path)) >= 4
    chunks = read_all(tmp_path)
    assert [chunk.at for chunk in chunks] == list(range(41))


def test_the_reader_is_woken(tmp_path: Path) -> None:
    """One byte for each batch; a full pipe and a closed one are no matter."""
    read_end, write_end = os.pipe()
    journal = Journal(tmp_path, Turns(), ROOMY, wake_fd=write_end)
    os.close(write_end)
    journal.append(DATA, A, 1, 1, b"x")
    journal.flush()
    assert os.read(read_end, 100) == b"\0"
    for _ in range(70):
        for _ in range(1000):
            journal.append(DATA, A, 1, 1, b"")
            journal.flush()
    wait_for_writer(journal)
    os.close(read_end)
    journal.append(DATA, A, 1, 2, b"y")
    journal.close(3)
    assert journal.get_stats().lost == 0
    assert len(read_all(tmp_path, 1 << 24)) == 70_003


def test_an_unwritable_folder_raises_at_the_start(tmp_path: Path) -> None:
    """The constructor raises OSError."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError):
        Journal(tmp_path / "file" / "j", Turns(), ROOMY)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_the_reason_of_a_loss_survives_the_next_write(tmp_path: Path, number: int) -> None:
    """A small record still fits where a large one did not: the bytes are lost all the same, and why
    is still known."""

    def write(fd: int, data: bytes | memoryview) -> int:
        if len(data) > 4096:
            raise OSError(number, os.strerror(number))
        return os.write(fd, data)

    journal = Journal(tmp_path / "j", Turns(), ROOMY, write=write)
    journal.append(DATA, A, 1, 1, bytes(60_000))
    journal.flush()
    wait_for_writer(journal)
    deadline = time.monotonic() + 60
    while journal.get_stats().reason and time.monotonic() < deadline:
        time.sleep(0.001)  # until it is tried again, with the record that tells of the loss
    stats = journal.get_stats()
    assert (stats.lost, stats.reason, stats.lost_reason) == (
        60_000,
        "",
        os.strerror(number).lower(),
    )
    assert journal.close(2)


def test_a_full_queue_is_reported_as_a_slow_disk(tmp_path: Path) -> None:
    """There is room, but it is not reached in time."""
    disk = Disk()
    journal = Journal(
        tmp_path / "j", Turns(), JournalLimits(keep_free=0, queue_bytes=100_000), write=disk
    )
    disk.open.clear()
    for at in range(4):
        journal.append(DATA, A, 1, at, bytes(60_000))
        journal.flush()
    assert journal.get_stats().lost >= 60_000
    assert journal.get_stats().lost_reason == ""
    disk.open.set()
    assert journal.close(9)


def test_a_process_that_fails_ends_although_its_journal_is_open(tmp_path: Path) -> None:
    """The thread that writes does not keep it alive."""
    script = (
        "import pathlib, sys;"
        "from a2a_proxy.capture.journal import Journal;"
        "journal = Journal(pathlib.Path(sys.argv[1], 'j'), lambda *_: None);"
        "raise SystemExit(7)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False, timeout=60)
    assert done.returncode == 7
