"""Rows after a cursor: each once, in a stable order, the same live as afterwards."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from a2a_proxy.follower import batch_reader
from a2a_proxy.follower.batch_reader import next_batch, read_value
from a2a_proxy.follower.checkpoint import SessionCursor
from a2a_proxy.follower.consumer import RowKind
from a2a_proxy.model.values import Exchange, Finding, Frame, Observation, Segment
from a2a_proxy.model.wire import Chunk
from a2a_proxy.observer import Observer
from a2a_proxy.recording.cassette.file import open_recording_or_cassette, read_cassette
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.write.writer import Writer
from a2a_proxy.redaction import Redactor
from a2a_proxy.rules.define.catalogue import all_rules
from support_inspect import changes, exchange, request, sample, status, writer
from support_observer import KEY, captured
from support_recording import facts

ALL = frozenset(RowKind)
SAMPLES = sorted((Path(__file__).parents[2] / "recordings").glob("*.a2a.jsonl"))


class Walk:
    """Goes through a session batch by batch."""

    def __init__(
        self, recording: Recording, session: int = 1, wants: frozenset[RowKind] = ALL
    ) -> None:
        self._recording, self._session, self._wants = recording, session, wants
        self.cursor = SessionCursor()
        self.seen: list[tuple[RowKind, int, Any]] = []

    def step(self) -> bool:
        """One batch; False where there was nothing and will be nothing now."""
        batch = next_batch(self._recording, self._session, self.cursor, self._wants)
        assert batch is not None
        self.cursor = batch.after
        self.seen += [
            (item.kind, item.row, read_value(self._recording, item)) for item in batch.items
        ]
        return bool(batch.items) or batch.more

    def all(self) -> list[tuple[RowKind, int, Any]]:
        """Everything there is now."""
        while self.step():
            pass
        return self.seen

    def of(self, kind: RowKind) -> list[Any]:
        """The values of this kind, in order."""
        return [value for each, _, value in self.seen if each is kind]


def live(path: Path, chunks: list[Chunk], together: int) -> Walk:
    """Follow a recording while it is made, with a look after each commit of so many chunks."""
    observer = Observer(Redactor(KEY))
    made = Writer(
        path,
        facts(1, started=chunks[0].at, listens=("127.0.0.1:9000",), upstreams=("localhost:8000",)),
    )
    made.open()
    walk = Walk(Recording(path))
    for start in range(0, len(chunks), together):
        out: list[Observation] = []
        for chunk in chunks[start : start + together]:
            observer.feed(chunk, out)
        found = [each for each in out if type(each) is Finding]
        made.write([each for each in out if type(each) is Frame], found, observer.pop_changes())
        walk.step()
    made.finish(chunks[-1].at)
    walk.all()
    return walk


@pytest.fixture(params=[512, 7, 1], ids="{} frames a batch".format)
def page(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many frames a batch has: where it ends must not matter."""
    monkeypatch.setattr(batch_reader, "MAX_FRAMES", request.param)
    return int(request.param)


def in_order(seen: list[tuple[RowKind, int, Any]]) -> None:
    """Frames in order of storing; findings after their frame, ends after all frames, nothing
    twice."""
    keys = [(kind, row) for kind, row, _ in seen]
    assert len(keys) == len(set(keys))
    frames = [row for kind, row in keys if kind is RowKind.FRAME]
    assert frames == sorted(frames)
    reported: set[tuple[int, int]] = set()
    ended: set[int] = set()
    for _, _, value in seen:
        if isinstance(value, Frame):
            assert value.exchange not in ended
            reported.add((value.exchange, value.seq))
        elif isinstance(value, Finding) and value.exchange and value.seq >= 0:
            assert (value.exchange, value.seq) in reported
        elif isinstance(value, Exchange):
            ended.add(value.id)


@pytest.mark.usefixtures("page")
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_every_row_of_a_sample_is_read_once_in_order(path: Path) -> None:
    """Of real agents: each frame with its payload, each finding, each exchange that ended."""
    with open_recording_or_cassette(path) as recording:
        walk = Walk(recording)
        in_order(walk.all())
        rows = list(recording.frames_after(0))
        assert walk.of(RowKind.FRAME) == [row.frame for row in rows]
        assert {value.id for value in walk.of(RowKind.EXCHANGE)} == {
            row.exchange.id for row in recording.read_exchanges() if row.exchange.closed
        }
        parts = {
            RowKind.SEGMENT: [row.segment for row in recording.read_segments()],
            RowKind.INTERRUPTION: [row.interruption for row in recording.read_interruptions()],
            RowKind.HANDOFF: [row.handoff for row in recording.read_handoffs()],
        }
        for kind, values in parts.items():
            assert sorted(walk.of(kind), key=lambda each: each.id) == [
                each for each in values if each.ended
            ]
        assert sorted(map(repr, walk.of(RowKind.FINDING))) == sorted(
            repr(row.finding) for row in recording.read_findings()
        )


@pytest.mark.usefixtures("page")
@pytest.mark.parametrize("together", [1, 3, 10**6])
@pytest.mark.parametrize(
    "chunks",
    [
        lambda: captured("vendor"),
        lambda: captured("js_grpc"),
        lambda: all_rules()["A2A-GEN-001"].flagged.make_chunks(),
        lambda: all_rules()["A2A-STREAM-004"].flagged.make_chunks(),
    ],
    ids=["vendor", "js_grpc", "GEN-001", "STREAM-004"],
)
def test_following_live_reads_the_same_rows_as_afterwards(
    chunks: Callable[[], list[Chunk]], together: int, tmp_path: Path
) -> None:
    """The same values, frames in the same order, whenever one looks."""
    walk = live(tmp_path / "r.db", chunks(), together)
    in_order(walk.seen)
    with Recording(tmp_path / "r.db") as recording:
        after = Walk(recording)
        in_order(after.all())
    assert walk.of(RowKind.FRAME) == after.of(RowKind.FRAME)
    assert walk.of(RowKind.FRAME)
    for kind in RowKind:
        assert sorted(map(_told, walk.of(kind))) == sorted(map(_told, after.of(kind)))
    assert walk.of(RowKind.EXCHANGE)
    assert walk.of(RowKind.SEGMENT)


def _told(value: Any) -> str:
    """A value as text; when a segment's stream was closed is known later than that the segment has
    ended."""
    return repr(msgspec.structs.replace(value, closed=0) if isinstance(value, Segment) else value)


def test_an_exchange_is_reported_when_it_is_closed(tmp_path: Path) -> None:
    """Once, also where nothing but its row has changed; the last look finds it as it was in the
    end."""
    made = writer(tmp_path / "r.db")
    made.write(
        [request(1), status(1, 1, "x")], changes=changes(exchange(1, closed=0, how="", events=1))
    )
    walk = Walk(Recording(tmp_path / "r.db"))
    walk.all()
    assert (len(walk.of(RowKind.FRAME)), walk.of(RowKind.EXCHANGE), len(walk.cursor.open)) == (
        2,
        [],
        1,
    )
    made.write([], changes=changes(exchange(1, events=2)))
    walk.all()
    assert [(value.id, value.events) for value in walk.of(RowKind.EXCHANGE)] == [(1, 2)]
    assert walk.cursor.open == []
    made.write([status(1, 2, "late")], changes=changes(exchange(1, events=3)))
    walk.all()
    assert len(walk.of(RowKind.EXCHANGE)) == 1


def test_unwanted_row_kinds_are_skipped(tmp_path: Path) -> None:
    """The cursor moves on all the same."""
    sample(tmp_path / "r.db")
    walk = Walk(Recording(tmp_path / "r.db"), wants=frozenset({RowKind.EXCHANGE}))
    walk.all()
    assert [kind for kind, _, _ in walk.seen] == [RowKind.EXCHANGE] * 3
    assert walk.cursor.frame == 9


def test_rows_of_other_sessions_are_skipped(tmp_path: Path) -> None:
    """Rows that other proxies wrote into the file are not reported and not read again."""
    one, two = writer(tmp_path / "r.db", 1), writer(tmp_path / "r.db", 2)
    for number in (1, 2, 3):
        for each in (one, two):
            each.write([request(number)], changes=changes(exchange(number)))
    recording = Recording(tmp_path / "r.db")
    for session in (1, 2):
        walk = Walk(recording, session)
        walk.all()
        assert [value.exchange for value in walk.of(RowKind.FRAME)] == [1, 2, 3]
        assert [value.id for value in walk.of(RowKind.EXCHANGE)] == [1, 2, 3]
        assert walk.cursor.frame == 6
    assert next_batch(recording, 3, SessionCursor(), ALL) is None


@pytest.mark.parametrize(("looks_between", "how_many"), [(True, 1), (False, 1), (False, 20)])
def test_reused_row_numbers_after_pruning_are_read(
    tmp_path: Path, looks_between: bool, how_many: int
) -> None:
    """Another session of the file, which had the newest frames, is removed: what comes then is not
    taken for known, whether anybody looked in between or not, and be it less or more than was
    removed."""
    one, two = writer(tmp_path / "r.db", 1), writer(tmp_path / "r.db", 2)
    one.write([request(1)], changes=changes(exchange(1)))
    two.write([request(number) for number in range(1, 9)], changes=changes(exchange(1)))
    two.finish(exchange(1).closed)
    walk = Walk(Recording(tmp_path / "r.db"))
    walk.all()
    with contextlib.closing(sqlite3.connect(tmp_path / "r.db")) as db:
        db.execute("DELETE FROM frame WHERE session = 2")
        db.commit()
    if looks_between:
        walk.all()
    new = range(2, 2 + how_many)
    one.write([request(number) for number in new], changes=changes(*map(exchange, new)))
    walk.all()
    assert [value.exchange for value in walk.of(RowKind.FRAME)] == [1, *new]


def test_no_transaction_is_left_open(tmp_path: Path) -> None:
    """A follower that does not come back hinders no checkpoint: the log can be emptied between two
    looks."""
    made = writer(tmp_path / "r.db")
    made.write([request(1)], changes=changes(exchange(1)))
    recording = Recording(tmp_path / "r.db")
    batch = next_batch(recording, 1, SessionCursor(), ALL)
    assert batch is not None
    assert not recording.db.in_transaction
    made.finish(exchange(1).closed)  # which empties the log
    assert not (tmp_path / "r.db-wal").exists() or not (tmp_path / "r.db-wal").stat().st_size
    assert [
        read_value(recording, item).exchange for item in batch.items if item.kind is RowKind.FRAME
    ] == [1]


def test_an_imported_cassette_reads_the_same(tmp_path: Path) -> None:
    """Imported, or opened as it is."""
    read_cassette(SAMPLES[0], tmp_path / "r.db")
    with Recording(tmp_path / "r.db") as imported, open_recording_or_cassette(SAMPLES[0]) as opened:
        assert Walk(imported).all() == Walk(opened).all()
