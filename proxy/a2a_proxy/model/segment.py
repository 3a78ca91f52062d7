"""A conversation divided by speaker: segments, interruptions and hand-offs.

Their derivation is described in manual/protocol.md "Segments".

All times are ns since the epoch, as seen by the relay; 0 if the event has not happened.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from a2a_proxy.model.fields import Ident, Key, Row, Time, Word

CLIENT, AGENT = "client", "agent"
"""The speakers."""

GAP_CLIENT = 800_000_000
"""ns of a client's silence that end its segment (manual/protocol.md "Segments")."""
GAP_AGENT = 1_500_000_000
"""ns of an agent's silence that end its segment (manual/protocol.md "Segments")."""
YIELD_WITHIN = 1_000_000_000
"""ns within which an agent's output must stop to count as yielding (manual/protocol.md
"Interruptions")."""
IDLE = 1_000_000_000
"""ns between two events of an agent after which it counts as idle (manual/segments.md)."""


class SegmentFields(msgspec.Struct):
    """The facts of a value of `Segment`."""

    id: Key
    """Number within the session, from 1, in order of their beginning."""
    agent: Word
    """The agent that owns the task, as in `Task.agent`."""
    task_id: Annotated[Ident, Row("task")]
    context_id: Annotated[Ident, Row("context")]
    speaker: str
    """`client` or `agent`."""
    turn: int
    """Number of the turn within the task, from 1; 0 for output of the agent before any client
    frame."""
    exchange: int
    """The exchange of its first frame."""
    seq: int
    """Position of that frame in the exchange."""
    last_exchange: int
    """The exchange of its last frame; it differs from `exchange` if a task has several."""
    last_seq: int
    began: Time
    """First byte of its first frame."""
    start: Time
    """Last byte of its first frame: the earliest time the other side could act on it."""
    end: Time
    """Last byte of its last frame."""
    ended: Time = 0
    """Time its end became clear; 0 while it is open."""
    reason: str = ""
    """Why it ended: `speaker`, `silence`, `artifact`, `interrupted`, `transfer`, `completed`,
    `failed`, `canceled`, `rejected`, `input`, `auth`, `error` (the call was answered with an
    error), `closed`, `broken`. Empty while open."""
    frames: int = 1
    bytes: int = 0
    """Bytes of its frames' payloads."""
    outputs: int = 0
    """Frames with output: artifact updates, messages, states with a message, tasks with artifacts
    or a message."""
    first_output: Time = 0
    last_output: Time = 0
    gap: int = 0
    """The longest pause between two of its frames, ns."""
    idle: int = 0
    """Sum of all pauses of more than `IDLE` between its frames, ns."""
    activity_end: Time = 0
    """Time the client signalled the end of its activity; 0 if it did not: then `end` counts."""
    closed: Time = 0
    """Time the stream with its final state closed."""
    generation_first: int = 0
    generation_last: int = 0
    author: str = ""
    """The agent behind the agent, if metadata names it."""


class Segment(SegmentFields, frozen=True):  # type: ignore[misc]
    """A run of frames of one speaker on one task, or in one exchange if there is no task."""


class InterruptionFields(msgspec.Struct):
    """The facts of a value of `Interruption`."""

    id: Key
    """Number within the session, from 1."""
    agent: Word
    task_id: Annotated[Ident, Row("task")]
    context_id: Annotated[Ident, Row("context")]
    kind: str
    """`message` (on the same task), `cancel`, `event` (of a media stream), or `context`: a new task
    in the same context, which is weak evidence."""
    segment: int
    """The agent's segment that was interrupted."""
    exchange: int
    """The exchange of the client's frame."""
    seq: int
    at: Time
    """Time the client's frame was complete."""
    ended: Time = 0
    """Time the outcome became clear; 0 while it is open."""
    outcome: str = ""
    """`yielded` (the output stopped within `YIELD_WITHIN`), `overlapped` (it continued),
    `canceled`, `rejected` (the client's frame was answered with an error). Empty while open."""
    residual_frames: int = 0
    """Frames of the interrupted output that arrived after `at`."""
    residual_bytes: int = 0
    """Bytes of their payloads."""
    last_residual: Time = 0
    wasted: int = 0
    """Bytes of text, raw and data in those frames."""
    reaction: Time = 0
    """Time of the agent's first different output."""

    @property
    def latency(self) -> int | None:
        """Interruption latency, ns: until the last frame of the interrupted output; None if no
        frame arrived after `at`."""
        return self.last_residual - self.at if self.last_residual else None

    @property
    def reaction_time(self) -> int | None:
        """Time until the agent's first different output, ns; None if there was none."""
        return self.reaction - self.at if self.reaction else None


class Interruption(InterruptionFields, frozen=True):  # type: ignore[misc]
    """The client sends while the agent's output is open (manual/protocol.md "Interruptions")."""


class HandoffFields(msgspec.Struct):
    """The facts of a value of `Handoff`."""

    id: Key
    """Number within the session, from 1."""
    kind: str
    """`transfer` (within one task), `delegation` (a call by the agent while its task is active), or
    `next` (the client continues the context at another agent)."""
    evidence: str
    """`author`, `transfer_to_agent`, `traceparent`, `context`, `reference`, `process` or
    `content`."""
    agent: Word
    """The agent that hands off."""
    task_id: Annotated[Ident, Row("task")]
    context_id: Annotated[Ident, Row("context")]
    segment: int
    """The segment during or after which it hands off."""
    to_agent: str
    """The agent that takes over: an upstream, or a name if it is within one task."""
    to_task: Ident
    to_exchange: int
    """The exchange in which the new agent answers."""
    exchange: int
    """The exchange of the evidence: the frame that shows the hand-off."""
    seq: int
    at: Time
    """Time that frame was complete."""
    ended: Time = 0
    """Time of the new agent's first output, or when it was clear that none will follow; 0 while it
    is open."""
    first_output: Time = 0
    briefing: int = 0
    """Bytes of the request to the new agent; 0 within one task."""

    @property
    def latency(self) -> int | None:
        """Transfer latency, ns: until the new agent's first output; None if there was none."""
        return self.first_output - self.at if self.first_output else None


class Handoff(HandoffFields, frozen=True):  # type: ignore[misc]
    """A conversation moves from one agent to another (manual/protocol.md "Hand-offs")."""
