"""What comes out of the pure core.

`Observer.feed` yields frames and findings in the order of the wire. Connections, exchanges and tasks change many times
a second, so they are not yielded one by one: `Observer.changes` returns one snapshot of each that changed since it
was last asked.
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
    """Snapshots of what changed."""

    connections: list[Connection]
    exchanges: list[Exchange]
    tasks: list[Task]
    segments: list[Segment] = []
    """Those that began, grew or ended, but for the turns that are one unary call: their exchange says it all."""
    interruptions: list[Interruption] = []
    handoffs: list[Handoff] = []
    healed: list[tuple[str, MissedGenerations]] = []
    """Task id and gap in its generations, where it was made good since the last time."""
