"""The output of the pure core.

`Observer.feed` yields frames and findings in wire order. Connections, exchanges and tasks change
many times a second, so they are not yielded one by one: `Observer.pop_changes` returns one snapshot
of each that changed since the last call.
"""

from __future__ import annotations

import msgspec

from a2a_proxy.model.exchange import Connection, Exchange
from a2a_proxy.model.finding import Finding
from a2a_proxy.model.frame import Frame
from a2a_proxy.model.segment import Handoff, Interruption, Segment
from a2a_proxy.model.task import MissedGenerations, Task

Observation = Frame | Finding


class Changes(msgspec.Struct):
    """Snapshots of the values that changed."""

    connections: list[Connection]
    exchanges: list[Exchange]
    tasks: list[Task]
    segments: list[Segment] = []
    """Segments that began, grew or ended, except turns that are one unary call, which their
    exchange describes."""
    interruptions: list[Interruption] = []
    handoffs: list[Handoff] = []
    healed: list[tuple[str, MissedGenerations]] = []
    """Task id and generation gap of each gap that was closed since the last call."""
