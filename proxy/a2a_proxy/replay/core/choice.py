"""Choice of the recorded call that answers a request: the first match that has not been played,
exact ones first."""

from collections import Counter, defaultdict
from itertools import islice

import msgspec

from a2a_proxy.recording.difference.ids import RIGHT
from a2a_proxy.replay.core import miss_messages
from a2a_proxy.replay.core.branch import ConversationMatcher, match_conversations
from a2a_proxy.replay.core.ids import ReplayIds
from a2a_proxy.replay.core.match_rules import MatchRules
from a2a_proxy.replay.core.matching import CallFit, RequestMatcher, requested_task
from a2a_proxy.replay.core.miss import MaskedMatch, Miss
from a2a_proxy.replay.core.options import MatchPreset, RepeatPolicy, ReplayOptions
from a2a_proxy.replay.core.script import (
    SENDING_OPERATIONS,
    PlayerRequest,
    RecordedCall,
    ReplayScript,
)

_MAX_COUNTED = 1000
"""Maximum number of played calls that are compared to say how often a request was recorded."""
_MAX_MASKED = 10
"""Maximum number of masked matches that are searched for, to list those that do not answer."""


class ChosenCall(msgspec.Struct, frozen=True):
    """The recorded call that answers a request."""

    call: RecordedCall
    fit: CallFit
    loose: Miss | None = None
    """The differences from the request, if the call answers despite them."""
    masked: MaskedMatch | None = None
    """The masked differences, if the call matches only after masking."""
    replaced_calls: tuple[RecordedCall, ...] = ()
    """Calls of another conversation with the same beginning that count as played from now on."""


class CallChooser:
    """Chooses the call that answers each request, and remembers the calls that were played."""

    def __init__(
        self,
        script: ReplayScript,
        options: ReplayOptions,
        rules: MatchRules,
        conversations: ConversationMatcher,
    ) -> None:
        self._script = script
        self._conversations = conversations
        self._options = options
        self._matcher = RequestMatcher(script.calls, rules)
        self._play_counts: Counter[int] = Counter()
        self._calls_by_task: dict[str, list[int]] = defaultdict(list)
        """By task id: indexes of the calls that sent messages to it."""
        for index, call in enumerate(script.calls):
            if call.operation in SENDING_OPERATIONS and (
                task := call.task or requested_task(call.request)
            ):
                self._calls_by_task[task].append(index)
        self._index_of_place = {call.place: index for index, call in enumerate(script.calls)}

    def choose_call(self, request: PlayerRequest, ids: ReplayIds, at: int) -> ChosenCall | Miss:
        """Return the call that answers the request, which then counts as played; or a miss with the
        reason.

        `at`: the time of the request, in ns since the Unix epoch.
        """
        every = self._matcher.calls_of(request)
        if not every:
            return miss_messages.unknown_operation(self._script, request)
        near = self._matcher.find_candidates(request)
        fit = self._matcher.first_match(
            request, ids, (index for index in near if not self._play_counts[index])
        )
        if fit is not None:
            return self._mark_played(fit)
        played = [index for index in reversed(near) if self._play_counts[index]]
        again = self._matcher.first_match(request, ids, played)
        sticky = self._options.policy_of(request.operation) is not RepeatPolicy.SEQUENCE
        if again is not None and sticky:
            return self._mark_played(again)
        other = self._choose_other_conversation(request, ids, near) if again is None else None
        return (
            other
            or self._choose_masked(request, ids, at, again)
            or self._choose_nearest(request, ids, every)
        )

    def _choose_masked(
        self, request: PlayerRequest, ids: ReplayIds, at: int, again: CallFit | None
    ) -> ChosenCall | Miss | None:
        """Choose the first call not yet played that matches after masking.

        `again`: a played call that matches exactly and is not repeated. Returns None if no call
        matches in either way.
        """
        near = (
            self._matcher.find_candidates(request, masked=True)
            if self._options.match.masks_values
            else []
        )
        free = (index for index in near if not self._play_counts[index])
        fits = list(
            islice(self._matcher.iter_matches(request, ids, free, masked_at=at), _MAX_MASKED)
        )
        if fits:
            return self._mark_masked(request, fits)
        if (
            again is None
            and (other := self._choose_other_conversation(request, ids, near, masked_at=at))
            is not None
        ):
            return other
        played = [index for index in reversed(near) if self._play_counts[index]]
        fits = list(
            islice(self._matcher.iter_matches(request, ids, played, masked_at=at), _MAX_COUNTED)
        )
        if fits and self._options.policy_of(request.operation) is not RepeatPolicy.SEQUENCE:
            return self._mark_masked(request, fits[:1])
        last = again or next(iter(fits), None)
        if last is None:
            return None
        if again is not None:
            fits = list(
                self._matcher.iter_matches(
                    request, ids, (index for index in near if self._play_counts[index])
                )
            )
        call = self._script.calls[last.index]
        return miss_messages.exhausted_calls(
            self._script, request, call, len(fits), masked=again is None
        )

    def unplayed_calls(self, operation: str) -> list[RecordedCall]:
        """Return the calls of an operation that can be played and have not been, in recorded
        order."""
        return [call for call in self.unused_calls() if call.operation == operation]

    def swap_played(self, chosen: RecordedCall, other: RecordedCall) -> None:
        """Count `other` as played instead of `chosen`."""
        self._play_counts[self._index_of_place[chosen.place]] -= 1
        self._play_counts[self._index_of_place[other.place]] += 1

    def is_played(self, call: RecordedCall) -> bool:
        """Whether the call has answered a request."""
        return self._play_counts[self._index_of_place[call.place]] > 0

    def unused_calls(self) -> list[RecordedCall]:
        """Return the calls that could have answered a request, and have not."""
        return [
            call
            for index, call in enumerate(self._script.calls)
            if not self._play_counts[index] and not call.refusal
        ]

    def _mark_played(self, fit: CallFit, loose: Miss | None = None) -> ChosenCall:
        self._play_counts[fit.index] += 1
        return ChosenCall(self._script.calls[fit.index], fit, loose)

    def _mark_masked(self, request: PlayerRequest, fits: list[CallFit]) -> ChosenCall:
        """Choose the first of these calls, which match after masking."""
        return msgspec.structs.replace(
            self._mark_played(fits[0]), masked=self._describe_masked(request, fits)
        )

    def _describe_masked(self, request: PlayerRequest, fits: list[CallFit]) -> MaskedMatch:
        places = [call.place for call in self._calls_at([fit.index for fit in fits])]
        rows = self._matcher.masked_rows(fits[0], request)
        return miss_messages.masked_match(places, request.operation, request.value, rows)

    def _choose_other_conversation(
        self,
        request: PlayerRequest,
        ids: ReplayIds,
        near: list[int],
        *,
        masked_at: int | None = None,
    ) -> ChosenCall | None:
        """Choose a call of another conversation that equals the current one so far, if its next
        call matches the request: exactly, or after masking at the time of the request."""
        current_task = ids.find_partner(RIGHT, "task", requested_task(request.value))
        mine = [
            index
            for index in self._calls_by_task.get(current_task or "", ())
            if self._play_counts[index]
        ]
        for index in near:
            other = requested_task(self._script.calls[index].request)
            theirs = [each for each in self._calls_by_task.get(other, ()) if each < index]
            if (
                self._play_counts[index]
                or other == current_task
                or not mine
                or len(theirs) != len(mine)
            ):
                continue
            found = match_conversations(
                self._calls_at(mine), self._calls_at(theirs), self._conversations
            )
            if found is None or any(self._play_counts[each] for each in theirs):
                continue
            trial = ids.make_trial()
            trial.replace_pairs(found)
            fit = next(
                self._matcher.iter_matches(request, trial, [index], masked_at=masked_at), None
            )
            if fit is not None:
                ids.replace_pairs(found)
                match = None if masked_at is None else self._describe_masked(request, [fit])
                for one, two in zip(self._calls_at(mine), self._calls_at(theirs), strict=True):
                    self.swap_played(one, two)
                return msgspec.structs.replace(
                    self._mark_played(fit),
                    masked=match,
                    replaced_calls=tuple(self._calls_at(theirs)),
                )
        return None

    def _calls_at(self, indexes: list[int]) -> list[RecordedCall]:
        return [self._script.calls[index] for index in indexes]

    def _choose_nearest(
        self, request: PlayerRequest, ids: ReplayIds, every: list[int]
    ) -> ChosenCall | Miss:
        """Handle a request that matches no call: return the nearest call if the options allow it to
        answer, else a miss."""
        free = [index for index in every if not self._play_counts[index]]
        played = [index for index in every if self._play_counts[index]]
        served = [index for index in free if not self._script.calls[index].refusal]
        if self._options.match is MatchPreset.LOOSE and served:
            nearest = self._matcher.find_nearest(request, ids, served)
            return self._mark_played(nearest, self._describe_difference(request, ids, nearest))
        return self._describe_difference(
            request, ids, self._matcher.find_nearest(request, ids, [*free, *played])
        )

    def _describe_difference(
        self, request: PlayerRequest, ids: ReplayIds, nearest: CallFit
    ) -> Miss:
        task = requested_task(request.value)
        return miss_messages.different_request(
            self._script,
            request,
            self._script.calls[nearest.index],
            nearest.rows,
            strange=bool(task) and ids.find_partner(RIGHT, "task", task) is None,
            played=self._play_counts[nearest.index] > 0,
        )
