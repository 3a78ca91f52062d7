"""Which recorded call answers a request: what fits, and of that what has not been played yet."""

from __future__ import annotations

from collections import Counter, defaultdict

import msgspec

from a2a_proxy.replay.core import miss_messages
from a2a_proxy.replay.core.branch import match_conversations
from a2a_proxy.replay.core.ids import IdMap
from a2a_proxy.replay.core.matching import CallFit, RequestMatcher, requested_task
from a2a_proxy.replay.core.miss import Miss
from a2a_proxy.replay.core.options import MatchPreset, RepeatPolicy, ReplayOptions
from a2a_proxy.replay.core.player_io import PlayerRequest
from a2a_proxy.replay.core.script import SENDING_OPERATIONS, RecordedCall, ReplayScript


class ChosenCall(msgspec.Struct, frozen=True):
    """The recorded call that answers."""

    call: RecordedCall
    fit: CallFit
    loose: Miss | None = None
    """What differs from it all the same."""
    replaced_calls: tuple[RecordedCall, ...] = ()
    """Calls that count as played from now on, in the place of others that began a like conversation."""


class CallChooser:
    """Remembers what was played."""

    def __init__(self, script: ReplayScript, options: ReplayOptions) -> None:
        self._script = script
        self._options = options
        self._matcher = RequestMatcher(script.calls, options.match)
        self._play_counts: Counter[int] = Counter()
        self._calls_by_task: dict[str, list[int]] = defaultdict(list)
        """By task: calls that brought messages to it."""
        for index, call in enumerate(script.calls):
            if call.operation in SENDING_OPERATIONS and (task := call.task or requested_task(call.request)):
                self._calls_by_task[task].append(index)
        self._index_of_place = {call.place: index for index, call in enumerate(script.calls)}

    def choose_call(self, request: PlayerRequest, ids: IdMap) -> ChosenCall | Miss:
        """The call that answers, which counts as played from now on; or why there is none."""
        every = self._matcher.calls_of(request.operation)
        if not every:
            return miss_messages.unknown_operation(self._script, request)
        near = self._matcher.candidates(request)
        fit = self._matcher.first_match(request, ids, (index for index in near if not self._play_counts[index]))
        if fit is not None:
            return self._mark_played(fit)
        played = [index for index in reversed(near) if self._play_counts[index]]
        again = self._matcher.first_match(request, ids, played)
        if again is None:
            return self._choose_other_conversation(request, ids, near) or self._choose_nearest(request, ids, every)
        if self._options.policy_of(request.operation) is not RepeatPolicy.SEQUENCE:
            return self._mark_played(again)
        times = self._matcher.count_matches(request, ids, played)
        return miss_messages.exhausted_calls(self._script, request, self._script.calls[again.index], times)

    def unplayed_calls(self, operation: str) -> list[RecordedCall]:
        """Calls of an operation that have not been played, in recorded order."""
        return [
            self._script.calls[index] for index in self._matcher.calls_of(operation) if not self._play_counts[index]
        ]

    def swap_played(self, chosen: RecordedCall, other: RecordedCall) -> None:
        """It was the other call that was played."""
        self._play_counts[self._index_of_place[chosen.place]] -= 1
        self._play_counts[self._index_of_place[other.place]] += 1

    def is_played(self, call: RecordedCall) -> bool:
        """A client has asked for it."""
        return self._play_counts[self._index_of_place[call.place]] > 0

    def unused_calls(self) -> list[RecordedCall]:
        """Calls that nobody has asked for."""
        return [call for index, call in enumerate(self._script.calls) if not self._play_counts[index]]

    def _mark_played(self, fit: CallFit, loose: Miss | None = None) -> ChosenCall:
        self._play_counts[fit.index] += 1
        return ChosenCall(self._script.calls[fit.index], fit, loose)

    def _choose_other_conversation(self, request: PlayerRequest, ids: IdMap, near: list[int]) -> ChosenCall | None:
        """What fits belongs to another conversation, which has gone the same way until here: that one is meant."""
        taken = ids.recorded_id("task", requested_task(request.value))
        mine = [index for index in self._calls_by_task.get(taken or "", ()) if self._play_counts[index]]
        for index in near:
            other = requested_task(self._script.calls[index].request)
            theirs = [each for each in self._calls_by_task.get(other, ()) if each < index]
            if self._play_counts[index] or other == taken or not mine or len(theirs) != len(mine):
                continue
            found = match_conversations(self._calls_at(mine), self._calls_at(theirs))
            if found is None or any(self._play_counts[each] for each in theirs):
                continue
            trial = ids.make_trial()
            trial.replace_pairs(found)
            fit = self._matcher.first_match(request, trial, [index])
            if fit is not None:
                ids.replace_pairs(found)
                for one, two in zip(self._calls_at(mine), self._calls_at(theirs), strict=True):
                    self.swap_played(one, two)
                return msgspec.structs.replace(self._mark_played(fit), replaced_calls=tuple(self._calls_at(theirs)))
        return None

    def _calls_at(self, indexes: list[int]) -> list[RecordedCall]:
        return [self._script.calls[index] for index in indexes]

    def _choose_nearest(self, request: PlayerRequest, ids: IdMap, every: list[int]) -> ChosenCall | Miss:
        """Nothing fits: the nearest, which answers if that is allowed."""
        free = [index for index in every if not self._play_counts[index]]
        nearest = self._matcher.nearest(request, ids, free or every)
        task = requested_task(request.value)
        strange = bool(task) and ids.recorded_id("task", task) is None
        miss = miss_messages.different_request(
            self._script, request, self._script.calls[nearest.index], nearest.rows, strange=strange
        )
        return self._mark_played(nearest, miss) if free and self._options.match is MatchPreset.LOOSE else miss
