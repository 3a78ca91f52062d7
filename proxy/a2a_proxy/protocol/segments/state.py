"""What is kept of a conversation while it is followed: the model's fields to be written to, and who is still talking.

A test compares the fields with the model's.
"""

from __future__ import annotations

from operator import attrgetter

import msgspec

from a2a_proxy.model.segment import Handoff, Interruption, Segment


class SegmentState(msgspec.Struct, gc=False, omit_defaults=True):
    """The fields of `Segment` in its order, then our own."""

    id: int
    agent: str
    task_id: str
    context_id: str
    speaker: str
    turn: int
    exchange: int
    seq: int
    last_exchange: int
    last_seq: int
    began: int
    start: int
    end: int
    ended: int = 0
    reason: str = ""
    frames: int = 1
    bytes: int = 0
    outputs: int = 0
    first_output: int = 0
    last_output: int = 0
    gap: int = 0
    idle: int = 0
    activity_end: int = 0
    closed: int = 0
    generation_first: int = 0
    generation_last: int = 0
    author: str = ""

    plain: bool = False
    """Half of a turn that is one unary call: its exchange says it all, so it is not told of."""

    def snapshot(self) -> Segment:
        """The segment as it stands."""
        return Segment(*_segment_values(self))


class InterruptionState(msgspec.Struct, gc=False):
    """The fields of `Interruption` in its order, then our own."""

    id: int
    agent: str
    task_id: str
    context_id: str
    kind: str
    segment: int
    exchange: int
    seq: int
    at: int
    ended: int = 0
    outcome: str = ""
    residual_frames: int = 0
    residual_bytes: int = 0
    last_residual: int = 0
    wasted: int = 0
    reaction: int = 0

    artifacts: tuple[str, ...] = ()
    """Of the interrupted output."""
    message_id: str = ""
    """Of the interrupted output's last message."""
    media: bool = False
    """The interrupted output is a media flow, and has not been stopped."""

    def snapshot(self) -> Interruption:
        """The interruption as it stands."""
        return Interruption(*_interruption_values(self))


class HandoffState(msgspec.Struct, gc=False):
    """The fields of `Handoff` in its order."""

    id: int
    kind: str
    evidence: str
    agent: str
    task_id: str
    context_id: str
    segment: int
    to_agent: str
    to_task: str
    to_exchange: int
    exchange: int
    seq: int
    at: int
    ended: int = 0
    first_output: int = 0
    briefing: int = 0

    def snapshot(self) -> Handoff:
        """The hand-off as it stands."""
        return Handoff(*_handoff_values(self))


class ConversationState(msgspec.Struct, gc=False, omit_defaults=True):
    """A task's conversation; or that of one exchange, as long as no task is known."""

    number: int
    agent: str
    task_id: str = ""
    context_id: str = ""
    turn: int = 0
    state: int = 0
    generation: int = 0
    message_id: str = ""
    """Of the agent's last message."""
    byte_count: int = msgspec.field(default=0, name="octets")
    """Of the artifacts in the last snapshot; -1 where updates have come since."""
    last: int = 0
    """Id of the segment that began last."""
    last_output: int = 0
    """When the agent's last output came."""
    spoke: int = 0
    """When the client's last words came."""
    last_agent: int = 0
    """Id of the agent's last segment."""
    artifacts: tuple[str, ...] = ()
    """Of the agent's last segment."""
    chains: tuple[str, ...] = ()
    """Artifacts that were appended to, and have had no last chunk."""
    media: bool = False
    """The agent's media flow: started, not stopped."""
    author: str = ""
    handing: bool = False
    """The transfer tool was called, and the author that takes over has not spoken."""
    connection: int = 0
    """Over which its client spoke last."""
    said: SegmentState | None = None
    """The segment that began last, until it is over and told of."""
    tellers: dict[int, None] = {}
    """Exchanges that are open and tell of it as it goes on: not those that ask for a snapshot."""
    shown: dict[str, int] | None = None
    """While several tell the same events: how often each event was shown by the one that did so most, and by each."""
    interruption: InterruptionState | None = None
    awaited: HandoffState | None = None
    """A hand-off whose new agent has not said anything yet."""
    busy: bool = False
    """The next frame needs a closer look: an interruption, a hand-off or another stream is open, or has just been."""
    twin: ConversationState | None = None
    """The task of this id of another agent."""

    def __lt__(self, other: ConversationState) -> bool:
        """Of two that are due at the same time for the same segment, which moved, one comes first."""
        return self.number < other.number


class OpenExchange(msgspec.Struct, gc=False):
    """An exchange that is open."""

    conversation: ConversationState
    role: str
    """`send`, `live`, `watch` (a second look at a stream), `look` (a snapshot) or `cancel`."""
    answered: int = 0
    """Frames of the agent that were looked into, at most `evidence.MAX_SEARCHED_FRAMES` unless they tell something."""
    tells: bool = False
    """The agent's frames tell of authors, or the like: all of them are looked into."""
    steady: SegmentState | None = None
    """The agent's segment that its last frame belongs to, where the next one needs no look."""


_segment_values = attrgetter(*Segment.__struct_fields__)
_interruption_values = attrgetter(*Interruption.__struct_fields__)
_handoff_values = attrgetter(*Handoff.__struct_fields__)
