"""How often a rule has been broken: a noisy peer fills no recording with one finding over and over."""

from __future__ import annotations

from typing import Any

EACH = 3
"""Findings of one rule that one exchange yields; further ones are counted."""
ALL = 100
"""Findings of one rule about one agent that are told one by one; after that the 1,000th, the 10,000th and so on."""


class Ledger:
    """Counts by rule and agent; those by exchange are in its track."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def worth(self, rule: str, agent: str, told: dict[str, int]) -> int:
        """The number of this breach (from 1) where it is to be told, else 0. `told` counts those of the exchange."""
        here = told.get(rule, 0) + 1
        told[rule] = here
        key = f"{rule} {agent}"
        count = self._counts.get(key, 0) + 1
        self._counts[key] = count
        if here > EACH and not _round(here):
            return 0
        return count if count <= ALL or _round(count) else 0

    def save(self) -> dict[str, Any]:
        """Plain values."""
        return dict(self._counts)

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Ledger:
        """The ledger that gave `state`."""
        ledger = cls()
        ledger._counts = dict(state)
        return ledger


def _round(count: int) -> bool:
    """A power of ten, from 100."""
    return count >= 100 and str(count).rstrip("0") == "1"
