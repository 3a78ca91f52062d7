"""A conversation that goes from one agent to another, also where another file has the other."""

from __future__ import annotations

import msgspec

from a2a_proxy.api.exchange import Exchange


class Handover(msgspec.Struct, frozen=True, kw_only=True):
    """One hand-off. See `model.segment.Handoff`, of which this is the view over all files."""

    kind: str
    """`transfer` (within one task), `delegation` (a call by the agent while its task is active), or `next` (the client
    goes on with the context at another agent)."""
    evidence: str
    """`author`, `transfer_to_agent`, `traceparent`, `context`, `reference` or `content`."""
    agent: str
    """Who hands off."""
    to_agent: str
    """Who takes over."""
    task_id: str
    to_task: str
    context_id: str
    at: int
    """When the frame that shows it was complete, ns since the Unix epoch."""
    latency: int | None
    """ns until the new agent's first output; None where none came."""
    exchange: Exchange | None
    """The call that shows it."""
    to_exchange: Exchange | None
    """The call in which the new agent answers."""
