"""The conversations of one trace or context in the order in which they began, and who of them makes the next call.

Of a chain A -> B -> C all have the same trace: C is called by B, the last that is at work. Where agent A asks B and C
at the same time, both requests may show that one and the same has sent them (manual/protocol.md "Hand-offs").
"""

from __future__ import annotations

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.protocol.segments.state import ConversationState

_STEPS = 16
"""Conversations of a trail; what comes after is called by one of them."""
_STILL = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED}) | frozenset(
    {TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED}
)
"""States in which an agent does nothing."""
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")


class ChainStep(msgspec.Struct, frozen=True, gc=False):
    """A conversation of the trail."""

    talk: ConversationState
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

    def may_come_from(self, talk: ConversationState) -> bool:
        """The agent of this conversation is at work, and may be who calls."""
        return (
            talk.agent != self.agent
            and talk.connection != self.connection
            and is_active(talk)
            and may_be_from(self.client, talk.agent)
        )


def lengthened(trail: list[ChainStep], step: ChainStep) -> None:
    """One more conversation, the last one; those that are over leave, but not the first one."""
    if trail and trail[0].talk is step.talk:
        return
    trail[1:] = [each for each in trail[1:] if each.talk is not step.talk and is_active(each.talk)]
    if len(trail) < _STEPS:
        trail.append(step)


def caller(trail: list[ChainStep], request: PendingRequest) -> ConversationState | None:
    """The conversation whose agent makes this request: the last one at work that began before whatever else the same
    sender has sent."""
    for step in reversed(_before_siblings(trail, request)):
        if request.may_come_from(step.talk):
            return step.talk
    return None


def _before_siblings(trail: list[ChainStep], request: PendingRequest) -> list[ChainStep]:
    """Without what the sender of this request has begun itself, over the same connection or in the same span, and what
    came after that. Agents that pass a `traceparent` on as it came all have the span of the first: that tells nothing.
    """
    for place, step in enumerate(trail):
        in_its_span = request.span and step.span == request.span != trail[0].span
        if step.talk.connection == request.connection or in_its_span:
            return trail[:place]
    return trail


def is_active(talk: ConversationState) -> bool:
    """Somebody waits for this agent, and it is at work."""
    return bool(talk.tellers) and talk.state not in _STILL


def may_be_from(client: str, agent: str) -> bool:
    """A call from `client` (`host:port`) may be one of the agent behind the upstream `agent`: not where both are
    addresses and differ."""
    here = client.rpartition(":")[0]
    there = agent.rpartition("//")[2].partition("/")[0].rpartition(":")[0]
    if here in _LOOPBACK or not _is_address(there):
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
