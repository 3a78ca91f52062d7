"""All conversations that are followed, by task, exchange, context and trace; bounded."""

from a2a_proxy.model.eviction import keys_to_evict
from a2a_proxy.model.saved_state import Reference
from a2a_proxy.protocol.segments.call_chain import ChainStep, append_step, span_of, trace_of
from a2a_proxy.protocol.segments.state import ConversationState, OpenExchange

MAX_CONVERSATIONS = 2000
"""Maximum number of tasks that are followed, not counting those with an open call. The task whose
client was silent for longest is dropped first; its next message counts as turn 1 again. A task
takes about 550 bytes."""
MAX_CONTEXTS = MAX_TRACES = 2000
_MAX_FORGET_TRIES = 8


class ConversationIndex(Reference):
    """Conversations and open calls."""

    def __init__(self, limit: int = MAX_CONVERSATIONS) -> None:
        self._limit = limit
        self.last = 0
        self.conversations: dict[str, ConversationState] = {}
        """Conversations by task id, the one with the longest silent client first."""
        self.calls: dict[int, OpenExchange] = {}
        """Open exchanges by number."""
        self.contexts: dict[str, list[ChainStep]] = {}
        """Context id -> the conversation of the context with the last client message, then the
        conversations that agents have begun in it."""
        self.traces: dict[str, list[ChainStep]] = {}
        """Trace id -> the conversations whose requests had it; the first one is kept."""

    def make_conversation(self, agent: str, task_id: str, context_id: str) -> ConversationState:
        """Return a new conversation, whose task may not be known yet."""
        self.last += 1
        return ConversationState(self.last, agent, task_id, context_id)

    def conversation_of_task(self, agent: str, task_id: str) -> ConversationState | None:
        """Return the conversation about a task, of any agent if `agent` is empty."""
        conversation = self.conversations.get(task_id)
        while conversation is not None and agent and conversation.agent != agent:
            conversation = conversation.twin
        return conversation

    def add_to_task(self, conversation: ConversationState) -> None:
        """File a conversation under its task, which has no other conversation with this agent."""
        conversation.twin = self.conversations.pop(conversation.task_id, None)
        self.conversations[conversation.task_id] = conversation
        if len(self.conversations) > self._limit:
            self._make_room()

    def mark_recent(self, conversation: ConversationState) -> None:
        """Mark the conversation as the last one in which a client spoke, so it is dropped last."""
        first = self.conversations.pop(conversation.task_id, None)
        if first is not None:
            self.conversations[conversation.task_id] = first

    def _make_room(self) -> None:
        """Drop the oldest conversation without an open call; if the oldest ones all have one, the
        limit is exceeded."""
        for _ in range(_MAX_FORGET_TRIES):
            task_id, conversation = next(iter(self.conversations.items()))
            del self.conversations[task_id]
            if not (
                conversation.tellers
                or (conversation.twin is not None and conversation.twin.tellers)
            ):
                return
            self.conversations[task_id] = conversation

    def conversation_of_context(self, context_id: str) -> ConversationState | None:
        """Return the conversation of this context with the last client message."""
        chain = self.context_chain(context_id)
        return chain[0].conversation if chain else None

    def context_chain(self, context_id: str) -> list[ChainStep]:
        """Return that conversation, followed by those that agents have begun in this context."""
        return self.contexts.get(context_id, []) if context_id else []

    def learn_context(
        self, conversation: ConversationState, caller: ConversationState | None = None
    ) -> None:
        """Record a message in this conversation's context, from a client, or from the agent of
        `caller` as a client. A caller whose own context is not known yet counts as in the context
        that it uses."""
        chain = self.context_chain(conversation.context_id)
        if caller is not None and chain:
            append_step(chain, ChainStep(conversation))
        elif conversation.context_id:
            first = (
                [ChainStep(conversation)]
                if caller is None or caller.context_id
                else [ChainStep(caller), ChainStep(conversation)]
            )
            others = [step for step in chain[1:] if step.conversation is not conversation]
            self.contexts[conversation.context_id] = [*first, *others]
            _drop_oldest(self.contexts, MAX_CONTEXTS)

    def name_context(self, conversation: ConversationState) -> None:
        """Record the context of this conversation, which the agent has named."""
        if conversation.context_id not in self.contexts:
            self.learn_context(conversation)

    def trace_chain(self, traceparent: str) -> list[ChainStep]:
        """Return the conversations whose requests had this trace."""
        return self.traces.get(trace_of(traceparent), []) if traceparent and self.traces else []

    def learn_trace(self, traceparent: str, conversation: ConversationState) -> None:
        """Record that a request of this conversation had this trace."""
        trace = trace_of(traceparent)
        if trace:
            append_step(
                self.traces.setdefault(trace, []), ChainStep(conversation, span_of(traceparent))
            )
            _drop_oldest(self.traces, MAX_TRACES)

    def all_conversations(self) -> dict[int, ConversationState]:
        """Return every conversation by its number."""
        found = {call.conversation.number: call.conversation for call in self.calls.values()}
        for chain in self.conversations.values():
            conversation: ConversationState | None = chain
            while conversation is not None:
                found[conversation.number] = conversation
                conversation = conversation.twin
        for trails in (self.contexts, self.traces):
            found.update(
                (step.conversation.number, step.conversation)
                for steps in trails.values()
                for step in steps
            )
        return found


def _drop_oldest(chains: dict[str, list[ChainStep]], limit: int) -> None:
    for name in keys_to_evict(chains, limit):
        del chains[name]
