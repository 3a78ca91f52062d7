"""Artifacts put together from their chunks (manual/protocol.md "Artifacts"), offline, over recorded events.

Parts are appended to the part list, never joined: whether two text parts are one text is not defined (Q-23).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

import msgspec

from a2a_proxy.model.event import Artifact, ArtifactUpdate, Event

Ref = TypeVar("Ref")


class Assembled(msgspec.Struct, Generic[Ref]):
    """One artifact as far as it has come."""

    artifact: Artifact
    chunks: list[Ref]
    """The frames that its parts come from, in order; a replacement drops those before it."""
    complete: bool = False
    """A chunk said `lastChunk`, or it came whole in a Task."""


def assemble(events: Iterable[tuple[Ref, Event]], task_id: str = "") -> dict[str, Assembled[Ref]]:
    """Put together the artifacts of one task: `task_id`, or whatever the events are about where that is empty.

    `events` are (frame, event) in the order of arrival on one stream; a chunk that a second stream repeats is not known
    again here. The artifact's own name, description and so on: the first that is not empty stays.
    """
    found: dict[str, Assembled[Ref]] = {}
    for ref, event in events:
        update, task = event.artifact_update, event.task
        if update is not None and update.artifact is not None and task_id in ("", update.task_id):
            _chunk(found, ref, update, update.artifact)
        elif task is not None and task_id in ("", task.id):
            for artifact in task.artifacts:
                _whole(found, ref, artifact)
    return found


def _chunk(found: dict[str, Assembled[Ref]], ref: Ref, update: ArtifactUpdate, artifact: Artifact) -> None:
    known = found.get(artifact.artifact_id)
    if known is None or not update.append:
        found[artifact.artifact_id] = Assembled(_described(artifact, known), [ref], update.last_chunk)
        return
    whole = known.artifact
    known.artifact = _described(msgspec.structs.replace(artifact, parts=[*whole.parts, *artifact.parts]), known)
    known.chunks.append(ref)
    known.complete = known.complete or update.last_chunk


def _whole(found: dict[str, Assembled[Ref]], ref: Ref, artifact: Artifact) -> None:
    """A snapshot replaces what was known, unless it only repeats it: then the chunks stay as the evidence."""
    known = found.get(artifact.artifact_id)
    if known is not None and known.artifact.parts == artifact.parts:
        known.complete = True
    elif known is None or len(artifact.parts) >= len(known.artifact.parts):
        found[artifact.artifact_id] = Assembled(_described(artifact, known), [ref], known is None or known.complete)


def _described(artifact: Artifact, known: Assembled[Ref] | None) -> Artifact:
    if known is None:
        return artifact
    first = known.artifact
    return msgspec.structs.replace(
        artifact,
        name=first.name or artifact.name,
        description=first.description or artifact.description,
        metadata=first.metadata or artifact.metadata,
        extensions=first.extensions or artifact.extensions,
    )
