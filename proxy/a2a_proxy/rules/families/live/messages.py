"""Rules about further client messages on a live stream (manual/protocol.md "Live rules")."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.values import Frame, Severity
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import GRPC, Dialects, EvidenceScope, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import ClientMessage, grpc
from a2a_proxy.rules.examples.objects import send, snapshot, status
from a2a_proxy.rules.facts.request_summary import summarise_request
from a2a_proxy.rules.families.live.words import (
    LIVE_OPERATIONS,
    RECONNECT_MESSAGE,
    is_later_request,
    question_update,
)

_EVENTS_TO_QUESTION = (snapshot(), status("WORKING"), question_update())
_REMAINING_EVENTS = (status("WORKING", second=2), status("COMPLETED", second=3))
_ANSWERED_STREAM = grpc(
    "SendLiveMessage",
    send(),
    *_EVENTS_TO_QUESTION,
    ClientMessage(send("this one", id="m2")),
    *_REMAINING_EVENTS,
    half_close=False,
)
_HISTORY_CONFIGURATION = {"historyLength": 5}


@rule(
    "A2A-LIVE-008",
    "Client changes the task or context on a live stream",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    hook_points=HookPoint.REQUEST,
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.DRAFT_1_1,
    bindings=GRPC,
    operations=LIVE_OPERATIONS,
    flagged=grpc(
        "SendLiveMessage",
        send(),
        *_EVENTS_TO_QUESTION,
        ClientMessage(send("this one", id="m2", taskId="t1", contextId="c2")),
        *_REMAINING_EVENTS,
        half_close=False,
    ),
    clean=_ANSWERED_STREAM,
)
def switched(context: RuleContext) -> Iterator[RuleFinding]:
    """A further message on a live stream names another task or context than the stream's: the ids
    that the agent has sent on it, or else the ids of the first message. Empty ids are correct and
    mean the stream's.

    A live stream is about one task: the agent refuses the message, or adds it to the wrong
    conversation. The client must open another stream for another task.
    """
    record, frame, request_snapshot = context.record, context.frame, context.record.request_snapshot
    if request_snapshot is None or not is_later_request(context):
        return
    for name, said, here in (
        ("taskId", frame.task_id, record.task_id or request_snapshot.task_id),
        ("contextId", frame.context_id, record.context_id or request_snapshot.context_id),
    ):
        if said and here and said != here:
            told = f"the client sends a message with {name} {said} on the live stream of {here}"
            yield RuleFinding(summary=told, path=f"message.{name}", value=said)


@rule(
    "A2A-LIVE-009",
    "Client changes the configuration on a live stream",
    Severity.WARNING,
    section="1.1 draft 3.1.3",
    hook_points=HookPoint.REQUEST,
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.DRAFT_1_1,
    bindings=GRPC,
    operations=LIVE_OPERATIONS,
    flagged=grpc(
        "SendLiveMessage",
        send(configuration=_HISTORY_CONFIGURATION),
        *_EVENTS_TO_QUESTION,
        ClientMessage(send("this one", id="m2", configuration={"historyLength": 2})),
        *_REMAINING_EVENTS,
        half_close=False,
    ),
    clean=grpc(
        "SendLiveMessage",
        send(configuration=_HISTORY_CONFIGURATION),
        *_EVENTS_TO_QUESTION,
        ClientMessage(send("this one", id="m2", configuration=_HISTORY_CONFIGURATION)),
        *_REMAINING_EVENTS,
        half_close=False,
    ),
)
def reconfigured(context: RuleContext) -> Iterator[RuleFinding]:
    """A further message on a live stream has a `configuration` that differs from the first
    message's. Low confidence: the draft requires "identical or left out" in one place and allows
    changes of single fields in another.

    Agents use the configuration of the first message and ignore the change. The client should open
    a new stream to change it.
    """
    first = context.request
    if first is None or not is_later_request(context) or context.frame.redacted or first.redacted:
        return
    now = _send_configuration(context.frame)
    if now and now != (before := _send_configuration(first)):
        changed = sorted(name for name in {*now, *before} if now.get(name) != before.get(name))
        told = f"the client changes the `configuration` of its first message: {', '.join(changed)}"
        yield RuleFinding(summary=told, path="configuration", value=str(now), is_sure=False)


def _send_configuration(frame: Frame) -> dict[str, Any]:
    value = decode_payload(frame.payload, frame.schema) if frame.payload else None
    found = value.get("configuration") if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


@rule(
    "A2A-LIVE-019",
    "Empty message on a live stream",
    Severity.ERROR,
    section="1.1 draft 3.2.7, 5.7",
    hook_points=HookPoint.REQUEST,
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.DRAFT_1_1,
    bindings=GRPC,
    operations=LIVE_OPERATIONS,
    flagged=grpc(
        "SendLiveMessage",
        send(),
        *_EVENTS_TO_QUESTION,
        ClientMessage(RECONNECT_MESSAGE),
        *_REMAINING_EVENTS,
        half_close=False,
    ),
    clean=_ANSWERED_STREAM,
)
def empty(context: RuleContext) -> Iterator[RuleFinding]:
    """A further message on a live stream names the task but has no parts. Only the first message
    may be empty, to reconnect. An empty message that does not name the task is A2A-SCH-002.

    The agent waits for an answer and receives one without content. The client must send at least
    one part.
    """
    frame = context.frame
    if (
        is_later_request(context)
        and frame.task_id
        and frame.message_id
        and not summarise_request(frame).parts
    ):
        told = (
            f"message {frame.message_id} has no parts, only the first one of a live stream may be "
            f"empty"
        )
        yield RuleFinding(summary=told, path="message.parts")
