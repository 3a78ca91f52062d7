"""What an imported recording and the recording of the same traffic have in common."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from a2a_proxy.model.values import FrameKind
from a2a_proxy.present import text
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.tools.recheck import recheck_session

_BODIES = frozenset(FrameKind) - {FrameKind.END, FrameKind.CUT, FrameKind.CONTROL}
"""Kinds of frames with a message; the others have header fields and ends, which a HAR file has in
part."""

Facts = list[tuple[object, ...]]


def exchange_facts(recording: Recording) -> Facts:
    """Return what is known of each exchange, without times and addresses, in order of time."""
    found: Facts = []
    for row in recording.read_exchanges():
        one = row.exchange
        call = (one.operation, one.binding, one.dialect, one.method, one.target, one.http_version)
        end = (text.outcome_of(one), one.how, one.status, one.grpc_status, one.error)
        task = (one.task_id, one.context_id, one.states, one.generation, one.requests, one.events)
        found.append((*call, *end, *task))
    return found


def frame_facts(recording: Recording) -> list[Facts]:
    """Return the messages of each exchange: direction, kind, event, state and payload."""
    found: list[Facts] = []
    for row in recording.read_exchanges():
        frames = [each.frame for each in recording.read_frames(row.key)]
        found.append(
            [
                (f.direction, f.kind, f.event, f.state, f.payload)
                for f in frames
                if f.kind in _BODIES
            ]
        )
    return found


def rule_counts(recording: Recording) -> Counter[str]:
    """Return the number of findings of each rule of today, without A2A-CARD-009, which compares
    with the listener."""
    found = Counter(
        each.rule for row in recording.read_sessions() for each in recheck_session(recording, row)
    )
    for other in ("IMPORT", "A2A-CARD-009"):
        del found[other]
    return found


def check_equal(imported: Path, recorded: Path) -> None:
    """Assert that both have the same exchanges, messages and findings."""
    with open_recording_or_cassette(imported) as one, open_recording_or_cassette(recorded) as other:
        assert exchange_facts(one) == exchange_facts(other)
        assert frame_facts(one) == frame_facts(other)
        assert rule_counts(one) == rule_counts(other)
