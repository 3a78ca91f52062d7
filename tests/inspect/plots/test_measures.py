"""Sums computed by SQLite compared with counting one by one."""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path

import pytest

from a2a_inspect.plots.measures import read_distributions, read_histogram
from a2a_inspect.plots.scale import BIN_LIMITS
from a2a_inspect.plots.sums import compute_totals, whole_recording
from a2a_proxy.present import text
from a2a_proxy.protocol.finding_totals import follows_ending
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import make_key

RECORDINGS = Path(__file__).resolve().parents[3] / "recordings"
SAMPLES = sorted(RECORDINGS.glob("*.a2a.jsonl"))


@pytest.mark.parametrize("where", ["", "err", "op:SendStreamingMessage -binding:grpc", "text:task"])
@pytest.mark.parametrize("name", ["demo", "generations", "sdk-1.x-rest", "stdio"])
def test_sql_sums_equal_counting(name: str, where: str) -> None:
    """Frames, bytes, exchanges, durations, findings; with and without a filter."""
    with open_recording_or_cassette(RECORDINGS / f"{name}.a2a.jsonl") as recording:
        parts = whole_recording(recording)
        rows = list(recording.find_exchanges(where) if where else recording.read_exchanges())
        frames = [
            row.frame
            for row in (recording.find_frames(where) if where else recording.frames_after(0))
        ]
        over = read_histogram(parts, where, 50)
        if not frames:
            assert over is None
            return
        assert over is not None
        assert over.frames == len(frames)
        assert sum(bucket.bytes for bucket in over.buckets) == sum(
            frame.end - frame.start for frame in frames
        )
        for number, bucket in enumerate(over.buckets):
            low, high = over.scale.find_start(number), over.scale.find_start(number + 1)
            assert bucket.frames == sum(low <= frame.at < high for frame in frames)
            assert bucket.exchanges == sum(low <= row.exchange.started < high for row in rows)
        _findings(recording, where, {row.key for row in rows})
        known = read_distributions(parts, where)
        for row in rows:
            if row.exchange.closed:
                took = max(
                    row.exchange.closed - (row.exchange.request_ended or row.exchange.started), 0
                )
                of = (row.exchange.operation, str(row.exchange.binding), str(row.exchange.dialect))
                known[of][bisect_right(BIN_LIMITS, took)] -= 1
        assert not any(any(bins) for bins in known.values())
        assert compute_totals(parts, where).frames == len(frames)


def _findings(recording: Recording, where: str, keys: set[int]) -> None:
    found = [
        row
        for row in recording.read_findings()
        if (not where or make_key(row.session, row.finding.exchange) in keys)
        and not follows_ending(row.finding)
    ]
    assert sum(
        count for *_, count in compute_totals(whole_recording(recording), where).findings
    ) == len(found)


def test_a_part_of_the_time() -> None:
    """What lies outside does not count."""
    with open_recording_or_cassette(RECORDINGS / "demo.a2a.jsonl") as recording:
        frames = [row.frame for row in recording.frames_after(0)]
        middle = frames[len(frames) // 2].at
        over = read_histogram(whole_recording(recording), "", 10, (middle, frames[-1].at))
        assert over is not None
        assert (
            over.frames
            == sum(over.scale.start <= frame.at < over.scale.end for frame in frames)
            < len(frames)
        )
        outcomes = (
            compute_totals(whole_recording(recording)).calls["GetTask", "rest", "1.0"].outcomes
        )
        (row,) = recording.find_exchanges("op:GetTask binding:rest")
        assert outcomes == {text.outcome_of(row.exchange): 1}
