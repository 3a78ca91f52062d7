"""Plays a script to the clients that come: which recorded call answers which call of now."""

from __future__ import annotations

from collections import Counter
from typing import Any

from a2a_proxy.replay.core.asked import Asked
from a2a_proxy.replay.core.ids import IdMap
from a2a_proxy.replay.core.matching import Fit, Matcher
from a2a_proxy.replay.core.miss import Kind, Miss
from a2a_proxy.replay.core.options import Options, Policy, Preset
from a2a_proxy.replay.core.play import Play
from a2a_proxy.replay.core.script import Call, Script


class Player:
    """Holds what all calls share: identifiers, what was played, what could not be."""

    def __init__(self, script: Script, options: Options | None = None) -> None:
        self.script = script
        self.options = options or Options()
        self.ids = IdMap()
        self.misses: list[Miss] = []
        """All that could not be answered, also where the client never looked at the refusal."""
        self.loose: list[Miss] = []
        """Calls that were answered though something differs: by `loose`, or because a divergence only warns."""
        self._matcher = Matcher(script.calls, self.options.match)
        self._played: Counter[int] = Counter()

    def begin(self, asked: Asked, at: int) -> Play | Miss:
        """A client calls: the play that answers it, or why there is none.

        `at` is ns since the Unix epoch, of a clock that never goes back: the servers' monotonic one, moved to the time
        of day once.
        """
        found = self._choose(asked)
        if isinstance(found, Miss):
            self.misses.append(found)
            return found
        self.ids.adopt(found.ids)
        self._played[found.index] += 1
        return Play(self, self.script.calls[found.index], asked, at)

    def unused(self) -> list[Call]:
        """Recorded calls that nobody has asked for."""
        return [call for index, call in enumerate(self.script.calls) if not self._played[index]]

    def outgoing(self, value: Any) -> Any:
        """A recorded message with the identifiers of now."""
        return self.ids.value(value)

    def _choose(self, asked: Asked) -> Fit | Miss:
        every = self._matcher.of(asked.operation)
        if not every:
            return self._miss(Kind.UNKNOWN, asked)
        last = None
        for fit in self._matcher.fits(asked, self.ids):
            if not self._played[fit.index]:
                return fit
            last = fit
        if last is not None:
            if self.options.policy(asked.operation) is not Policy.SEQUENCE:
                return last
            return self._miss(Kind.EXHAUSTED, asked, last)
        free = [index for index in every if not self._played[index]]
        nearest = self._matcher.nearest(asked, self.ids, free or every)
        miss = self._miss(Kind.DIFFERS, asked, nearest)
        if nearest is not None and free and self.options.match is Preset.LOOSE:
            self.loose.append(miss)
            return nearest
        return miss

    def _miss(self, kind: Kind, asked: Asked, nearest: Fit | None = None) -> Miss:
        known = Counter(call.operation for call in self.script.calls)
        return Miss(
            kind=kind,
            operation=asked.operation,
            asked=asked.operation,
            nearest=self.script.calls[nearest.index].place if nearest else "",
            rows=nearest.rows if nearest else (),
            known=tuple(f"{name} x{count}" for name, count in known.items()) if kind is Kind.UNKNOWN else (),
            recording=self.script.name,
        )
