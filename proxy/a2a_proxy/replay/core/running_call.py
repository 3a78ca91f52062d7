"""What the player and its rules need of a running call: narrower than `CallPlayback`, which they
must not import."""

from typing import Protocol

import msgspec

from a2a_proxy.replay.core.gates import GateStep
from a2a_proxy.replay.core.options import RepeatPolicy
from a2a_proxy.replay.core.script import PlayerRequest, RecordedCall


class PendingPoll(msgspec.Struct, frozen=True, kw_only=True):
    """A GetTask whose answer is chosen when it is sent, by the events of the task that were sent by
    then."""

    task: str
    at: int
    """Time of the recorded answer in ns since the Unix epoch."""
    policy: RepeatPolicy
    beyond: int | None = None
    """For a long poll: the answer waits for a generation later than this one."""
    history: int | None = None
    """Maximum number of messages of its history."""
    timeline: int | None = None
    """Maximum number of entries of its timeline."""


class RunningCall(Protocol):
    """A call that is being played."""

    call: RecordedCall
    request: PlayerRequest
    poll: PendingPoll | None
    ignores_polls: bool

    def pending_steps(self) -> tuple[GateStep, ...]:
        """Return the steps that have not been sent."""

    def waits_for_client(self, step: GateStep) -> bool:
        """Whether a step, one of `pending_steps()`, waits for the client."""
