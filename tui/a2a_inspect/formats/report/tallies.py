"""Latencies and failures of the exported exchanges, counted while the conversations are written.

Memory holds 16 bytes for each exchange, and a limited number of kinds.
"""

from __future__ import annotations

from array import array

import msgspec

from a2a_inspect.data.references import format_place
from a2a_inspect.plots.measures import CallKind
from a2a_inspect.plots.sums import DurationRanks, rank_durations
from a2a_proxy.model.values import Exchange
from a2a_proxy.present import text
from a2a_proxy.protocol.outcome import FAILED_OUTCOMES
from a2a_proxy.recording.read.rows import ExchangeRow
from a2a_proxy.recording.write.note_writer import NotePlace

MAX_KINDS = 200
"""Kinds of calls, and of failures, that are distinguished; the calls of further kinds are only
counted."""
_MAX_PLACES = 5
"""Exchanges that are named for each kind of failure."""
_MAX_CODE = 80
"""Maximum characters of an error code, which a peer may have made up."""
_MAX_MESSAGE = 500


class _CallTally:
    """The calls of one kind."""

    def __init__(self) -> None:
        self.count = 0
        self.failed = 0
        self.first: array[int] = array("q")
        """Times from `latency_origin` to the first event of a stream, ns."""
        self.took: array[int] = array("q")
        """Times from `latency_origin` to the end of the exchange, ns."""


class _FailureKind(msgspec.Struct, frozen=True):
    """What failures have in common."""

    call: CallKind
    outcome: str
    code: str


class _FailureTally(msgspec.Struct):
    """The failures of one kind."""

    message: str
    """Message of the first one."""
    count: int = 0
    places: list[list[object]] = []
    """Place and number of the first row of the first exchanges."""


class CallTallies:
    """Counts calls and failures by kind."""

    def __init__(self) -> None:
        self._calls: dict[CallKind, _CallTally] = {}
        self._failures: dict[_FailureKind, _FailureTally] = {}
        self._other_calls = self._other_failures = 0
        """Numbers of calls and failures whose kinds are not distinguished."""

    def add_exchange(self, row: ExchangeRow, first_row: int) -> None:
        """Add an exchange; `first_row` is the number of its first row in the report, or -1."""
        exchange = row.exchange
        kind = (exchange.operation, str(exchange.binding), str(exchange.dialect))
        outcome = text.outcome_of(exchange)
        self._add_call(kind, exchange, failed=outcome in FAILED_OUTCOMES)
        if outcome in FAILED_OUTCOMES:
            place = format_place(NotePlace(row.session, exchange.id))
            self._add_failure(kind, exchange, outcome, [place, first_row])

    def _add_call(self, kind: CallKind, exchange: Exchange, *, failed: bool) -> None:
        if kind not in self._calls and len(self._calls) >= MAX_KINDS:
            self._other_calls += 1
            return
        tally = self._calls.setdefault(kind, _CallTally())
        tally.count += 1
        tally.failed += failed
        origin = text.latency_origin(exchange)
        if exchange.streaming and exchange.first_event:
            tally.first.append(max(exchange.first_event - origin, 0))
        if exchange.closed:
            tally.took.append(max(exchange.closed - origin, 0))

    def _add_failure(
        self, call: CallKind, exchange: Exchange, outcome: str, place: list[object]
    ) -> None:
        reason = exchange.error or text.end_reason(exchange)
        code, colon, message = reason.partition(": ")
        kind = _FailureKind(call, outcome, code[:_MAX_CODE])
        if kind not in self._failures and len(self._failures) >= MAX_KINDS:
            self._other_failures += 1
            return
        tally = self._failures.setdefault(
            kind, _FailureTally(message[:_MAX_MESSAGE] if colon else "")
        )
        tally.count += 1
        if len(tally.places) < _MAX_PLACES:
            tally.places.append(place)

    def latency_records(self) -> list[dict[str, object]]:
        """Return the latencies of each kind of call, the most frequent kind first."""
        ordered = sorted(self._calls.items(), key=lambda item: (-item[1].count, item[0]))
        return [
            {
                **_call_words(kind),
                "count": tally.count,
                "failed": tally.failed,
                "first": _rank_words(rank_durations(tally.first)),
                "took": _rank_words(rank_durations(tally.took)),
            }
            for kind, tally in ordered
        ]

    def failure_records(self) -> list[dict[str, object]]:
        """Return the failures by kind, the most frequent kind first."""
        ordered = sorted(self._failures.items(), key=lambda item: -item[1].count)
        return [
            {
                **_call_words(kind.call),
                "outcome": kind.outcome,
                "code": kind.code,
                "message": tally.message,
                "count": tally.count,
                "places": tally.places,
            }
            for kind, tally in ordered
        ]

    def omitted_counts(self) -> dict[str, int]:
        """Return the numbers of calls and failures that are in no record."""
        return {"calls": self._other_calls, "failures": self._other_failures}


def _call_words(kind: CallKind) -> dict[str, object]:
    operation, binding, dialect = kind
    return {"operation": operation or "not A2A", "manner": f"{binding} {dialect}".strip()}


def _rank_words(ranks: DurationRanks | None) -> list[str]:
    """Return p50, p95, p99 and the maximum; empty without measured calls."""
    return (
        []
        if ranks is None
        else [text.format_duration(ns) for ns in (ranks.p50, ranks.p95, ranks.p99, ranks.max)]
    )
