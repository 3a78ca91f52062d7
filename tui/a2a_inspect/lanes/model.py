"""What a swimlane is made of: lanes, marks between the messages, and rows. All times are ns since the epoch."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import FrameKind


class PartyRole(StrEnum):
    """What a party is."""

    CLIENT = "client"
    AGENT = "agent"
    """An upstream of the proxy."""
    AUTHOR = "author"
    """An agent behind an agent: one that took over within a task, without a call that the proxy saw."""


class PartyLane(msgspec.Struct, frozen=True):
    """One party."""

    name: str
    role: PartyRole


class RowKind(StrEnum):
    """What a row is. The values are the `what` of the JSON lines."""

    FRAME = "frame"
    PAUSE = "pause"
    """Nothing passed for a second or more."""
    TURN = "turn"
    """The client speaks again on the task."""
    WAIT = "wait"
    """The agent has asked the client for input or authorisation."""
    MISSED = "missed"
    """Generations that a stream left out."""
    INTERRUPTION = "interruption"
    HANDOFF = "handoff"
    FINDING = "finding"


class LaneMark(msgspec.Struct, frozen=True):
    """Something to be said between two messages."""

    what: RowKind
    at: int
    exchange: int
    """Number of the exchange within the session; 0 where it is about none."""
    seq: int
    """The frame under which it stands (above which, for a TURN); -1 where `at` alone says where it belongs."""
    text: str
    severity: Severity | None = None
    """Of a FINDING."""


class LaneRow(msgspec.Struct, frozen=True):
    """One line of a swimlane."""

    what: RowKind
    at: int
    since_start: int
    """ns since the first frame of all."""
    since_before: int
    """ns since the frame before; of a PAUSE how long it is."""
    source: int
    """Number of the lane that says it; of all that is no frame the lane that it is about."""
    target: int
    """Number of the lane that hears it."""
    text: str
    session: int
    exchange: int
    seq: int
    frame: int = 0
    """Id of the frame; 0 where the row is none."""
    kind: FrameKind | None = None
    severity: Severity | None = None
