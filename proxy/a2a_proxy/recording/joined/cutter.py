"""Segments, interruptions and hand-offs over all recordings at once: who hands over to an agent of another file."""

from __future__ import annotations

from collections import OrderedDict

from a2a_proxy.model.exchange import Connection, Exchange
from a2a_proxy.model.frame import EventKind, Frame
from a2a_proxy.model.segment import Handoff, Interruption, Segment
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.protocol.segments.tracker import SegmentTracker
from a2a_proxy.protocol.session_facts import SessionContext
from a2a_proxy.recording.read.conversations import SegmentExchangeView

_MAX_KEPT_EXCHANGES = 65_536
"""Exchanges of which frames may still come."""


class SegmentCutter:
    """Cuts frames of exchanges that it has been told of."""

    def __init__(self) -> None:
        self._tracker = SegmentTracker()
        self._shared = SessionContext()
        self._views: OrderedDict[int, tuple[SegmentExchangeView, str]] = OrderedDict()

    def update_exchange(self, value: Exchange, connection: Connection | None) -> None:
        """An exchange that begins, or as it is now, and its connection."""
        upstream, client = (connection.upstream, connection.client) if connection is not None else ("", "")
        agent = self._shared.agent_of(upstream)
        view = SegmentExchangeView(
            value.id,
            value.binding,
            value.operation,
            value.traceparent,
            value.dialect,
            agent,
            client,
            value.connection,
            value.sent_traceparent,
        )
        self._views[value.id] = view, upstream
        if len(self._views) > _MAX_KEPT_EXCHANGES:
            self._views.popitem(last=False)

    def add_frame(self, frame: Frame) -> None:
        """The next frame."""
        view, upstream = self._views.get(frame.exchange, (None, ""))
        if view is None:
            return
        if frame.event is EventKind.CARD:
            self._shared.learn_card(upstream, decode_payload(frame.payload, frame.schema))
        self._tracker.apply(frame, view, view.client)

    def end(self, at: int) -> None:
        """Nothing more comes after `at` (ns)."""
        self._tracker.end(at)

    def take_changes(self) -> tuple[list[Segment], list[Interruption], list[Handoff]]:
        """What has changed since the last call."""
        return self._tracker.pop_changes()
