"""Recorded conversations that begin alike and part later: which of them the client has taken shows when it speaks.

What has gone out so far is the same in both but for identifiers and times; those of the other one now stand for the
identifiers that were handed out.
"""

from __future__ import annotations

from typing import Any

import msgspec

from a2a_proxy.recording.difference.fields import CanonicalFields
from a2a_proxy.recording.difference.reduced import bound_depth
from a2a_proxy.replay.core.gates import Gates, PlaybackSteps
from a2a_proxy.replay.core.ids import IdMap
from a2a_proxy.replay.core.matching import find_differences, without_ignored
from a2a_proxy.replay.core.script import LineKind, RecordedCall, ScriptLine


class StreamBranch(msgspec.Struct, frozen=True):
    """Another recorded stream that has gone the same way so far."""

    call: RecordedCall
    steps: PlaybackSteps
    ids: IdMap
    """Left are its identifiers, right those of the stream that was taken for it."""


def find_branch(
    chosen: RecordedCall, sent: int, heard: int, value: Any, among: list[RecordedCall], gates: Gates
) -> StreamBranch | None:
    """The first of some calls that says and hears what `chosen` has (`sent` lines of the agent, `heard` of the
    client), and then hears `value`; None where none does."""
    mine = gates.steps_of(chosen)
    for call in among:
        other = gates.steps_of(call)
        if len(other.agent) <= sent or len(other.client) <= heard or other.client[heard].what is not LineKind.MESSAGE:
            continue
        ids = IdMap()
        said = zip(mine.agent[:sent], other.agent[:sent], strict=True)
        pairs = [(chosen.request, call.request), *((one.line.value, two.line.value) for one, two in said)]
        pairs += [(one.value, two.value) for one, two in zip(mine.client[:heard], other.client[:heard], strict=True)]
        alike = all(not find_differences(two, one, ids, CanonicalFields()) for one, two in pairs)
        if alike and not _is_different(other.client[heard], value, ids):
            return StreamBranch(call, other, ids)
    return None


def match_conversations(chosen: list[RecordedCall], other: list[RecordedCall]) -> IdMap | None:
    """Identifiers of two runs of calls, left those of `other`, where both were asked the same and answered the same;
    None where they were not."""
    ids = IdMap()
    for one, two in zip(chosen, other, strict=True):
        said = [(one.request, two.request)]
        mine, others = _lines_without_comments(one), _lines_without_comments(two)
        if one.operation != two.operation or len(mine) != len(others):
            return None
        said += [(line.value, like.value) for line, like in zip(mine, others, strict=True)]
        if any(find_differences(like, line, ids, CanonicalFields()) for line, like in said):
            return None
    return ids


def _lines_without_comments(call: RecordedCall) -> list[ScriptLine]:
    return [line for line in call.lines if line.what is not LineKind.COMMENT]


def _is_different(line: ScriptLine, value: Any, ids: IdMap) -> bool:
    return bool(
        find_differences(
            without_ignored(bound_depth(line.value)), without_ignored(value), ids.make_trial(), CanonicalFields()
        )
    )
