"""Limits repeated findings, so that a noisy peer does not fill a recording with the same
finding."""

from collections.abc import Iterator

import msgspec

from a2a_proxy.model.saved_state import State
from a2a_proxy.model.values import Finding, Severity

MAX_PER_EXCHANGE = 3
"""Maximum findings of one kind per exchange; further ones are only counted."""
MAX_PER_KIND = 100
"""Findings of one kind that are reported individually; after that only the 1,000th, the 10,000th
and so on."""

FindingKind = tuple[str, int, str, int, str]
"""Rule, severity, agent, side (direction), operation. Each severity and each peer is counted
separately, so that neither hides the other.
"""

FramePlace = tuple[int, int]
"""Exchange and frame; frame -1 is the exchange as a whole."""


class _KindCount(msgspec.Struct, array_like=True):
    """The findings of one kind."""

    found: int = 0
    reported: int = 0
    first: FramePlace = (0, -1)
    last: FramePlace = (0, -1)


class RepeatLimit(State):
    """Counts findings by kind. The counts of one exchange are kept in its record."""

    max_per_exchange: int = msgspec.field(default_factory=lambda: MAX_PER_EXCHANGE)
    _counts: dict[FindingKind, _KindCount] = {}

    def count_finding(
        self, kind: FindingKind, exchange_counts: dict[str, int], place: FramePlace
    ) -> int:
        """Return the number of this finding (from 1) if it must be reported, otherwise 0. Updates
        `exchange_counts`."""
        key = f"{kind[0]} {kind[1]} {kind[3]}"
        here = exchange_counts.get(key, 0) + 1
        exchange_counts[key] = here
        counts = self._counts.get(kind)
        if counts is None:
            counts = self._counts[kind] = _KindCount(first=place)
        counts.found += 1
        counts.last = place
        count = counts.found
        if (here > self.max_per_exchange and not _is_round(here)) or (
            count > MAX_PER_KIND and not _is_round(count)
        ):
            return 0
        counts.reported += 1
        return count

    def make_totals(self, at: int) -> Iterator[Finding]:
        """Yield the total of each kind with unreported findings once, at the end of a session,
        ns."""
        for (ident, severity, agent, _, operation), counts in self._counts.items():
            if counts.found == counts.reported:
                continue
            first, last = _format_place(counts.first), _format_place(counts.last)
            where = f" in {operation}" if operation else ""
            where += f", from #{first} to #{last}" if first else ""
            summary = (
                f"found {counts.found} times in total{where}; {counts.reported} of them are listed"
            )
            evidence = {
                "count": str(counts.found),
                "listed": str(counts.reported),
                "agent": agent,
                "first": first,
                "last": last,
            }
            counts.reported = counts.found
            yield Finding(ident, Severity(severity), at, summary, evidence=evidence)


def _format_place(place: FramePlace) -> str:
    exchange, seq = place
    return f"{exchange}.{seq}" if seq >= 0 else str(exchange or "")


def _is_round(count: int) -> bool:
    """Whether the count is a power of ten, at least 100."""
    return count >= 100 and str(count).rstrip("0") == "1"
