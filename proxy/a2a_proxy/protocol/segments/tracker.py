"""Build segments, interruptions and hand-offs from frames (manual/protocol.md "Segments").

Time is taken from frames and ticks, never from a clock.

Uses the summaries of frames; payloads are decoded only if their bytes may contain evidence.
Bounded: of the tasks without open calls, only the most recent ones are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from a2a_proxy.model.values import (
    CLIENT,
    GAP_CLIENT,
    Binding,
    Changes,
    EventKind,
    Frame,
    FrameKind,
    Handoff,
    Interruption,
    Segment,
)
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.segments.agent_output import AgentOutput
from a2a_proxy.protocol.segments.call_chain import ChainStep, trace_of
from a2a_proxy.protocol.segments.evidence import (
    MEDIA_DELTA,
    MEDIA_INTERRUPT,
    MEDIA_PAUSE,
    MEDIA_STOP,
    ends_activity,
    is_message,
    media_mark,
)
from a2a_proxy.protocol.segments.handoffs import ClientView, Handoffs
from a2a_proxy.protocol.segments.index import ConversationIndex
from a2a_proxy.protocol.segments.interruptions import Interruptions, is_output_open
from a2a_proxy.protocol.segments.segment_builder import (
    SegmentBuilder,
    is_of_agent,
    silence_deadline,
)
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
"""Roles of calls that stream the events of a task."""
_EVENT, _RESPONSE, _REQUEST, _ERROR = (
    FrameKind.EVENT,
    FrameKind.RESPONSE,
    FrameKind.REQUEST,
    FrameKind.ERROR,
)
_END, _CUT = FrameKind.END, FrameKind.CUT
_NO_EVENT, _TASK, _MESSAGE = EventKind.NONE, EventKind.TASK, EventKind.MESSAGE
_STATUS, _ARTIFACT = EventKind.STATUS, EventKind.ARTIFACT
_TASK_EVENTS = frozenset({_TASK, _MESSAGE, _STATUS, _ARTIFACT})
_WEBHOOK = Binding.WEBHOOK
_FLOW_CONTINUATION_MARKS, _FLOW_END_MARKS = (0, MEDIA_DELTA), (MEDIA_STOP, MEDIA_PAUSE)
"""Marks of a client's media that begin nothing: a microphone that is open all the time does not
interrupt the agent."""


class ExchangeView(Protocol):
    """The attributes of an exchange that the tracker reads."""

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
    def trace_context(self) -> str: ...  # noqa: D102


_ChainNumbers = dict[str, list[tuple[int, str]]]


class SegmentsState(msgspec.Struct):
    """What a tracker knows, with conversations referred to by number. It holds redacted
    payloads."""

    last: int
    conversations: list[ConversationState]
    twins: dict[int, int]
    tasks: list[int]
    calls: dict[int, tuple[int, str, int, bool]]
    contexts: _ChainNumbers
    traces: _ChainNumbers
    segments: SegmentBuilder
    interruptions: Interruptions
    handoffs: Handoffs
    requests: list[tuple[int, bytes, str]]
    quiet: list[int]


class SegmentTracker:
    """All conversations of a session."""

    def __init__(
        self, name_agent: Callable[[str], str] = str, *, include_unary: bool = False
    ) -> None:
        """`name_agent` maps an agent to its public name. Turns that are one unary call are reported
        only with `include_unary`, because they only repeat their exchange."""
        self._name_agent = name_agent
        self._include_unary = include_unary
        self._index = ConversationIndex()
        self._segments = SegmentBuilder()
        self._interruptions = Interruptions()
        self._handoffs = Handoffs(self._index)
        self._agent_output = AgentOutput(self._segments, self._interruptions, self._handoffs)
        self._quiet: dict[int, ConversationState] = {}
        """Conversations that may have nothing open, until their changes have been reported."""

    def apply_frame(
        self, frame: Frame, exchange: ExchangeView, facts: ClientView
    ) -> ConversationState | None:
        """Apply one frame of a client with these facts, or of its agent.

        Return the conversation if the frame has become part of its segment `said`, else None.
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
                and self._agent_output.apply_steady_update(call.conversation, call.steady, frame)
            ):
                return call.conversation
            return self._apply_response(frame, exchange)
        if kind is _RESPONSE:
            return self._apply_response(frame, exchange)
        if kind is _REQUEST:
            return self._apply_request(frame, exchange, facts)
        if kind is _END or kind is _CUT or kind is _ERROR:
            self._apply_end(frame)
        return None

    def learn_sent_trace(self, exchange: ExchangeView) -> None:
        """Record the trace that the proxy sent, if it differs from the client's: the agent hands
        over within the sent trace."""
        sent = exchange.trace_context
        call = self._index.calls.get(exchange.id)
        if call is not None and trace_of(sent) != trace_of(exchange.traceparent):
            self._index.learn_trace(sent, call.conversation)

    def tick(self, at: int) -> None:
        """Advance the time to `at` (ns): all earlier frames have been applied, so segments may end
        by silence."""
        for conversation in self._segments.pop_silent(at):
            segment = conversation.said
            if segment is None or segment.ended:
                continue
            over = silence_deadline(segment)
            self._segments.end_segment(segment, over, "silence")
            interruption = conversation.interruption
            if (
                interruption is not None
                and is_of_agent(segment)
                and segment.start > interruption.at
            ):
                self._interruptions.end_interruption(conversation, over)
            self._mark_quiet(conversation)

    def end_session(self, at: int) -> None:
        """End the session at `at` (ns), and with it all that is open."""
        self.tick(at)
        for conversation in self._index.all_conversations().values():
            if conversation.said is not None and not conversation.said.ended:
                self._segments.end_segment(conversation.said, at, "closed")
            self._interruptions.end_interruption(conversation, at)
            self._handoffs.end_awaited(conversation, at, 0)

    def pop_changes(self) -> tuple[list[Segment], list[Interruption], list[Handoff]]:
        """Return snapshots of everything that changed since the last call. Finished conversations
        may be forgotten then."""
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

    def adopt_recorded(self, cut: Changes, last: tuple[int, int, int], at: int) -> None:
        """Continue after a tracker that was lost: the values in `cut`, which a recording has as
        open, end at `at` (ns), and new segments, interruptions and hand-offs are numbered from
        `last` on."""
        self._segments.adopt_recorded(cut.segments, last[0], at)
        self._interruptions.adopt_recorded(cut.interruptions, last[1], at)
        self._handoffs.adopt_recorded(cut.handoffs, last[2], at)

    def mark_open_changed(self) -> None:
        """Count everything open as changed."""
        conversations = list(self._index.all_conversations().values())
        self._segments.mark_open_changed(conversations)
        self._interruptions.mark_open_changed(conversations)
        self._handoffs.mark_open_changed(conversations)

    # --- the client

    def _apply_request(
        self, frame: Frame, exchange: ExchangeView, facts: ClientView
    ) -> ConversationState | None:
        role = _ROLE_OF_OPERATION.get(exchange.operation)
        if role is None:
            return None
        call = self._index.calls.get(frame.exchange)
        if role == "send" or role == "live":
            said_in = self._apply_client_message(frame, exchange, call, role)
            if said_in is not None:
                self._handoffs.apply_request(said_in, frame, exchange.traceparent, facts)
                self.learn_sent_trace(exchange)
            return said_in
        agent = self._name_agent(exchange.agent)
        conversation = (
            self._index.conversation_of_task(agent, frame.task_id) if frame.task_id else None
        )
        if call is None:
            call = self._open_exchange(
                frame.exchange, conversation or self._index.make_conversation(agent, "", ""), role
            )
        if role == "cancel" and conversation is not None and is_output_open(conversation, frame.at):
            self._begin_interruption(conversation, frame, "cancel")
        return None

    def _apply_client_message(
        self, frame: Frame, exchange: ExchangeView, call: OpenExchange | None, role: str
    ) -> ConversationState | None:
        """Apply a message of the client, or a request that only reconnects a stream."""
        first = call is None
        if call is None:
            agent = self._name_agent(exchange.agent)
            known = (
                self._index.conversation_of_task(agent, frame.task_id) if frame.task_id else None
            )
            conversation = known or self._index.make_conversation(
                agent, frame.task_id, frame.context_id
            )
            call = self._open_exchange(frame.exchange, conversation, role)
        conversation = call.conversation
        mark = media_mark(frame) if frame.event is _NO_EVENT else -1
        if role == "live" and _is_reconnect_only(frame, mark, first=first):
            call.role = "watch" if first else call.role
            return None
        if not conversation.context_id:
            conversation.context_id = frame.context_id
        self._check_interruption(conversation, frame, mark)
        self._add_client_frame(
            conversation, frame, plain=self._is_unary_turn(conversation, frame, exchange)
        )
        if role == "live" and ends_activity(frame):
            assert conversation.said is not None
            conversation.said.activity_end = frame.at
        return conversation

    def _is_unary_turn(
        self, conversation: ConversationState, frame: Frame, exchange: ExchangeView
    ) -> bool:
        """Whether the message may become a turn of one unary call."""
        return (
            not self._include_unary
            and exchange.operation == "SendMessage"
            and list(conversation.tellers) == [frame.exchange]
        )

    def _check_interruption(self, conversation: ConversationState, frame: Frame, mark: int) -> None:
        """Begin an interruption if the client's message arrives during the agent's output, and the
        client was not already speaking."""
        segment = conversation.said
        if (
            segment is not None
            and not segment.ended
            and segment.speaker == CLIENT
            and mark != MEDIA_INTERRUPT
        ):
            return
        if mark in _FLOW_END_MARKS or (
            mark in _FLOW_CONTINUATION_MARKS and frame.at - conversation.spoke <= GAP_CLIENT
        ):
            return
        if conversation.last and is_output_open(conversation, frame.at):
            self._begin_interruption(
                conversation, frame, "event" if mark == MEDIA_INTERRUPT else "message"
            )
            return
        self._interruptions.end_interruption(conversation, frame.at)
        if not conversation.last and not frame.task_id:
            other = self._index.conversation_of_context(frame.context_id)
            if (
                other is not None
                and other.agent == conversation.agent
                and is_output_open(other, frame.at)
            ):
                self._begin_interruption(other, frame, "context")

    def _begin_interruption(self, conversation: ConversationState, frame: Frame, kind: str) -> None:
        segment = conversation.said
        if segment is not None and not segment.ended and is_of_agent(segment):
            segment.plain = False
            self._segments.end_segment(segment, frame.at, "interrupted")
        self._interruptions.begin_interruption(conversation, frame, kind)

    def _add_client_frame(
        self, conversation: ConversationState, frame: Frame, *, plain: bool
    ) -> None:
        """Add a frame to the client's segment, or begin a new turn with it."""
        segment = conversation.said
        conversation.spoke = frame.at
        if segment is not None and not segment.ended:
            if segment.speaker == CLIENT:
                self._segments.extend_segment(segment, frame)
                return
            self._segments.end_segment(segment, frame.at, "speaker")
        conversation.turn += 1
        self._segments.begin_segment(conversation, CLIENT, frame, plain=plain)
        if conversation.turn > 1:
            self._index.mark_recent(conversation)

    # --- the agent

    def _apply_response(self, frame: Frame, exchange: ExchangeView) -> ConversationState | None:
        call = self._index.calls.get(frame.exchange)
        event = frame.event
        if call is None:
            if exchange.binding is not _WEBHOOK or event not in _TASK_EVENTS:
                return None
            return self._apply_webhook_event(frame, exchange.agent)
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

    def _apply_webhook_event(self, frame: Frame, agent: str) -> ConversationState | None:
        """Apply an event at a webhook, if no open stream shows its task."""
        index, task_id = self._index, frame.task_id
        conversation = index.conversation_of_task(agent, task_id) or index.conversation_of_task(
            "", task_id
        )
        if conversation is None or conversation.tellers:
            return None
        is_output = self._agent_output.apply_event(
            conversation, OpenExchange(conversation, "look", answered=1), frame
        )
        self._quiet[conversation.number] = conversation
        return conversation if is_output else None

    def _confirm_task(self, conversation: ConversationState) -> None:
        """File the conversation under the task that the client named, after the agent's first
        answer about it."""
        if self._index.conversation_of_task(conversation.agent, conversation.task_id) is None:
            self._index.add_to_task(conversation)

    def _attach_to_task(self, call: OpenExchange, frame: Frame) -> ConversationState:
        """Attach the call to the task that the agent names, and return the conversation of the
        task."""
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
        """Set the task of the segment that began before the task had an id."""
        segment = conversation.said
        if segment is not None:
            segment.task_id, segment.context_id = conversation.task_id, conversation.context_id
            self._segments.mark_changed(segment)
        if conversation.context_id:
            self._index.name_context(conversation)

    def _move_request(self, conversation: ConversationState, known: ConversationState) -> None:
        """Move the client's segment to the task that it turned out to address."""
        segment = conversation.said
        if segment is not None:
            if known.said is not None and not known.said.ended:
                self._segments.end_segment(
                    known.said, max(known.said.end, segment.start), "speaker"
                )
            known.turn += 1
            segment.turn, segment.task_id, segment.context_id = (
                known.turn,
                known.task_id,
                known.context_id,
            )
            known.said, known.last, conversation.said = segment, segment.id, None
            self._segments.move_segment(segment, known)
        if conversation.awaited is not None:
            if known.awaited is not None:
                self._handoffs.end_awaited(known, max(known.awaited.at, conversation.awaited.at), 0)
            known.awaited, known.busy, conversation.awaited = conversation.awaited, True, None

    # --- ends

    def _apply_end(self, frame: Frame) -> None:
        call = self._index.calls.get(frame.exchange)
        if call is None:
            return
        if frame.kind is _END and frame.direction is Direction.TO_AGENT:
            segment = call.conversation.said
            if (
                call.role == "live"
                and segment is not None
                and not segment.ended
                and segment.speaker == CLIENT
            ):
                self._segments.end_segment(segment, frame.at, "closed")
            return
        failed = frame.kind is _ERROR or (frame.kind is _END and frame.error_code != 0)
        self._close_exchange(
            frame, call, "broken" if frame.kind is _CUT else "error" if failed else "closed"
        )

    def _close_exchange(self, frame: Frame, call: OpenExchange, reason: str) -> None:
        """Close an exchange, which has no further answers."""
        conversation, at = call.conversation, frame.at
        del self._index.calls[frame.exchange]
        self._remove_stream(conversation, frame.exchange)
        interruption = conversation.interruption
        if (
            reason == "error"
            and interruption is not None
            and interruption.exchange == frame.exchange
        ):
            self._interruptions.end_interruption(conversation, at, "rejected")
        segment = conversation.said
        if segment is not None:
            self._close_segment(segment, frame, reason, alone=not conversation.tellers)
        if conversation.tellers:
            return
        if call.role != "look":
            self._interruptions.end_interruption(conversation, at)
            self._handoffs.end_awaited(conversation, at, 0)
            conversation.chains, conversation.media = (), False
        self._mark_quiet(conversation)

    def _close_segment(
        self, segment: SegmentState, frame: Frame, reason: str, *, alone: bool
    ) -> None:
        """Update the segment when the exchange of `frame` closes; `alone`: no other exchange is
        open."""
        own = segment.last_exchange == frame.exchange
        if not segment.ended:
            if alone or (own and reason == "error" and segment.speaker == CLIENT):
                self._segments.end_segment(segment, frame.at, reason)
        elif own and is_of_agent(segment) and not segment.closed and frame.kind is not _RESPONSE:
            segment.closed = frame.at
            self._segments.mark_changed(segment)

    def _open_exchange(
        self, number: int, conversation: ConversationState, role: str
    ) -> OpenExchange:
        call = self._index.calls[number] = OpenExchange(conversation, role)
        if role in _STREAMING_ROLES:
            self._add_stream(conversation, number)
        return call

    def _add_stream(self, conversation: ConversationState, number: int) -> None:
        if conversation.tellers and number not in conversation.tellers:
            conversation.shown, conversation.busy = (
                {} if conversation.shown is None else conversation.shown,
                True,
            )
            if (
                conversation.said is not None and conversation.said.plain
            ):  # its turn is more than one call now
                conversation.said.plain = False
                self._segments.mark_changed(conversation.said)
        conversation.tellers[number] = None

    @staticmethod
    def _remove_stream(conversation: ConversationState, number: int) -> None:
        conversation.tellers.pop(number, None)
        if not conversation.tellers:  # the last stream may still be behind the closed ones
            conversation.shown = None

    def _mark_quiet(self, conversation: ConversationState) -> None:
        """Mark the conversation as possibly finished; it is checked after its changes have been
        reported."""
        if not conversation.tellers:
            self._quiet[conversation.number] = conversation

    # --- across a restart

    def save(self) -> SegmentsState:
        """Return the state for `restore`. It shares objects with this tracker."""
        index = self._index
        conversations = index.all_conversations()
        return SegmentsState(
            index.last,
            [msgspec.structs.replace(each, twin=None) for each in conversations.values()],
            {
                number: each.twin.number
                for number, each in conversations.items()
                if each.twin is not None
            },
            [each.number for each in index.conversations.values()],
            {
                number: (call.conversation.number, call.role, call.answered, call.tells)
                for number, call in index.calls.items()
            },
            _number_chains(index.contexts),
            _number_chains(index.traces),
            self._segments,
            self._interruptions,
            self._handoffs,
            [
                (conversation.number, payload, schema)
                for conversation, payload, schema in self._handoffs.recent
                if conversation.number in conversations
            ],
            list(self._quiet),
        )

    @classmethod
    def restore(
        cls,
        state: SegmentsState,
        name_agent: Callable[[str], str] = str,
        *,
        include_unary: bool = False,
    ) -> SegmentTracker:
        """Return the tracker whose state was saved."""
        tracker = cls(name_agent, include_unary=include_unary)
        index, known = tracker._index, {each.number: each for each in state.conversations}
        for number, twin in state.twins.items():
            known[number].twin = known.get(twin)
        index.last = state.last
        index.conversations = {known[number].task_id: known[number] for number in state.tasks}
        index.calls = {
            number: OpenExchange(known[conversation], role, answered, tells)
            for number, (conversation, role, answered, tells) in state.calls.items()
        }
        index.contexts, index.traces = (
            {
                name: [ChainStep(known[number], span) for number, span in chain]
                for name, chain in chains.items()
            }
            for chains in (state.contexts, state.traces)
        )
        tracker._segments, tracker._interruptions = state.segments, state.interruptions
        tracker._handoffs = state.handoffs
        tracker._segments.attach(known.values())
        tracker._interruptions.attach(known.values())
        tracker._handoffs.attach(index, known.values())
        tracker._handoffs.recent.extend(
            (known[number], payload, schema) for number, payload, schema in state.requests
        )
        tracker._agent_output = AgentOutput(
            tracker._segments, tracker._interruptions, tracker._handoffs
        )
        tracker._quiet = {number: known[number] for number in state.quiet if number in known}
        return tracker


def _number_chains(chains: dict[str, list[ChainStep]]) -> _ChainNumbers:
    return {
        name: [(step.conversation.number, step.span) for step in chain]
        for name, chain in chains.items()
    }


def _is_reconnect_only(frame: Frame, mark: int, *, first: bool) -> bool:
    """Whether a request on a live stream is neither a message nor media: the form that only
    reconnects (manual/protocol.md "Live rules")."""
    if frame.event is _NO_EVENT:
        return mark < 0
    return first and bool(frame.task_id) and not is_message(frame)
