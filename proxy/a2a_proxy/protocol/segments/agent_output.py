"""What an agent's frame does to the conversation: which segment it belongs to, and whether that ends with it."""

from __future__ import annotations

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.frame import EventKind, Frame, FrameKind
from a2a_proxy.model.segment import AGENT, IDLE
from a2a_proxy.protocol.artifact_chunks import chunks
from a2a_proxy.protocol.schema import JSON
from a2a_proxy.protocol.segments.evidence import (
    LOOKS,
    MEDIA_START,
    MEDIA_STOP,
    NOTHING,
    TRANSFER_TOOL,
    FrameEvidence,
    media_mark,
    told_by,
)
from a2a_proxy.protocol.segments.handoffs import Handoffs
from a2a_proxy.protocol.segments.interruptions import Interruptions
from a2a_proxy.protocol.segments.segment_builder import SegmentBuilder, is_agents
from a2a_proxy.protocol.segments.state import ConversationState, OpenExchange, SegmentState

REASONS = {
    int(TaskState.COMPLETED): "completed",
    int(TaskState.FAILED): "failed",
    int(TaskState.CANCELED): "canceled",
    int(TaskState.REJECTED): "rejected",
    int(TaskState.INPUT_REQUIRED): "input",
    int(TaskState.AUTH_REQUIRED): "auth",
}
"""A state that ends an agent's segment -> why it ends."""
_FINAL = frozenset(int(state) for state in TaskState if state.terminal)
_CANCELED, _SUBMITTED = int(TaskState.CANCELED), int(TaskState.SUBMITTED)
_MAX_SHOWN = 8192
"""Events that are remembered to know them again on another stream of the task."""
_MAX_ARTIFACTS = 64
_TASK, _STATUS, _ARTIFACT = EventKind.TASK, EventKind.STATUS, EventKind.ARTIFACT
_MESSAGE, _NONE = EventKind.MESSAGE, EventKind.NONE
_RESPONSE = FrameKind.RESPONSE


class AgentOutput:
    """Puts agents' frames into segments."""

    def __init__(self, cuts: SegmentBuilder, interruptions: Interruptions, handoffs: Handoffs) -> None:
        self._cuts = cuts
        self._interruptions = interruptions
        self._handoffs = handoffs

    def heard(self, talk: ConversationState, call: OpenExchange, frame: Frame) -> bool:
        """An event of the agent; False where it repeats what was told already, so that it belongs to no segment."""
        said, state, event = talk.said, frame.state, frame.event
        if state and state == talk.state and state in _FINAL and (said is None or (said.ended and is_agents(said))):
            return False
        output = self._is_output(talk, frame)
        role = call.role
        if role == "look" or role == "cancel" or (role == "watch" and event is _TASK and not call.answered):
            if (role == "look" and talk.tellers) or not (output or _moves(talk, frame)):
                return False
        elif talk.shown is not None and _repeats(talk.shown, frame):
            return False
        told = NOTHING
        if call.tells or call.answered <= LOOKS:
            told = told_by(frame)
            if told is not NOTHING:
                call.tells = True
                self._changes_hands(talk, frame, told)
        said = self._part_of(talk, frame)
        if frame.generation > 0:
            talk.generation = frame.generation
            said.generation_first = said.generation_first or frame.generation
            said.generation_last = frame.generation
        if frame.message_id:
            talk.message_id = frame.message_id
        if talk.interruption is not None:
            self._interruptions.heard(talk, frame)
        if output:
            self._puts_out(talk, said, frame, told)
        if role == "cancel" and state == _CANCELED:
            self._interruptions.canceled(talk, frame.at)
        self._ends(talk, said, frame, told)
        steady = event is _STATUS and call.answered > LOOKS and not call.tells and not said.ended
        call.steady = said if steady else None
        talk.busy = talk.shown is not None or talk.interruption is not None or talk.awaited is not None
        return True

    def goes_on(self, talk: ConversationState, said: SegmentState, frame: Frame) -> bool:
        """What `heard` does, for a status update on one stream that changes no state; False where it is none.

        Most frames are such, so this does in one go what is split up elsewhere.
        """
        if (
            said.ended
            or talk.busy
            or frame.event is not _STATUS
            or frame.state != talk.state
            or frame.task_id != talk.task_id
        ):
            return False
        message = frame.message_id
        if not message and self._is_output(talk, frame):
            return False
        at = frame.at
        gap = at - said.end
        if gap > said.gap:
            said.gap = gap
        if gap > IDLE:
            said.idle += gap
        said.end = at
        said.last_exchange, said.last_seq = frame.exchange, frame.seq
        said.frames += 1
        said.bytes += frame.size
        self._cuts.grown[said.id] = said
        if message:
            talk.message_id = message
            talk.last_output = said.last_output = at
            said.outputs += 1
            if not said.first_output:
                said.first_output = at
        if frame.generation > 0:
            talk.generation = said.generation_last = frame.generation
            said.generation_first = said.generation_first or frame.generation
        return True

    def _part_of(self, talk: ConversationState, frame: Frame) -> SegmentState:
        """The segment of this frame: the one that goes on, or a new one."""
        said = talk.said
        if said is not None and not said.ended:
            if said.speaker == AGENT:
                self._cuts.grow(said, frame)
                said.author = said.author or talk.author
                return said
            self._cuts.end(said, frame.at, "speaker")
        plain = (
            said is not None
            and said.plain
            and frame.kind is _RESPONSE
            and said.exchange == frame.exchange
            and list(talk.tellers) == [frame.exchange]
        )
        if said is not None and said.plain and not plain and said.exchange in talk.tellers:
            said.plain = False
            self._cuts.tell(said)
        made = self._cuts.begin(talk, AGENT, frame, plain=plain)
        made.author = talk.author
        talk.last_agent, talk.artifacts = made.id, ()
        return made

    def _puts_out(self, talk: ConversationState, said: SegmentState, frame: Frame, told: FrameEvidence) -> None:
        at = talk.last_output = said.last_output = frame.at
        said.outputs += 1
        if not said.first_output:
            said.first_output = at
        if talk.awaited is not None and not told.tool and not talk.handing:
            self._handoffs.end(talk, at, at)

    def _changes_hands(self, talk: ConversationState, frame: Frame, told: FrameEvidence) -> None:
        """Another agent speaks now, or will."""
        if told.author and told.author != talk.author:
            if talk.author:
                self._handoffs.transferred(talk, frame, told.author, "author")
                said = talk.said
                if said is not None and not said.ended and is_agents(said):
                    self._cuts.end(said, frame.at, "transfer")
            talk.author, talk.handing = told.author, False
        if told.transfer:
            self._handoffs.transferred(talk, frame, told.transfer, TRANSFER_TOOL)
            talk.handing = bool(talk.author)

    def _ends(self, talk: ConversationState, said: SegmentState, frame: Frame, told: FrameEvidence) -> None:
        """Does the segment end with this frame?"""
        at, state = frame.at, frame.state
        if state:
            talk.state = state
            reason = REASONS.get(state)
            if reason is not None:
                self._cuts.end(said, at, reason)
                if talk.interruption is not None and not talk.interruption.outcome:
                    self._interruptions.end(talk, at, "canceled" if state == _CANCELED else "")
                self._handoffs.end(talk, at, 0)
                talk.chains, talk.media, talk.handing = (), False, False
                return
        if frame.event is _ARTIFACT:
            _follow(talk, frame)
            if frame.last_chunk and not talk.chains:
                self._cuts.end(said, at, "artifact")
                return
        elif frame.event is _NONE:
            mark = media_mark(frame)
            talk.media = mark == MEDIA_START or (talk.media and mark != MEDIA_STOP)
        if told.interrupted:
            self._cuts.end(said, at, "interrupted")
        elif told.transfer and not talk.handing:
            self._cuts.end(said, at, "transfer")

    def _is_output(self, talk: ConversationState, frame: Frame) -> bool:
        """The frame carries content that is new (O in 8); learns how much the task's artifacts are."""
        event = frame.event
        if event is _ARTIFACT:
            talk.octets = -1
            return True
        if event is _STATUS:
            return bool(frame.message_id) or (frame.schema == JSON and b'"message"' in frame.payload)
        if event is not _TASK:
            return True
        before, now = talk.octets, _artifact_octets(frame)
        talk.octets = now
        return (before >= 0 and now > before) or (bool(frame.message_id) and frame.message_id != talk.message_id)


def _artifact_octets(frame: Frame) -> int:
    """Of all artifacts in a snapshot."""
    if frame.state == _SUBMITTED or (frame.schema == JSON and b"rtifact" not in frame.payload):
        return 0
    return sum(chunk.size for chunk in chunks(frame))


def _moves(talk: ConversationState, frame: Frame) -> bool:
    """A snapshot that tells something new about the task."""
    return bool((frame.state and frame.state != talk.state) or frame.generation > talk.generation)


def _repeats(shown: dict[str, int], frame: Frame) -> bool:
    """Another stream of the task has shown this event as often as this one now has."""
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


def _follow(talk: ConversationState, frame: Frame) -> None:
    """Which artifacts are in the making: appended to, no last chunk yet."""
    name = frame.artifact_id
    if name not in talk.artifacts and len(talk.artifacts) < _MAX_ARTIFACTS:
        talk.artifacts += (name,)
    if frame.last_chunk:
        if name in talk.chains:
            talk.chains = tuple(each for each in talk.chains if each != name)
    elif frame.append and name not in talk.chains and len(talk.chains) < _MAX_ARTIFACTS:
        talk.chains += (name,)
