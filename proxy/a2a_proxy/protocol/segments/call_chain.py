"""The conversations of one trace or context in order of their beginning, and which of their agents
makes the next call.

In a chain A -> B -> C all conversations have the same trace, and C is called by B, the last agent
at work. If agent A calls B and C at the same time, the two requests may show that they have the
same sender (manual/protocol.md "Hand-offs").
"""

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.protocol.segments.state import ConversationState

_MAX_STEPS = 16
"""Conversations of a chain; later ones are called by one of these."""
_INACTIVE_STATES = frozenset(
    {TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED}
) | frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})
"""States in which an agent does not work."""
_LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]", "::1")


class ChainStep(msgspec.Struct, frozen=True, gc=False):
    """A conversation of a chain."""

    conversation: ConversationState
    span: str = ""
    """Parent id in the `traceparent` of its last request: the span of the sender."""


class PendingRequest(msgspec.Struct, frozen=True):
    """Facts about a request whose sender is to be found."""

    agent: str
    """The agent that receives the request."""
    client: str
    """Address of the sender, `host:port`."""
    connection: int
    span: str = ""
    """Parent id in its `traceparent`, as `ChainStep.span`."""
    senders: frozenset[str] = frozenset()
    """The agents of the process that sent it; empty if they are unknown."""

    def may_come_from(self, conversation: ConversationState) -> bool:
        """Whether the agent of this conversation is at work and may be the sender."""
        return (
            conversation.agent != self.agent
            and conversation.connection != self.connection
            and is_active(conversation)
            and (not self.senders or conversation.agent in self.senders)
            and may_be_from(self.client, conversation.agent)
        )


def append_step(chain: list[ChainStep], step: ChainStep) -> None:
    """Append a conversation; finished ones are removed, except the first."""
    if chain and chain[0].conversation is step.conversation:
        return
    chain[1:] = [
        each
        for each in chain[1:]
        if each.conversation is not step.conversation and is_active(each.conversation)
    ]
    if len(chain) < _MAX_STEPS:
        chain.append(step)


def find_caller(chain: list[ChainStep], request: PendingRequest) -> ConversationState | None:
    """Return the conversation whose agent makes this request: the last one at work that began
    before the other requests of the same sender. None if there is no such conversation."""
    for step in reversed(_without_siblings(chain, request)):
        if request.may_come_from(step.conversation):
            return step.conversation
    return None


def _without_siblings(chain: list[ChainStep], request: PendingRequest) -> list[ChainStep]:
    """Return the chain up to the first request of the same sender (same connection or same span).
    Agents that forward a `traceparent` unchanged all have the span of the first conversation, so
    that span is no evidence.
    """
    for place, step in enumerate(chain):
        in_its_span = request.span and step.span == request.span != chain[0].span
        if step.conversation.connection == request.connection or in_its_span:
            return chain[:place]
    return chain


def is_active(conversation: ConversationState) -> bool:
    """Whether a client waits for this agent, and the agent is at work."""
    return bool(conversation.tellers) and conversation.state not in _INACTIVE_STATES


def port_of(agent: str) -> int:
    """Return the port of an upstream (`host:port` or a URL), or 0 if it names none."""
    port = agent.rpartition("//")[2].partition("/")[0].rpartition(":")[2]
    return int(port) if port.isascii() and port.isdigit() else 0


def may_be_from(client: str, agent: str) -> bool:
    """Whether a request from `client` (`host:port`) may come from the agent behind the upstream
    `agent`: True unless both are addresses and differ."""
    here = client.rpartition(":")[0]
    there = agent.rpartition("//")[2].partition("/")[0].rpartition(":")[0]
    if here in _LOOPBACK_HOSTS or not _is_address(there):
        return True
    return here == there


def _is_address(host: str) -> bool:
    return bool(host) and (":" in host or host.replace(".", "").isdigit())


def trace_of(traceparent: str) -> str:
    """Return the trace id of a W3C `traceparent`, or an empty string if it is invalid."""
    words = traceparent.split("-")
    return words[1] if len(words) >= 4 and len(words[1]) == 32 else ""


def span_of(traceparent: str) -> str:
    """Return the parent id of a W3C `traceparent`, or an empty string if it is invalid."""
    return traceparent.split("-")[2] if trace_of(traceparent) else ""
