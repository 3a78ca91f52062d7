"""How often a rule has been broken: a noisy peer fills no recording with one finding over and over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

EACH = 3
"""Findings of one kind that one exchange yields; further ones are counted."""
ALL = 100
"""Findings of one kind that are told one by one; after that the 1,000th, the 10,000th and so on."""

Kind = tuple[str, int, str, int, str]
"""Rule, severity, agent, side (direction), operation: what is grave hides behind nothing that is less so, nor one peer
behind the other."""


class RepeatLimit:
    """Counts by kind; those by exchange are in its track."""

    def __init__(self) -> None:
        self._counts: dict[Kind, list[int]] = {}
        """Kind -> how often in all, how often told."""

    def worth(self, kind: Kind, told: dict[str, int]) -> int:
        """The number of this breach (from 1) where it is to be told, else 0. `told` counts those of the exchange."""
        key = f"{kind[0]} {kind[1]} {kind[3]}"
        here = told.get(key, 0) + 1
        told[key] = here
        counts = self._counts.setdefault(kind, [0, 0])
        counts[0] += 1
        count = counts[0]
        if (here > EACH and not _round(here)) or (count > ALL and not _round(count)):
            return 0
        counts[1] += 1
        return count

    def untold(self) -> Iterator[tuple[Kind, int, int]]:
        """Kinds of which more was found than told, with both numbers; once."""
        for kind, (count, told) in self._counts.items():
            if count > told:
                self._counts[kind][1] = count
                yield kind, count, told

    def save(self) -> list[Any]:
        """Plain values."""
        return [[*kind, *counts] for kind, counts in self._counts.items()]

    @classmethod
    def restore(cls, state: list[Any]) -> RepeatLimit:
        """The ledger that gave `state`."""
        ledger = cls()
        for rule, severity, agent, side, operation, count, told in state:
            ledger._counts[rule, severity, agent, side, operation] = [count, told]
        return ledger


def _round(count: int) -> bool:
    """A power of ten, from 100."""
    return count >= 100 and str(count).rstrip("0") == "1"
