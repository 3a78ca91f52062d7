"""Options of a replay."""

from enum import StrEnum

import msgspec

from a2a_proxy.recording.difference.fields import Path
from a2a_proxy.replay.core.match_rules import DEFAULT_NAMES, Matcher, MatchName, MatchRules


class MatchPreset(StrEnum):
    """Which parts of a request must be as recorded."""

    STRICT = "strict"
    """Everything except what differs between two runs of one program: ids, times, traces,
    credentials, transport."""
    DEFAULT = "default"
    """Operation, tenant, task and context, parts, configuration and the other parameters; not
    metadata, extensions and headers. If no call matches exactly, values that differ in every run
    are masked (`masks`)."""
    BY_OPERATION = "by-operation"
    """Only the operation: calls are answered in the order of the recording."""
    LOOSE = "loose"
    """As `default`; a request without a match gets the nearest call of its operation, listed in
    `Player.allowed_misses`."""

    @property
    def names(self) -> frozenset[MatchName]:
        """The parts of a request that count without `ReplayOptions.match_on`."""
        if self is MatchPreset.BY_OPERATION:
            return frozenset()
        return frozenset(MatchName) if self is MatchPreset.STRICT else DEFAULT_NAMES

    @property
    def masks_values(self) -> bool:
        """Whether a request without an exact match may match after masking."""
        return self in (MatchPreset.DEFAULT, MatchPreset.LOOSE)


class RepeatPolicy(StrEnum):
    """How to answer a request that matches several calls, or is repeated."""

    SEQUENCE = "sequence"
    """Each call is played once, in recorded order."""
    LAST_STICKY = "last-sticky"
    """In recorded order; then the last one is repeated."""
    BY_PROGRESS = "by-progress"
    """Answers about a task follow the part of it that has been replayed."""


POLICIES: dict[str, RepeatPolicy] = {
    "GetTask": RepeatPolicy.LAST_STICKY,
    "ListTasks": RepeatPolicy.LAST_STICKY,
    "GetExtendedAgentCard": RepeatPolicy.LAST_STICKY,
    "GetTaskPushNotificationConfig": RepeatPolicy.LAST_STICKY,
    "ListTaskPushNotificationConfigs": RepeatPolicy.LAST_STICKY,
}
"""Default policy of an operation; operations that are not listed are played once."""


class ReplayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a replay. Times are in ns."""

    match: MatchPreset = MatchPreset.DEFAULT
    match_on: tuple[MatchName | Matcher, ...] = ()
    """Parts of a request that must be as recorded instead of those of `match`, and matchers."""
    ignore: tuple[Path, ...] = ()
    """Paths of a request that do not count (`difference.paths`)."""
    normalize: tuple[str, ...] = ()
    """Regular expressions: texts that one of them matches are equal."""
    policies: dict[str, RepeatPolicy] = {}
    """Policy by operation, where it differs from `POLICIES`."""
    speed: float = 0.0
    """0: nothing waits for the clock (`instant`); 1: as recorded; 2: twice as fast."""
    gap: int | None = None
    """Pause before each line of the agent, whatever was recorded; None: from the recording and
    `speed`."""
    max_gap: int | None = None
    """Maximum length of a pause."""
    keep_times: bool = False
    """Leave timestamps as recorded instead of shifting them to the time of the replay."""
    lenient: bool = False
    """Report a client that sends something else within a stream, and continue the stream."""
    patience: int | None = 30_000_000_000
    """How long a line waits for the client message recorded before it until the call ends with a
    miss; None: without limit."""

    def match_rules(self) -> MatchRules:
        """Return the rules by which requests match."""
        names = frozenset(each for each in self.match_on if isinstance(each, MatchName))
        matchers = tuple(each for each in self.match_on if not isinstance(each, MatchName))
        return MatchRules(
            names if self.match_on else self.match.names, matchers, self.ignore, self.normalize
        )

    def policy_of(self, operation: str) -> RepeatPolicy:
        """Return the policy of an operation."""
        return self.policies.get(operation) or POLICIES.get(operation, RepeatPolicy.SEQUENCE)
