"""Which recorded call answers a request: what fits, and of that what has not been played yet."""

from __future__ import annotations

from collections import Counter, defaultdict

import msgspec

from a2a_proxy.replay.core import miss_messages
from a2a_proxy.replay.core.branch import same_way
from a2a_proxy.replay.core.ids import IdMap
from a2a_proxy.replay.core.matching import Fit, Matcher, asked_task
from a2a_proxy.replay.core.miss import Miss
from a2a_proxy.replay.core.options import MatchPreset, RepeatPolicy, ReplayOptions
from a2a_proxy.replay.core.player_io import PlayerRequest
from a2a_proxy.replay.core.script import SPEAKING, RecordedCall, ReplayScript


class ChosenCall(msgspec.Struct, frozen=True):
    """The recorded call that answers."""

    call: RecordedCall
    fit: Fit
    loose: Miss | None = None
    """What differs from it all the same."""
    turned: tuple[RecordedCall, ...] = ()
    """Calls that count as played from now on, in the place of others that began a like conversation."""


class CallChooser:
    """Remembers what was played."""

    def __init__(self, script: ReplayScript, options: ReplayOptions) -> None:
        self._script = script
        self._options = options
        self._matcher = Matcher(script.calls, options.match)
        self._played: Counter[int] = Counter()
        self._spoken: dict[str, list[int]] = defaultdict(list)
        """By task: calls that brought messages to it."""
        for index, call in enumerate(script.calls):
            if call.operation in SPEAKING and (task := call.task or asked_task(call.request)):
                self._spoken[task].append(index)
        self._places = {call.place: index for index, call in enumerate(script.calls)}

    def choose(self, asked: PlayerRequest, ids: IdMap) -> ChosenCall | Miss:
        """The call that answers, which counts as played from now on; or why there is none."""
        every = self._matcher.of(asked.operation)
        if not every:
            return miss_messages.unknown(self._script, asked)
        near = self._matcher.candidates(asked)
        fit = self._matcher.first(asked, ids, (index for index in near if not self._played[index]))
        if fit is not None:
            return self._chosen(fit)
        played = [index for index in reversed(near) if self._played[index]]
        again = self._matcher.first(asked, ids, played)
        if again is None:
            return self._parted(asked, ids, near) or self._otherwise(asked, ids, every)
        if self._options.policy(asked.operation) is not RepeatPolicy.SEQUENCE:
            return self._chosen(again)
        times = self._matcher.count(asked, ids, played)
        return miss_messages.exhausted(self._script, asked, self._script.calls[again.index], times)

    def free(self, operation: str) -> list[RecordedCall]:
        """Calls of an operation that have not been played, in recorded order."""
        return [self._script.calls[index] for index in self._matcher.of(operation) if not self._played[index]]

    def turn(self, taken: RecordedCall, other: RecordedCall) -> None:
        """It was the other call that was played."""
        self._played[self._places[taken.place]] -= 1
        self._played[self._places[other.place]] += 1

    def played(self, call: RecordedCall) -> bool:
        """A client has asked for it."""
        return self._played[self._places[call.place]] > 0

    def unused(self) -> list[RecordedCall]:
        """Calls that nobody has asked for."""
        return [call for index, call in enumerate(self._script.calls) if not self._played[index]]

    def _chosen(self, fit: Fit, loose: Miss | None = None) -> ChosenCall:
        self._played[fit.index] += 1
        return ChosenCall(self._script.calls[fit.index], fit, loose)

    def _parted(self, asked: PlayerRequest, ids: IdMap, near: list[int]) -> ChosenCall | None:
        """What fits belongs to another conversation, which has gone the same way until here: that one is meant."""
        taken = ids.then("task", asked_task(asked.value))
        mine = [index for index in self._spoken.get(taken or "", ()) if self._played[index]]
        for index in near:
            other = asked_task(self._script.calls[index].request)
            theirs = [each for each in self._spoken.get(other, ()) if each < index]
            if self._played[index] or other == taken or not mine or len(theirs) != len(mine):
                continue
            found = same_way(self._calls(mine), self._calls(theirs))
            if found is None or any(self._played[each] for each in theirs):
                continue
            trial = ids.trial()
            trial.turn(found)
            fit = self._matcher.first(asked, trial, [index])
            if fit is not None:
                ids.turn(found)
                for one, two in zip(self._calls(mine), self._calls(theirs), strict=True):
                    self.turn(one, two)
                return msgspec.structs.replace(self._chosen(fit), turned=tuple(self._calls(theirs)))
        return None

    def _calls(self, indexes: list[int]) -> list[RecordedCall]:
        return [self._script.calls[index] for index in indexes]

    def _otherwise(self, asked: PlayerRequest, ids: IdMap, every: list[int]) -> ChosenCall | Miss:
        """Nothing fits: the nearest, which answers if that is allowed."""
        free = [index for index in every if not self._played[index]]
        nearest = self._matcher.nearest(asked, ids, free or every)
        task = asked_task(asked.value)
        strange = bool(task) and ids.then("task", task) is None
        miss = miss_messages.differs(
            self._script, asked, self._script.calls[nearest.index], nearest.rows, strange=strange
        )
        return self._chosen(nearest, miss) if free and self._options.match is MatchPreset.LOOSE else miss
