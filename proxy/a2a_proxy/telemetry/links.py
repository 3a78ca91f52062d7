"""Links from a call to another call: the task's first one, or the one in which an agent handed
over."""

from a2a_proxy.model.values import Exchange, Handoff
from a2a_proxy.protocol.operations import SENDING_OPERATIONS
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import make_key
from a2a_proxy.telemetry.values import SpanContextIds, SpanLink, cut_text

_MAX_EARLIER_CALLS = 64
"""Maximum number of calls before the new one that are searched for the agent's active call."""


def handoff_source(recording: Recording, session: int, handoff: Handoff) -> int:
    """Return the exchange of the agent that hands off: that of the evidence, or the first of its
    task if the evidence is in the new call itself; 0 if unknown."""
    if handoff.exchange != handoff.to_exchange:
        return handoff.exchange
    if not handoff.task_id:
        return _active_exchange(recording, session, handoff)
    rows = recording.read_task(handoff.task_id, handoff.agent, session=session)
    first = rows[0].task.exchanges[0] if rows and rows[0].task.exchanges else 0
    return first if first != handoff.to_exchange else 0


def _active_exchange(recording: Recording, session: int, handoff: Handoff) -> int:
    """Return the exchange that the agent was working on when it handed over, before its task was
    known: the only open call of this agent and context at that time; 0 if there is none or more
    than one."""
    first = max(handoff.to_exchange - _MAX_EARLIER_CALLS, 1)
    limit = handoff.to_exchange - first
    rows = recording.read_exchanges(
        session, after=make_key(session, first) - 1, limit=limit, headers=False
    )
    before = (row.exchange for row in rows if row.exchange.id < handoff.to_exchange)
    found = [
        each.id for each in before if each.agent == handoff.agent and _is_unanswered(each, handoff)
    ]
    return found[0] if len(found) == 1 else 0


def _is_unanswered(exchange: Exchange, handoff: Handoff) -> bool:
    """Whether the exchange had sent a message and was not completely answered at the time of the
    hand-off."""
    open_then = exchange.started <= handoff.at and (
        not exchange.closed or exchange.closed >= handoff.at
    )
    contexts = {exchange.context_id, handoff.context_id} - {""}
    return open_then and exchange.operation in SENDING_OPERATIONS and len(contexts) <= 1


def task_link(context: SpanContextIds, task_id: str) -> SpanLink:
    """Return a link to the first call of the task."""
    return SpanLink(context, {"a2a_proxy.link": "task", "a2a.task.id": cut_text(task_id)})


def handoff_link(context: SpanContextIds, handoff: Handoff) -> SpanLink:
    """Return a link to the call of the agent that handed off."""
    facts = {"kind": handoff.kind, "evidence": handoff.evidence, "agent": handoff.agent}
    return SpanLink(
        context,
        {
            "a2a_proxy.link": "handoff",
            **{f"a2a_proxy.handoff.{name}": cut_text(value) for name, value in facts.items()},
        },
    )
