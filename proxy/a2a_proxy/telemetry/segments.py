"""Calls that go on for long as several spans, for backends that lose what ends late: `--segment 5m`. Pure.

The first segment has the ids of the call; the others are below it. The times of the recording alone say where one ends,
and it says what was known then: so a live export and one long after send the same.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from a2a_proxy.model.exchange import Exchange
from a2a_proxy.model.frame import Frame
from a2a_proxy.telemetry.call_facts import state_label
from a2a_proxy.telemetry.events import SAID, CallEvents
from a2a_proxy.telemetry.ids import segment_id
from a2a_proxy.telemetry.values import SpanContextIds, SpanValue

MAX_SEGMENTS = 10_000
"""Of one call: the last one has all that is left of it."""
_STATES = 32
"""States of a call that are told, as `Exchange.states`."""


class Window(msgspec.Struct, frozen=True):
    """The time of one segment."""

    number: int
    """From 1."""
    begin: int
    """ns."""
    end: int
    """ns; what comes at this very time is in the next one."""
    last: bool = False
    """The call ends in it."""

    @property
    def whole(self) -> bool:
        """It is all of the call."""
        return self.last and self.number == 1


def windows(exchange: Exchange, every: int, sent: int = 0) -> Iterator[Window]:
    """The segments of a call that is over, after so many that were sent; the last one is always among them."""
    number, begin = sent + 1, exchange.started + sent * every
    end = max(exchange.closed, exchange.started)
    while every and number < MAX_SEGMENTS and begin + every < end:
        yield Window(number, begin, begin + every)
        number, begin = number + 1, begin + every
    yield Window(number, min(begin, end), end, last=True)


def passed(exchange: Exchange, every: int, now: int, sent: int = 0) -> Iterator[Window]:
    """Those of a call that goes on which are over at `now`, ns."""
    number, begin = sent + 1, exchange.started + sent * every
    while every and number < MAX_SEGMENTS and begin + every <= now:
        yield Window(number, begin, begin + every)
        number, begin = number + 1, begin + every


class PartialCall:
    """A call as it was at some moment, made from the frames until then."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._task = self._context = ""
        self._states: list[str] = []
        self._events = self._first = 0

    @property
    def state(self) -> str:
        """The state that was told last; empty before one."""
        return self._states[-1] if self._states else ""

    def take(self, frame: Frame) -> None:
        """The next frame."""
        self._task = self._task or frame.task_id
        self._context = self._context or frame.context_id
        if frame.kind in SAID:
            self._events += 1
            self._first = self._first or frame.at
        state = state_label(frame.state) if frame.state else self.state
        if state != self.state and len(self._states) < _STATES:
            self._states.append(state)

    def at(self, end: int) -> Exchange:
        """The call as it was at `end`, ns."""
        known = self._exchange
        answered = 0 < known.response_started < end
        return msgspec.structs.replace(
            known,
            task_id=self._task,
            context_id=self._context,
            states=tuple(self._states),
            events=self._events,
            first_event=self._first,
            response_started=known.response_started if answered else 0,
            status=known.status if answered else 0,
            closed=0,
            how="",
            half_close="",
            error="",
            error_code=0,
            grpc_status=-1,
        )


def segment(span: SpanValue, window: Window, session: str, exchange: int, passage: CallEvents) -> SpanValue:
    """The span of a call, or of what of it was known, as that of a segment with what happened in it."""
    if window.whole:
        return span
    events, dropped = passage.events()
    first = window.number == 1
    own = span.context if first else SpanContextIds(span.context.trace, segment_id(session, exchange, window.number))
    return msgspec.structs.replace(
        span,
        context=msgspec.structs.replace(own, state=span.context.state),
        parent=span.parent if first else span.context,
        started=window.begin,
        ended=window.end,
        attributes={**span.attributes, "a2a_proxy.segment": window.number},
        events=events,
        dropped_events=dropped,
        part=not window.last,
    )
