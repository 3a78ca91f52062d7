"""How a script is played."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class MatchPreset(StrEnum):
    """What of a request must be as recorded."""

    STRICT = "strict"
    """All but what two runs of one program differ in: ids, times, traces, credentials, transport."""
    DEFAULT = "default"
    """Operation, tenant, task and context, parts, configuration and the other parameters; not metadata, extensions and
    headers."""
    BY_OPERATION = "by-operation"
    """The operation alone: calls are answered in the order of the recording."""
    LOOSE = "loose"
    """As default; where nothing fits, the nearest of the same operation, and `Player.allowed_misses` tells of it."""


class RepeatPolicy(StrEnum):
    """What a request gets that fits several calls, or comes again."""

    SEQUENCE = "sequence"
    """Each call plays once, in recorded order."""
    LAST_STICKY = "last-sticky"
    """In order; the last one then plays again and again."""
    BY_PROGRESS = "by-progress"
    """Answers about a task follow what has been replayed of it."""


POLICIES: dict[str, RepeatPolicy] = {
    "GetTask": RepeatPolicy.LAST_STICKY,
    "ListTasks": RepeatPolicy.LAST_STICKY,
    "GetExtendedAgentCard": RepeatPolicy.LAST_STICKY,
    "GetTaskPushNotificationConfig": RepeatPolicy.LAST_STICKY,
    "ListTaskPushNotificationConfigs": RepeatPolicy.LAST_STICKY,
}
"""What each operation has where nobody says otherwise; those that are not here play once."""


class ReplayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a script is played. Times in ns."""

    match: MatchPreset = MatchPreset.DEFAULT
    policies: dict[str, RepeatPolicy] = {}
    """By operation, for those that shall have another one than `POLICIES` says."""
    speed: float = 0.0
    """0: nothing waits for the clock (`instant`); 1: as recorded; 2: twice as fast."""
    gap: int | None = None
    """The pause before each line of the agent, whatever was recorded; None: as `speed` says."""
    max_gap: int | None = None
    """No pause is longer."""
    keep_times: bool = False
    """Leave timestamps as recorded; otherwise they are shifted to now."""
    lenient: bool = False
    """A client that says something else within a stream is reported, and the stream goes on."""
    patience: int | None = 30_000_000_000
    """How long a line waits for what the client said in the recording; then the call ends with a miss. None: for
    ever."""

    def policy_of(self, operation: str) -> RepeatPolicy:
        """Of an operation."""
        return self.policies.get(operation) or POLICIES.get(operation, RepeatPolicy.SEQUENCE)
