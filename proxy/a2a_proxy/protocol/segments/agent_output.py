"""Effect of an agent's frame on the conversation: its segment, and whether the segment ends with
it."""

from a2a_proxy.model.event import TERMINAL_STATES, TaskState
from a2a_proxy.model.values import AGENT, IDLE, EventKind, Frame, FrameKind
from a2a_proxy.protocol.artifact_chunks import chunks_of_frame
from a2a_proxy.protocol.schema import JSON
from a2a_proxy.protocol.segments.evidence import (
    MAX_SEARCHED_FRAMES,
    MEDIA_START,
    MEDIA_STOP,
    NO_EVIDENCE,
    TRANSFER_TOOL,
    FrameEvidence,
    find_evidence,
    media_mark,
)
from a2a_proxy.protocol.segments.handoffs import Handoffs
from a2a_proxy.protocol.segments.interruptions import Interruptions
from a2a_proxy.protocol.segments.segment_builder import SegmentBuilder, is_of_agent
from a2a_proxy.protocol.segments.state import ConversationState, OpenExchange, SegmentState

END_REASONS = {
    int(TaskState.COMPLETED): "completed",
    int(TaskState.FAILED): "failed",
    int(TaskState.CANCELED): "canceled",
    int(TaskState.REJECTED): "rejected",
    int(TaskState.INPUT_REQUIRED): "input",
    int(TaskState.AUTH_REQUIRED): "auth",
}
"""Task state that ends an agent's segment -> the reason of its end."""
_CANCELED, _SUBMITTED = int(TaskState.CANCELED), int(TaskState.SUBMITTED)
_MAX_SHOWN = 8192
"""Limit of remembered event counts, by which repeats on another stream of the task are
recognised."""
_MAX_ARTIFACTS = 64
_TASK, _STATUS, _ARTIFACT = EventKind.TASK, EventKind.STATUS, EventKind.ARTIFACT
_NONE = EventKind.NONE
_RESPONSE = FrameKind.RESPONSE


class AgentOutput:
    """Assigns agents' frames to segments."""

    def __init__(
        self, segments: SegmentBuilder, interruptions: Interruptions, handoffs: Handoffs
    ) -> None:
        self._segments = segments
        self._interruptions = interruptions
        self._handoffs = handoffs

    def apply_event(
        self, conversation: ConversationState, call: OpenExchange, frame: Frame
    ) -> bool:
        """Apply an event of the agent; return False if it only repeats known facts and so belongs
        to no segment."""
        segment, state, event = conversation.said, frame.state, frame.event
        if (
            state
            and state == conversation.state
            and state in TERMINAL_STATES
            and (segment is None or (segment.ended and is_of_agent(segment)))
        ):
            return False
        output = self._learn_output(conversation, frame)
        role = call.role
        if (
            role == "look"
            or role == "cancel"
            or (role == "watch" and event is _TASK and not call.answered)
        ):
            if (role == "look" and conversation.tellers) or not (
                output or _has_progress(conversation, frame)
            ):
                return False
        elif conversation.shown is not None and _is_repeated(conversation.shown, frame):
            return False
        evidence = NO_EVIDENCE
        if call.tells or call.answered <= MAX_SEARCHED_FRAMES:
            evidence = find_evidence(frame)
            if evidence is not NO_EVIDENCE:
                call.tells = True
                self._apply_author_change(conversation, frame, evidence)
        segment = self._segment_for(conversation, frame)
        if frame.generation > 0:
            conversation.generation = frame.generation
            segment.generation_first = segment.generation_first or frame.generation
            segment.generation_last = frame.generation
        if frame.message_id:
            conversation.message_id = frame.message_id
        if conversation.interruption is not None:
            self._interruptions.apply_output(conversation, frame)
        if output:
            self._count_output(conversation, segment, frame, evidence)
        if role == "cancel" and state == _CANCELED:
            self._interruptions.apply_cancel_response(conversation, frame.at)
        self._end_if_complete(conversation, segment, frame, evidence)
        steady = (
            (event is _STATUS or event is _ARTIFACT)
            and call.answered > MAX_SEARCHED_FRAMES
            and not call.tells
            and not segment.ended
            and conversation.state not in END_REASONS
        )
        call.steady = segment if steady else None
        conversation.busy = (
            conversation.shown is not None
            or conversation.interruption is not None
            or conversation.awaited is not None
        )
        return True

    def apply_steady_update(
        self, conversation: ConversationState, segment: SegmentState, frame: Frame
    ) -> bool:
        """Apply an update that changes no state on the only stream, as `apply_event` would: of the
        status, or the next chunk of an artifact; False for other events.

        Most frames are such updates, so this function does in one pass what is split into several
        functions elsewhere.
        """
        if segment.ended or conversation.busy or frame.task_id != conversation.task_id:
            return False
        message, event = frame.message_id, frame.event
        if event is _ARTIFACT:
            if (
                frame.state
                or not frame.append
                or frame.last_chunk
                or frame.artifact_id not in conversation.chains
            ):
                return False
            conversation.byte_count = -1
        elif (
            event is not _STATUS
            or frame.state != conversation.state
            or (not message and self._learn_output(conversation, frame))
        ):
            return False
        at = frame.at
        gap = at - segment.end
        if gap > segment.gap:
            segment.gap = gap
        if gap > IDLE:
            segment.idle += gap
        segment.end = at
        segment.last_exchange, segment.last_seq = frame.exchange, frame.seq
        segment.frames += 1
        segment.bytes += frame.size
        self._segments.grown[segment.id] = segment
        if message:
            conversation.message_id = message
        if message or event is _ARTIFACT:
            conversation.last_output = segment.last_output = at
            segment.outputs += 1
            if not segment.first_output:
                segment.first_output = at
        if frame.generation > 0:
            conversation.generation = segment.generation_last = frame.generation
            segment.generation_first = segment.generation_first or frame.generation
        return True

    def _segment_for(self, conversation: ConversationState, frame: Frame) -> SegmentState:
        """Return the segment of this frame: the open one, or a new one."""
        segment = conversation.said
        if segment is not None and not segment.ended:
            if segment.speaker == AGENT:
                self._segments.extend_segment(segment, frame)
                segment.author = segment.author or conversation.author
                return segment
            self._segments.end_segment(segment, frame.at, "speaker")
        plain = (
            segment is not None
            and segment.plain
            and frame.kind is _RESPONSE
            and segment.exchange == frame.exchange
            and list(conversation.tellers) == [frame.exchange]
        )
        if (
            segment is not None
            and segment.plain
            and not plain
            and segment.exchange in conversation.tellers
        ):
            segment.plain = False
            self._segments.mark_changed(segment)
        made = self._segments.begin_segment(conversation, AGENT, frame, plain=plain)
        made.author = conversation.author
        conversation.last_agent, conversation.artifacts = made.id, ()
        return made

    def _count_output(
        self,
        conversation: ConversationState,
        segment: SegmentState,
        frame: Frame,
        evidence: FrameEvidence,
    ) -> None:
        at = conversation.last_output = segment.last_output = frame.at
        segment.outputs += 1
        if not segment.first_output:
            segment.first_output = at
        if conversation.awaited is not None and not evidence.tool and not conversation.handing:
            self._handoffs.end_awaited(conversation, at, at)

    def _apply_author_change(
        self, conversation: ConversationState, frame: Frame, evidence: FrameEvidence
    ) -> None:
        """Apply a change of the author: another agent speaks now, or is about to."""
        if evidence.author and evidence.author != conversation.author:
            if conversation.author:
                self._handoffs.begin_transfer(conversation, frame, evidence.author, "author")
                segment = conversation.said
                if segment is not None and not segment.ended and is_of_agent(segment):
                    self._segments.end_segment(segment, frame.at, "transfer")
            conversation.author, conversation.handing = evidence.author, False
        if evidence.transfer:
            self._handoffs.begin_transfer(conversation, frame, evidence.transfer, TRANSFER_TOOL)
            conversation.handing = bool(conversation.author)

    def _end_if_complete(
        self,
        conversation: ConversationState,
        segment: SegmentState,
        frame: Frame,
        evidence: FrameEvidence,
    ) -> None:
        """End the segment if it ends with this frame."""
        at, state = frame.at, frame.state
        if state:
            conversation.state = state
            reason = END_REASONS.get(state)
            if reason is not None:
                self._segments.end_segment(segment, at, reason)
                if conversation.interruption is not None and not conversation.interruption.outcome:
                    self._interruptions.end_interruption(
                        conversation, at, "canceled" if state == _CANCELED else ""
                    )
                self._handoffs.end_awaited(conversation, at, 0)
                conversation.chains, conversation.media, conversation.handing = (), False, False
                return
        if frame.event is _ARTIFACT:
            _track_artifact(conversation, frame)
            if frame.last_chunk and not conversation.chains:
                self._segments.end_segment(segment, at, "artifact")
                return
        elif frame.event is _NONE:
            mark = media_mark(frame)
            conversation.media = mark == MEDIA_START or (conversation.media and mark != MEDIA_STOP)
        if evidence.interrupted:
            self._segments.end_segment(segment, at, "interrupted")
        elif evidence.transfer and not conversation.handing:
            self._segments.end_segment(segment, at, "transfer")

    def _learn_output(self, conversation: ConversationState, frame: Frame) -> bool:
        """Return whether the frame has new content (`O` in manual/protocol.md "Measures"); update
        the artifacts' size."""
        event = frame.event
        if event is _ARTIFACT:
            conversation.byte_count = -1
            return True
        if event is _STATUS:
            return bool(frame.message_id) or (
                frame.schema == JSON and frame.payload.find(b'"message"') >= 0
            )
        if event is not _TASK:
            return True
        before, now = conversation.byte_count, _artifact_bytes(frame)
        conversation.byte_count = now
        return (before >= 0 and now > before) or (
            bool(frame.message_id) and frame.message_id != conversation.message_id
        )


def _artifact_bytes(frame: Frame) -> int:
    """Return the size in bytes of all artifacts in a snapshot."""
    if frame.state == _SUBMITTED or (frame.schema == JSON and b"rtifact" not in frame.payload):
        return 0
    return sum(chunk.size for chunk in chunks_of_frame(frame))


def _has_progress(conversation: ConversationState, frame: Frame) -> bool:
    """Whether a snapshot has a new state or generation of the task."""
    return bool(
        (frame.state and frame.state != conversation.state)
        or frame.generation > conversation.generation
    )


def _is_repeated(shown: dict[str, int], frame: Frame) -> bool:
    """Count the event for its exchange; whether another stream of the task has shown it at least as
    often."""
    what = f"{frame.event:d}.{frame.state}.{frame.append:d}{frame.last_chunk:d}.{frame.generation}"
    event = f"{what}.{frame.artifact_id}.{frame.message_id}"
    here = f"{frame.exchange}:{event}"
    if len(shown) > _MAX_SHOWN:
        shown.clear()
    count = shown[here] = shown.get(here, 0) + 1
    if count <= shown.get(event, 0):
        return True
    shown[event] = count
    return False


def _track_artifact(conversation: ConversationState, frame: Frame) -> None:
    """Update the artifacts that are being appended to and have had no last chunk yet."""
    name = frame.artifact_id
    if name not in conversation.artifacts and len(conversation.artifacts) < _MAX_ARTIFACTS:
        conversation.artifacts += (name,)
    if frame.last_chunk:
        if name in conversation.chains:
            conversation.chains = tuple(each for each in conversation.chains if each != name)
    elif (
        frame.append
        and name not in conversation.chains
        and len(conversation.chains) < _MAX_ARTIFACTS
    ):
        conversation.chains += (name,)
