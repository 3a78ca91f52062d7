"""Selects the open exchanges that get a status line: after one second, then at growing intervals if
they changed.

Also reports each ended exchange once, even if its response arrives after its client has gone.
"""

from collections.abc import Iterator

import msgspec

from a2a_proxy.model.values import Exchange

LIVE_AFTER = 1_000_000_000
"""ns."""
REPORT_PAUSES = tuple(seconds * LIVE_AFTER for seconds in (1, 2, 5, 10, 30, 60))
"""ns before the n-th line of an exchange; the last value repeats."""
MAX_REPORTED = 1000
"""Number of ended exchanges that are remembered as reported."""


class _OpenExchange(msgspec.Struct):
    exchange: Exchange
    upstream: str
    reported_at: int
    """Time of its last report, or of its beginning, ns."""
    report_count: int = 0
    """Number of reports so far."""
    has_changed: bool = True

    @property
    def due_at(self) -> int:
        """Earliest time of its next report, ns."""
        return self.reported_at + REPORT_PAUSES[min(self.report_count, len(REPORT_PAUSES) - 1)]


class OpenExchanges:
    """The latest snapshot of each open exchange."""

    def __init__(self) -> None:
        self._open: dict[int, _OpenExchange] = {}
        self._ended: dict[int, None] = {}

    def update_exchange(self, exchange: Exchange, upstream: str) -> None:
        """Store a changed exchange; a closed one is forgotten."""
        if exchange.closed:
            self._open.pop(exchange.id, None)
            return
        watched = self._open.get(exchange.id)
        if watched is None:
            self._open[exchange.id] = _OpenExchange(exchange, upstream, exchange.started)
        else:
            watched.exchange, watched.has_changed = exchange, True

    def mark_ended(self, exchange: Exchange) -> bool:
        """Whether the exchange has ended and was not reported before; marks it as reported."""
        if not exchange.closed or exchange.id in self._ended:
            return False
        self._ended[exchange.id] = None
        if len(self._ended) > MAX_REPORTED:
            del self._ended[next(iter(self._ended))]
        return True

    def operation_of(self, number: int) -> str:
        """Return the operation of an open exchange; empty if the exchange is not open or has
        none."""
        watched = self._open.get(number)
        return watched.exchange.operation if watched is not None else ""

    def take_due(self, now: int) -> Iterator[tuple[Exchange, str]]:
        """Yield the exchanges to report at `now` (ns), with their upstreams."""
        for watched in self._open.values():
            if watched.has_changed and now >= watched.due_at:
                watched.reported_at, watched.has_changed = now, False
                watched.report_count += 1
                yield watched.exchange, watched.upstream
