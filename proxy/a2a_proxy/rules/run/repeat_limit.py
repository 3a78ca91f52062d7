"""How often a rule has been broken: a noisy peer fills no recording with one finding over and over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MAX_PER_EXCHANGE = 3
"""Findings of one kind that one exchange yields; further ones are counted."""
MAX_PER_KIND = 100
"""Findings of one kind that are told one by one; after that the 1,000th, the 10,000th and so on."""

FindingKind = tuple[str, int, str, int, str]
"""Rule, severity, agent, side (direction), operation: what is grave hides behind nothing that is less so, nor one peer
behind the other."""


class RepeatLimit:
    """Counts by kind; those by exchange are in its track."""

    def __init__(self) -> None:
        self._counts: dict[FindingKind, list[int]] = {}
        """Kind -> how often in all, how often told."""

    def count_finding(self, kind: FindingKind, exchange_counts: dict[str, int]) -> int:
        """The number of this breach (from 1) where it is to be told, else 0. `told` counts those of the exchange."""
        key = f"{kind[0]} {kind[1]} {kind[3]}"
        here = exchange_counts.get(key, 0) + 1
        exchange_counts[key] = here
        counts = self._counts.setdefault(kind, [0, 0])
        counts[0] += 1
        count = counts[0]
        if (here > MAX_PER_EXCHANGE and not _is_round(here)) or (count > MAX_PER_KIND and not _is_round(count)):
            return 0
        counts[1] += 1
        return count

    def suppressed_counts(self) -> Iterator[tuple[FindingKind, int, int]]:
        """Kinds of which more was found than told, with both numbers; once."""
        for kind, (count, reported) in self._counts.items():
            if count > reported:
                self._counts[kind][1] = count
                yield kind, count, reported

    def save(self) -> list[Any]:
        """Plain values."""
        return [[*kind, *counts] for kind, counts in self._counts.items()]

    @classmethod
    def restore(cls, state: list[Any]) -> RepeatLimit:
        """The ledger that gave `state`."""
        limit = cls()
        for rule, severity, agent, side, operation, count, reported in state:
            limit._counts[rule, severity, agent, side, operation] = [count, reported]
        return limit


def _is_round(count: int) -> bool:
    """A power of ten, from 100."""
    return count >= 100 and str(count).rstrip("0") == "1"
