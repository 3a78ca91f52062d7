"""Barge-in: the client speaks while the agent's output is open, and the outcome of that
(manual/protocol.md "Interruptions")."""

from collections.abc import Iterable
from typing import Any

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.saved_state import State
from a2a_proxy.model.values import GAP_AGENT, YIELD_WITHIN, EventKind, Frame, Interruption
from a2a_proxy.protocol.artifact_chunks import chunks_of_frame
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.protocol.segments.evidence import (
    MEDIA_INTERRUPT,
    MEDIA_START,
    MEDIA_STOP,
    media_mark,
)
from a2a_proxy.protocol.segments.state import ConversationState, InterruptionState

_WORKING_STATE = int(TaskState.WORKING)
_FLOW_END_MARKS = (-1, MEDIA_START, MEDIA_STOP, MEDIA_INTERRUPT)
"""Marks at which a media flow is over, and -1 for a frame that is not media."""
_MAX_ARTIFACTS = 64
"""Artifacts of the interrupted output that are recognised later."""


def is_output_open(conversation: ConversationState, at: int) -> bool:
    """Whether the agent is in the middle of its output: it is working, or in no state, and has
    unfinished output."""
    if conversation.state not in (0, _WORKING_STATE):
        return False
    return (
        bool(conversation.chains)
        or conversation.media
        or (conversation.last_output > 0 and at - conversation.last_output <= GAP_AGENT)
    )


class Interruptions(State):
    """The interruptions of a session. At most one is open in a conversation."""

    _last: int = 0
    _changed: dict[int, InterruptionState] = {}

    def attach(self, conversations: Iterable[ConversationState]) -> None:
        """Refer to the conversations that were restored with this state."""
        for each in conversations:
            if each.interruption is not None and each.interruption.id in self._changed:
                self._changed[each.interruption.id] = each.interruption

    def begin_interruption(self, conversation: ConversationState, frame: Frame, kind: str) -> None:
        """Begin an interruption: `frame` of the client arrived while the output of `conversation`
        was open."""
        self.end_interruption(conversation, frame.at)
        self._last += 1
        conversation.busy = True
        open_now = conversation.interruption = InterruptionState(
            self._last,
            conversation.agent,
            conversation.task_id,
            conversation.context_id,
            kind,
            conversation.last_agent,
            frame.exchange,
            frame.seq,
            frame.at,
            artifacts=conversation.artifacts[-_MAX_ARTIFACTS:],
            message_id=conversation.message_id,
            media=conversation.media,
        )
        self._changed[open_now.id] = open_now

    def apply_output(self, conversation: ConversationState, frame: Frame) -> None:
        """Apply a frame of the agent after the interruption of `conversation`."""
        interruption = conversation.interruption
        assert interruption is not None
        self._changed[interruption.id] = interruption
        if _is_residual(interruption, frame):
            interruption.residual_frames += 1
            interruption.residual_bytes += frame.size
            interruption.last_residual = frame.at
            interruption.wasted += _content_size(frame)
        elif not interruption.reaction:
            interruption.reaction = frame.at

    def apply_cancel_response(self, conversation: ConversationState, at: int) -> None:
        """Apply the response to the client's cancel; a stream that is still open may bring more of
        the output."""
        if conversation.interruption is None or not conversation.tellers:
            self.end_interruption(conversation, at, "canceled")
        else:
            conversation.interruption.outcome = "canceled"

    def end_interruption(self, conversation: ConversationState, at: int, outcome: str = "") -> None:
        """End the open interruption, if there is one, and set its outcome."""
        interruption, conversation.interruption = conversation.interruption, None
        if interruption is not None:
            late = interruption.last_residual - interruption.at > YIELD_WITHIN
            interruption.outcome = (
                outcome or interruption.outcome or ("overlapped" if late else "yielded")
            )
            interruption.ended = at
            self._changed[interruption.id] = interruption

    def adopt_recorded(self, known: list[Interruption], last: int, at: int) -> None:
        """Take over recorded interruptions as in `SegmentBuilder.adopt_recorded`."""
        self._last = last
        for each in known:
            state = InterruptionState(*msgspec.structs.astuple(each))
            late = state.last_residual - state.at > YIELD_WITHIN
            state.ended, state.outcome = max(at, state.at), "overlapped" if late else "yielded"
            self._changed[state.id] = state

    def pop_changed_interruptions(self) -> list[Interruption]:
        """Return snapshots of the interruptions that changed since the last call, in order."""
        changed, self._changed = self._changed, {}
        return [changed[number].snapshot() for number in sorted(changed)]

    def mark_open_changed(self, conversations: list[ConversationState]) -> None:
        """Count open interruptions as changed."""
        self._changed.update(
            (conversation.interruption.id, conversation.interruption)
            for conversation in conversations
            if conversation.interruption
        )


def _is_residual(interruption: InterruptionState, frame: Frame) -> bool:
    """Whether the frame continues the interrupted output: the same artifact, message or media
    flow."""
    if frame.event is EventKind.ARTIFACT:
        return frame.artifact_id in interruption.artifacts
    if frame.event is EventKind.MESSAGE or frame.event is EventKind.STATUS:
        return bool(frame.message_id) and frame.message_id == interruption.message_id
    if interruption.media and frame.event is EventKind.NONE:
        interruption.media = media_mark(frame) not in _FLOW_END_MARKS
        return interruption.media
    return False


def _content_size(frame: Frame) -> int:
    """Return the bytes of text, raw content and data in the frame."""
    if frame.event is EventKind.ARTIFACT:
        return sum(chunk.size for chunk in chunks_of_frame(frame))
    return _text_size(decode_payload(frame.payload, frame.schema))


def _text_size(value: Any, depth: int = 24) -> int:
    """Return the bytes of all texts and raw parts in a JSON value."""
    if not depth:
        return 0
    if isinstance(value, list):
        return sum(_text_size(each, depth - 1) for each in value)
    if not isinstance(value, dict):
        return 0
    text = value.get("text")
    own = len(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else 0
    raw = value.get("raw")
    own += len(raw.rstrip("=")) * 3 // 4 if isinstance(raw, str) else 0
    return own + sum(_text_size(each, depth - 1) for each in value.values())
