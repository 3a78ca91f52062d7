"""Begin, extend and end segments, and collect the changed ones."""

import heapq
from collections.abc import Iterable

import msgspec

from a2a_proxy.model.saved_state import State
from a2a_proxy.model.values import AGENT, CLIENT, GAP_AGENT, GAP_CLIENT, IDLE, Frame, Segment
from a2a_proxy.protocol.segments.state import ConversationState, SegmentState

_FEW = 1000
"""Entries of ended segments that may stay in the heap, whatever the number of open segments."""


class SegmentBuilder(State, dict=True):
    """The segments of a session."""

    _last: int = 0
    grown: dict[int, SegmentState] = {}
    """Segments that changed since `pop_changed_segments`, by id."""
    due: list[tuple[int, int]] = []
    """Heap of pairs: the earliest time (ns) at which a segment may end by silence, and its id."""

    def __post_init__(self) -> None:
        self._conversation_of: dict[int, ConversationState] = {}
        """Segment id -> conversation, for the open segments in the heap."""

    def attach(self, conversations: Iterable[ConversationState]) -> None:
        """Refer to the conversations that were restored with this state: a dropped one has no open
        segment."""
        for each in conversations:
            if each.said is not None:
                self.grown.update({each.said.id: each.said} if each.said.id in self.grown else {})
                if not each.said.ended:
                    self._conversation_of[each.said.id] = each
        self.due = sorted(each for each in self.due if each[1] in self._conversation_of)

    def begin_segment(
        self, conversation: ConversationState, speaker: str, frame: Frame, *, plain: bool = False
    ) -> SegmentState:
        """Begin a segment with its first frame."""
        number = self._last = self._last + 1
        at = frame.at
        segment = conversation.said = SegmentState(
            number,
            conversation.agent,
            conversation.task_id,
            conversation.context_id,
            speaker,
            conversation.turn,
            frame.exchange,
            frame.seq,
            frame.exchange,
            frame.seq,
            frame.began,
            at,
            at,
        )
        segment.bytes = frame.size
        segment.plain = plain
        conversation.last = number
        heapq.heappush(self.due, (at + (GAP_CLIENT if speaker == CLIENT else GAP_AGENT), number))
        self._conversation_of[number] = conversation
        if not plain:
            self.grown[number] = segment
        return segment

    def extend_segment(self, segment: SegmentState, frame: Frame) -> None:
        """Add a frame to a segment."""
        gap = frame.at - segment.end
        if gap > segment.gap:
            segment.gap = gap
        if gap > IDLE:
            segment.idle += gap
        segment.last_exchange, segment.last_seq = frame.exchange, frame.seq
        segment.end = frame.at
        segment.frames += 1
        segment.bytes += frame.size
        segment.plain = False
        self.grown[segment.id] = segment

    def end_segment(self, segment: SegmentState, at: int, reason: str) -> None:
        """End a segment."""
        segment.ended, segment.reason = at, reason
        self._conversation_of.pop(segment.id, None)
        if len(self.due) > 4 * len(self._conversation_of) + _FEW:
            self.due = [each for each in self.due if each[1] in self._conversation_of]
            heapq.heapify(self.due)
        self.mark_changed(segment)

    def adopt_recorded(self, known: list[Segment], last: int, at: int) -> None:
        """Take over recorded segments that were open when their tracker was lost: they end at `at`.
        New ones are numbered from `last` on."""
        self._last = last
        for each in known:
            segment = SegmentState(*msgspec.structs.astuple(each))
            self.end_segment(segment, max(at, segment.end), "broken")

    def mark_changed(self, segment: SegmentState) -> None:
        """Mark a segment as changed."""
        if not segment.plain:
            self.grown[segment.id] = segment

    def move_segment(self, segment: SegmentState, conversation: ConversationState) -> None:
        """Move a segment that turns out to be part of another conversation."""
        if segment.id in self._conversation_of:
            self._conversation_of[segment.id] = conversation
        self.mark_changed(segment)

    def pop_silent(self, at: int) -> list[ConversationState]:
        """Return the conversations whose open segment has ended by silence at `at`, in order of
        that time."""
        due, found = self.due, []
        while due and due[0][0] < at:
            _, number = heapq.heappop(due)
            conversation = self._conversation_of.pop(number, None)
            segment = conversation.said if conversation is not None else None
            if conversation is None or segment is None or segment.id != number or segment.ended:
                continue
            limit = silence_deadline(segment)
            if limit < at:
                found.append(conversation)
            else:
                heapq.heappush(due, (limit, number))
                self._conversation_of[number] = conversation
        return found

    def pop_changed_segments(self) -> list[Segment]:
        """Return snapshots of the segments that changed since the last call, in order."""
        changed, self.grown = self.grown, {}
        return [changed[number].snapshot() for number in sorted(changed)]

    def mark_open_changed(self, conversations: list[ConversationState]) -> None:
        """Count open segments as changed."""
        for conversation in conversations:
            if conversation.said is not None:
                self.mark_changed(conversation.said)


def silence_deadline(segment: SegmentState) -> int:
    """Return the time (ns) at which an open segment ends if no further frame arrives."""
    return segment.end + (GAP_CLIENT if segment.speaker == CLIENT else GAP_AGENT)


def is_of_agent(segment: SegmentState | None) -> bool:
    """Whether the segment is an agent's."""
    return segment is not None and segment.speaker == AGENT
