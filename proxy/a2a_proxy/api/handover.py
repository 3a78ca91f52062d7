"""A conversation that moves from one agent to another, possibly recorded in another file."""

import msgspec

from a2a_proxy.api.rows import Exchange


class Handover(msgspec.Struct, frozen=True, kw_only=True):
    """One hand-off: the view of `model.values.Handoff` over all files."""

    kind: str
    """`transfer` (within one task), `delegation` (a call by the agent while its task is active), or
    `next` (the client continues the context at another agent)."""
    evidence: str
    """`author`, `transfer_to_agent`, `traceparent`, `context`, `reference`, `process` or
    `content`."""
    agent: str
    """The agent that hands off."""
    to_agent: str
    """The agent that takes over."""
    task_id: str
    to_task: str
    context_id: str
    at: int
    """Time the frame that shows the hand-off was complete, ns since the Unix epoch."""
    latency: int | None
    """ns until the new agent's first output; None if there was none."""
    exchange: Exchange | None
    """The call that shows the hand-off."""
    to_exchange: Exchange | None
    """The call in which the new agent answers."""
