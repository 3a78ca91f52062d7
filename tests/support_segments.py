"""Timelines for segments: frames with their times in ms, and the output of a tracker for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import (
    Binding,
    EventKind,
    Frame,
    FrameKind,
    Handoff,
    Interruption,
    Segment,
)
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.segments.tracker import SegmentTracker
from support_wire import reload

MS = 1_000_000
ZERO = 1_700_000_000_000_000_000
Step = Callable[[SegmentTracker], None]


class View(msgspec.Struct):
    """The tracker's view of an exchange."""

    id: int
    binding: Binding
    operation: str
    traceparent: str = ""
    agent: str = "agent:1"
    client: str = "127.0.0.1:5000"
    sent_traceparent: str = ""
    client_ports: tuple[int, ...] = ()

    @property
    def trace_context(self) -> str:
        """The `traceparent` that the agent received."""
        return self.sent_traceparent or self.traceparent


class Timeline:
    """Frames in order of time; `run` feeds them to a tracker."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.views: dict[int, View] = {}
        """Exchanges by number."""
        self._seqs: dict[int, int] = {}

    def ask(
        self,
        at: float,
        operation: str = "SendStreamingMessage",
        *,
        exchange: int = 1,
        took: float = 0,
        **fields: Any,
    ) -> Timeline:
        """Add a request of the client whose last byte is at `at` ms and whose first byte is `took`
        ms earlier."""
        names = ("traceparent", "sent_traceparent", "agent", "client", "client_ports")
        known = {name: fields.pop(name) for name in names if name in fields}
        self.views.setdefault(exchange, View(exchange, Binding.JSONRPC, operation, **known))
        event = EventKind.MESSAGE if operation.startswith("Send") else EventKind.NONE
        members = {"event": event, "size": 100, **fields}
        return self._frame(
            at, exchange, Direction.TO_AGENT, FrameKind.REQUEST, took=took, **members
        )

    def state(
        self,
        at: float,
        name: str,
        *,
        exchange: int = 1,
        task: str = "t",
        said: str = "",
        **fields: Any,
    ) -> Timeline:
        """Add a status update; with `said` it has a message with this id."""
        return self._told(
            at, exchange, task, EventKind.STATUS, state=TaskState[name], message_id=said, **fields
        )

    def task(
        self, at: float, name: str, *, exchange: int = 1, task: str = "t", **fields: Any
    ) -> Timeline:
        """Add a snapshot."""
        return self._told(at, exchange, task, EventKind.TASK, state=TaskState[name], **fields)

    def chunk(
        self, at: float, artifact: str = "a", *, exchange: int = 1, task: str = "t", **fields: Any
    ) -> Timeline:
        """Add an artifact update of 100 bytes."""
        return self._told(at, exchange, task, EventKind.ARTIFACT, artifact_id=artifact, **fields)

    def message(self, at: float, *, exchange: int = 1, **fields: Any) -> Timeline:
        """Add a message of the agent without a task."""
        return self._told(
            at, exchange, fields.pop("task", ""), fields.pop("event", EventKind.MESSAGE), **fields
        )

    def end(
        self, at: float, *, exchange: int = 1, kind: FrameKind = FrameKind.END, **fields: Any
    ) -> Timeline:
        """End the agent's side of an exchange."""
        return self._frame(at, exchange, Direction.TO_CLIENT, kind, **fields)

    def tick(self, at: float) -> Timeline:
        """Advance the time."""
        when = ZERO + round(at * MS)

        def tick(tracker: SegmentTracker) -> None:
            tracker.tick(when)

        self.steps.append(tick)
        return self

    def _told(
        self, at: float, exchange: int, task: str, event: EventKind, **fields: Any
    ) -> Timeline:
        operation = self.views[exchange].operation if exchange in self.views else ""
        kind = (
            FrameKind.EVENT
            if operation in ("SendStreamingMessage", "SendLiveMessage", "SubscribeToTask")
            else FrameKind.RESPONSE
        )
        members = {
            "event": event,
            "task_id": task,
            "context_id": "c",
            "kind": kind,
            "size": 100,
            **fields,
        }
        kind = members.pop("kind")
        return self._frame(at, exchange, Direction.TO_CLIENT, kind, **members)

    def _frame(
        self,
        at: float,
        exchange: int,
        direction: Direction,
        kind: FrameKind,
        took: float = 0,
        **fields: Any,
    ) -> Timeline:
        seq = self._seqs[exchange] = self._seqs.get(exchange, -1) + 1
        when = ZERO + round(at * MS)
        connection = fields.pop("connection", exchange)
        frame = Frame(
            connection,
            exchange,
            seq,
            direction,
            kind,
            when - round(took * MS),
            when,
            0,
            0,
            **fields,
        )
        view = self.views[exchange]
        self.steps.append(lambda tracker: _ignore(tracker.apply_frame(frame, view, view)))
        return self


def _ignore(_: object) -> None:
    return None


class Cut(msgspec.Struct):
    """The result of a timeline: the last snapshot of every object."""

    segments: list[Segment]
    interruptions: list[Interruption]
    handoffs: list[Handoff]

    def line(self) -> list[str]:
        """Return `client 1 0-10 speaker`: speaker, turn, start and end in ms, reason of the end."""
        return [
            f"{s.speaker} {s.turn} {ms(s.start):g}-{ms(s.end):g} {s.reason}" for s in self.segments
        ]


def ms(at: int) -> float:
    """Return a time on the timeline, or a duration, in ms."""
    return (at - ZERO if at >= ZERO else at) / MS


def run(
    timeline: Timeline,
    until: float | None = None,
    restore_at: tuple[int, ...] = (),
    *,
    whole: bool = True,
) -> Cut:
    """Feed the timeline; `until` ends the session, and the tracker is saved and restored before the
    steps `restore_at`."""
    tracker = SegmentTracker(include_unary=whole)
    found: tuple[dict[int, Any], dict[int, Any], dict[int, Any]] = ({}, {}, {})
    for number, step in enumerate(timeline.steps):
        if number in restore_at:
            if number % 2:
                _collect(tracker, found)
            tracker = SegmentTracker.restore(reload(tracker.save()), include_unary=whole)
        step(tracker)
    if until is not None:
        tracker.end_session(ZERO + round(until * MS))
    _collect(tracker, found)
    segments, interruptions, handoffs = (
        [each[number] for number in sorted(each)] for each in found
    )
    return Cut(segments, interruptions, handoffs)


def _collect(
    tracker: SegmentTracker, found: tuple[dict[int, Any], dict[int, Any], dict[int, Any]]
) -> None:
    changed: Any = tracker.pop_changes()
    for known, values in zip(found, changed, strict=True):
        known.update((each.id, each) for each in values)
