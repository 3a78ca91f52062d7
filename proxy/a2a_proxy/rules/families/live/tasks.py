"""Rules about one task on a live stream and several live streams of one task (manual/protocol.md
"Live rules")."""

from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.values import Actor, Binding, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    RPC,
    Dialects,
    EvidenceScope,
    FrameFlag,
    HookPoint,
)
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import ClientMessage, EventPause, HalfClosed, grpc
from a2a_proxy.rules.examples.objects import chunk, message, send, snapshot, status, task
from a2a_proxy.rules.examples.script import MS, Script, run_together
from a2a_proxy.rules.families.id.events import foreign
from a2a_proxy.rules.families.live.words import (
    LIVE_OPERATIONS,
    RECONNECT_MESSAGE,
    live_rule,
    question_update,
)
from a2a_proxy.rules.families.stream.together import check_delivered, watch_other_streams
from a2a_proxy.rules.families.stream.words import event_and_state

_FIRST_EVENTS = (snapshot(), status("WORKING"))
_COMPLETED_EVENT = status("COMPLETED", second=9)
_SECOND_TASK = {"task": task("SUBMITTED", id="t2")}
_ANSWERED_STREAM = (
    question_update(),
    ClientMessage(send("this one", id="m2")),
    status("WORKING", second=2),
)
_EVENT_A, _EVENT_B, _EVENT_C = chunk("a"), chunk("b", id="a2"), chunk("c", id="a3")


def _two_streams(second: tuple[Any, ...]) -> Script:
    """Return a live stream, and another one that reconnects to its task a second later."""
    events = (_EVENT_A, _EVENT_B, _EVENT_C, EventPause(7), _COMPLETED_EVENT)
    one = grpc("SendLiveMessage", send(), *_FIRST_EVENTS, EventPause(1), *events, half_close=False)
    other = (snapshot("WORKING"), EventPause(1), *second, EventPause(7), _COMPLETED_EVENT)
    two = grpc("SendLiveMessage", RECONNECT_MESSAGE, *other, half_close=False)
    return run_together(one, two, after=45 * MS)


@live_rule(
    "A2A-LIVE-007",
    "Second task on one live stream",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.FOREIGN,
    operations=LIVE_OPERATIONS,
    flagged=grpc(
        "SendLiveMessage",
        send(),
        *_FIRST_EVENTS,
        *_ANSWERED_STREAM,
        _SECOND_TASK,
        _COMPLETED_EVENT,
        half_close=False,
    ),
    clean=grpc(
        "SendLiveMessage",
        send(),
        *_FIRST_EVENTS,
        *_ANSWERED_STREAM,
        _COMPLETED_EVENT,
        half_close=False,
    ),
)
def second_task(context: RuleContext) -> Iterator[RuleFinding]:
    """A Task, a status update or an artifact update on a live stream belongs to another task than
    its first event.

    A live stream is about one task: clients apply the event to the task that they follow, or drop
    it. The agent must send events of one task only; another task needs its own stream or a
    SendMessage.
    """
    yield from foreign(context)


@live_rule(
    "A2A-LIVE-016",
    "Event missing on one of several live streams",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="1.1 draft 3.2.7; 1.0 3.5.2",
    hook_points=(HookPoint.ANSWER, HookPoint.CLOSED),
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.SHARED,
    operations=LIVE_OPERATIONS,
    due=lambda see: check_delivered(see),
    settled_at_end=True,
    flagged=_two_streams((_EVENT_A, _EVENT_C)),
    clean=_two_streams((_EVENT_A, _EVENT_B, _EVENT_C)),
)
def not_multiplexed(context: RuleContext) -> Iterator[RuleFinding]:
    """An agent has accepted two live streams of one task, and an event that it sent on one of them
    did not arrive on the other within 5 s. An error if the other stream had events before and after
    it; a warning if the other stream has been silent since, because its client may be slow.

    The client of the incomplete stream has a wrong view of the task. An agent that accepts a second
    live stream must send every event on both; otherwise it must refuse the second one with
    FAILED_PRECONDITION.
    """
    watch_other_streams(context, live=True)
    yield from ()


_PROPOSAL = {"request_type": "StreamRequest@live-2153", "answer_type": "StreamResponse@live-2153"}
_ARTIFACT_MESSAGE = {"artifactUpdate": chunk("half", id="a9")["artifactUpdate"]}


def _uplink_script(*answers: Any) -> Script:
    """Return a live stream with events, and a short call with an artifact during it."""
    first = grpc(
        "SendLiveMessage",
        {"message": message()},
        snapshot(),
        EventPause(3),
        _COMPLETED_EVENT,
        half_close=False,
        **_PROPOSAL,
    )
    steps = (_ARTIFACT_MESSAGE, HalfClosed(), *answers)
    second = grpc("SendLiveMessage", *steps, half_close=False, **_PROPOSAL)  # type: ignore[arg-type]
    return run_together(first, second, after=1000 * MS)


@rule(
    "A2A-LIVE-024",
    "Uplink call replays events",
    Severity.WARNING,
    section="proposal of uplinks, SendLiveMessage",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.DRAFT_1_1,
    bindings=RPC,
    trigger_flags=FrameFlag.LATER,
    operations=("SendLiveMessage",),
    flagged=_uplink_script(snapshot("WORKING"), status("WORKING", second=1)),
    clean=_uplink_script(snapshot("WORKING")),
)
def replays(context: RuleContext) -> Iterator[RuleFinding]:
    """Proposal of uplinks: a task has a live stream, a second SendLiveMessage call delivers a
    message or an artifact and ends its side, and the agent answers it with more than the Task. On
    gRPC only if the messages are known to be of that proposal.

    Such a call only delivers input, and its results are sent on the live stream: the client
    receives these events twice. The agent must answer the short call with the Task only.
    """
    record, task = context.record, context.task
    grpc_call = context.binding is Binding.GRPC
    if task is None or (
        grpc_call and not (record.half_closed and context.frame.schema.endswith("@live-2153"))
    ):
        return
    for number in task.streams:
        other = context.session.exchange_records.get(number)
        if (
            other is not None
            and other.operation in LIVE_OPERATIONS
            and other.started < record.started
        ):
            told = (
                f"task {task.task_id} has a live stream (#{number}), but the agent answers this "
                f"short call"
            )
            yield RuleFinding(
                summary=f"{told} with {event_and_state(context.frame)} after the Task"
            )
            return
