"""Segments, interruptions and hand-offs over all joined recordings, including hand-offs between files."""

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
"""Exchanges for which frames may still arrive."""


class SegmentCutter:
    """Builds segments from the frames of known exchanges."""

    def __init__(self) -> None:
        self._tracker = SegmentTracker()
        self._shared = SessionContext()
        self._views: OrderedDict[int, tuple[SegmentExchangeView, str]] = OrderedDict()

    def update_exchange(self, value: Exchange, connection: Connection | None) -> None:
        """Add an exchange, or update it, with its connection."""
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
        """Add the next frame."""
        view, upstream = self._views.get(frame.exchange, (None, ""))
        if view is None:
            return
        if frame.event is EventKind.CARD:
            self._shared.learn_card(upstream, decode_payload(frame.payload, frame.schema))
        self._tracker.apply(frame, view, view.client)

    def end(self, at: int) -> None:
        """End all segments: no frames follow after `at` (ns)."""
        self._tracker.end(at)

    def take_changes(self) -> tuple[list[Segment], list[Interruption], list[Handoff]]:
        """Return the segments, interruptions and hand-offs that have changed since the last call."""
        return self._tracker.pop_changes()
