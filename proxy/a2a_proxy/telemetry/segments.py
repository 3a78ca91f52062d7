"""Long calls as several spans, for backends that lose spans that end late: `--segment 5m`. No I/O.

The first segment has the ids of the call; the others are its children. Segments depend only on
recorded times and contain only facts known at their end, so a live export and a later one send the
same.
"""

from collections.abc import Iterator

import msgspec

from a2a_proxy.model.event import state_label
from a2a_proxy.model.values import Exchange, Frame
from a2a_proxy.telemetry.events import AGENT_MESSAGE_KINDS, CallEvents
from a2a_proxy.telemetry.ids import segment_id
from a2a_proxy.telemetry.values import SpanContextIds, SpanValue

MAX_SEGMENTS = 10_000
"""Maximum number of segments of one call; the last one covers the rest of the call."""
_MAX_STATES = 32
"""Maximum number of states of a call, as in `Exchange.states`."""


class SegmentWindow(msgspec.Struct, frozen=True):
    """Time range of one segment."""

    number: int
    """Number of the segment, from 1."""
    begin: int
    """Begin in ns."""
    end: int
    """End in ns, exclusive."""
    last: bool = False
    """Whether the call ends in this segment."""

    @property
    def is_whole_call(self) -> bool:
        """Whether the segment covers the whole call."""
        return self.last and self.number == 1


def finished_call_windows(
    exchange: Exchange, interval: int, sent_count: int = 0
) -> Iterator[SegmentWindow]:
    """Yield the segments of a finished call after `sent_count` sent ones; the last segment is
    always included."""
    number, begin = sent_count + 1, exchange.started + sent_count * interval
    end = max(exchange.closed, exchange.started)
    while interval and number < MAX_SEGMENTS and begin + interval < end:
        yield SegmentWindow(number, begin, begin + interval)
        number, begin = number + 1, begin + interval
    yield SegmentWindow(number, min(begin, end), end, last=True)


def open_call_windows(
    exchange: Exchange, interval: int, now: int, sent_count: int = 0
) -> Iterator[SegmentWindow]:
    """Yield the segments of an open call that have ended at `now` (ns), after `sent_count` sent
    ones."""
    number, begin = sent_count + 1, exchange.started + sent_count * interval
    while interval and number < MAX_SEGMENTS and begin + interval <= now:
        yield SegmentWindow(number, begin, begin + interval)
        number, begin = number + 1, begin + interval


class PartialCall:
    """State of a call at an earlier time, from the frames up to it."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._task = self._context = ""
        self._states: list[str] = []
        self._events = self._first_event = 0

    @property
    def state(self) -> str:
        """Last state of the task; empty before the first."""
        return self._states[-1] if self._states else ""

    def add_frame(self, frame: Frame) -> None:
        """Add the next frame."""
        self._task = self._task or frame.task_id
        self._context = self._context or frame.context_id
        if frame.kind in AGENT_MESSAGE_KINDS:
            self._events += 1
            self._first_event = self._first_event or frame.at
        state = state_label(frame.state) or self.state
        if state != self.state and len(self._states) < _MAX_STATES:
            self._states.append(state)

    def exchange_at(self, end: int) -> Exchange:
        """Return the exchange as known at `end`, ns."""
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
    """Return the span of a segment, from the span of the call as known at its end and the events
    within it."""
    if window.is_whole_call:
        return span
    events, dropped = call_events.list_events()
    first = window.number == 1
    own = (
        span.context
        if first
        else SpanContextIds(span.context.trace, segment_id(session, exchange, window.number))
    )
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
