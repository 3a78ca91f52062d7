"""Recorded conversations that begin alike and diverge later. A later client message shows which of
them is replayed.

Everything sent before the divergence is the same in both recordings except for identifiers, times
and values that do not count. The identifiers already handed out to the client then map to the other
recording.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from a2a_proxy.recording.difference.fields import CanonicalFields
from a2a_proxy.recording.difference.structure import bound_depth
from a2a_proxy.replay.core.gates import Gates, PlaybackSteps
from a2a_proxy.replay.core.ids import ReplayIds
from a2a_proxy.replay.core.masks import RunTimes
from a2a_proxy.replay.core.match_rules import MatchRules
from a2a_proxy.replay.core.matching import find_differences
from a2a_proxy.replay.core.miss import masked_pairs
from a2a_proxy.replay.core.script import LineKind, RecordedCall, ScriptLine


class StreamBranch(msgspec.Struct, frozen=True):
    """Another recorded stream that equals the replayed one so far."""

    call: RecordedCall
    steps: PlaybackSteps
    ids: ReplayIds
    """Left: identifiers of this stream. Right: identifiers of the stream that was replayed so
    far."""


class ConversationMatcher:
    """Compares messages of two recorded conversations as requests are compared: by the rules, and
    after masking."""

    def __init__(self, rules: MatchRules, *, masks_values: bool) -> None:
        self._rules = rules
        self._masks_values = masks_values

    def make_ids(self) -> ReplayIds:
        """Return a map for the identifiers of two conversations."""
        return ReplayIds(masked=self._masks_values)

    def are_requests_alike(self, one: Any, other: Any, times: RunTimes, ids: ReplayIds) -> bool:
        """Whether two messages of clients are the same; `ids` learns their pairs."""
        return self._are_alike(one, other, self._rules.select_parts, times, ids)

    def are_answers_alike(self, one: Any, other: Any, times: RunTimes, ids: ReplayIds) -> bool:
        """Whether two messages of agents are the same; `ids` learns their pairs."""
        return self._are_alike(one, other, self._rules.normalize_texts, times, ids)

    def is_continued_by(
        self, line: ScriptLine, began: int, value: Any, ids: ReplayIds, masked_at: int | None
    ) -> bool:
        """Whether a client's message is the one of a line of a call that began at a time."""
        times = None if masked_at is None else RunTimes(began + line.at, masked_at)
        recorded, now = (
            self._rules.select_parts(bound_depth(line.value)),
            self._rules.select_parts(value),
        )
        return not find_differences(
            recorded, now, ids.make_trial(masked=times is not None), CanonicalFields(), times
        )

    def _are_alike(
        self, one: Any, other: Any, select: Callable[[Any], Any], times: RunTimes, ids: ReplayIds
    ) -> bool:
        one, other = bound_depth(one), bound_depth(other)
        fields = CanonicalFields()
        if find_differences(
            select(one), select(other), ids, fields, times if self._masks_values else None
        ):
            return False
        find_differences(
            one, other, ids, fields
        )  # fields that are not compared hold identifiers as well
        ids.add_echoes(masked_pairs(find_differences(one, other, ids.make_trial(), fields)))
        return True


def find_branch(
    chosen: RecordedCall,
    sent_count: int,
    received_count: int,
    value: Any,
    among: list[RecordedCall],
    gates: Gates,
    matcher: ConversationMatcher,
    masked_at: int | None,
) -> StreamBranch | None:
    """Return the first call of `among` that equals `chosen` so far and continues with `value`, or
    None.

    `sent_count` is the number of agent lines and `received_count` the number of client lines in
    which the two calls must agree; `masked_at` is the time of `value` if it is compared after
    masking.
    """
    mine = gates.steps_of(chosen)
    for call in among:
        other = gates.steps_of(call)
        if (
            len(other.agent) <= sent_count
            or len(other.client) <= received_count
            or other.client[received_count].what is not LineKind.MESSAGE
        ):
            continue
        ids = matcher.make_ids()
        agent_lines = zip(other.agent[:sent_count], mine.agent[:sent_count], strict=True)
        client_lines = zip(other.client[:received_count], mine.client[:received_count], strict=True)

        def times_of(line: ScriptLine, replaced: ScriptLine, began: int = call.began) -> RunTimes:
            return RunTimes(began + line.at, chosen.began + replaced.at)

        is_alike = (
            matcher.are_requests_alike(
                call.request, chosen.request, RunTimes(call.began, chosen.began), ids
            )
            and all(
                matcher.are_answers_alike(
                    one.line.value, two.line.value, times_of(one.line, two.line), ids
                )
                for one, two in agent_lines
            )
            and all(
                matcher.are_requests_alike(one.value, two.value, times_of(one, two), ids)
                for one, two in client_lines
            )
        )
        if is_alike and matcher.is_continued_by(
            other.client[received_count], call.began, value, ids, masked_at
        ):
            return StreamBranch(call, other, ids)
    return None


def match_conversations(
    chosen: list[RecordedCall], other: list[RecordedCall], matcher: ConversationMatcher
) -> ReplayIds | None:
    """Pair the identifiers of two sequences of calls if their requests and answers are the same;
    left is `other`.

    Returns None if the sequences differ.
    """
    ids = matcher.make_ids()
    for one, two in zip(chosen, other, strict=True):
        mine, others = _lines_without_comments(one), _lines_without_comments(two)
        if one.operation != two.operation or len(mine) != len(others):
            return None
        if not matcher.are_requests_alike(
            two.request, one.request, RunTimes(two.began, one.began), ids
        ):
            return None
        for line, like in zip(mine, others, strict=True):
            times = RunTimes(two.began + like.at, one.began + line.at)
            if not matcher.are_answers_alike(like.value, line.value, times, ids):
                return None
    return ids


def _lines_without_comments(call: RecordedCall) -> list[ScriptLine]:
    return [line for line in call.lines if line.what is not LineKind.COMMENT]
