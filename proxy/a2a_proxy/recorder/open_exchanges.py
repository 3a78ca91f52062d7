"""Which open exchanges get a line of their own: after a second, then at growing pauses if something new came.

And which ones that are over: each once, though its answer may come when its client has gone.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from a2a_proxy.model.exchange import Exchange

LIVE_AFTER = 1_000_000_000
"""ns."""
REPORT_PAUSES = tuple(seconds * LIVE_AFTER for seconds in (1, 2, 5, 10, 30, 60))
"""ns before the n-th line of an exchange; the last one repeats."""
MAX_REPORTED = 1000
"""Exchanges that are over and known to have been told of."""


class _OpenExchange(msgspec.Struct):
    exchange: Exchange
    upstream: str
    reported_at: int
    """When it was told of, or began, ns."""
    report_count: int = 0
    """How often it was told of."""
    has_changed: bool = True

    @property
    def due_at(self) -> int:
        """When it may be told of next, ns."""
        return self.reported_at + REPORT_PAUSES[min(self.report_count, len(REPORT_PAUSES) - 1)]


class OpenExchanges:
    """Open exchanges, the latest snapshot of each."""

    def __init__(self) -> None:
        self._open: dict[int, _OpenExchange] = {}
        self._ended: dict[int, None] = {}

    def update(self, exchange: Exchange, upstream: str) -> None:
        """An exchange changed; one that is closed is forgotten."""
        if exchange.closed:
            self._open.pop(exchange.id, None)
            return
        watched = self._open.get(exchange.id)
        if watched is None:
            self._open[exchange.id] = _OpenExchange(exchange, upstream, exchange.started)
        else:
            watched.exchange, watched.has_changed = exchange, True

    def mark_ended(self, exchange: Exchange) -> bool:
        """It is over, and that was not told before."""
        if not exchange.closed or exchange.id in self._ended:
            return False
        self._ended[exchange.id] = None
        if len(self._ended) > MAX_REPORTED:
            del self._ended[next(iter(self._ended))]
        return True

    def operation_of(self, number: int) -> str:
        """Of an open exchange; empty where there is none, or it has none."""
        watched = self._open.get(number)
        return watched.exchange.operation if watched is not None else ""

    def take_due(self, now: int) -> Iterator[tuple[Exchange, str]]:
        """Exchanges to tell of at `now` (ns), with their upstreams."""
        for watched in self._open.values():
            if watched.has_changed and now >= watched.due_at:
                watched.reported_at, watched.has_changed = now, False
                watched.report_count += 1
                yield watched.exchange, watched.upstream
