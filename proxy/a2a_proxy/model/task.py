"""Tasks as they are known so far, joined over connections, bindings and subscriptions."""

from __future__ import annotations

import msgspec


class ArtifactState(msgspec.Struct, frozen=True):
    """One artifact of a task; its content is rebuilt from the frames (`protocol.artifact`)."""

    artifact_id: str
    name: str = ""
    chunks: int = 0
    """Updates that carried it; a snapshot in a Task does not count."""
    parts: int = 0
    size: int = 0
    """Octets of text, raw and data of the parts."""
    complete: bool = False
    """A chunk said `lastChunk`, or it came whole."""
    first: int = 0
    last: int = 0


class Task(msgspec.Struct, frozen=True):
    """A task's current state. Keyed by agent and id: two agents may use one id."""

    agent: str
    """The upstream that owns it, as the listener names it."""
    task_id: str
    context_id: str = ""
    tenant: str = ""
    state: int = 0
    states: tuple[tuple[int, int], ...] = ()
    """(time ns, state number) for each change, at most the last 64."""
    first: int = 0
    last: int = 0
    generation: int = 0
    """Highest generation seen; 0 where the agent sends none."""
    missed: tuple[int, ...] = ()
    """Generations never seen, at most 64."""
    artifacts: tuple[ArtifactState, ...] = ()
    messages: int = 0
    exchanges: tuple[int, ...] = ()
    """Exchanges that touched it, in order, at most the last 256."""
