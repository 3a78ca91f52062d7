"""What the client says on a live stream after its first message (manual/protocol.md "Live rules")."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import Frame
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import GRPC, Dialects, EvidenceScope, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import ClientMessage, grpc
from a2a_proxy.rules.examples.objects import send, snapshot, status
from a2a_proxy.rules.facts.request_summary import summarise_request
from a2a_proxy.rules.families.live.words import LIVE_OPERATIONS, RECONNECT_MESSAGE, is_later_request, question_update
from a2a_proxy.rules.state.records import ACTIVE

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
    "Client changes task or context on a live stream",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    hook_points=HookPoint.REQUEST,
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.DRAFT_1_1,
    bindings=GRPC,
    operations=LIVE_OPERATIONS,
    draft=True,
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
    """A further message on a live stream names another task or context than the stream's: that which the agent has told
    by then, else that of the first message. Empty ids are right, the stream's are meant.

    A live stream is about one task. The agent refuses the message, or takes it for the wrong conversation.
    """
    record, frame, request_snapshot = context.record, context.frame, context.record.request_snapshot
    if request_snapshot is None or not is_later_request(context):
        return
    for name, said, here in (
        ("taskId", frame.task_id, record.task_id or request_snapshot.task_id),
        ("contextId", frame.context_id, record.context_id or request_snapshot.context_id),
    ):
        if said and here and said != here:
            told = f"a message with {name} {said} on the live stream of {here}: one stream is about one task"
            yield RuleFinding(summary=told, path=f"message.{name}", value=said)


@rule(
    "A2A-LIVE-009",
    "Configuration changed in mid-stream",
    Severity.WARNING,
    section="1.1 draft 3.1.3",
    hook_points=HookPoint.REQUEST,
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.DRAFT_1_1,
    bindings=GRPC,
    operations=LIVE_OPERATIONS,
    draft=True,
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
    """A further message on a live stream has a `configuration` that is not the one of the first message. The draft says
    "identical or left out" in one place and lets single fields be changed in another, so this is less sure.

    Agents take the configuration from the first message: what the client wants changed stays as it was.
    """
    first = context.request
    if first is None or not is_later_request(context) or context.frame.redacted or first.redacted:
        return
    now = _send_configuration(context.frame)
    if now and now != (before := _send_configuration(first)):
        changed = sorted(name for name in {*now, *before} if now.get(name) != before.get(name))
        told = f"`configuration` differs from that of the first message in {', '.join(changed)}"
        yield RuleFinding(summary=told, path="configuration", value=str(now), is_sure=False)


def _send_configuration(frame: Frame) -> dict[str, Any]:
    value = decode_payload(frame.payload, frame.schema) if frame.payload else None
    found = value.get("configuration") if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


@rule(
    "A2A-LIVE-018",
    "Client spoke while the agent was working",
    Severity.INFO,
    section="1.1 draft 3.2.7",
    hook_points=HookPoint.REQUEST,
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.DRAFT_1_1,
    bindings=GRPC,
    operations=LIVE_OPERATIONS,
    draft=True,
    flagged=grpc(
        "SendLiveMessage",
        send(),
        snapshot(),
        status("WORKING"),
        ClientMessage(send("make it short", id="m2")),
        status("COMPLETED", second=1),
        half_close=False,
    ),
    clean=_ANSWERED_STREAM,
)
def barged_in(context: RuleContext) -> Iterator[RuleFinding]:
    """A further message on a live stream comes while the task is SUBMITTED or WORKING, as far as the stream has told.

    That is what live streams are for, but agents that work turn by turn may queue such a message, or ignore it.
    """
    record = context.record
    if is_later_request(context) and record.state in ACTIVE:
        yield RuleFinding(summary=f"a message while task {record.task_id} is {TaskState(record.state).label}")


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
    draft=True,
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
    """A further message on a live stream names the task and has no parts. Only the first message may, to reconnect; one
    that does not name the task is A2A-SCH-002.

    The agent waits for an answer and gets one that says nothing.
    """
    frame = context.frame
    if is_later_request(context) and frame.task_id and frame.message_id and not summarise_request(frame).parts:
        told = f"message {frame.message_id} has no parts, and it is not the first of its stream"
        yield RuleFinding(summary=told, path="message.parts")
