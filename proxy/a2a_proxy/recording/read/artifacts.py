"""A task's artifacts, put together from the recorded frames of all exchanges that touched it."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.event import Event
from a2a_proxy.model.frame import EventKind, Frame
from a2a_proxy.model.task import Task
from a2a_proxy.protocol.artifact import AssembledArtifact, assemble_artifacts
from a2a_proxy.protocol.event import to_event
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import make_key

_CARRIERS = (EventKind.ARTIFACT, EventKind.TASK)


def artifacts_of(recording: Recording, session: int, task: Task, until: int = 0) -> dict[str, AssembledArtifact[Frame]]:
    """The artifacts that the agent told of, by id, each as the exchange that shows most of it has it.

    With `until` (ns since the epoch) as they were at that moment.

    What a client sends up a live stream (manual/protocol.md "Live proposals", payload `2153`) is its input, not the
    task's output.

    One event goes to every stream of a task, so each exchange is put together by itself: joined, a chunk that two
    streams carried would stand there twice.
    """
    best: dict[str, AssembledArtifact[Frame]] = {}
    for number in task.exchanges:
        for name, found in assemble_artifacts(
            _artifact_events(recording, make_key(session, number), until), task.task_id
        ).items():
            if name not in best or _completeness(found) >= _completeness(best[name]):
                best[name] = found
    return best


def _completeness(found: AssembledArtifact[Frame]) -> tuple[bool, int]:
    return found.complete, len(found.artifact.parts)


def _artifact_events(recording: Recording, exchange_key: int, until: int) -> Iterator[tuple[Frame, Event]]:
    row = recording.exchange(exchange_key)
    if row is None:
        return
    exchange = row.exchange
    for frame_row in recording.frames(exchange_key, payloads=False):
        if until and frame_row.frame.at > until:
            return  # they are numbered in the order in which they passed
        if frame_row.frame.event in _CARRIERS and frame_row.frame.direction is Direction.TO_CLIENT:
            payload = recording.payload(frame_row)
            frame = frame_row.frame
            yield frame, to_event(payload, frame.schema, exchange.dialect, exchange.operation, frame.kind)
