"""How long peers take (manual/protocol.md "Calls that wait"). For information: how slow is too slow is for the user to
say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.finding import Severity
from a2a_proxy.protocol.operations import STREAMING_OPERATIONS
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import NETWORK, EvidenceScope, FrameFlag, HookPoint, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import EventPause, rpc, rpc_stream
from a2a_proxy.rules.examples.objects import reply, send, snapshot, status, task
from a2a_proxy.rules.examples.script import MS
from a2a_proxy.rules.state.records import ACTIVE

SECOND = 1000 * MS
FIRST_EVENT = 5 * SECOND
UNARY = 10 * SECOND
STALL = 30.0
"""Seconds."""
STUCK = 600.0
WAITING = 600.0
CLOSE = 500 * MS
UNANSWERED = 2 * SECOND
"""From here on a stream that is not closed breaks a rule of its own, A2A-STREAM-006."""


def _asking() -> dict[str, Any]:
    """A task that waits for an answer."""
    made = task("INPUT_REQUIRED")
    return made | {"status": made["status"] | {"message": reply("which one?", taskId="t1")}}


_BEGUN = (snapshot("SUBMITTED"), status("WORKING"))


def seconds(ns: int) -> str:
    """`12.3 s`."""
    return f"{ns / SECOND:.1f} s"


@rule(
    "A2A-LAT-001",
    "Slow first event",
    Severity.INFO,
    section="a2a-proxy: latency of streams",
    scope=EvidenceScope.EXCHANGE,
    when=FrameFlag.FIRST,
    operations=STREAMING_OPERATIONS,
    flagged=rpc_stream("SendStreamingMessage", send(), EventPause(6), *_BEGUN, status("COMPLETED")),
    clean=rpc_stream("SendStreamingMessage", send(), *_BEGUN, status("COMPLETED")),
)
def slow_first_event(see: RuleContext) -> Iterator[RuleFinding]:
    """The first event of a stream comes more than 5 s after the end of the request.

    It is the time in which a person in front of the client sees nothing happen.
    """
    asked = see.exchange.request_ended or see.exchange.started
    if see.at - asked > FIRST_EVENT:
        yield RuleFinding(summary=f"the first event came after {seconds(see.at - asked)}")


@rule(
    "A2A-LAT-003",
    "Slow unary answer",
    Severity.INFO,
    section="a2a-proxy: latency of calls",
    scope=EvidenceScope.EXCHANGE,
    when=FrameFlag.FIRST,
    operations=(
        *("GetTask", "ListTasks", "CancelTask", "GetExtendedAgentCard"),
        *("CreateTaskPushNotificationConfig", "GetTaskPushNotificationConfig"),
        *("ListTaskPushNotificationConfigs", "DeleteTaskPushNotificationConfig"),
    ),
    flagged=rpc("GetTask", {"id": "t1"}, task(), seconds=12),
    clean=rpc("GetTask", {"id": "t1"}, task(), seconds=2),
)
def slow_answer(see: RuleContext) -> Iterator[RuleFinding]:
    """A call that only looks something up is answered after more than 10 s; long polls are left out.

    Such calls have no work to wait for: the agent, or something before it, is overloaded or stuck.
    """
    asked = see.exchange.request_ended or see.exchange.started
    if see.at - asked > UNARY and not (see.track.asked and see.track.asked.generation):
        yield RuleFinding(summary=f"{see.operation} was answered after {seconds(see.at - asked)}")


def _stalled(see: RuleContext) -> Iterator[RuleFinding]:
    track = see.track
    if not track.started or track.state not in ACTIVE:
        return
    if see.at - track.last_at < STALL * SECOND:
        see.later(STALL - (see.at - track.last_at) / SECOND)
        return
    summary = f"nothing for {seconds(see.at - track.last_at)} in {TaskState(track.state).label}"
    yield RuleFinding(summary=summary, seq=track.last_seq)


@rule(
    "A2A-LAT-002",
    "Stream stalls",
    Severity.INFO,
    section="a2a-proxy: latency of streams",
    scope=EvidenceScope.EXCHANGE,
    when=FrameFlag.FIRST,
    operations=STREAMING_OPERATIONS,
    due=_stalled,
    flagged=rpc_stream("SendStreamingMessage", send(), *_BEGUN, EventPause(40), status("COMPLETED")),
    clean=rpc_stream("SendStreamingMessage", send(), *_BEGUN, EventPause(20), status("COMPLETED")),
)
def stall(see: RuleContext) -> Iterator[RuleFinding]:
    """A stream whose task is at work brings no event for 30 s.

    The agent may be thinking, or gone: a client cannot tell, and idle time-outs of gateways close such streams.
    """
    see.later(STALL)
    yield from ()


def _stuck(see: RuleContext) -> Iterator[RuleFinding]:
    task = see.task
    if task is None:
        return
    if task.state not in ACTIVE:
        task.remember().pop("watched", None)
        return
    idle = see.at - task.last
    if idle < STUCK * SECOND:
        see.later(STUCK - idle / SECOND)
        return
    yield RuleFinding(summary=f"nothing changed for {seconds(idle)} in {TaskState(task.state).label}", seq=-1)


@rule(
    "A2A-LAT-004",
    "Task is stuck",
    Severity.INFO,
    section="1.0 4.1.3",
    moment=HookPoint.CLOSED,
    scope=EvidenceScope.LIVE,
    due=_stuck,
    flagged=rpc("SendMessage", send(configuration={"returnImmediately": True}), snapshot("WORKING")).then(
        rpc("ListTasks", {"status": "TASK_STATE_FAILED"}, {"tasks": [], "nextPageToken": "", "pageSize": 50}, id=2),
        700 * SECOND,
    ),
    clean=rpc("SendMessage", send(configuration={"returnImmediately": True}), snapshot("WORKING")).then(
        rpc("GetTask", {"id": "t1"}, task("COMPLETED", second=9), id=2), 20 * SECOND
    ),
)
def stuck(see: RuleContext) -> Iterator[RuleFinding]:
    """An active task shows no sign of life for 10 minutes, on any connection.

    Its agent may have lost it: nobody will ever finish it, and clients go on asking.
    """
    # Asked when an exchange leaves the task at work: most tasks end in the exchange that began them.
    task = see.task
    if task is not None and task.state in ACTIVE and not task.remember().get("watched"):
        task.remember()["watched"] = True
        see.later(STUCK)
    yield from ()


def _waiting(see: RuleContext) -> Iterator[RuleFinding]:
    if see.task is not None and see.task.awaits:
        state = TaskState(see.task.state).label
        yield RuleFinding(
            summary=f"{state} for {seconds(int(WAITING) * SECOND)}, no message of the client", seq=see.due_seq
        )


@rule(
    "A2A-LAT-005",
    "Slow answer of the client",
    Severity.INFO,
    section="1.0 3.4.3",
    scope=EvidenceScope.LIVE,
    when=FrameFlag.INTERRUPTED,
    due=_waiting,
    flagged=rpc("SendMessage", send(), {"task": _asking()}).then(
        rpc("ListTasks", {}, {"tasks": [], "nextPageToken": "", "pageSize": 50}, id=2), 700 * SECOND
    ),
    clean=rpc("SendMessage", send(), {"task": task("COMPLETED")}),
)
def waiting(see: RuleContext) -> Iterator[RuleFinding]:
    """A task waits for input or for credentials and no message of a client comes for 10 minutes.

    Somebody may not know that it is their turn.
    """
    if see.is_(FrameFlag.CHANGED):
        see.later(WAITING)
    yield from ()


@rule(
    "A2A-LAT-006",
    "Stream is closed late",
    Severity.INFO,
    section="1.0 3.1.2",
    bindings=NETWORK,
    moment=HookPoint.CLOSED,
    scope=EvidenceScope.EXCHANGE,
    operations=STREAMING_OPERATIONS,
    flagged=rpc_stream("SendStreamingMessage", send(), *_BEGUN, status("COMPLETED"), EventPause(0.8)),
    clean=rpc_stream("SendStreamingMessage", send(), *_BEGUN, status("COMPLETED")),
)
def late_close(see: RuleContext) -> Iterator[RuleFinding]:
    """Between the terminal state and the end of the stream pass more than 500 ms (from 2 s on it is A2A-STREAM-006).

    Clients that wait for the end of the stream are that much slower than they need to be.
    """
    late = see.exchange.closed - see.track.terminal
    if see.track.terminal and CLOSE < late < UNANSWERED and see.exchange.how == "complete":
        yield RuleFinding(summary=f"the stream ended {seconds(late)} after its terminal state", seq=see.track.last_seq)
