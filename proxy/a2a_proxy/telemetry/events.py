"""Events of a call's span from its frames and findings, and measures of its stream. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING

from a2a_proxy.hooks.gap import gap_of
from a2a_proxy.model.event import state_label
from a2a_proxy.model.values import Finding, Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.telemetry.values import MAX_EVENTS, Attributes, SpanEvent, cut_text

if TYPE_CHECKING:
    from a2a_proxy.rules.endings.ending import Ending

AGENT_MESSAGE_KINDS = frozenset({FrameKind.RESPONSE, FrameKind.EVENT, FrameKind.ERROR})
"""Kinds of the agent's messages."""
_END_KINDS = frozenset({FrameKind.END, FrameKind.CUT})


class CallEvents:
    """Collects the frames of one call in order, then its findings."""

    def __init__(self, state: str = "", last: int = 0) -> None:
        """`state` is the earlier state of the task, empty if unknown. `last` is the time of the
        agent's previous message, ns; 0 if there was none."""
        self.max_gap = 0
        """The longest time between two messages of the agent, ns."""
        self.gaps: list[int] = []
        """All of these times, at most `MAX_EVENTS`."""
        self.frames = 0
        self.last_heard = 0
        """Time of the agent's last frame of any kind, ns."""
        self._state = state
        self.last = last
        """Time of the agent's last message, ns."""
        self._finding_events: list[SpanEvent] = []
        self._frame_events: list[SpanEvent] = []
        self._dropped = 0

    @property
    def state(self) -> str:
        """Current state of the task; empty if unknown."""
        return self._state

    def add_frame(self, frame: Frame) -> None:
        """Add the next frame."""
        self.frames += 1
        if frame.truncated:
            self._add_frame_event(
                SpanEvent("a2a_proxy.truncated", frame.at, {"a2a_proxy.frame.size": frame.size})
            )
        if frame.direction is not Direction.TO_CLIENT or frame.kind in _END_KINDS:
            return
        self.last_heard = frame.at
        if frame.kind not in AGENT_MESSAGE_KINDS:
            return
        if self.last:
            gap = max(frame.at - self.last, 0)
            self.max_gap = max(self.max_gap, gap)
            if len(self.gaps) < MAX_EVENTS:
                self.gaps.append(gap)
        else:
            self._add_frame_event(SpanEvent("a2a_proxy.first_event", frame.at))
        self.last = frame.at
        if frame.state:
            self._apply_state(frame)

    def add_finding(self, finding: Finding) -> None:
        """Add the next finding."""
        attributes: Attributes = {
            "a2a_proxy.finding.rule": cut_text(finding.rule),
            "a2a_proxy.finding.severity": finding.severity.name.lower(),
            "a2a_proxy.finding.summary": cut_text(finding.summary),
        }
        self._append_event(
            self._finding_events, SpanEvent("a2a_proxy.finding", finding.at, attributes)
        )
        gap = gap_of(finding)
        if gap is not None and gap.first:
            numbers: Attributes = {
                "a2a.task.id": cut_text(gap.task_id),
                "expected": gap.first,
                "got": gap.last + 1,
            }
            self._append_event(
                self._finding_events, SpanEvent("a2a_proxy.generation_gap", finding.at, numbers)
            )

    def add_ending(self, ending: Ending) -> None:
        """Add why the call did not end well."""
        attributes: Attributes = {
            "a2a_proxy.ending.cause": ending.cause,
            "a2a_proxy.ending.rule": ending.rule,
            "a2a_proxy.ending.summary": cut_text(ending.summary),
            "a2a_proxy.ending.confidence": ending.confidence,
        }
        if ending.severity is not None and ending.actor is not None:
            attributes["a2a_proxy.ending.actor"] = ending.actor.value
        event = SpanEvent("a2a_proxy.ending", ending.at, attributes)
        self._append_event(self._finding_events, event)

    def list_events(self) -> tuple[tuple[SpanEvent, ...], int]:
        """Return the events by time, and the number of omitted ones; findings take precedence over
        frames."""
        room = MAX_EVENTS - len(self._finding_events)
        kept: Iterable[SpanEvent] = [*self._frame_events[:room], *self._finding_events]
        return tuple(sorted(kept, key=attrgetter("at"))), self._dropped + max(
            len(self._frame_events) - room, 0
        )

    def _apply_state(self, frame: Frame) -> None:
        state = state_label(frame.state)
        if state == self._state:
            return
        change: Attributes = {"to": state, "a2a.task.id": cut_text(frame.task_id)}
        if self._state:
            change["from"] = self._state
        if frame.generation:
            change["generation"] = frame.generation
        self._state = state
        self._add_frame_event(SpanEvent("a2a.task.state_change", frame.at, change))

    def _add_frame_event(self, event: SpanEvent) -> None:
        self._append_event(self._frame_events, event)

    def _append_event(self, events: list[SpanEvent], event: SpanEvent) -> None:
        if len(events) < MAX_EVENTS:
            events.append(event)
        else:
            self._dropped += 1
