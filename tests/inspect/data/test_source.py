"""The read side of the screen."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from a2a_inspect.data.positions import PAGE
from a2a_inspect.data.source import RecordingSnapshot, RecordingSource, RowCounter
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import make_key
from support_hostile import wrong_types
from support_inspect import changes, exchange, live, request, sample, status, writer
from support_recording import STARTED, event_frames


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[RecordingSource]:
    source = RecordingSource(path)
    try:
        yield source
    finally:
        source.close()


async def _snapshot(source: RecordingSource) -> RecordingSnapshot:
    found = await source.poll()
    assert found is not None
    return found


async def test_polls_report_changes_once(tmp_path: Path) -> None:
    """The first poll returns everything, the next nothing, until a commit."""
    async with opened(sample(tmp_path / "r.db")) as source:
        now = await _snapshot(source)
        assert (now.exchanges, now.frames, now.findings, now.is_live) == (3, 9, 0, False)
        assert await source.poll() is None
        more = writer(tmp_path / "r.db", 2)
        more.write([], changes=changes(live(1)))
        now = await _snapshot(source)
        assert (now.lengths, now.is_live) == ((3, 1), True)
        more.close()


async def test_a_file_that_does_not_exist_yet_is_waited_for(tmp_path: Path) -> None:
    """Nothing, until a proxy writes it; the same with an empty file."""
    path = tmp_path / "later.db"
    async with opened(path) as source:
        assert await source.poll() is None
        assert await source.read_exchanges(0) == []
        sample(path)
        assert (await _snapshot(source)).exchanges == 3
    empty = tmp_path / "empty.db"
    empty.touch()
    async with opened(empty) as source:
        assert await source.poll() is None


async def test_a_recreated_recording_is_shown(tmp_path: Path) -> None:
    """Deleted or moved it is shown as it was, until another one has its name."""
    path = sample(tmp_path / "r.db")
    async with opened(path) as source:
        assert (await _snapshot(source)).exchanges == 3
        path.rename(tmp_path / "moved.db")
        assert await source.poll() is None
        assert len(await source.read_exchanges(0)) == 3
        sample(path, 5)
        assert (await _snapshot(source)).exchanges == 5
        assert len(await source.read_exchanges(0)) == 5
        path.unlink()
        path.write_text("something else")
        with pytest.raises(RecordingError, match="not a recording"):
            await source.poll()
        path.unlink()
        assert await source.poll() is None
        sample(path, 1)
        assert (await _snapshot(source)).exchanges == 1


async def test_unreadable_rows_are_reported_at_each_poll(tmp_path: Path) -> None:
    """A recording whose rows make no sense is not taken for one in which nothing has happened."""
    async with opened(wrong_types(tmp_path)) as source:
        for _ in range(2):
            with pytest.raises(RecordingError, match="is not valid"):
                await source.poll()


def test_files_that_are_no_recordings_are_refused(tmp_path: Path) -> None:
    """A foreign file, and a file in a folder that is not there."""
    foreign = tmp_path / "foreign.db"
    foreign.write_text("something else")
    for path, words in ((foreign, "not a recording"), (tmp_path / "no" / "r.db", "not a folder")):
        with pytest.raises(RecordingError, match=words):
            RecordingSource(path)


async def test_pages_cross_sessions(tmp_path: Path) -> None:
    """The list is all sessions in order, whatever the length of each."""
    path, expected = tmp_path / "r.db", []
    for session, count in ((1, PAGE + 3), (2, 1), (3, 2 * PAGE)):
        made = writer(path, session)
        made.write([], changes=changes(*(exchange(number) for number in range(1, count + 1))))
        made.finish(STARTED)
        expected += [make_key(session, number) for number in range(1, count + 1)]
    async with opened(path) as source:
        await _snapshot(source)
        pages = [await source.read_exchanges(page) for page in range(len(expected) // PAGE + 2)]
    assert [row.key for page in pages for row in page] == expected
    assert [len(page) for page in pages] == [PAGE, PAGE, PAGE, len(expected) - 3 * PAGE, 0]


async def test_rows_of_the_list_are_read_without_headers(tmp_path: Path) -> None:
    """They lie packed elsewhere, and no column shows them; whoever looks into an exchange has
    them."""
    made = writer(tmp_path / "r.db")
    made.write([request(1)], changes=changes(exchange(1, request_headers=((b"host", b"agent"),))))
    made.close()
    async with opened(tmp_path / "r.db") as source:
        await _snapshot(source)
        (row,) = await source.read_exchanges(0)
        stream = await source.read_stream(row.key)
        assert stream is not None
        assert (row.exchange.request_headers, len(stream.row.exchange.request_headers)) == ((), 1)


async def test_numbers_may_have_holes(tmp_path: Path) -> None:
    """Positions are counted, not computed from numbers."""
    numbers = [1, 7, 1000, 10**9]
    made = writer(tmp_path / "r.db")
    made.write([], changes=changes(*map(exchange, numbers)))
    made.close()
    async with opened(tmp_path / "r.db") as source:
        assert (await _snapshot(source)).exchanges == 4
        assert [row.exchange.id for row in await source.read_exchanges(0)] == numbers


async def test_frames_are_read_in_pages_with_descriptions(tmp_path: Path) -> None:
    """Also while the exchange grows; another exchange than the chosen one has none."""
    made = writer(tmp_path / "r.db")
    made.write(
        [request(1), *(status(1, seq, f"step {seq}") for seq in range(1, PAGE + 2))],
        changes=changes(live(1)),
    )
    async with opened(tmp_path / "r.db") as source:
        stream = await source.read_stream(make_key(1, 1))
        assert stream is not None
        assert stream.frames == PAGE + 2
        assert stream.connection is not None
        assert [line.row.frame.seq for line in await source.read_frames(make_key(1, 1), 1)] == [
            PAGE,
            PAGE + 1,
        ]
        made.write([status(1, PAGE + 2, "and more")])
        stream = await source.read_stream(make_key(1, 1))
        assert stream is not None
        assert stream.frames == PAGE + 3
        assert (await source.read_frames(make_key(1, 1), 1))[-1].text == 'status working "and more"'
        assert await source.read_frames(make_key(1, 2), 0) == []
        assert await source.read_stream(make_key(1, 2)) is None
    made.close()


async def test_a_frame_has_its_payload(tmp_path: Path) -> None:
    """Exactly the bytes that were written."""
    async with opened(sample(tmp_path / "r.db")) as source:
        row = await source.read_frame(1)
        assert row is not None
        assert row.frame == request(1, "Question 1")
        assert await source.read_frame(99) is None


async def test_the_end_of_a_long_stream_is_found_quickly(tmp_path: Path) -> None:
    """The last page of a long stream of 100,000 frames comes after less than 2 s of work."""
    made = writer(tmp_path / "r.db")
    made.write(event_frames(100_000, per_exchange=100_000), changes=changes(live(1)))
    made.close()
    async with opened(tmp_path / "r.db") as source:
        begin = time.process_time()
        stream = await source.read_stream(make_key(1, 1))
        assert stream is not None
        lines = await source.read_frames(make_key(1, 1), (stream.frames - 1) // PAGE)
        assert time.process_time() - begin < 2
    assert lines[-1].row.frame.seq == 99_999


def test_row_counts_follow_growing_and_shrinking_tables(tmp_path: Path) -> None:
    """Rows are counted once; where some went, again."""
    path = sample(tmp_path / "r.db")
    with Recording(path) as recording:
        tally = RowCounter(recording, "frame")
        assert tally.count_rows() == 9
        more = writer(path, 2)
        more.write([request(1)], changes=changes(live(1)))
        assert tally.count_rows() == 10
        more._open_tables().db.execute("DELETE FROM frame WHERE session = 2")
        more.close()
        assert tally.count_rows() == 9


async def test_an_abandoned_query_is_interrupted(tmp_path: Path) -> None:
    """SQLite stops in the middle of it, and the next question has its answer."""
    begun = threading.Event()

    def endless(recording: Recording) -> int:
        recording.db.create_function("begun", 0, lambda: begun.set() or 1)
        query = (
            "WITH RECURSIVE n (x) AS (SELECT begun() "
            "UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
        )
        return int(recording.db.execute(query).fetchone()[0])

    async with opened(sample(tmp_path / "r.db")) as source:
        asked = asyncio.create_task(source.ask_cancellable(endless, 0))
        assert await asyncio.to_thread(begun.wait, 120)
        asked.cancel()
        exchanges = source.ask_cancellable(lambda recording: recording.count_rows().exchanges, 0)
        assert await asyncio.wait_for(exchanges, 120) == 3
        assert asked.cancelled()
