"""The contents of a recording at a time, compared with a frame-by-frame computation."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_inspect.data.positions import PAGE
from a2a_inspect.data.replay.as_of import AsOf
from a2a_inspect.data.source import ExchangeStream
from a2a_proxy.model.values import Finding, FrameKind, Severity
from a2a_proxy.model.wire import Direction
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.reader import Recording
from support_inspect import MS, changes, exchange, request, sample, status, writer
from support_recording import STARTED

RECORDINGS = Path(__file__).resolve().parents[4] / "recordings"


@pytest.mark.parametrize("name", ["demo", "generations", "live-bidi", "concurrent-grpc", "stdio"])
def test_counts_at_several_moments(name: str) -> None:
    """Which exchanges had begun, which were over, how many frames had passed: never anything of
    later."""
    with open_recording_or_cassette(RECORDINGS / f"{name}.a2a.jsonl") as recording:
        known = AsOf(recording)
        rows = list(recording.read_exchanges())
        frames = {row.key: [each.frame for each in recording.read_frames(row.key)] for row in rows}
        times = sorted(frame.at for of in frames.values() for frame in of)
        assert list(known.frame_times) == times
        for until in times[:: max(len(times) // 12, 1)]:
            there = sorted(
                (r for r in rows if r.exchange.started <= until),
                key=lambda r: (r.exchange.started, r.key),
            )
            shown = known.read_exchanges(0, until)
            assert [row.key for row in shown] == [row.key for row in there][:PAGE]
            assert known.snapshot(until).exchanges == len(there)
            assert known.snapshot(until).frames == sum(at <= until for at in times)
            for row in shown:
                now, whole = (
                    row.exchange,
                    next(each.exchange for each in rows if each.key == row.key),
                )
                until_now = [frame for frame in frames[row.key] if frame.at <= until]
                assert known.frame_count(row, until) == len(until_now)
                if whole.closed and whole.closed <= until:
                    assert now == whole
                    continue
                assert (now.closed, now.error, now.how) == (0, "", "")
                assert now.last_event <= until
                assert not now.status or whole.response_started <= until
                kinds = (FrameKind.REQUEST, FrameKind.RESPONSE, FrameKind.EVENT)
                asked = [
                    frame
                    for frame in until_now
                    if frame.direction is Direction.TO_AGENT and frame.kind in kinds
                ]
                assert now.requests == len(asked)
                assert bool(now.task_id) == (
                    bool(whole.task_id) and any(frame.task_id for frame in until_now)
                )
                assert set(now.states) <= set(whole.states)


def test_steps_go_from_frame_to_frame(tmp_path: Path) -> None:
    with Recording(sample(tmp_path / "r.db")) as recording:
        known = AsOf(recording)
        at, seen = 0, []
        while (after := known.next_frame_time(at, 1)) != at:
            seen.append(at := after)
        assert seen == sorted(set(known.frame_times))
        while (before := known.next_frame_time(at, -1)) != at:
            assert seen.pop() == at
            at = before
        assert seen == [at]


def test_counts_of_some_exchanges(tmp_path: Path) -> None:
    """Of those that were found by a filter, by time, whatever their session."""
    with Recording(sample(tmp_path / "r.db")) as recording:
        first, _, third = (row.key for row in recording.read_exchanges())
        known = AsOf(recording, [first, third])
        assert list(known.keys) == [first, third]
        assert len(known.frame_times) == 6
        assert (known.find_index(third), known.find_index(-5)) == (1, 0)


def test_an_unfinished_exchange_is_live(tmp_path: Path) -> None:
    """It is live again: no outcome, no error, no finding of later, one state."""
    made = writer(tmp_path / "r.db")
    late = Finding("A2A-X-001", Severity.ERROR, STARTED + 1200 * MS, "late", 1, 1, 2)
    frames = [request(1), status(1, 1, "One"), status(1, 2, "Two")]
    made.write(frames, [late], changes(exchange(1, error="no such task", grpc_status=5)))
    made.finish(STARTED + 5000 * MS)
    with Recording(tmp_path / "r.db") as recording:
        row = next(iter(recording.read_exchanges()))
        known, until = AsOf(recording), STARTED + 1150 * MS
        stream = known.rewind_stream(ExchangeStream(row, 3, None, "generations 1"), until)
        now = stream.row.exchange
        assert (stream.frames, stream.generations) == (2, "")
        assert (now.closed, now.error, now.grpc_status, now.states) == (0, "", -1, ("working",))
        assert (now.events, now.last_event, now.requests) == (1, STARTED + 1100 * MS, 1)
        assert now.status == 200
        assert known.snapshot(until).findings == 0
        assert known.snapshot(until).sessions[0].how == ""
        assert known.snapshot(STARTED + 6000 * MS).sessions[0].how == "clean"
        assert known.rewind_row(row, STARTED + 1000 * MS).exchange.status == 0
