"""Frames in, segments, interruptions and hand-offs out (manual/protocol.md "Segments").

Time comes with frames and ticks.

Reads what frames tell at a glance; payloads only where their bytes look as if they held evidence. Bounded: of
tasks that nobody speaks in, the last ones are known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.frame import EventKind, Frame, FrameKind
from a2a_proxy.model.observation import Changes
from a2a_proxy.model.segment import CLIENT, GAP_CLIENT, Handoff, Interruption, Segment
from a2a_proxy.protocol.segments.agent_output import AgentOutput
from a2a_proxy.protocol.segments.call_chain import trace_of
from a2a_proxy.protocol.segments.evidence import (
    MEDIA_DELTA,
    MEDIA_INTERRUPT,
    MEDIA_PAUSE,
    MEDIA_STOP,
    ends_activity,
    is_message,
    media_mark,
)
from a2a_proxy.protocol.segments.handoffs import Handoffs
from a2a_proxy.protocol.segments.index import ConversationIndex
from a2a_proxy.protocol.segments.interruptions import Interruptions, is_output_open
from a2a_proxy.protocol.segments.segment_builder import SegmentBuilder, is_of_agent, silence_deadline
from a2a_proxy.protocol.segments.state import ConversationState, OpenExchange, SegmentState

_ROLE_OF_OPERATION = {
    "SendMessage": "send",
    "SendStreamingMessage": "send",
    "SendLiveMessage": "live",
    "ReconnectToTask": "live",
    "SubscribeToTask": "watch",
    "GetTask": "look",
    "CancelTask": "cancel",
}
_STREAMING_ROLES = frozenset({"send", "live", "watch"})
"""Roles of calls that tell of a task as it goes on."""
_EVENT, _RESPONSE, _REQUEST, _ERROR = FrameKind.EVENT, FrameKind.RESPONSE, FrameKind.REQUEST, FrameKind.ERROR
_END, _CUT = FrameKind.END, FrameKind.CUT
_NO_EVENT, _TASK, _MESSAGE = EventKind.NONE, EventKind.TASK, EventKind.MESSAGE
_STATUS, _ARTIFACT = EventKind.STATUS, EventKind.ARTIFACT
_TASK_EVENTS = frozenset({_TASK, _MESSAGE, _STATUS, _ARTIFACT})
_WEBHOOK = Binding.WEBHOOK
_FLOW_CONTINUATION_MARKS, _FLOW_END_MARKS = (0, MEDIA_DELTA), (MEDIA_STOP, MEDIA_PAUSE)
"""Marks of a client's media that are no beginning: whose microphone is open all the time interrupts nobody by that."""


class ExchangeView(Protocol):
    """What the tracker looks at of an exchange."""

    @property
    def id(self) -> int: ...  # noqa: D102
    @property
    def binding(self) -> Binding: ...  # noqa: D102
    @property
    def operation(self) -> str: ...  # noqa: D102
    @property
    def agent(self) -> str: ...  # noqa: D102
    @property
    def traceparent(self) -> str: ...  # noqa: D102
    @property
    def sent_traceparent(self) -> str: ...  # noqa: D102


class SegmentTracker:
    """All conversations of a session."""

    def __init__(self, name_agent: Callable[[str], str] = str, *, include_unary: bool = False) -> None:
        """`name_agent` gives what an agent is called outside. Turns that are one unary call are told of only if
        `include_unary`:
        elsewhere their exchange says it all."""
        self._name_agent = name_agent
        self._include_unary = include_unary
        self._index = ConversationIndex()
        self._segments = SegmentBuilder()
        self._interruptions = Interruptions()
        self._handoffs = Handoffs(self._index)
        self._agent_output = AgentOutput(self._segments, self._interruptions, self._handoffs)
        self._quiet: dict[int, ConversationState] = {}
        """Conversations of which nothing is open, until they are told of."""

    def apply(self, frame: Frame, exchange: ExchangeView, client: str) -> ConversationState | None:
        """Learn from one frame of a client at `client` (`host:port`), or of its agent.

        Gives the conversation where the frame has become part of its `said`, else None.
        """
        due = self._segments.due
        if due and due[0][0] < frame.at:
            self.tick(frame.at)
        kind = frame.kind
        if kind is _EVENT:
            call = self._index.calls.get(frame.exchange)
            if (
                call is not None
                and call.steady is not None
                and self._agent_output.apply_steady_status(call.conversation, call.steady, frame)
            ):
                return call.conversation
            return self._apply_response(frame, exchange)
        if kind is _RESPONSE:
            return self._apply_response(frame, exchange)
        if kind is _REQUEST:
            return self._apply_request(frame, exchange, client)
        if kind is _END or kind is _CUT or kind is _ERROR:
            self._apply_end(frame)
        return None

    def learn_sent_trace(self, exchange: ExchangeView) -> None:
        """Its agent may have been sent another trace than the client had: then it hands over in that one."""
        sent = exchange.sent_traceparent
        call = self._index.calls.get(exchange.id) if sent else None
        if call is not None and trace_of(sent) != trace_of(exchange.traceparent):
            self._index.learn_trace(sent, call.conversation)

    def tick(self, at: int) -> None:
        """It is `at` (ns), and nothing came before that is not told: judge silence."""
        for conversation in self._segments.pop_silent(at):
            segment = conversation.said
            if segment is None or segment.ended:
                continue
            over = silence_deadline(segment)
            self._segments.end(segment, over, "silence")
            interruption = conversation.interruption
            if interruption is not None and is_of_agent(segment) and segment.start > interruption.at:
                self._interruptions.end(conversation, over)
            self._mark_quiet(conversation)

    def end(self, at: int) -> None:
        """The session ends at `at` (ns): so does all that is open."""
        self.tick(at)
        for conversation in self._index.all_conversations().values():
            if conversation.said is not None and not conversation.said.ended:
                self._segments.end(conversation.said, at, "closed")
            self._interruptions.end(conversation, at)
            self._handoffs.end_awaited(conversation, at, 0)

    def pop_changes(self) -> tuple[list[Segment], list[Interruption], list[Handoff]]:
        """Snapshots of what changed since the last call. Then conversations that are over may be forgotten."""
        found = (
            self._segments.pop_changed_segments(),
            self._interruptions.pop_changed_interruptions(),
            self._handoffs.pop_changed_handoffs(),
        )
        for conversation in self._quiet.values():
            if not conversation.tellers and (conversation.said is None or conversation.said.ended):
                conversation.said = None
        self._quiet.clear()
        return found

    def adopt(self, cut: Changes, last: tuple[int, int, int], at: int) -> None:
        """Begin where another one was lost: what a recording has open of it in `cut` is over at `at` (ns), and new
        segments, interruptions and hand-offs are numbered from `last` on."""
        self._segments.adopt(cut.segments, last[0], at)
        self._interruptions.adopt(cut.interruptions, last[1], at)
        self._handoffs.adopt(cut.handoffs, last[2], at)

    def touch(self) -> None:
        """All that is open counts as changed."""
        conversations = list(self._index.all_conversations().values())
        self._segments.touch(conversations)
        self._interruptions.touch(conversations)
        self._handoffs.touch(conversations)

    # --- the client ---------------------------------------------------------------------------------------------

    def _apply_request(self, frame: Frame, exchange: ExchangeView, client: str) -> ConversationState | None:
        role = _ROLE_OF_OPERATION.get(exchange.operation)
        if role is None:
            return None
        call = self._index.calls.get(frame.exchange)
        if role == "send" or role == "live":
            return self._apply_client_message(frame, exchange, client, call, role)
        agent = self._name_agent(exchange.agent)
        conversation = self._index.conversation_of_task(agent, frame.task_id) if frame.task_id else None
        if call is None:
            call = self._open_exchange(
                frame.exchange, conversation or self._index.make_conversation(agent, "", ""), role
            )
        if role == "cancel" and conversation is not None and is_output_open(conversation, frame.at):
            self._begin_interruption(conversation, frame, "cancel")
        return None

    def _apply_client_message(
        self, frame: Frame, exchange: ExchangeView, client: str, call: OpenExchange | None, role: str
    ) -> ConversationState | None:
        """A message of the client, or a request that only opens a stream again."""
        first = call is None
        if call is None:
            agent = self._name_agent(exchange.agent)
            known = self._index.conversation_of_task(agent, frame.task_id) if frame.task_id else None
            conversation = known or self._index.make_conversation(agent, frame.task_id, frame.context_id)
            call = self._open_exchange(frame.exchange, conversation, role)
        conversation = call.conversation
        mark = media_mark(frame) if frame.event is _NO_EVENT else -1
        if role == "live" and _is_reconnect_only(frame, mark, first=first):
            call.role = "watch" if first else call.role
            return None
        if not conversation.context_id:
            conversation.context_id = frame.context_id
        self._check_interruption(conversation, frame, mark)
        self._add_client_frame(conversation, frame, plain=self._is_unary_turn(conversation, frame, exchange))
        self._handoffs.apply_request(conversation, frame, exchange.traceparent, client)
        self.learn_sent_trace(exchange)
        if role == "live" and ends_activity(frame):
            assert conversation.said is not None
            conversation.said.activity_end = frame.at
        return conversation

    def _is_unary_turn(self, conversation: ConversationState, frame: Frame, exchange: ExchangeView) -> bool:
        """It may become a turn of one unary call."""
        return (
            not self._include_unary
            and exchange.operation == "SendMessage"
            and list(conversation.tellers) == [frame.exchange]
        )

    def _check_interruption(self, conversation: ConversationState, frame: Frame, mark: int) -> None:
        """Does this message of the client come into the agent's output? Not where the client is in the middle of it."""
        segment = conversation.said
        if segment is not None and not segment.ended and segment.speaker == CLIENT and mark != MEDIA_INTERRUPT:
            return
        if mark in _FLOW_END_MARKS or (
            mark in _FLOW_CONTINUATION_MARKS and frame.at - conversation.spoke <= GAP_CLIENT
        ):
            return
        if conversation.last and is_output_open(conversation, frame.at):
            self._begin_interruption(conversation, frame, "event" if mark == MEDIA_INTERRUPT else "message")
            return
        self._interruptions.end(conversation, frame.at)
        if not conversation.last and not frame.task_id:
            other = self._index.conversation_of_context(frame.context_id)
            if other is not None and other.agent == conversation.agent and is_output_open(other, frame.at):
                self._begin_interruption(other, frame, "context")

    def _begin_interruption(self, conversation: ConversationState, frame: Frame, kind: str) -> None:
        segment = conversation.said
        if segment is not None and not segment.ended and is_of_agent(segment):
            segment.plain = False
            self._segments.end(segment, frame.at, "interrupted")
        self._interruptions.begin(conversation, frame, kind)

    def _add_client_frame(self, conversation: ConversationState, frame: Frame, *, plain: bool) -> None:
        """One more frame of the client's segment, or the first one of a new turn."""
        segment = conversation.said
        conversation.spoke = frame.at
        if segment is not None and not segment.ended:
            if segment.speaker == CLIENT:
                self._segments.grow(segment, frame)
                return
            self._segments.end(segment, frame.at, "speaker")
        conversation.turn += 1
        self._segments.begin(conversation, CLIENT, frame, plain=plain)
        if conversation.turn > 1:
            self._index.touch(conversation)

    # --- the agent ----------------------------------------------------------------------------------------------

    def _apply_response(self, frame: Frame, exchange: ExchangeView) -> ConversationState | None:
        call = self._index.calls.get(frame.exchange)
        event = frame.event
        if call is None:
            if exchange.binding is not _WEBHOOK or event not in _TASK_EVENTS:
                return None
            return self._apply_webhook_event(frame)
        is_output = False
        if event in _TASK_EVENTS or media_mark(frame) >= 0:
            conversation = call.conversation
            if frame.task_id and frame.task_id != conversation.task_id:
                conversation = self._attach_to_task(call, frame)
            elif not call.answered and conversation.task_id:
                self._confirm_task(conversation)
            if frame.context_id and not conversation.context_id:
                conversation.context_id = frame.context_id
                self._name_open_segment(conversation)
            is_output = self._agent_output.apply_event(conversation, call, frame)
            call.answered += 1
        conversation = call.conversation
        if frame.kind is _RESPONSE:
            self._close_exchange(frame, call, "closed")
        return conversation if is_output else None

    def _apply_webhook_event(self, frame: Frame) -> ConversationState | None:
        """An event at a webhook: of a task that nobody's stream shows."""
        conversation = self._index.conversation_of_task("", frame.task_id)
        if conversation is None or conversation.tellers:
            return None
        is_output = self._agent_output.apply_event(conversation, OpenExchange(conversation, "look", answered=1), frame)
        self._quiet[conversation.number] = conversation
        return conversation if is_output else None

    def _confirm_task(self, conversation: ConversationState) -> None:
        """The agent answers about the task that the client named."""
        if self._index.conversation_of_task(conversation.agent, conversation.task_id) is None:
            self._index.add_to_task(conversation)

    def _attach_to_task(self, call: OpenExchange, frame: Frame) -> ConversationState:
        """The agent tells which task the call is about."""
        conversation, index = call.conversation, self._index
        known = index.conversation_of_task(conversation.agent, frame.task_id)
        if known is None and (not conversation.task_id or not call.answered):
            conversation.task_id = frame.task_id
            conversation.context_id = conversation.context_id or frame.context_id
            index.add_to_task(conversation)
            self._name_open_segment(conversation)
            self._handoffs.name_task(conversation, conversation)
            return conversation
        if known is None:  # a second task on one stream
            known = index.make_conversation(conversation.agent, frame.task_id, frame.context_id)
            index.add_to_task(known)
        self._remove_stream(conversation, frame.exchange)
        if not call.answered:
            self._move_request(conversation, known)
            self._handoffs.name_task(conversation, known)
        call.conversation = known
        if call.role in _STREAMING_ROLES:
            self._add_stream(known, frame.exchange)
        return known

    def _name_open_segment(self, conversation: ConversationState) -> None:
        """What was said before the task had an id belongs to it."""
        segment = conversation.said
        if segment is not None:
            segment.task_id, segment.context_id = conversation.task_id, conversation.context_id
            self._segments.mark_changed(segment)
        if conversation.context_id:
            self._index.name_context(conversation)

    def _move_request(self, conversation: ConversationState, known: ConversationState) -> None:
        """The client's words were for a task that was known already."""
        segment = conversation.said
        if segment is not None:
            if known.said is not None and not known.said.ended:
                self._segments.end(known.said, max(known.said.end, segment.start), "speaker")
            known.turn += 1
            segment.turn, segment.task_id, segment.context_id = known.turn, known.task_id, known.context_id
            known.said, known.last, conversation.said = segment, segment.id, None
            self._segments.move(segment, known)
        if conversation.awaited is not None:
            if known.awaited is not None:
                self._handoffs.end_awaited(known, max(known.awaited.at, conversation.awaited.at), 0)
            known.awaited, known.busy, conversation.awaited = conversation.awaited, True, None

    # --- ends ---------------------------------------------------------------------------------------------------

    def _apply_end(self, frame: Frame) -> None:
        call = self._index.calls.get(frame.exchange)
        if call is None:
            return
        if frame.kind is _END and frame.direction is Direction.TO_AGENT:
            segment = call.conversation.said
            if call.role == "live" and segment is not None and not segment.ended and segment.speaker == CLIENT:
                self._segments.end(segment, frame.at, "closed")
            return
        failed = frame.kind is _ERROR or (frame.kind is _END and frame.error_code != 0)
        self._close_exchange(frame, call, "broken" if frame.kind is _CUT else "error" if failed else "closed")

    def _close_exchange(self, frame: Frame, call: OpenExchange, reason: str) -> None:
        """An exchange answers no more."""
        conversation, at = call.conversation, frame.at
        del self._index.calls[frame.exchange]
        self._remove_stream(conversation, frame.exchange)
        interruption = conversation.interruption
        if reason == "error" and interruption is not None and interruption.exchange == frame.exchange:
            self._interruptions.end(conversation, at, "rejected")
        segment = conversation.said
        if segment is not None:
            self._close_segment(segment, frame, reason, alone=not conversation.tellers)
        if conversation.tellers:
            return
        if call.role != "look":
            self._interruptions.end(conversation, at)
            self._handoffs.end_awaited(conversation, at, 0)
            conversation.chains, conversation.media = (), False
        self._mark_quiet(conversation)

    def _close_segment(self, segment: SegmentState, frame: Frame, reason: str, *, alone: bool) -> None:
        """The exchange of `frame` answers no more; `alone`: nor does another one."""
        own = segment.last_exchange == frame.exchange
        if not segment.ended:
            if alone or (own and reason == "error" and segment.speaker == CLIENT):
                self._segments.end(segment, frame.at, reason)
        elif own and is_of_agent(segment) and not segment.closed and frame.kind is not _RESPONSE:
            segment.closed = frame.at
            self._segments.mark_changed(segment)

    def _open_exchange(self, number: int, conversation: ConversationState, role: str) -> OpenExchange:
        call = self._index.calls[number] = OpenExchange(conversation, role)
        if role in _STREAMING_ROLES:
            self._add_stream(conversation, number)
        return call

    def _add_stream(self, conversation: ConversationState, number: int) -> None:
        if conversation.tellers and number not in conversation.tellers:
            conversation.shown, conversation.busy = {} if conversation.shown is None else conversation.shown, True
            if conversation.said is not None and conversation.said.plain:  # its turn is more than one call now
                conversation.said.plain = False
                self._segments.mark_changed(conversation.said)
        conversation.tellers[number] = None

    @staticmethod
    def _remove_stream(conversation: ConversationState, number: int) -> None:
        conversation.tellers.pop(number, None)
        if not conversation.tellers:  # the last one may still be behind those that are over
            conversation.shown = None

    def _mark_quiet(self, conversation: ConversationState) -> None:
        """Nothing of it may be open: look when it has been told of."""
        if not conversation.tellers:
            self._quiet[conversation.number] = conversation

    # --- across a restart ---------------------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Plain values from which `restore` goes on. They hold payloads, redacted ones."""
        return {
            "book": self._index.save(),
            "cuts": self._segments.save(),
            "interruptions": self._interruptions.save(),
            "handoffs": self._handoffs.save(),
            "quiet": list(self._quiet),
        }

    @classmethod
    def restore(
        cls, state: dict[str, Any], name_agent: Callable[[str], str] = str, *, include_unary: bool = False
    ) -> SegmentTracker:
        """The tracker that gave `state`."""
        tracker = cls(name_agent, include_unary=include_unary)
        index = tracker._index = ConversationIndex.restore(state["book"])
        conversations = index.all_conversations()
        tracker._segments.load(state["cuts"], conversations)
        tracker._interruptions.load(state["interruptions"], conversations)
        tracker._handoffs = Handoffs(index)
        tracker._handoffs.load(state["handoffs"], conversations)
        tracker._agent_output = AgentOutput(tracker._segments, tracker._interruptions, tracker._handoffs)
        tracker._quiet = {number: conversations[number] for number in state["quiet"] if number in conversations}
        return tracker


def _is_reconnect_only(frame: Frame, mark: int, *, first: bool) -> bool:
    """A request on a live stream that is neither a message nor media: the form that only reconnects
    (manual/protocol.md "Live rules")."""
    if frame.event is _NO_EVENT:
        return mark < 0
    return first and bool(frame.task_id) and not is_message(frame)
