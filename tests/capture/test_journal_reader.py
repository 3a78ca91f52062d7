from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest

from a2a_proxy.capture.journal import Journal
from a2a_proxy.capture.journal_files import JournalLimits
from a2a_proxy.capture.journal_reader import JournalReader
from a2a_proxy.capture.loss import LossRecord
from a2a_proxy.capture.record_format import SEGMENT_HEADER, segment_numbers, segment_path
from a2a_proxy.model.wire import Chunk, ChunkKind, Direction
from support_journal import Turns, read_all

A = Direction.TO_AGENT


def written(
    folder: Path, count: int = 40, size: int = 100, segment_bytes: int = 1000
) -> list[Chunk]:
    journal = Journal(folder, Turns(), JournalLimits(segment_bytes=segment_bytes, keep_free=0))
    chunks = [Chunk(1, ChunkKind.DATA, A, at, bytes((at % 251,)) * size) for at in range(count)]
    for chunk in chunks:
        journal.append(chunk.kind, chunk.direction, chunk.connection, chunk.at, chunk.data)
        journal.flush()
    journal.close(count)
    return [*chunks, Chunk(0, ChunkKind.END, A, count)]


@pytest.mark.parametrize("max_bytes", [1, 25, 124, 125, 300, 1 << 20])
def test_any_read_size_yields_the_same_records(tmp_path: Path, max_bytes: int) -> None:
    """However little is read at once, also less than one record, all records come."""
    assert written(tmp_path) == read_all(tmp_path, max_bytes)


def test_a_reader_resumes_from_any_position(tmp_path: Path) -> None:
    """A new reader at each position reads exactly the rest, and `behind` counts down to 0."""
    chunks = written(tmp_path)
    got: list[Chunk] = []
    position, behind = (1, 0), 1 << 60
    while True:
        reader = JournalReader(tmp_path, position)
        more = reader.read(300)
        got += more
        position = reader.position
        assert reader.unread_bytes <= behind
        behind = reader.unread_bytes
        reader.close()
        if not more:
            break
    assert got == chunks
    assert behind == 0


def test_following_a_live_writer(tmp_path: Path) -> None:
    """A reader that runs while records are written, rotated and deleted sees each once, in
    order."""
    journal = Journal(tmp_path, Turns(), JournalLimits(segment_bytes=50_000, keep_free=0))
    count = 20_000

    def write() -> None:
        for at in range(count):
            journal.append(ChunkKind.DATA, A, 1, at, b"x" * (at % 97))
            if at % 13 == 0:
                journal.flush()
        journal.close(count)

    thread = threading.Thread(target=write)
    thread.start()
    reader = JournalReader(tmp_path)
    expected = 0
    while expected <= count:
        for chunk in reader.read(8192):
            assert chunk.at == expected
            expected += 1
        reader.delete_before(reader.position[0])
    thread.join()
    assert chunk.kind is ChunkKind.END
    assert segment_numbers(tmp_path) == [reader.position[0]]
    assert reader.unread_bytes == 0
    reader.close()


def damages(chunks: list[Chunk]) -> list[str]:
    return [
        msgspec.json.decode(chunk.data, type=LossRecord).damage
        for chunk in chunks
        if chunk.kind is ChunkKind.LOST and chunk.connection == 0
    ]


def test_damage_is_reported_once_and_the_next_segment_is_read(tmp_path: Path) -> None:
    """A wrong byte costs the rest of its segment; a LOST on connection 0 stands where it was."""
    chunks = written(tmp_path)
    path = segment_path(tmp_path, 2)
    data = bytearray(path.read_bytes())
    data[SEGMENT_HEADER.size + 2 * 124 + 50] ^= 1
    path.write_bytes(data)
    got = read_all(tmp_path)
    (said,) = damages(got)
    assert said == f"journal segment 2, offset {SEGMENT_HEADER.size + 2 * 124}: a wrong checksum"
    place = next(index for index, chunk in enumerate(got) if chunk.kind is ChunkKind.LOST)
    assert got[:place] == chunks[:place]
    rest = got[place + 1 :]
    assert rest == chunks[-len(rest) :]
    assert len(rest) > 10
    assert got[place].at == chunks[place - 1].at


def test_a_truncated_segment_is_reported(tmp_path: Path) -> None:
    """Bytes missing at the end of a segment are noticed by the next one's header, at whatever place
    it was cut."""
    chunks = written(tmp_path)
    path = segment_path(tmp_path, 2)
    whole = path.read_bytes()
    for cut in (len(whole) - 1, len(whole) - 124, len(whole) - 200, SEGMENT_HEADER.size):
        path.write_bytes(whole[:cut])
        got = read_all(tmp_path)
        assert len(damages(got)) == 1
        assert "missing at its end" in damages(got)[0]
        assert [chunk for chunk in got if chunk.kind is not ChunkKind.LOST] == [
            c for c in chunks if c in got
        ]


@pytest.mark.parametrize("data", [b"", b"A2AJ", b"\0" * 24, b"\xff" * 5000])
def test_a_file_that_is_no_segment_is_reported_and_skipped(tmp_path: Path, data: bytes) -> None:
    """It is reported and skipped."""
    written(tmp_path)
    segment_path(tmp_path, 2).write_bytes(data)
    got = read_all(tmp_path)
    assert len(damages(got)) == 1
    assert got[-1].kind is ChunkKind.END


def test_a_missing_segment_is_reported(tmp_path: Path) -> None:
    """A missing segment is reported and skipped."""
    written(tmp_path)
    segment_path(tmp_path, 1).unlink()
    got = read_all(tmp_path)
    assert damages(got) == ["journal segment 1, offset 0: the segment is missing"]
    assert got[-1].kind is ChunkKind.END


def test_a_torn_record_at_the_end_is_read_once_complete(tmp_path: Path) -> None:
    """A killed relay leaves half a record: no damage, no record, and nothing more."""
    chunks = written(tmp_path, count=5, segment_bytes=1 << 20)
    path = segment_path(tmp_path, 1)
    whole = path.read_bytes()
    for cut in range(len(whole) - 24 - 124, len(whole)):
        path.write_bytes(whole[:cut])
        reader = JournalReader(tmp_path)
        got = reader.read()
        assert got == chunks[: len(got)]
        assert reader.read() == []
        path.write_bytes(whole)
        assert got + reader.read() == chunks
        reader.close()


def test_a_reader_may_start_before_the_writer(tmp_path: Path) -> None:
    """A reader may come before the writer."""
    reader = JournalReader(tmp_path / "later")
    assert reader.read() == []
    assert reader.unread_bytes == 0
    chunks = written(tmp_path / "later", count=1)
    assert reader.read() == chunks
    reader.close()
