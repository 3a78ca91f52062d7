"""Hand-offs between agents: from which agent to which, by which evidence (manual/protocol.md
"Hand-offs")."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Protocol

import msgspec

from a2a_proxy.model.saved_state import State
from a2a_proxy.model.values import Frame, Handoff
from a2a_proxy.protocol.segments.call_chain import PendingRequest, find_caller, port_of, span_of
from a2a_proxy.protocol.segments.evidence import content_marks, referenced_tasks
from a2a_proxy.protocol.segments.index import ConversationIndex
from a2a_proxy.protocol.segments.state import ConversationState, HandoffState

_MAX_RECENT = 32
"""Number of requests whose content is remembered."""
_MAX_COMPARED_BYTES = 32_768
"""Maximum size in bytes of a request whose content is compared."""
_MAX_AGENTS = 1000
_MAX_UNNAMED = 1000
"""Conversations without a task id whose hand-offs are remembered; the oldest is dropped first."""
_MAX_UNNAMED_HANDOFFS = 32
"""Hand-offs of one such conversation that get the task id later."""


class ClientView(Protocol):
    """The facts about a connection that tell who its client is."""

    @property
    def client(self) -> str:
        """The client's address, `host:port`."""

    @property
    def client_ports(self) -> tuple[int, ...]:
        """TCP ports on which the client's process listens."""


class Handoffs(State, dict=True):
    """The hand-offs of a session."""

    index: ConversationIndex
    _last: int = 0
    _changed: dict[int, HandoffState] = {}
    _agents: dict[str, None] = {}
    """Agents that clients have sent requests to."""
    _unnamed: dict[int, list[HandoffState]] = {}
    """Number of a conversation whose task id is not known yet -> the hand-offs of its agent."""

    def __post_init__(self) -> None:
        self.recent: deque[tuple[ConversationState, bytes, str]] = deque(maxlen=_MAX_RECENT)
        """The last requests: conversation, payload and schema."""

    def attach(self, index: ConversationIndex, conversations: Iterable[ConversationState]) -> None:
        """Refer to the conversations that were restored with this state."""
        self.index = index
        known = self._changed | {
            each.awaited.id: each.awaited for each in conversations if each.awaited is not None
        }
        self._changed = {number: known[number] for number in self._changed}
        self._unnamed = {
            number: [known.get(each.id, each) for each in some]
            for number, some in self._unnamed.items()
        }

    # --- between tasks

    def apply_request(
        self,
        conversation: ConversationState,
        frame: Frame,
        traceparent: str,
        facts: ClientView,
    ) -> None:
        """Apply a request of a client: it may be an agent that delegates, or a client that
        continues the context at another agent."""
        if conversation.agent not in self._agents and len(self._agents) < _MAX_AGENTS:
            self._agents[conversation.agent] = None
        delegator = None
        if len(self._agents) > 1:
            senders = frozenset(self._agents_at(facts.client_ports))
            request = PendingRequest(
                conversation.agent, facts.client, frame.connection, span_of(traceparent), senders
            )
            delegator = self._find_handoff(conversation, frame, traceparent, request)
        conversation.connection = frame.connection
        self.index.learn_context(conversation, delegator)
        if traceparent:
            self.index.learn_trace(traceparent, conversation)
        if frame.size <= _MAX_COMPARED_BYTES:
            self.recent.append((conversation, frame.payload, frame.schema))

    def _find_handoff(
        self,
        conversation: ConversationState,
        frame: Frame,
        traceparent: str,
        request: PendingRequest,
    ) -> ConversationState | None:
        """Record a hand-off if another agent is involved; return the delegating conversation for a
        delegation."""
        kind = "delegation"
        parent, evidence = self._find_caller(conversation, frame, traceparent, request)
        if parent is None:
            parent, evidence, kind = (
                self.index.conversation_of_context(frame.context_id or conversation.context_id),
                "context",
                "next",
            )
            if parent is None or parent.agent == conversation.agent:
                return None
        made = self._make_handoff(
            parent, frame, kind, evidence, conversation.agent, conversation.task_id
        )
        made.to_exchange, made.briefing = frame.exchange, frame.size
        self._await_output(conversation, made)
        return parent if kind == "delegation" else None

    def _find_caller(
        self,
        conversation: ConversationState,
        frame: Frame,
        traceparent: str,
        request: PendingRequest,
    ) -> tuple[ConversationState | None, str]:
        """Return the conversation whose agent sent this request, and the strongest evidence for
        it."""
        index = self.index
        if (traced := find_caller(index.trace_chain(traceparent), request)) is not None:
            return traced, "traceparent"
        if (
            before := find_caller(
                index.context_chain(frame.context_id or conversation.context_id), request
            )
        ) is not None:
            return before, "context"
        for task_id in referenced_tasks(frame):
            referred = index.conversation_of_task("", task_id)
            if referred is not None and request.may_come_from(referred):
                return referred, "reference"
        working = self._working_senders(request)
        if len(working) == 1:
            return working[0], "process"
        same = self._find_same_content(frame, request)
        return same, "process" if len({each.agent for each in working}) == 1 else "content"

    def _agents_at(self, ports: tuple[int, ...]) -> Iterator[str]:
        return (agent for agent in self._agents if port_of(agent) in ports)

    def _working_senders(self, request: PendingRequest) -> list[ConversationState]:
        """Return the conversations in which the agents of the sender's process are at work."""
        if not request.senders:
            return []
        found = {call.conversation.number: call.conversation for call in self.index.calls.values()}
        return [each for each in found.values() if request.may_come_from(each)]

    def _find_same_content(self, frame: Frame, request: PendingRequest) -> ConversationState | None:
        """Return the last conversation whose request had a part with the same content."""
        others = [each for each in self.recent if request.may_come_from(each[0])]
        if not others or frame.size > _MAX_COMPARED_BYTES:
            return None
        marks = content_marks(frame.payload, frame.schema)
        if marks:
            for conversation, payload, schema in reversed(others):
                if marks & content_marks(payload, schema):
                    return conversation
        return None

    # --- within a task

    def begin_transfer(
        self, conversation: ConversationState, frame: Frame, new_agent: str, evidence: str
    ) -> None:
        """Record that another agent, called `new_agent`, takes over within the task, as an agent's
        frame shows."""
        waiting = conversation.awaited
        if (
            waiting is not None and waiting.kind == "transfer"
        ):  # announced by the preceding tool call
            waiting.to_agent = new_agent
            self._changed[waiting.id] = waiting
            return
        made = self._make_handoff(
            conversation, frame, "transfer", evidence, new_agent, conversation.task_id
        )
        made.to_exchange = frame.exchange
        self._await_output(conversation, made)

    # --- both

    def _make_handoff(
        self,
        conversation: ConversationState,
        frame: Frame,
        kind: str,
        evidence: str,
        to_agent: str,
        task: str,
    ) -> HandoffState:
        self._last += 1
        made = HandoffState(
            self._last,
            kind,
            evidence,
            conversation.agent,
            conversation.task_id,
            conversation.context_id,
            conversation.last_agent or conversation.last,
            to_agent,
            task,
            0,
            frame.exchange,
            frame.seq,
            frame.at,
        )
        if not conversation.task_id:
            before = self._unnamed.setdefault(conversation.number, [])
            if len(before) < _MAX_UNNAMED_HANDOFFS:
                before.append(made)
            if len(self._unnamed) > _MAX_UNNAMED:
                del self._unnamed[next(iter(self._unnamed))]
        return made

    def name_task(self, conversation: ConversationState, known: ConversationState) -> None:
        """Set the task of hand-offs that were recorded before the conversation's task was known
        (the task of `known`): an agent may call the next agent before it answers."""
        for made in self._unnamed.pop(conversation.number, ()):
            made.task_id, made.context_id = known.task_id, known.context_id
            self._changed[made.id] = made

    def _await_output(self, conversation: ConversationState, made: HandoffState) -> None:
        if conversation.awaited is not None:
            self.end_awaited(conversation, made.at, 0)
        conversation.awaited, conversation.busy = made, True
        self._changed[made.id] = made

    def end_awaited(self, conversation: ConversationState, at: int, output: int) -> None:
        """End the wait for the new agent's first output: it came at `output` (ns), or will not come
        (0)."""
        waiting, conversation.awaited = conversation.awaited, None
        if waiting is not None:
            waiting.first_output, waiting.ended = output, at
            waiting.to_task = waiting.to_task or conversation.task_id
            self._changed[waiting.id] = waiting

    def adopt_recorded(self, known: list[Handoff], last: int, at: int) -> None:
        """Take over recorded hand-offs as in `SegmentBuilder.adopt_recorded`."""
        self._last = last
        for each in known:
            state = HandoffState(*msgspec.structs.astuple(each))
            state.ended = max(at, state.at)
            self._changed[state.id] = state

    def pop_changed_handoffs(self) -> list[Handoff]:
        """Return snapshots of the hand-offs that changed since the last call, in order."""
        changed, self._changed = self._changed, {}
        return [changed[number].snapshot() for number in sorted(changed)]

    def mark_open_changed(self, conversations: list[ConversationState]) -> None:
        """Count open hand-offs as changed."""
        self._changed.update(
            (conversation.awaited.id, conversation.awaited)
            for conversation in conversations
            if conversation.awaited
        )
