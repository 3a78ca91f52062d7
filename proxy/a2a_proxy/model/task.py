"""Current knowledge of tasks, joined over connections, bindings and subscriptions."""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated

import msgspec

from a2a_proxy.model.fields import (
    Encoding,
    Ident,
    PeerNumber,
    PeerWord,
    Row,
    StateNumber,
    Text,
    Time,
)


class Support(IntEnum):
    """Whether the agent numbers a task (manual/protocol.md "Generations"). The numbers are stored:
    never renumber."""

    UNKNOWN = 0
    """No client has requested it: the exchanges use an older version."""
    YES = 1
    NO = 2
    """The agent sends no numbers although the client speaks 1.1, or one number for two events: do
    not rely on them."""


class MissedReason(IntEnum):
    """Why a stream has left out a generation. The numbers are stored: never renumber."""

    UNKNOWN = 0
    MESSAGE = 1
    """Probably a client's message, which advances the generation but need not be sent to
    subscribers."""
    SHOWN_MESSAGE = 2
    """A timeline shows a client's message, or an entry of a kind that A2A does not define yet."""
    EVENT = 3
    """An event, which another stream or a push notification carried, or which a timeline shows."""
    DROPPED = 4
    """An event that the agent sent, and that a fault dropped on purpose (`--fault`)."""


class MissedGenerations(msgspec.Struct, frozen=True):
    """A run of generations missing on a stream, and the exchange that closed the gap for the same
    client."""

    first: int
    last: int
    at: Time
    """Time the gap was noticed, ns."""
    exchange: int
    """The stream."""
    healed: Time = 0
    """Time the gap was closed, ns; 0 while it is open."""
    by: int = 0
    """The exchange that closed the gap; 0 if another stream had already delivered the events."""
    generation: int = 0
    """The generation that closed the gap: that of the last missing event, or of a snapshot at least
    as new."""
    reason: MissedReason = MissedReason.UNKNOWN
    message: int = 0
    """The exchange with the client's message; 0 if the reason is another one or the message did not
    pass here."""

    @property
    def is_explained(self) -> bool:
        """Whether nothing is missing: a client's message has the generation."""
        return self.reason in (MissedReason.MESSAGE, MissedReason.SHOWN_MESSAGE)


class ArtifactState(msgspec.Struct, frozen=True):
    """One artifact of a task; its content is rebuilt from the frames (`protocol.artifact`)."""

    artifact_id: Annotated[Ident, Row("ident")]
    name: Text = ""
    chunks: int = 0
    """Number of updates that carried it; a snapshot in a Task does not count."""
    parts: int = 0
    size: int = 0
    """Bytes of text, raw and data of the parts."""
    complete: bool = False
    """Whether a chunk had `lastChunk`, or the artifact arrived whole."""
    first: Time = 0
    last: Time = 0


class Task(msgspec.Struct, frozen=True):
    """A task's current state. Keyed by agent and id, because two agents may use the same id."""

    agent: PeerWord
    """The upstream that owns it, as the listener names it."""
    task_id: Annotated[Ident, Row("ident")]
    context_id: Annotated[Ident, Row("context")] = ""
    tenant: PeerWord = ""
    state: StateNumber = 0
    states: tuple[tuple[int, int], ...] = ()
    """(time ns, state number) for each change, at most the last 64."""
    first: Time = 0
    last: Time = 0
    generation: PeerNumber = 0
    """Highest generation seen; 0 if the agent sends none."""
    seen: tuple[tuple[int, int], ...] = ()
    """Generations seen in events or snapshots, as ascending (first, last), at most the highest
    64."""
    missed: tuple[MissedGenerations, ...] = ()
    """Runs of generations that streams left out, of at most 64 gaps. A number neither here nor in
    `seen` was sent while no stream was open."""
    support: Support = Support.UNKNOWN
    artifacts: Annotated[tuple[ArtifactState, ...], Encoding.NONE] = ()
    messages: int = 0
    exchanges: tuple[int, ...] = ()
    """Exchanges that touched it, in order, at most the last 256."""

    @property
    def gaps(self) -> tuple[MissedGenerations, ...]:
        """The runs in `missed` that no client message explains."""
        return tuple(each for each in self.missed if not each.is_explained)
