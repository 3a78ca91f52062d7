"""Elements of a swimlane: lanes, marks between the messages, and rows. All times are ns since the
epoch."""

from enum import StrEnum

import msgspec

from a2a_proxy.model.values import FrameKind, Severity


class PartyRole(StrEnum):
    """Role of a party."""

    CLIENT = "client"
    AGENT = "agent"
    """An upstream of the proxy."""
    AUTHOR = "author"
    """An agent behind an agent: it took over within a task, without a call that the proxy
    recorded."""


class PartyLane(msgspec.Struct, frozen=True):
    """One party."""

    name: str
    role: PartyRole


class LaneRowKind(StrEnum):
    """Kind of a row. The values are the `what` of the JSON lines."""

    FRAME = "frame"
    PAUSE = "pause"
    """No frame for a second or more."""
    TURN = "turn"
    """The client sends the next message of the task."""
    WAIT = "wait"
    """The agent waits for input or authorisation."""
    MISSED = "missed"
    """Generations missing on a stream."""
    INTERRUPTION = "interruption"
    HANDOFF = "handoff"
    FINDING = "finding"


class LaneMark(msgspec.Struct, frozen=True):
    """A remark between two messages."""

    what: LaneRowKind
    at: int
    exchange: int
    """Number of the exchange within the session; 0 if the mark is about no exchange."""
    seq: int
    """Number of the frame below which the mark is placed (above which, for a TURN); -1 if it is
    placed by `at`."""
    text: str
    severity: Severity | None = None
    """Severity of a FINDING."""


class LaneRow(msgspec.Struct, frozen=True):
    """One line of a swimlane."""

    what: LaneRowKind
    at: int
    since_start: int
    """ns since the first frame of the conversation."""
    since_before: int
    """ns since the previous frame; for a PAUSE its length."""
    source: int
    """Number of the sending lane; for rows other than frames, the lane that the row is about."""
    target: int
    """Number of the receiving lane."""
    text: str
    session: int
    exchange: int
    seq: int
    frame: int = 0
    """Id of the frame; 0 for other rows."""
    kind: FrameKind | None = None
    severity: Severity | None = None
