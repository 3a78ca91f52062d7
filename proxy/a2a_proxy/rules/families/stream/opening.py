"""Rules about the beginning of a stream (A2A 1.0 sections 3.1.2, 3.1.6)."""

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Actor, EventKind, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    ANY_EVENT,
    NETWORK,
    Dialects,
    EvidenceScope,
    FrameFlag,
    HookPoint,
)
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import Fields, rpc, rpc_error, rpc_stream
from a2a_proxy.rules.examples.objects import TASK_PARAMS, agent_reply, send, snapshot, status, task
from a2a_proxy.rules.families.stream.words import (
    SEND_STREAM,
    SUBSCRIBE_STREAM,
    event_and_state,
    status_time,
)
from a2a_proxy.rules.state.state_sequence import TERMINAL

_UPDATE_EVENTS = FrameFlag.STATUS | FrameFlag.ARTIFACT
_COMPLETE_STREAM = rpc_stream(
    "SendStreamingMessage", send(), snapshot(), status("WORKING"), status("COMPLETED", second=1)
)
_FOLLOWED_STREAM = rpc_stream(
    "SubscribeToTask", TASK_PARAMS, snapshot("WORKING"), status("COMPLETED", second=1)
)
_ACCEPT_HEADERS: Fields = {"Accept": "text/event-stream"}
_COMPLETED_CALL = rpc("GetTask", TASK_PARAMS, task("COMPLETED"))


@rule(
    "A2A-STREAM-001",
    "First event of a send stream is neither Task nor Message",
    Severity.ERROR,
    section="1.0 3.1.2, 11.7; 0.3 7.2",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.FIRST,
    operations=SEND_STREAM,
    flagged=rpc_stream(
        "SendStreamingMessage", send(), status("WORKING"), status("COMPLETED", second=1)
    ),
    clean=_COMPLETE_STREAM,
)
def first_of_send(context: RuleContext) -> Iterator[RuleFinding]:
    """The stream that answers a message begins with a status or artifact update instead of the Task
    or a Message. It is a warning if the message continues an existing task, and information in 0.2
    and 0.3, which do not require it.

    The client does not know which task the update belongs to, and may drop it. The agent must send
    the Task or a Message first.
    """
    if not context.has_flag(_UPDATE_EVENTS):
        return
    request_snapshot = context.record.request_snapshot
    severity = None
    if not context.is_v1:
        severity = Severity.INFO
    elif request_snapshot is not None and request_snapshot.task_id:
        severity = Severity.WARNING
    told = (
        f"the stream begins with {event_and_state(context.frame)}; it must begin with the Task or "
        f"a Message"
    )
    yield RuleFinding(summary=told, path=context.root.rstrip("."), severity=severity)


@rule(
    "A2A-STREAM-002",
    "Events after the Message on a message-only stream",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="1.0 3.1.2; 0.3 7.2",
    hook_points=HookPoint.CLOSED,
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.SINCE_0_2,
    operations=SEND_STREAM,
    flagged=rpc_stream(
        "SendStreamingMessage", send(), agent_reply("one"), agent_reply("two", id="r2")
    ),
    clean=rpc_stream("SendStreamingMessage", send(), agent_reply()),
)
def after_message(context: RuleContext) -> Iterator[RuleFinding]:
    """A stream that began with a Message continues with another Message, a Task or an update.

    A stream that answers with a Message has exactly that one event; clients close it there and lose
    the rest. The agent must answer either with one Message or with a task and its events.
    """
    record = context.record
    if record.first is EventKind.MESSAGE and record.events > 1:
        told = (
            f"{record.events} events on a stream that began with a Message; it must have only that "
            f"Message"
        )
        yield RuleFinding(summary=told, seq=record.last_seq)


@rule(
    "A2A-STREAM-010",
    "Subscription does not begin with the Task",
    Severity.ERROR,
    section="1.0 3.1.6",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.V1,
    trigger_flags=FrameFlag.FIRST,
    operations=SUBSCRIBE_STREAM,
    flagged=rpc_stream(
        "SubscribeToTask", TASK_PARAMS, status("WORKING"), status("COMPLETED", second=1)
    ),
    clean=_FOLLOWED_STREAM,
)
def first_of_subscription(context: RuleContext) -> Iterator[RuleFinding]:
    """The first event of a subscription is not the Task.

    The Task shows a returning client the changes it has missed; without it, the client's view of
    the task stays wrong. The agent must send the current Task first.
    """
    if context.has_flag(ANY_EVENT) and not context.has_flag(FrameFlag.TASK):
        told = (
            f"the subscription begins with {event_and_state(context.frame)}; it must begin with "
            f"the current Task"
        )
        yield RuleFinding(summary=told, path=context.root.rstrip("."))


@rule(
    "A2A-STREAM-011",
    "Agent accepts a subscription to a task that has ended",
    Severity.ERROR,
    section="1.0 3.1.6",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.V1,
    trigger_flags=FrameFlag.FIRST,
    operations=SUBSCRIBE_STREAM,
    flagged=_COMPLETED_CALL + rpc_stream("SubscribeToTask", TASK_PARAMS, snapshot("COMPLETED")),
    clean=_COMPLETED_CALL
    + rpc(
        "SubscribeToTask",
        TASK_PARAMS,
        error=rpc_error(-32004, "UNSUPPORTED_OPERATION"),
        headers=_ACCEPT_HEADERS,
    ),
)
def finished(context: RuleContext) -> Iterator[RuleFinding]:
    """A subscription to a task that was in a terminal state before the request is answered with
    events instead of UnsupportedOperationError.

    No further event will ever be sent on such a stream. The agent must answer
    UnsupportedOperationError; the client then reads the result with GetTask.
    """
    request_snapshot = context.record.request_snapshot
    if request_snapshot is not None and request_snapshot.terminal and context.has_flag(ANY_EVENT):
        state = TaskState(request_snapshot.state).label
        yield RuleFinding(
            summary=f"the task was {state} before the request; the agent must answer "
            f"UnsupportedOperationError"
        )


@rule(
    "A2A-STREAM-012",
    "Subscription to an unknown task not refused",
    Severity.ERROR,
    section="1.0 3.1.6; 0.3 7.9",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.FIRST,
    operations=SUBSCRIBE_STREAM,
    flagged=rpc(
        "SubscribeToTask",
        {"id": "zz"},
        error=rpc_error(-32602, "INVALID_PARAMS", "Task zz not found"),
        headers=_ACCEPT_HEADERS,
    ),
    clean=rpc(
        "SubscribeToTask",
        {"id": "zz"},
        error=rpc_error(-32001, "TASK_NOT_FOUND", "Task zz not found"),
        headers=_ACCEPT_HEADERS,
    ),
)
def unknown(context: RuleContext) -> Iterator[RuleFinding]:
    """A subscription to a task that the agent does not know is not answered with TaskNotFoundError,
    but with another error whose text says that the task was not found, with a Message, or with a
    task created by this request. A task that only the proxy has not seen before is not reported.

    Clients learn from TaskNotFoundError that their id is outdated and start again; otherwise they
    retry, or wait for nothing. The agent must answer TaskNotFoundError.
    """
    request_snapshot = context.record.request_snapshot
    if request_snapshot is None or request_snapshot.is_task_known:
        return
    if context.has_flag(FrameFlag.ERROR):
        yield from _check_other_error(context)
    elif context.has_flag(FrameFlag.MESSAGE):
        yield RuleFinding(
            summary="a Message answers the subscription to an unknown task; the agent must answer "
            "TaskNotFoundError"
        )
    elif (
        context.has_flag(FrameFlag.TASK)
        and context.frame.state == int(TaskState.SUBMITTED)
        and status_time(context) >= context.record.started
    ):
        told = (
            "the task was created after the request to subscribe to it; the agent must answer "
            "TaskNotFoundError"
        )
        yield RuleFinding(summary=told, is_sure=False)


def _check_other_error(context: RuleContext) -> Iterator[RuleFinding]:
    failure = context.failure
    text = failure.text.lower()
    named = failure.name or failure.status_name
    if (
        "not found" not in text
        or "task" not in text
        or "NOT_FOUND" in named
        or failure.code in (404, -32001, -32601)
    ):
        return
    yield RuleFinding(
        summary=f'"{failure.text[:80]}" is sent as {named} {failure.code}; it '
        f"must be TaskNotFoundError"
    )


@rule(
    "A2A-STREAM-019",
    "Subscription begins with an outdated Task",
    Severity.WARNING,
    section="1.0 3.1.6",
    bindings=NETWORK,
    scope=EvidenceScope.LIVE,
    dialects=Dialects.V1,
    trigger_flags=FrameFlag.FIRST,
    operations=SUBSCRIBE_STREAM,
    flagged=rpc("GetTask", TASK_PARAMS, task("WORKING", generation="7"), version="1.1")
    + rpc_stream(
        "SubscribeToTask",
        TASK_PARAMS,
        snapshot("WORKING", generation="5"),
        finish="open",
        version="1.1",
    ),
    clean=rpc("GetTask", TASK_PARAMS, task("WORKING", generation="7"), version="1.1")
    + rpc_stream(
        "SubscribeToTask",
        TASK_PARAMS,
        snapshot("WORKING", generation="7"),
        finish="open",
        version="1.1",
    ),
)
def behind(context: RuleContext) -> Iterator[RuleFinding]:
    """The Task at the beginning of a subscription is older than the state sent before the request:
    its generation is lower, or, without generations, it is active again after a terminal state, or
    SUBMITTED after another state.

    A client that returns to catch up sees its task jump back and may act on it twice. The agent
    must send the current Task, also if several instances serve it.
    """
    request_snapshot, frame = context.record.request_snapshot, context.frame
    if (
        request_snapshot is None
        or not request_snapshot.is_task_known
        or not context.has_flag(FrameFlag.TASK)
    ):
        return
    if frame.generation > 0 and request_snapshot.known_generation:
        if frame.generation < request_snapshot.known_generation:
            told = (
                f"the Task has generation {frame.generation}, but "
                f"{request_snapshot.known_generation} was sent before "
                "the request"
            )
            yield RuleFinding(
                summary=told, path=f"{context.root}task.generation", value=str(frame.generation)
            )
        return
    again = frame.state == int(TaskState.SUBMITTED) and request_snapshot.state not in (
        0,
        frame.state,
    )
    if frame.state and (again or (request_snapshot.terminal and frame.state not in TERMINAL)):
        told = (
            f"the Task is {TaskState(frame.state).label}, but it was "
            f"{TaskState(request_snapshot.state).label} before "
            "the request"
        )
        yield RuleFinding(
            summary=told,
            path=f"{context.root}task.status.state",
            value=TaskState(frame.state).label,
        )
