"""The conversations of one trace or context in the order in which they began, and who of them makes the next call.

Of a chain A -> B -> C all have the same trace: C is called by B, the last that is at work. Where agent A asks B and C
at the same time, both requests may show that one and the same has sent them (manual/protocol.md "Hand-offs").
"""

from __future__ import annotations

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.protocol.segments.state import ConversationState

_MAX_STEPS = 16
"""Conversations of a trail; what comes after is called by one of them."""
_INACTIVE_STATES = frozenset(
    {TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED}
) | frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})
"""States in which an agent does nothing."""
_LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]", "::1")


class ChainStep(msgspec.Struct, frozen=True, gc=False):
    """A conversation of the trail."""

    conversation: ConversationState
    span: str = ""
    """Parent id of its last request's `traceparent`: the span of who sent it."""


class PendingRequest(msgspec.Struct, frozen=True):
    """What is known of a call whose sender is looked for."""

    agent: str
    """Who is called."""
    client: str
    """The address of who calls, `host:port`."""
    connection: int
    span: str = ""
    """As `Step.span`."""

    def may_come_from(self, conversation: ConversationState) -> bool:
        """The agent of this conversation is at work, and may be who calls."""
        return (
            conversation.agent != self.agent
            and conversation.connection != self.connection
            and is_active(conversation)
            and may_be_from(self.client, conversation.agent)
        )


def append_step(chain: list[ChainStep], step: ChainStep) -> None:
    """One more conversation, the last one; those that are over leave, but not the first one."""
    if chain and chain[0].conversation is step.conversation:
        return
    chain[1:] = [
        each for each in chain[1:] if each.conversation is not step.conversation and is_active(each.conversation)
    ]
    if len(chain) < _MAX_STEPS:
        chain.append(step)


def find_caller(chain: list[ChainStep], request: PendingRequest) -> ConversationState | None:
    """The conversation whose agent makes this request: the last one at work that began before whatever else the same
    sender has sent."""
    for step in reversed(_without_siblings(chain, request)):
        if request.may_come_from(step.conversation):
            return step.conversation
    return None


def _without_siblings(chain: list[ChainStep], request: PendingRequest) -> list[ChainStep]:
    """Without what the sender of this request has begun itself, over the same connection or in the same span, and what
    came after that. Agents that pass a `traceparent` on as it came all have the span of the first: that tells nothing.
    """
    for place, step in enumerate(chain):
        in_its_span = request.span and step.span == request.span != chain[0].span
        if step.conversation.connection == request.connection or in_its_span:
            return chain[:place]
    return chain


def is_active(conversation: ConversationState) -> bool:
    """Somebody waits for this agent, and it is at work."""
    return bool(conversation.tellers) and conversation.state not in _INACTIVE_STATES


def may_be_from(client: str, agent: str) -> bool:
    """A call from `client` (`host:port`) may be one of the agent behind the upstream `agent`: not where both are
    addresses and differ."""
    here = client.rpartition(":")[0]
    there = agent.rpartition("//")[2].partition("/")[0].rpartition(":")[0]
    if here in _LOOPBACK_HOSTS or not _is_address(there):
        return True
    return here == there


def _is_address(host: str) -> bool:
    return bool(host) and (":" in host or host.replace(".", "").isdigit())


def trace_of(traceparent: str) -> str:
    """The trace id of a W3C `traceparent`; empty where it is none."""
    words = traceparent.split("-")
    return words[1] if len(words) >= 4 and len(words[1]) == 32 else ""


def span_of(traceparent: str) -> str:
    """The parent id of a W3C `traceparent`; empty where it is none."""
    return traceparent.split("-")[2] if trace_of(traceparent) else ""
