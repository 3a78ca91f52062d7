"""Tasks as they are known so far, joined over connections, bindings and subscriptions."""

from __future__ import annotations

from enum import IntEnum

import msgspec


class Support(IntEnum):
    """Whether the agent numbers a task (manual/protocol.md "Generations"). The numbers are stored: never renumber."""

    UNKNOWN = 0
    """Nobody asked for it: the exchanges speak an older version."""
    YES = 1
    NO = 2
    """It gives no numbers though the client speaks 1.1, or gives one number to two events: clients must do without."""


class MissedGenerations(msgspec.Struct, frozen=True):
    """A run of generations that a stream left out, and what made it good to the same client."""

    first: int
    last: int
    at: int
    """When it was noticed, ns."""
    exchange: int
    """The stream."""
    healed: int = 0
    """When, ns; 0 while it is open."""
    by: int = 0
    """The exchange that made it good; 0 where another stream had told the events before."""
    generation: int = 0
    """What that told: the last of the events, or a snapshot at least as new."""


class ArtifactState(msgspec.Struct, frozen=True):
    """One artifact of a task; its content is rebuilt from the frames (`protocol.artifact`)."""

    artifact_id: str
    name: str = ""
    chunks: int = 0
    """Updates that carried it; a snapshot in a Task does not count."""
    parts: int = 0
    size: int = 0
    """Bytes of text, raw and data of the parts."""
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
    seen: tuple[tuple[int, int], ...] = ()
    """Generations told by events or snapshots, as ascending (first, last), at most the highest 64."""
    missed: tuple[MissedGenerations, ...] = ()
    """What streams left out, at most 64. A number in neither passed while nobody listened."""
    support: Support = Support.UNKNOWN
    artifacts: tuple[ArtifactState, ...] = ()
    messages: int = 0
    exchanges: tuple[int, ...] = ()
    """Exchanges that touched it, in order, at most the last 256."""
