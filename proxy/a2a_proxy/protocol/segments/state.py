"""State of a conversation while it is followed: the model's values as known so far, and the open
streams."""

from __future__ import annotations

from operator import attrgetter

import msgspec

from a2a_proxy.model.values import (
    Handoff,
    HandoffFields,
    Interruption,
    InterruptionFields,
    Segment,
    SegmentFields,
)


class SegmentState(SegmentFields):
    """A segment as known so far, followed by fields of the tracker."""

    plain: bool = False
    """Whether it is half of a turn that is one unary call. Such a segment is not reported, because
    it only repeats its exchange."""

    def snapshot(self) -> Segment:
        """Return the current segment."""
        return Segment(*_segment_values(self))


class InterruptionState(InterruptionFields, gc=False):
    """An interruption as known so far, followed by fields of the tracker."""

    artifacts: tuple[str, ...] = ()
    """Artifacts of the interrupted output."""
    message_id: str = ""
    """Id of the last message of the interrupted output."""
    media: bool = False
    """Whether the interrupted output is a media flow that has not been stopped."""

    def snapshot(self) -> Interruption:
        """Return the current interruption."""
        return Interruption(*_interruption_values(self))


class HandoffState(HandoffFields, gc=False):
    """A hand-off as known so far."""

    def snapshot(self) -> Handoff:
        """Return the current hand-off."""
        return Handoff(*_handoff_values(self))


class ConversationState(msgspec.Struct, gc=False, omit_defaults=True):
    """Conversation of a task, or of one exchange as long as its task is not known."""

    number: int
    agent: str
    task_id: str = ""
    context_id: str = ""
    turn: int = 0
    state: int = 0
    generation: int = 0
    message_id: str = ""
    """Id of the agent's last message."""
    byte_count: int = 0
    """Size in bytes of the artifacts in the last snapshot; -1 if updates have arrived since."""
    last: int = 0
    """Id of the segment that began last."""
    last_output: int = 0
    """Time of the agent's last output, ns."""
    spoke: int = 0
    """Time of the client's last message, ns."""
    last_agent: int = 0
    """Id of the agent's last segment."""
    artifacts: tuple[str, ...] = ()
    """Artifacts of the agent's last segment."""
    chains: tuple[str, ...] = ()
    """Artifacts that were appended to and have had no last chunk."""
    media: bool = False
    """Whether a media flow of the agent has started and not stopped."""
    author: str = ""
    handing: bool = False
    """Whether the transfer tool was called and the new author has not spoken yet."""
    connection: int = 0
    """Connection of the client's last message."""
    said: SegmentState | None = None
    """The segment that began last, until it has ended and been reported."""
    tellers: dict[int, None] = {}
    """Open exchanges that stream the events of the task, unlike requests for a snapshot."""
    shown: dict[str, int] | None = None
    """While several exchanges stream the same events: for each event its highest count on one
    exchange, and its count on each exchange."""
    interruption: InterruptionState | None = None
    awaited: HandoffState | None = None
    """Hand-off whose new agent has had no output yet."""
    busy: bool = False
    """Whether the next frame needs the full treatment: an interruption, a hand-off or another
    stream is or was open."""
    twin: ConversationState | None = None
    """Conversation of another agent about a task with the same id."""

    def __lt__(self, other: ConversationState) -> bool:
        """Order the conversations in the heap by number, if their times and segments are equal
        because a segment moved."""
        return self.number < other.number


class OpenExchange(msgspec.Struct, gc=False):
    """An open exchange."""

    conversation: ConversationState
    role: str
    """`send`, `live`, `watch` (another subscription to a task), `look` (a snapshot) or `cancel`."""
    answered: int = 0
    """Number of frames of the agent that were processed, not counting steady updates."""
    tells: bool = False
    """Whether frames of the agent had evidence such as authors, so all of its frames are
    searched."""
    steady: SegmentState | None = None
    """The agent's segment of its last frame, if the next frame may use the fast path
    (`apply_steady_update`)."""


_segment_values = attrgetter(*Segment.__struct_fields__)
_interruption_values = attrgetter(*Interruption.__struct_fields__)
_handoff_values = attrgetter(*Handoff.__struct_fields__)
