"""The endings of a session."""

from collections.abc import Iterable

import msgspec

from a2a_proxy.model.values import Binding, Exchange
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.endings.call_facts import ACTIVE, SessionCalls, is_waiting
from a2a_proxy.rules.endings.ending import CAUSES, Cause, Ending

_RETRIED = frozenset(
    {"no-connection", "tls-failed", "no-answer", "answered-between", "agent-error", "client-left"}
    | {"client-timeout", "no-credentials", "credentials-refused", "version-refused"}
)
"""Causes that are no failure if the same call succeeded later."""


def find_endings(session: SessionCalls, numbers: Iterable[int] | None = None) -> dict[int, Ending]:
    """Return the endings of calls, and of the tasks that they left, by exchange; of all calls or
    of `numbers`."""
    judged = [
        number
        for number in (session.exchanges if numbers is None else numbers)
        if number in session.exchanges and _may_have_ended_badly(session.exchanges[number], session)
    ]
    if not judged:
        return {}  # as for most calls: the rules need not be loaded
    all_rules()
    causes = sorted(CAUSES.values(), key=lambda each: each.rule)
    found = {number: _judge_call(session, number, causes) for number in judged}
    return {number: ending for number, ending in found.items() if ending is not None}


def _may_have_ended_badly(exchange: Exchange, session: SessionCalls) -> bool:
    """Whether the columns of the exchange leave that possible: most calls end here."""
    if exchange.error or exchange.ours or exchange.how not in ("complete", ""):
        return True
    if not exchange.events:
        return exchange.binding is not Binding.WEBHOOK
    state = exchange.states[-1] if exchange.states else ""
    if exchange.binding is Binding.WEBHOOK or not (state in ACTIVE or is_waiting(state)):
        return False
    if exchange.streaming or is_waiting(state):
        return True
    calls = session.calls_of_task(exchange.agent, exchange.task_id)
    return not calls or calls[-1].id == exchange.id


def _judge_call(session: SessionCalls, number: int, causes: list[Cause]) -> Ending | None:
    call = session.call(number)
    exchange = call.exchange
    for cause in causes:
        ending = cause.judge(call)
        if ending is None:
            continue
        severity = ending.severity or cause.severity
        if cause.severity is None or (cause.name in _RETRIED and session.succeeded_later(call)):
            severity = None
        return msgspec.structs.replace(
            ending,
            cause=cause.name,
            rule=cause.rule,
            severity=severity,
            actor=ending.actor or cause.actor,
            at=call.ended,
            connection=exchange.connection,
            exchange=number,
            task_id=exchange.task_id,
            received=call.describe_received(),
            ended_by=call.describe_end(),
            agent_did=call.describe_agent(),
            evidence=ending.evidence or (call.place(call.last),),
        )
    return None
