"""A conversation cut into what each side said: segments, interruptions and hand-offs.

How they are derived is in manual/protocol.md "Segments".

All times are ns since the epoch, as the relay saw them; 0 where a thing has not happened.
"""

from __future__ import annotations

import msgspec

CLIENT, AGENT = "client", "agent"
"""Who speaks."""

GAP_CLIENT = 800_000_000
"""ns of a client's silence that end its segment (manual/protocol.md "Segments")."""
GAP_AGENT = 1_500_000_000
"""ns of an agent's silence that end its segment (manual/protocol.md "Segments")."""
YIELD_WITHIN = 1_000_000_000
"""ns within which an agent's output stops that yields to an interruption (manual/protocol.md "Interruptions")."""
IDLE = 1_000_000_000
"""ns between two events of an agent from which on it counts as idle (manual/segments.md)."""


class Segment(msgspec.Struct, frozen=True):
    """A run of frames of one speaker on one task, or in one exchange where there is no task."""

    id: int
    """Number within the session, from 1, in the order in which they began."""
    agent: str
    """Whose task it is, as `Task.agent` names it."""
    task_id: str
    context_id: str
    speaker: str
    """`client` or `agent`."""
    turn: int
    """Number of the turn within the task, from 1; 0 for what an agent says before any client."""
    exchange: int
    """The exchange of its first frame."""
    seq: int
    """Position of that frame in it."""
    last_exchange: int
    """The exchange of its last frame; another one where a task has several."""
    last_seq: int
    began: int
    """First byte of its first frame."""
    start: int
    """Last byte of its first frame: when the other side could act on it."""
    end: int
    """Last byte of its last frame."""
    ended: int = 0
    """When it was clear that it is over; 0 while it is open."""
    reason: str = ""
    """Why it is over: `speaker`, `silence`, `artifact`, `interrupted`, `transfer`, `completed`, `failed`, `canceled`,
    `rejected`, `input`, `auth`, `error` (the call was answered with an error), `closed`, `broken`. Empty while open."""
    frames: int = 1
    bytes: int = 0
    """Bytes of its frames' payloads."""
    outputs: int = 0
    """Frames with output: artifact updates, messages, states with a message, tasks with artifacts or a message."""
    first_output: int = 0
    last_output: int = 0
    gap: int = 0
    """The longest pause between two of its frames, ns."""
    idle: int = 0
    """All pauses of more than `IDLE` between its frames, ns."""
    activity_end: int = 0
    """When the client said that its activity is over; 0 where it did not: then `end` counts."""
    closed: int = 0
    """When the stream was over that brought its final state."""
    generation_first: int = 0
    generation_last: int = 0
    author: str = ""
    """The agent behind the agent, where metadata names it."""


class Interruption(msgspec.Struct, frozen=True):
    """The client speaks while the agent's output is open (manual/protocol.md "Interruptions")."""

    id: int
    """Number within the session, from 1."""
    agent: str
    task_id: str
    context_id: str
    kind: str
    """`message` (on the same task), `cancel`, `event` (of a media stream), or `context`: a new task in the same
    context, which is weak evidence."""
    segment: int
    """The agent's segment that was interrupted."""
    exchange: int
    """Of the client's frame."""
    seq: int
    at: int
    """When the client's frame was complete."""
    ended: int = 0
    """When the outcome was clear; 0 while it is open."""
    outcome: str = ""
    """`yielded` (the output stopped within `YIELD_WITHIN`), `overlapped` (it went on), `canceled`, `rejected` (the
    client's frame was answered with an error). Empty while open."""
    residual_frames: int = 0
    """Frames of the interrupted output that came after `at`."""
    residual_bytes: int = 0
    """Bytes of their payloads."""
    last_residual: int = 0
    wasted: int = 0
    """Bytes of text, raw and data in them."""
    reaction: int = 0
    """When the agent first said something else."""

    @property
    def latency(self) -> int | None:
        """Interruption latency, ns: until the last frame of the interrupted output; None where none came after `at`."""
        return self.last_residual - self.at if self.last_residual else None

    @property
    def reaction_time(self) -> int | None:
        """Until the agent said something else, ns; None where it has not."""
        return self.reaction - self.at if self.reaction else None


class Handoff(msgspec.Struct, frozen=True):
    """A conversation goes from one agent to another (manual/protocol.md "Hand-offs")."""

    id: int
    """Number within the session, from 1."""
    kind: str
    """`transfer` (within one task), `delegation` (a call by the agent while its task is active), or `next` (the client
    goes on with the context at another agent)."""
    evidence: str
    """`author`, `transfer_to_agent`, `traceparent`, `context`, `reference` or `content`."""
    agent: str
    """Who hands off."""
    task_id: str
    context_id: str
    segment: int
    """The segment during or after which it does."""
    to_agent: str
    """Who takes over: an upstream, or a name where it is within one task."""
    to_task: str
    to_exchange: int
    """The exchange in which the new agent answers."""
    exchange: int
    """Of the evidence: the frame that shows it."""
    seq: int
    at: int
    """When that frame was complete."""
    ended: int = 0
    """When the first output of the new agent came, or it was clear that none will; 0 while it is open."""
    first_output: int = 0
    briefing: int = 0
    """Bytes of the request to the new agent; 0 within one task."""

    @property
    def latency(self) -> int | None:
        """Transfer latency, ns: until the new agent's first output; None where none came."""
        return self.first_output - self.at if self.first_output else None
