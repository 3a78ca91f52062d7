"""Rules about the attempts to deliver one event to a webhook (A2A 1.0 section 4.3.3)."""

from collections.abc import Iterator

from a2a_proxy.model.values import Actor, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    ANY_EVENT,
    WEBHOOK,
    EvidenceScope,
    FrameFlag,
    HookPoint,
)
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import deliver
from a2a_proxy.rules.examples.objects import status
from a2a_proxy.rules.examples.script import MS
from a2a_proxy.rules.state.push_deliveries import (
    is_acknowledged,
    is_delivered_elsewhere,
    note_delivery,
    note_outcome,
    sent_events,
)
from a2a_proxy.rules.state.push_receivers import active_receivers

RETRY_WAIT = 60
"""Seconds after a failed attempt within which another one is expected, if earlier pauses were not
longer."""
_PAUSE_GROWTH = 4
"""A pause up to this many times as long as the previous one is expected."""
_ATTEMPT_HOOKS = (HookPoint.ANSWER, HookPoint.CLOSED)
_EVENT_FLAGS = ANY_EVENT | FrameFlag.OTHER
_LEAVING_CLIENTS = frozenset({"client cancel", "client gone"})


@rule(
    "A2A-PUSH-010",
    "Receiver does not acknowledge a delivery",
    Severity.ERROR,
    actor=Actor.CLIENT,
    section="1.0 4.3.3",
    scope=EvidenceScope.LIVE,
    bindings=WEBHOOK,
    hook_points=_ATTEMPT_HOOKS,
    trigger_flags=_EVENT_FLAGS,
    due=lambda see: _check_last_attempt(see),
    settled_at_end=True,
    flagged=deliver(status("WORKING"), 500),
    clean=deliver(status("WORKING"), 500).then(deliver(status("WORKING"), 204), 1000 * MS),
)
def unacknowledged(context: RuleContext) -> Iterator[RuleFinding]:
    """The last attempt to deliver an event is answered with another status than 2xx, or not at all.
    An attempt is the last if none follows within 60 s, or within four times the previous pause.
    Reported as a warning if the agent did not wait for the answer. A redirection is not judged if
    the agent followed it.

    The event is lost to the receiver, unless the agent tries again later. The receiver must answer
    2xx once it has the event, and should process it afterwards.
    """
    if context.frame_or_none is not None:
        note_delivery(context)
        return
    closed = note_outcome(context)
    if closed is None or is_acknowledged(closed.attempt):
        return
    attempts = closed.sent["attempts"][closed.digest]
    pause = attempts[-1]["started"] - attempts[-2]["started"] if len(attempts) > 1 else 0
    wait = max(RETRY_WAIT, _PAUSE_GROWTH * pause / 1e9)
    context.schedule_due(
        wait, f"{closed.digest} {_describe_end(context, len(attempts))}\n{closed.key}"
    )
    yield from ()


def _describe_end(context: RuleContext, count: int) -> str:
    """Return the end of the attempt in words, with the number of attempts; it begins with `agent`
    if the agent left."""
    exchange = context.exchange
    times = f" to the last of {count} attempts" if count > 1 else ""
    if exchange.status:
        return f"the receiver answers {exchange.status}{times}"
    if exchange.how in _LEAVING_CLIENTS:
        waited = (exchange.closed - exchange.started) / 1e9
        return f"the agent ends the delivery after {waited:.1f} s without an answer"
    return f"the receiver closes the connection without an answer{times}"


def _check_last_attempt(context: RuleContext) -> Iterator[RuleFinding]:
    note, _, key = context.due_note.partition("\n")
    digest, _, told = note.partition(" ")
    task_id, _, url = key.partition(" ")
    sent = sent_events(context.session, task_id, url)
    attempts = sent["attempts"].get(digest, []) if sent is not None else []
    if not attempts or attempts[-1]["exchange"] != context.record.id:
        return
    if 300 <= attempts[-1]["status"] < 400 and is_delivered_elsewhere(
        context.session, task_id, url, digest
    ):
        return
    yield RuleFinding(
        summary=told, severity=Severity.WARNING if told.startswith("the agent") else None
    )


@rule(
    "A2A-PUSH-013",
    "Event is delivered twice",
    Severity.INFO,
    section="1.0 4.3.3",
    scope=EvidenceScope.LIVE,
    bindings=WEBHOOK,
    hook_points=_ATTEMPT_HOOKS,
    trigger_flags=_EVENT_FLAGS,
    flagged=deliver(status("WORKING")) + deliver(status("WORKING")),
    clean=deliver(status("WORKING"), 500).then(deliver(status("WORKING")), 1000 * MS),
)
def delivered_again(context: RuleContext) -> Iterator[RuleFinding]:
    """A body is delivered to the same URL again although the receiver has acknowledged it. If the
    task has several push configurations with this URL, the finding says so.

    This is allowed, and the receiver must recognise an event that it has processed. With several
    configurations the client should delete all but one; otherwise check why the agent sends the
    event again.
    """
    if context.frame_or_none is None:
        note_outcome(context)
        return
    noted = note_delivery(context)
    delivery = noted.delivery
    acknowledged = [
        each
        for each in noted.earlier
        if is_acknowledged(each) and each["closed"] <= delivery.started
    ]
    if not acknowledged:
        return
    summary = f"the receiver has acknowledged this body before, in #{acknowledged[-1]['exchange']}"
    receivers = active_receivers(context.session, delivery.task_id, delivery.url)
    if len(receivers) > 1:
        yield RuleFinding(
            summary=f"{summary}: the task has {len(receivers)} push configurations with this URL",
            actor=Actor.CLIENT,
        )
    else:
        yield RuleFinding(summary=summary, actor=Actor.AGENT)
