"""Rules about the body, order, age and source of webhook deliveries (A2A 1.0 sections 3.5.2, 4.3.3,
13.2)."""

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Actor, EventKind, Severity
from a2a_proxy.protocol.session_facts import address_of
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    ANY_EVENT,
    WEBHOOK,
    Dialects,
    EvidenceScope,
    FrameFlag,
    HookPoint,
)
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import WEBHOOK_URL, deliver, rpc
from a2a_proxy.rules.examples.objects import status, task
from a2a_proxy.rules.examples.script import MS
from a2a_proxy.rules.facts.compared_values import parse_timestamp
from a2a_proxy.rules.facts.hosts import HostReach, host_of, host_reach, is_address
from a2a_proxy.rules.run.request_flags import CREATE_CONFIG
from a2a_proxy.rules.state.push_deliveries import (
    NewestEvent,
    NotedDelivery,
    is_acknowledged,
    is_older,
    matched_deliveries,
    note_delivery,
    note_outcome,
    owner_task,
)
from a2a_proxy.rules.state.push_receivers import receiver_rule
from a2a_proxy.rules.state.state_sequence import TERMINAL

MAX_AGE = 600_000 * MS
"""Age from which a delivered event is old, ns."""
_SECOND_NS = 1000 * MS
_MAX_SKEW = 60 * _SECOND_NS
"""Difference of the clocks up to which the agent's timestamps are compared with the proxy's time,
ns."""
_MAX_SOURCES = 64
"""Maximum number of remembered addresses of one agent."""
_SOURCES_NOTE = "push sources"
_ATTEMPT_HOOKS = (HookPoint.ANSWER, HookPoint.CLOSED)
_EVENT_FLAGS = ANY_EVENT | FrameFlag.OTHER
_A2A_TYPE, _JSON_TYPE = "application/a2a+json", "application/json"
_CONFIG = {"taskId": "t1", "url": WEBHOOK_URL, "token": "t0ken-of-hook"}
_CREATED_CONFIG = rpc(CREATE_CONFIG, _CONFIG, {"id": "p1", "taskId": "t1", "url": WEBHOOK_URL})
_TOKEN: dict[str, str | None] = {"X-A2A-Notification-Token": "t0ken-of-hook"}


@rule(
    "A2A-PUSH-012",
    "Events are delivered out of order",
    Severity.WARNING,
    actor=Actor.AGENT,
    section="1.0 3.5.2",
    scope=EvidenceScope.LIVE,
    bindings=WEBHOOK,
    hook_points=_ATTEMPT_HOOKS,
    trigger_flags=_EVENT_FLAGS,
    flagged=deliver(status("COMPLETED", second=1)) + deliver(status("WORKING")),
    clean=deliver(status("WORKING")) + deliver(status("COMPLETED", second=1)),
)
def out_of_order(context: RuleContext) -> Iterator[RuleFinding]:
    """An event is delivered after a newer event of the task to the same URL: its generation is
    lower, or its state is not terminal after a terminal one, or its timestamp is more than a second
    earlier, or without timestamps it is SUBMITTED after WORKING. Not judged if both deliveries
    began within a second and the first was not answered yet. Reported as information if it repeats
    a failed attempt.

    The receiver takes the older event for the latest, and shows a finished task as running. The
    agent must deliver the events of a task in their order, each after the answer to the one before
    it.
    """
    if context.frame_or_none is None:
        note_outcome(context)
        return
    noted = note_delivery(context)
    delivery, newest = noted.delivery, noted.newest
    if newest is None or not is_older(delivery, newest) or any(map(is_acknowledged, noted.earlier)):
        return
    if (
        not 0 < newest["closed"] <= delivery.started
        and delivery.started - newest["started"] < _SECOND_NS
    ):
        return
    task = owner_task(context.session, delivery.agent, delivery.task_id)
    if newest["state"] in TERMINAL and task is not None and task.state not in TERMINAL:
        return  # the agent has continued the task after its end
    yield RuleFinding(
        summary=f"{_describe_order(noted, newest)}, delivered before in #{newest['exchange']}",
        severity=Severity.INFO if noted.earlier else None,
    )


def _describe_order(noted: NotedDelivery, newest: NewestEvent) -> str:
    delivery = noted.delivery
    if delivery.generation > 0 and newest["generation"] > 0:
        return f"generation {delivery.generation} after {newest['generation']}"
    name = TaskState(delivery.state).label if delivery.state else "an artifact"
    if newest["state"] in TERMINAL or delivery.stamp * newest["stamp"] <= 0:
        return f"{name} after {TaskState(newest['state']).label}"
    return (
        f"{name}, {(abs(newest['stamp']) - abs(delivery.stamp)) / 1e9:.0f} s older than the event"
    )


@rule(
    "A2A-PUSH-019",
    "Delivery is old or from a new source",
    Severity.WARNING,
    actor=Actor.EITHER,
    section="1.0 4.3.3, 13.2",
    scope=EvidenceScope.LIVE,
    bindings=WEBHOOK,
    hook_points=_ATTEMPT_HOOKS,
    trigger_flags=_EVENT_FLAGS,
    also_broken=("A2A-PUSH-013",),
    flagged=deliver(status("WORKING")).then(deliver(status("WORKING")), 11 * 60 * 1000 * MS),
    clean=deliver(status("WORKING")).then(deliver(status("COMPLETED", second=59)), 59_000 * MS),
)
def old_or_foreign(context: RuleContext) -> Iterator[RuleFinding]:
    """An event is delivered again more than 10 minutes after the receiver acknowledged it, or a
    status update is first delivered more than 10 minutes after its timestamp, and the agent's clock
    is right. Reported as information if a delivery comes from an address that this agent has not
    used before.

    An attacker who has recorded a notification may send it again. The receiver should refuse old
    notifications and check credentials, not addresses; the agent's operator should check which
    process sent it.
    """
    if context.frame_or_none is None:
        note_outcome(context)
        return
    noted = note_delivery(context)
    acknowledged = [each for each in noted.earlier if is_acknowledged(each)]
    if acknowledged and noted.delivery.started - acknowledged[-1]["closed"] > MAX_AGE:
        age = (noted.delivery.started - acknowledged[-1]["closed"]) / 60e9
        yield RuleFinding(
            summary=f"the event is delivered again {age:.0f} min after it was acknowledged in "
            f"#{acknowledged[-1]['exchange']}"
        )
    elif not noted.earlier and (age_ns := _proven_age(context, noted)) > MAX_AGE:
        yield RuleFinding(
            summary=f"the status is {age_ns / 60e9:.0f} min old when it is first delivered"
        )
    if source := _new_source(context, noted):
        yield RuleFinding(
            summary=f"the delivery comes from {source}, an address that this "
            f"agent has not used before",
            severity=Severity.INFO,
        )


def _proven_age(context: RuleContext, noted: NotedDelivery) -> int:
    """Return the age of a status update in ns; 0 if it is not known, or if the agent's clock may be
    wrong."""
    delivery = noted.delivery
    task = owner_task(context.session, delivery.agent, delivery.task_id)
    if delivery.event != EventKind.STATUS or delivery.stamp <= 0 or task is None or not task.states:
        return 0
    latest = parse_timestamp(task.stamp)
    if latest <= delivery.stamp or abs(task.states[-1][0] - latest) > _MAX_SKEW:
        return 0
    return delivery.started - delivery.stamp


def _new_source(context: RuleContext, noted: NotedDelivery) -> str:
    """Return the address of the sender if it is new for this agent; empty if it is known or the
    first one."""
    delivery = noted.delivery
    task = owner_task(context.session, delivery.agent, delivery.task_id)
    owner = task.agent if task is not None else ""
    if (
        not owner
        or not is_address(delivery.source)
        or address_of(owner) == address_of(context.record.upstream)
    ):
        return ""
    agents: dict[str, list[str]] = context.session.notes.setdefault(_SOURCES_NOTE, {})
    known = agents.setdefault(owner, [])
    if delivery.source in known or len(known) >= _MAX_SOURCES:
        return ""
    known.append(delivery.source)
    host = host_of(owner)
    if len(known) > 1:
        return delivery.source
    reach = host_reach(host)
    if reach is HostReach.LOOPBACK:
        return "" if host_reach(delivery.source) is HostReach.LOOPBACK else delivery.source
    return (
        delivery.source
        if is_address(host) and host.strip("[]") != delivery.source.strip("[]")
        else ""
    )


@receiver_rule(
    "A2A-PUSH-007",
    "Delivery body is not a StreamResponse",
    Severity.ERROR,
    section="1.0 4.3.3",
    flagged=_CREATED_CONFIG + deliver(task("WORKING"), headers=_TOKEN),
    clean=_CREATED_CONFIG + deliver(status("WORKING"), headers=_TOKEN),
)
def other_body(context: RuleContext) -> Iterator[RuleFinding]:
    """The body of a delivery does not have exactly one of the members `task`, `message`,
    `statusUpdate` and `artifactUpdate`, although its push configuration was set in 1.0. In 0.2 and
    0.3 the body is not defined.

    Receivers read the body like an event of a stream and find nothing in it. The agent must send a
    StreamResponse; a bare Task is the form of older SDKs.
    """
    for match in matched_deliveries(context):
        delivery = match.delivery
        if (
            len(delivery.members) == 1
            or not delivery.is_whole
            or not all(each["is_v1"] for each in match.receivers)
        ):
            continue
        if delivery.members:
            told = (
                f"the body has {' and '.join(f'`{each}`' for each in delivery.members)}, it must "
                f"have one of them"
            )
        elif delivery.bare:
            told = (
                f"the body is {delivery.bare} without a wrapper, as in 0.3; the push configuration "
                f"was set in 1.0"
            )
        else:
            told = "the body has no `task`, `message`, `statusUpdate` or `artifactUpdate`"
        yield RuleFinding(
            summary=told,
            seq=None if match.is_current else delivery.seq,
            track=None if match.is_current else delivery.record,
        )


@rule(
    "A2A-PUSH-008",
    "Delivery has another content type",
    Severity.WARNING,
    actor=Actor.AGENT,
    section="1.0 4.3.3",
    dialects=Dialects.V1,
    bindings=WEBHOOK,
    flagged=deliver(status("WORKING"), media="text/plain"),
    clean=deliver(status("WORKING")),
)
def other_content_type(context: RuleContext) -> Iterator[RuleFinding]:
    """The content type of a delivery in the 1.0 form is not `application/a2a+json`. Reported as
    information for `application/json`, which several SDKs send.

    Web frameworks choose the parser by the content type: the receiver gets no JSON, or answers 415.
    The agent must send `application/a2a+json`; the receiver should accept `application/json` too.
    """
    found = context.request_header("content-type").partition(";")[0].strip().lower()
    if found == _A2A_TYPE:
        return
    told = (
        f"the content type of the delivery is {found[:60]}"
        if found
        else "the delivery has no content type"
    )
    yield RuleFinding(
        summary=f"{told}, it should be {_A2A_TYPE}",
        value=found,
        expected=_A2A_TYPE,
        severity=Severity.INFO if found == _JSON_TYPE else None,
    )
