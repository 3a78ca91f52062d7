"""Segments begun, grown and ended, and which of them are to be told of."""

from __future__ import annotations

import heapq
from typing import Any

import msgspec

from a2a_proxy.model.frame import Frame
from a2a_proxy.model.segment import AGENT, CLIENT, GAP_AGENT, GAP_CLIENT, IDLE, Segment
from a2a_proxy.protocol.segments.state import ConversationState, SegmentState


class SegmentBuilder:
    """The segments of a session."""

    def __init__(self) -> None:
        self._last = 0
        self.grown: dict[int, SegmentState] = {}
        """Those to be told of, by their ids."""
        self.due: list[tuple[int, int]] = []
        """A heap: when a segment may be over by silence (or later, where it went on), and its id."""
        self._whose: dict[int, ConversationState] = {}
        """Of the open segments in the heap, by their ids."""

    def begin(self, talk: ConversationState, speaker: str, frame: Frame, *, plain: bool = False) -> SegmentState:
        """The first frame of a segment."""
        number = self._last = self._last + 1
        at = frame.at
        said = talk.said = SegmentState(
            number,
            talk.agent,
            talk.task_id,
            talk.context_id,
            speaker,
            talk.turn,
            frame.exchange,
            frame.seq,
            frame.exchange,
            frame.seq,
            frame.began,
            at,
            at,
        )
        said.bytes = frame.size
        said.plain = plain
        talk.last = number
        heapq.heappush(self.due, (at + (GAP_CLIENT if speaker == CLIENT else GAP_AGENT), number))
        self._whose[number] = talk
        if not plain:
            self.grown[number] = said
        return said

    def grow(self, said: SegmentState, frame: Frame) -> None:
        """One more frame."""
        gap = frame.at - said.end
        if gap > said.gap:
            said.gap = gap
        if gap > IDLE:
            said.idle += gap
        said.last_exchange, said.last_seq = frame.exchange, frame.seq
        said.end = frame.at
        said.frames += 1
        said.bytes += frame.size
        said.plain = False
        self.grown[said.id] = said

    def end(self, said: SegmentState, at: int, reason: str) -> None:
        """It is over."""
        said.ended, said.reason = at, reason
        self._whose.pop(said.id, None)
        self.tell(said)

    def adopt(self, known: list[Segment], last: int, at: int) -> None:
        """Segments that nobody follows any more, open until now, are over at `at`; new ones go on from `last`."""
        self._last = last
        for each in known:
            said = SegmentState(*msgspec.structs.astuple(each))
            self.end(said, max(at, said.end), "broken")

    def tell(self, said: SegmentState) -> None:
        """It has changed."""
        if not said.plain:
            self.grown[said.id] = said

    def move(self, said: SegmentState, talk: ConversationState) -> None:
        """It turns out to be part of another conversation."""
        if said.id in self._whose:
            self._whose[said.id] = talk
        self.tell(said)

    def late(self, at: int) -> list[ConversationState]:
        """Conversations whose open segment is over by silence at `at`, in order of that time."""
        due, found = self.due, []
        while due and due[0][0] < at:
            _, number = heapq.heappop(due)
            talk = self._whose.pop(number, None)
            said = talk.said if talk is not None else None
            if talk is None or said is None or said.id != number or said.ended:
                continue
            limit = silent_at(said)
            if limit < at:
                found.append(talk)
            else:
                heapq.heappush(due, (limit, number))
                self._whose[number] = talk
        return found

    def changed(self) -> list[Segment]:
        """Snapshots of those that changed since the last call, in order."""
        changed, self.grown = self.grown, {}
        return [changed[number].snapshot() for number in sorted(changed)]

    def touch(self, talks: list[ConversationState]) -> None:
        """What is open counts as changed."""
        for talk in talks:
            if talk.said is not None:
                self.tell(talk.said)

    def save(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "last": self._last,
            "changed": [msgspec.to_builtins(said) for said in self.grown.values()],
            "due": [[at, number, self._whose[number].number] for at, number in self.due if number in self._whose],
        }

    def load(self, state: dict[str, Any], talks: dict[int, ConversationState]) -> None:
        """What `save` gave; `talks` are the restored conversations by number."""
        self._last = state["last"]
        open_now = {talk.said.id: talk.said for talk in talks.values() if talk.said is not None}
        for saved in state["changed"]:
            said = msgspec.convert(saved, SegmentState)
            self.grown[said.id] = open_now.get(said.id, said)
        for at, number, talk in state["due"]:  # in the order of the heap; those whose talk is gone are over
            if talk in talks:
                heapq.heappush(self.due, (at, number))
                self._whose[number] = talks[talk]


def silent_at(said: SegmentState) -> int:
    """When an open segment is over, if nothing more comes."""
    return said.end + (GAP_CLIENT if said.speaker == CLIENT else GAP_AGENT)


def is_agents(said: SegmentState | None) -> bool:
    """An agent's segment."""
    return said is not None and said.speaker == AGENT
