"""Assemble artifacts from their chunks (manual/protocol.md "Artifacts"), offline, from recorded
events.

Parts are appended to the part list, never joined: whether two text parts form one text is not
defined (Q-23).
"""

from collections.abc import Iterable
from typing import Generic, TypeVar

import msgspec

from a2a_proxy.model.event import Artifact, ArtifactUpdate, Event

Ref = TypeVar("Ref")


class AssembledArtifact(msgspec.Struct, Generic[Ref]):
    """One artifact as assembled so far."""

    artifact: Artifact
    chunks: list[Ref]
    """Frames that contain its parts, in order; a replacement drops the earlier ones."""
    complete: bool = False
    """Whether a chunk had `lastChunk`, or the artifact came whole in a Task."""


def assemble_artifacts(
    events: Iterable[tuple[Ref, Event]], task_id: str = ""
) -> dict[str, AssembledArtifact[Ref]]:
    """Return the artifacts of one task by id: of `task_id`, or of all tasks in the events if it is
    empty.

    `events` are (frame, event) in the order of arrival on one stream; a chunk that a second stream
    repeats is not detected here. Of the artifact's name, description, metadata and extensions, the
    first non-empty value is kept.
    """
    found: dict[str, AssembledArtifact[Ref]] = {}
    for ref, event in events:
        update, task = event.artifact_update, event.task
        if update is not None and update.artifact is not None and task_id in ("", update.task_id):
            _add_chunk(found, ref, update, update.artifact)
        elif task is not None and task_id in ("", task.id):
            for artifact in task.artifacts:
                _add_whole(found, ref, artifact)
    return found


def _add_chunk(
    artifacts: dict[str, AssembledArtifact[Ref]],
    ref: Ref,
    update: ArtifactUpdate,
    artifact: Artifact,
) -> None:
    earlier = artifacts.get(artifact.artifact_id)
    if earlier is None or not update.append:
        artifacts[artifact.artifact_id] = AssembledArtifact(
            _merge_description(artifact, earlier), [ref], update.last_chunk
        )
        return
    whole = earlier.artifact
    earlier.artifact = _merge_description(
        msgspec.structs.replace(artifact, parts=[*whole.parts, *artifact.parts]), earlier
    )
    earlier.chunks.append(ref)
    earlier.complete = earlier.complete or update.last_chunk


def _add_whole(artifacts: dict[str, AssembledArtifact[Ref]], ref: Ref, artifact: Artifact) -> None:
    """Replace the known artifact by a snapshot. If the snapshot only repeats it, its chunks are
    kept as the evidence."""
    earlier = artifacts.get(artifact.artifact_id)
    if earlier is not None and earlier.artifact.parts == artifact.parts:
        earlier.complete = True
    elif earlier is None or len(artifact.parts) >= len(earlier.artifact.parts):
        artifacts[artifact.artifact_id] = AssembledArtifact(
            _merge_description(artifact, earlier), [ref], earlier is None or earlier.complete
        )


def _merge_description(artifact: Artifact, earlier: AssembledArtifact[Ref] | None) -> Artifact:
    if earlier is None:
        return artifact
    first = earlier.artifact
    return msgspec.structs.replace(
        artifact,
        name=first.name or artifact.name,
        description=first.description or artifact.description,
        metadata=first.metadata or artifact.metadata,
        extensions=first.extensions or artifact.extensions,
    )
