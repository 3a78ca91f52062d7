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
from a2a_proxy.telemetry.events import AGENT_MESSAGE_KINDS, CallEvents
from a2a_proxy.telemetry.ids import segment_id
from a2a_proxy.telemetry.values import SpanContextIds, SpanValue

MAX_SEGMENTS = 10_000
"""Of one call: the last one has all that is left of it."""
_MAX_STATES = 32
"""States of a call that are told, as `Exchange.states`."""


class SegmentWindow(msgspec.Struct, frozen=True):
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
    def is_whole_call(self) -> bool:
        """It is all of the call."""
        return self.last and self.number == 1


def finished_call_windows(exchange: Exchange, interval: int, sent_count: int = 0) -> Iterator[SegmentWindow]:
    """The segments of a call that is over, after so many that were sent; the last one is always among them."""
    number, begin = sent_count + 1, exchange.started + sent_count * interval
    end = max(exchange.closed, exchange.started)
    while interval and number < MAX_SEGMENTS and begin + interval < end:
        yield SegmentWindow(number, begin, begin + interval)
        number, begin = number + 1, begin + interval
    yield SegmentWindow(number, min(begin, end), end, last=True)


def open_call_windows(exchange: Exchange, interval: int, now: int, sent_count: int = 0) -> Iterator[SegmentWindow]:
    """Those of a call that goes on which are over at `now`, ns."""
    number, begin = sent_count + 1, exchange.started + sent_count * interval
    while interval and number < MAX_SEGMENTS and begin + interval <= now:
        yield SegmentWindow(number, begin, begin + interval)
        number, begin = number + 1, begin + interval


class PartialCall:
    """A call as it was at some moment, made from the frames until then."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._task = self._context = ""
        self._states: list[str] = []
        self._events = self._first_event = 0

    @property
    def state(self) -> str:
        """The state that was told last; empty before one."""
        return self._states[-1] if self._states else ""

    def add_frame(self, frame: Frame) -> None:
        """The next frame."""
        self._task = self._task or frame.task_id
        self._context = self._context or frame.context_id
        if frame.kind in AGENT_MESSAGE_KINDS:
            self._events += 1
            self._first_event = self._first_event or frame.at
        state = state_label(frame.state) if frame.state else self.state
        if state != self.state and len(self._states) < _MAX_STATES:
            self._states.append(state)

    def exchange_at(self, end: int) -> Exchange:
        """The call as it was at `end`, ns."""
        known = self._exchange
        answered = 0 < known.response_started < end
        return msgspec.structs.replace(
            known,
            task_id=self._task,
            context_id=self._context,
            states=tuple(self._states),
            events=self._events,
            first_event=self._first_event,
            response_started=known.response_started if answered else 0,
            status=known.status if answered else 0,
            closed=0,
            how="",
            half_close="",
            error="",
            error_code=0,
            grpc_status=-1,
        )


def segment_span(
    span: SpanValue, window: SegmentWindow, session: str, exchange: int, call_events: CallEvents
) -> SpanValue:
    """The span of a call, or of what of it was known, as that of a segment with what happened in it."""
    if window.is_whole_call:
        return span
    events, dropped = call_events.events()
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
