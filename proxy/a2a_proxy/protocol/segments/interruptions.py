"""Barge-in: the client speaks while the agent's output is open, and what becomes of it
(manual/protocol.md "Interruptions")."""

from __future__ import annotations

from typing import Any

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.frame import EventKind, Frame
from a2a_proxy.model.segment import GAP_AGENT, YIELD_WITHIN, Interruption
from a2a_proxy.protocol.artifact_chunks import chunks
from a2a_proxy.protocol.event import plain
from a2a_proxy.protocol.segments.evidence import MEDIA_INTERRUPT, MEDIA_START, MEDIA_STOP, media_mark
from a2a_proxy.protocol.segments.state import ConversationState, InterruptionState

_WORKING = int(TaskState.WORKING)
_FLOW_ENDS = (-1, MEDIA_START, MEDIA_STOP, MEDIA_INTERRUPT)
"""What is none, or no more, of a media flow."""
_MAX_ARTIFACTS = 64
"""Artifacts of the interrupted output that are known again."""


def output_open(talk: ConversationState, at: int) -> bool:
    """The agent is in the middle of its output: at work, or in no state at all, and not done with what it says."""
    if talk.state not in (0, _WORKING):
        return False
    return bool(talk.chains) or talk.media or (talk.last_output > 0 and at - talk.last_output <= GAP_AGENT)


class Interruptions:
    """The interruptions of a session. At most one is open in a conversation."""

    def __init__(self) -> None:
        self._last = 0
        self._changed: dict[int, InterruptionState] = {}

    def begin(self, talk: ConversationState, frame: Frame, kind: str) -> None:
        """`frame` of the client came while the output of `talk` was open."""
        self.end(talk, frame.at)
        self._last += 1
        talk.busy = True
        open_now = talk.interruption = InterruptionState(
            self._last,
            talk.agent,
            talk.task_id,
            talk.context_id,
            kind,
            talk.last_agent,
            frame.exchange,
            frame.seq,
            frame.at,
            artifacts=talk.artifacts[-_MAX_ARTIFACTS:],
            message_id=talk.message_id,
            media=talk.media,
        )
        self._changed[open_now.id] = open_now

    def heard(self, talk: ConversationState, frame: Frame) -> None:
        """The agent said something after the interruption of `talk`."""
        broken = talk.interruption
        assert broken is not None
        self._changed[broken.id] = broken
        if _is_residual(broken, frame):
            broken.residual_frames += 1
            broken.residual_bytes += frame.size
            broken.last_residual = frame.at
            broken.wasted += _content(frame)
        elif not broken.reaction:
            broken.reaction = frame.at

    def canceled(self, talk: ConversationState, at: int) -> None:
        """The client has the answer to its cancel; a stream that is open still may bring more of the output."""
        if talk.interruption is None or not talk.tellers:
            self.end(talk, at, "canceled")
        else:
            talk.interruption.outcome = "canceled"

    def end(self, talk: ConversationState, at: int, outcome: str = "") -> None:
        """The outcome of the open interruption, if there is one, is clear."""
        broken, talk.interruption = talk.interruption, None
        if broken is not None:
            late = broken.last_residual - broken.at > YIELD_WITHIN
            broken.outcome = outcome or broken.outcome or ("overlapped" if late else "yielded")
            broken.ended = at
            self._changed[broken.id] = broken

    def adopt(self, known: list[Interruption], last: int, at: int) -> None:
        """As `Cuts.adopt`."""
        self._last = last
        for each in known:
            state = InterruptionState(*msgspec.structs.astuple(each))
            late = state.last_residual - state.at > YIELD_WITHIN
            state.ended, state.outcome = max(at, state.at), "overlapped" if late else "yielded"
            self._changed[state.id] = state

    def changed(self) -> list[Interruption]:
        """Snapshots of those that changed since the last call, in order."""
        changed, self._changed = self._changed, {}
        return [changed[number].snapshot() for number in sorted(changed)]

    def touch(self, talks: list[ConversationState]) -> None:
        """What is open counts as changed."""
        self._changed.update((talk.interruption.id, talk.interruption) for talk in talks if talk.interruption)

    def save(self) -> dict[str, Any]:
        """Plain values."""
        return {"last": self._last, "changed": [msgspec.to_builtins(each) for each in self._changed.values()]}

    def load(self, state: dict[str, Any], talks: dict[int, ConversationState]) -> None:
        """What `save` gave; `talks` are the restored conversations."""
        self._last = state["last"]
        open_now = {talk.interruption.id: talk.interruption for talk in talks.values() if talk.interruption}
        for saved in state["changed"]:
            each = msgspec.convert(saved, InterruptionState)
            self._changed[each.id] = open_now.get(each.id, each)


def _is_residual(broken: InterruptionState, frame: Frame) -> bool:
    """The frame goes on with the interrupted output: the same artifact, message or media flow."""
    if frame.event is EventKind.ARTIFACT:
        return frame.artifact_id in broken.artifacts
    if frame.event is EventKind.MESSAGE or frame.event is EventKind.STATUS:
        return bool(frame.message_id) and frame.message_id == broken.message_id
    if broken.media and frame.event is EventKind.NONE:
        broken.media = media_mark(frame) not in _FLOW_ENDS
        return broken.media
    return False


def _content(frame: Frame) -> int:
    """Octets of text, raw and data in the frame."""
    if frame.event is EventKind.ARTIFACT:
        return sum(chunk.size for chunk in chunks(frame))
    return _octets(plain(frame.payload, frame.schema))


def _octets(value: Any, depth: int = 24) -> int:
    """Those of all texts and raw parts."""
    if not depth:
        return 0
    if isinstance(value, list):
        return sum(_octets(each, depth - 1) for each in value)
    if not isinstance(value, dict):
        return 0
    text = value.get("text")
    own = len(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else 0
    raw = value.get("raw")
    own += len(raw.rstrip("=")) * 3 // 4 if isinstance(raw, str) else 0
    return own + sum(_octets(each, depth - 1) for each in value.values())
