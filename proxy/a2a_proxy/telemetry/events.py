"""What happened within a call: its frames and findings as events of its span, and measures of its stream. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from a2a_proxy.hooks.gap import gap_of
from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.finding import Finding
from a2a_proxy.model.frame import Frame, FrameKind
from a2a_proxy.telemetry.call_facts import state_label
from a2a_proxy.telemetry.values import MAX_EVENTS, Attributes, SpanEvent, cut

SAID = frozenset({FrameKind.RESPONSE, FrameKind.EVENT, FrameKind.ERROR})
"""Frames in which an agent says something."""
_ENDS = frozenset({FrameKind.END, FrameKind.CUT})


class CallEvents:
    """Takes the frames of one call in order, then what was found about it."""

    def __init__(self, state: str = "", last: int = 0) -> None:
        """`state`: the one that the task was in before; empty where nobody knows. `last`: when the agent sent its last
        message before, ns; 0 where there was none."""
        self.max_gap = 0
        """The longest time between two messages of the agent, ns."""
        self.gaps: list[int] = []
        """All of those times, at most `MAX_EVENTS`."""
        self.frames = 0
        self.heard = 0
        """When the agent sent something last, whatever it was, ns."""
        self._state = state
        self.last = last
        """When the agent sent its last message, ns."""
        self._found: list[SpanEvent] = []
        self._seen: list[SpanEvent] = []
        self._dropped = 0

    @property
    def state(self) -> str:
        """The one that the task is in now; empty where nobody knows."""
        return self._state

    def take(self, frame: Frame) -> None:
        """The next frame."""
        self.frames += 1
        if frame.truncated:
            self._see(SpanEvent("a2a_proxy.truncated", frame.at, {"a2a_proxy.frame.size": frame.size}))
        if frame.direction is not Direction.TO_CLIENT or frame.kind in _ENDS:
            return
        self.heard = frame.at
        if frame.kind not in SAID:
            return
        if self.last:
            gap = max(frame.at - self.last, 0)
            self.max_gap = max(self.max_gap, gap)
            if len(self.gaps) < MAX_EVENTS:
                self.gaps.append(gap)
        else:
            self._see(SpanEvent("a2a_proxy.first_event", frame.at))
        self.last = frame.at
        if frame.state:
            self._state_told(frame)

    def found(self, finding: Finding) -> None:
        """The next finding."""
        told: Attributes = {
            "a2a_proxy.finding.rule": cut(finding.rule),
            "a2a_proxy.finding.severity": finding.severity.name.lower(),
            "a2a_proxy.finding.summary": cut(finding.summary),
        }
        self._keep(self._found, SpanEvent("a2a_proxy.finding", finding.at, told))
        gap = gap_of(finding)
        if gap is not None and gap.first:
            numbers: Attributes = {"a2a.task.id": cut(gap.task_id), "expected": gap.first, "got": gap.last + 1}
            self._keep(self._found, SpanEvent("a2a_proxy.generation_gap", finding.at, numbers))

    def events(self) -> tuple[tuple[SpanEvent, ...], int]:
        """The events by time, and how many were left out: what was found goes before what was seen."""
        room = MAX_EVENTS - len(self._found)
        kept: Iterable[SpanEvent] = [*self._seen[:room], *self._found]
        return tuple(sorted(kept, key=attrgetter("at"))), self._dropped + max(len(self._seen) - room, 0)

    def _state_told(self, frame: Frame) -> None:
        state = state_label(frame.state)
        if state == self._state:
            return
        change: Attributes = {"to": state, "a2a.task.id": cut(frame.task_id)}
        if self._state:
            change["from"] = self._state
        if frame.generation:
            change["generation"] = frame.generation
        self._state = state
        self._see(SpanEvent("a2a.task.state_change", frame.at, change))

    def _see(self, event: SpanEvent) -> None:
        self._keep(self._seen, event)

    def _keep(self, events: list[SpanEvent], event: SpanEvent) -> None:
        if len(events) < MAX_EVENTS:
            events.append(event)
        else:
            self._dropped += 1
