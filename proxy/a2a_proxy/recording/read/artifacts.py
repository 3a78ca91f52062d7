"""Assembly of a task's artifacts from the recorded frames of all its exchanges."""

from collections.abc import Iterator

from a2a_proxy.model.event import Event
from a2a_proxy.model.values import EventKind, Frame, Task
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.artifact import AssembledArtifact, assemble_artifacts
from a2a_proxy.protocol.event import to_event
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import make_key

_CARRIERS = (EventKind.ARTIFACT, EventKind.TASK)


def artifacts_of(
    recording: Recording, session: int, task: Task, until: int = 0
) -> dict[str, AssembledArtifact[Frame]]:
    """Return the artifacts that the agent sent, by id, each from the exchange that has the most
    complete version of it.

    With `until` (ns since the epoch) the artifacts are as they were at that time.

    A client's messages on a live stream (manual/protocol.md "Live proposals", payload `2153`) are
    input, not output of the task.

    The same event may appear on several streams of a task, so each exchange is assembled
    separately: otherwise a chunk on two streams would be counted twice.
    """
    best: dict[str, AssembledArtifact[Frame]] = {}
    for number in task.exchanges:
        for name, found in assemble_artifacts(
            _artifact_events(recording, make_key(session, number), until), task.task_id
        ).items():
            if name not in best or _measure_completeness(found) >= _measure_completeness(
                best[name]
            ):
                best[name] = found
    return best


def _measure_completeness(found: AssembledArtifact[Frame]) -> tuple[bool, int]:
    return found.complete, len(found.artifact.parts)


def _artifact_events(
    recording: Recording, exchange_key: int, until: int
) -> Iterator[tuple[Frame, Event]]:
    row = recording.read_exchange(exchange_key)
    if row is None:
        return
    exchange = row.exchange
    for frame_row in recording.read_frames(exchange_key, payloads=False):
        if until and frame_row.frame.at > until:
            return  # frames are numbered in the order of their arrival
        if frame_row.frame.event in _CARRIERS and frame_row.frame.direction is Direction.TO_CLIENT:
            payload = recording.read_payload(frame_row)
            frame = frame_row.frame
            yield (
                frame,
                to_event(payload, frame.schema, exchange.dialect, exchange.operation, frame.kind),
            )
