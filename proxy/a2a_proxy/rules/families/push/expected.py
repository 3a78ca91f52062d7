"""Rules about deliveries that nothing asked for, and missing deliveries (A2A 1.0 sections 3.1.10,
4.3.3)."""

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Binding, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding
from a2a_proxy.rules.examples.conversation import WEBHOOK_URL, deliver, rpc
from a2a_proxy.rules.examples.objects import send, snapshot, status, task
from a2a_proxy.rules.examples.script import MS
from a2a_proxy.rules.run.request_flags import CREATE_CONFIG
from a2a_proxy.rules.state.push_configs import DELETE_CONFIG
from a2a_proxy.rules.state.push_deliveries import (
    GRACE,
    Delivery,
    SentEvents,
    decode_delivery,
    has_open_request,
    is_acknowledged,
    is_delivered_elsewhere,
    is_served,
    matched_deliveries,
    note_delivery,
    owner_task,
    read_delivery,
    sent_events,
)
from a2a_proxy.rules.state.push_receivers import (
    active_receivers,
    has_dropped_receivers,
    is_same_receiver,
    learn_receivers,
    receiver_rule,
    receivers_of,
)
from a2a_proxy.rules.state.records import TaskRecord
from a2a_proxy.rules.state.state_sequence import INTERRUPTED, TERMINAL

DELIVERY_WAIT = 30
"""Seconds within which a terminal or interrupted state is delivered."""
_SECOND_NS = 1000 * MS
_MAX_WAIT = 600
"""Seconds for which a delivery waits at most for the answer that may explain it."""
_NEW, _WATCHED = "new:", "watched:"
"""Begin of the note of a configuration without a delivery yet, and with one. Both name the URL
before the task, whose id may be any text."""
_MAX_IDLE = 86_400 * _SECOND_NS
"""Time without an event after which a task is no longer watched, ns."""
_CONFIG = {"taskId": "t1", "url": WEBHOOK_URL}
_STARTED = rpc(
    "SendMessage", send(configuration={"returnImmediately": True}), snapshot("WORKING")
) + rpc(CREATE_CONFIG, _CONFIG, _CONFIG | {"id": "p1"}, id=2)
_DELETED = rpc(DELETE_CONFIG, {"taskId": "t1", "id": "p1"}, {}, id=3)
_FINISHED = rpc("GetTask", {"id": "t1"}, task("COMPLETED", second=1), id=4)


@receiver_rule(
    "A2A-PUSH-009",
    "Delivery that nothing asked for",
    Severity.WARNING,
    section="1.0 3.1.10, 4.3.3",
    due=lambda see: _check_asked_for(see),
    flagged=(_STARTED + _DELETED)
    .then(deliver(status("WORKING")), 11_000 * MS)
    .then(_FINISHED, 11_000 * MS),
    clean=_STARTED.then(deliver(status("WORKING")), 11_000 * MS).then(_FINISHED, 11_000 * MS),
)
def not_asked_for(context: RuleContext) -> Iterator[RuleFinding]:
    """An event is delivered to a URL that no push configuration of its task has, or 10 s after the
    configuration was deleted. Judged only if the beginning of the task was recorded, and not for
    copies of a delivery that was asked for.

    The receiver gets events that it did not ask for, and another client may read them. The agent
    must stop when the client deletes the configuration. A configuration that was set past the proxy
    is not known to it.
    """
    if context.binding is not Binding.WEBHOOK:
        learn_receivers(context)
        return
    note_delivery(context)
    delivery = read_delivery(context)
    if delivery.task_id and not _is_asked_for(context, delivery):
        context.schedule_due(GRACE / 1e9, delivery.encode())
    yield from ()


def _is_asked_for(context: RuleContext, delivery: Delivery) -> bool:
    """Whether a configuration of the task may have asked for the delivery."""
    return any(
        is_same_receiver(each, delivery.url)
        and (not each["until"] or delivery.started - each["until"] <= GRACE)
        for each in receivers_of(context.session, delivery.task_id)
    )


def _check_asked_for(context: RuleContext) -> Iterator[RuleFinding]:
    delivery = decode_delivery(context.due_note)
    session = context.session
    if _is_asked_for(context, delivery):
        return
    task = owner_task(session, delivery.agent, delivery.task_id)
    if has_open_request(session, delivery):
        waited = (context.at - delivery.started) / 1e9
        if waited < _MAX_WAIT:
            context.schedule_due(waited, context.due_note)
        return
    if task is None or not task.created_by or has_dropped_receivers(session, task.first):
        return
    deleted = [
        each
        for each in receivers_of(session, delivery.task_id)
        if each["until"] and each["url"] == delivery.url
    ]
    if deleted:
        seconds = (delivery.started - deleted[-1]["until"]) / 1e9
        told = f"the push configuration was deleted {seconds:.0f} s before the delivery"
    elif is_delivered_elsewhere(session, delivery.task_id, delivery.url, delivery.digest):
        return
    else:
        told = "no push configuration of the task has the URL of the delivery"
    yield RuleFinding(summary=told, seq=delivery.seq, track=delivery.record)


@receiver_rule(
    "A2A-PUSH-011",
    "State of a task is not delivered",
    Severity.WARNING,
    section="1.0 4.3.3",
    due=lambda see: _check_delivered(see),
    flagged=(_STARTED + deliver(status("WORKING")) + _FINISHED).then(_FINISHED, 31_000 * MS),
    clean=(
        _STARTED + deliver(status("WORKING")) + _FINISHED + deliver(status("COMPLETED", second=1))
    ).then(_FINISHED, 31_000 * MS),
)
def not_delivered(context: RuleContext) -> Iterator[RuleFinding]:
    """The task has ended, or waits for input or credentials, and 30 s later no delivery has shown
    that. Judged only if an earlier event of the task passed here to the URL of the push
    configuration, and the receiver acknowledged the last one. Or nothing at all was delivered for a
    task that has ended after its configuration was set, although the receiver at that URL has
    acknowledged events of another task of the agent here (low confidence).

    A client that relies on notifications waits for a task that has ended. The agent must deliver
    each event; check whether it still reaches the receiver through this proxy.
    """
    if context.binding is Binding.WEBHOOK:
        note_delivery(context)
    elif not context.has_flag(FrameFlag.ASKS):
        learn_receivers(context)
        task_id = context.frame.task_id
        for each in receivers_of(context.session, task_id):
            if each["exchange"] == context.record.id and each["is_active"]:
                context.schedule_due(DELIVERY_WAIT, f"{_NEW}{context.at} {each['url']} {task_id}")
    for match in matched_deliveries(context):
        delivery = match.delivery
        sent = sent_events(context.session, delivery.task_id, delivery.url)
        if sent is not None and not sent["is_watched"]:
            sent["is_watched"] = True
            note = f"{_WATCHED}{delivery.url} {delivery.task_id}"
            context.schedule_due(DELIVERY_WAIT, note)
    yield from ()


def _check_begun(context: RuleContext) -> Iterator[RuleFinding]:
    """Report a task that has ended without any delivery to a receiver that gets those of others."""
    since, url, task_id = context.due_note.removeprefix(_NEW).split(" ", 2)
    task = owner_task(context.session, context.record.agent, task_id)
    is_begun = sent_events(context.session, task_id, url) is not None
    if is_begun or task is None or not active_receivers(context.session, task_id, url):
        return
    at, state = task.states[-1] if task.states else (context.at, 0)
    if state not in TERMINAL and context.at - task.last <= _MAX_IDLE:
        context.schedule_due(max(DELIVERY_WAIT, (context.at - task.last) / 4e9), context.due_note)
    elif state not in TERMINAL or at <= int(since):
        return
    elif (wait := (at - context.at) / 1e9 + DELIVERY_WAIT) > 0:
        context.schedule_due(wait, context.due_note)
    elif is_served(context.session, task.agent, url):
        yield RuleFinding(
            summary=f"task {task_id} has been {TaskState(state).label} for "
            f"{(context.at - at) / 1e9:.0f} s, and nothing was delivered for it; the receiver has "
            "got events of other tasks here",
            is_sure=False,
        )


def _check_delivered(context: RuleContext) -> Iterator[RuleFinding]:
    if context.due_note.startswith(_NEW):
        yield from _check_begun(context)
        return
    url, _, task_id = context.due_note.removeprefix(_WATCHED).partition(" ")
    sent = sent_events(context.session, task_id, url)
    if sent is None:
        return
    task = owner_task(context.session, sent["agent"], task_id)
    wait = 0.0
    if task is not None and task.states and active_receivers(context.session, task_id, url):
        wait = _seconds_to_wait(context, task, sent)
    if wait > 0:
        context.schedule_due(wait, context.due_note)
        return
    sent["is_watched"] = False
    if wait < 0 and task is not None and sent["last"] is not None and is_acknowledged(sent["last"]):
        at, state = task.states[-1]
        seconds = f"{(context.at - at) / 1e9:.0f} s"
        told = (
            f"the task has been {TaskState(state).label} for {seconds}, and no delivery has shown "
            f"it"
        )
        yield RuleFinding(summary=told)


def _seconds_to_wait(context: RuleContext, task: TaskRecord, sent: SentEvents) -> float:
    """Return after how many seconds the task is examined again; 0 if that is not necessary,
    negative if the delivery of its state is overdue.
    """
    at, state = task.states[-1]
    if state in TERMINAL:
        delivered = any(int(each) in TERMINAL for each in sent["states"])
    elif state in INTERRUPTED:
        delivered = sent["states"].get(str(state), 0) > at - DELIVERY_WAIT * _SECOND_NS
    else:
        idle = context.at - task.last
        return 0 if idle > _MAX_IDLE else max(DELIVERY_WAIT, idle / 4e9)
    if delivered:
        return 0
    return (at + DELIVERY_WAIT * _SECOND_NS - context.at) / 1e9 or -1
