"""Recorded conversations that begin alike and diverge later. A later client message shows which of them is replayed.

Everything sent before the divergence is the same in both recordings except for identifiers and times. The identifiers
already handed out to the client then map to the other recording.
"""

from __future__ import annotations

from typing import Any

import msgspec

from a2a_proxy.recording.difference.fields import CanonicalFields
from a2a_proxy.recording.difference.reduced import bound_depth
from a2a_proxy.replay.core.gates import Gates, PlaybackSteps
from a2a_proxy.replay.core.ids import ReplayIds
from a2a_proxy.replay.core.match_rules import MatchRules
from a2a_proxy.replay.core.matching import find_differences
from a2a_proxy.replay.core.script import LineKind, RecordedCall, ScriptLine


class StreamBranch(msgspec.Struct, frozen=True):
    """Another recorded stream that equals the replayed one so far."""

    call: RecordedCall
    steps: PlaybackSteps
    ids: ReplayIds
    """Left: identifiers of this stream. Right: identifiers of the stream that was replayed so far."""


def find_branch(
    chosen: RecordedCall,
    sent_count: int,
    received_count: int,
    value: Any,
    among: list[RecordedCall],
    gates: Gates,
    rules: MatchRules,
) -> StreamBranch | None:
    """Return the first call of `among` that equals `chosen` so far and continues with `value`, or None.

    `sent_count` is the number of agent lines and `received_count` the number of client lines in which the two calls
    must agree.
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
        ids = ReplayIds()
        line_pairs = zip(mine.agent[:sent_count], other.agent[:sent_count], strict=True)
        pairs = [(chosen.request, call.request), *((one.line.value, two.line.value) for one, two in line_pairs)]
        pairs += [
            (one.value, two.value)
            for one, two in zip(mine.client[:received_count], other.client[:received_count], strict=True)
        ]
        alike = all(not find_differences(two, one, ids, CanonicalFields()) for one, two in pairs)
        if alike and not _is_different(other.client[received_count], value, ids, rules):
            return StreamBranch(call, other, ids)
    return None


def match_conversations(chosen: list[RecordedCall], other: list[RecordedCall]) -> ReplayIds | None:
    """Pair the identifiers of two sequences of calls if their requests and answers are the same; left is
    `other`.

    Returns None if the sequences differ.
    """
    ids = ReplayIds()
    for one, two in zip(chosen, other, strict=True):
        value_pairs = [(one.request, two.request)]
        mine, others = _lines_without_comments(one), _lines_without_comments(two)
        if one.operation != two.operation or len(mine) != len(others):
            return None
        value_pairs += [(line.value, like.value) for line, like in zip(mine, others, strict=True)]
        if any(find_differences(like, line, ids, CanonicalFields()) for line, like in value_pairs):
            return None
    return ids


def _lines_without_comments(call: RecordedCall) -> list[ScriptLine]:
    return [line for line in call.lines if line.what is not LineKind.COMMENT]


def _is_different(line: ScriptLine, value: Any, ids: ReplayIds, rules: MatchRules) -> bool:
    return bool(
        find_differences(
            rules.select_parts(bound_depth(line.value)), rules.select_parts(value), ids.make_trial(), CanonicalFields()
        )
    )
