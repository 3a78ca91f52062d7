"""How a stream begins (A2A 1.0 sections 3.1.2, 3.1.6)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import EventKind
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import (
    EVENTS,
    NETWORK,
    Dialects,
    EvidenceScope,
    FrameFlag,
    HookPoint,
    RuleFinding,
    rule,
)
from a2a_proxy.rules.examples.conversation import Fields, rpc, rpc_error, rpc_stream
from a2a_proxy.rules.examples.objects import said, send, snapshot, status, task
from a2a_proxy.rules.families.stream.words import SEND, SUBSCRIBE, instant, name_of
from a2a_proxy.rules.state.state_sequence import TERMINAL

_UPDATES = FrameFlag.STATUS | FrameFlag.ARTIFACT
_ID = {"id": "t1"}
_WHOLE = rpc_stream("SendStreamingMessage", send(), snapshot(), status("WORKING"), status("COMPLETED", second=1))
_FOLLOWED = rpc_stream("SubscribeToTask", _ID, snapshot("WORKING"), status("COMPLETED", second=1))
_ACCEPT: Fields = {"Accept": "text/event-stream"}
_DONE = rpc("GetTask", _ID, task("COMPLETED"))


@rule(
    "A2A-STREAM-001",
    "First event of a send stream is neither Task nor Message",
    Severity.ERROR,
    section="1.0 3.1.2, 11.7",
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.SINCE_0_2,
    when=FrameFlag.FIRST,
    operations=SEND,
    flagged=rpc_stream("SendStreamingMessage", send(), status("WORKING"), status("COMPLETED", second=1)),
    clean=_WHOLE,
)
def first_of_send(see: RuleContext) -> Iterator[RuleFinding]:
    """The stream that answers a message begins with a status or artifact update, and not with the Task or a Message. A
    warning where the message goes on with a task that exists, information in 0.2 and 0.3, which do not ask for it.

    A client does not know what the update is about: it has no task to apply it to, or drops it.
    """
    if not see.is_(_UPDATES):
        return
    asked = see.track.asked
    severity = None
    if not see.v1:
        severity = Severity.INFO
    elif asked is not None and asked.task_id:
        severity = Severity.WARNING
    told = f"the stream begins with {name_of(see.frame)}, it must begin with the Task or a Message"
    yield RuleFinding(summary=told, path=see.root.rstrip("."), severity=severity)


@rule(
    "A2A-STREAM-002",
    "More than one answer on a message-only stream",
    Severity.ERROR,
    section="1.0 3.1.2",
    moment=HookPoint.CLOSED,
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.SINCE_0_2,
    operations=SEND,
    flagged=rpc_stream("SendStreamingMessage", send(), said("one"), said("two", id="r2")),
    clean=rpc_stream("SendStreamingMessage", send(), said()),
)
def after_message(see: RuleContext) -> Iterator[RuleFinding]:
    """A stream that began with a Message goes on: another Message, a Task or an update follows.

    A stream with a Message has exactly this one; clients close it there and lose what comes after.
    """
    track = see.track
    if track.first is EventKind.MESSAGE and track.events > 1:
        told = f"{track.events} events on a stream that began with a Message; it must have that Message only"
        yield RuleFinding(summary=told, seq=track.last_seq)


@rule(
    "A2A-STREAM-010",
    "Subscription does not begin with the Task",
    Severity.ERROR,
    section="1.0 3.1.6",
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.V1,
    when=FrameFlag.FIRST,
    operations=SUBSCRIBE,
    flagged=rpc_stream("SubscribeToTask", _ID, status("WORKING"), status("COMPLETED", second=1)),
    clean=_FOLLOWED,
)
def first_of_subscription(see: RuleContext) -> Iterator[RuleFinding]:
    """The first event of a subscription is something else than the Task.

    The snapshot tells a client that comes back what it has missed; without it, its picture of the task stays wrong.
    """
    if see.is_(EVENTS) and not see.is_(FrameFlag.TASK):
        told = f"the subscription begins with {name_of(see.frame)}, it must begin with the Task as it stands"
        yield RuleFinding(summary=told, path=see.root.rstrip("."))


@rule(
    "A2A-STREAM-011",
    "Subscription to a finished task accepted",
    Severity.ERROR,
    section="1.0 3.1.6",
    scope=EvidenceScope.LIVE,
    lines=Dialects.V1,
    when=FrameFlag.FIRST,
    operations=SUBSCRIBE,
    flagged=_DONE + rpc_stream("SubscribeToTask", _ID, snapshot("COMPLETED")),
    clean=_DONE + rpc("SubscribeToTask", _ID, error=rpc_error(-32004, "UNSUPPORTED_OPERATION"), headers=_ACCEPT),
)
def finished(see: RuleContext) -> Iterator[RuleFinding]:
    """A subscription to a task that had reached a terminal state, as seen before the request, is answered with events
    instead of UnsupportedOperationError.

    Nothing will ever come on such a stream; a client that is refused reads the result by GetTask.
    """
    asked = see.track.asked
    if asked is not None and asked.terminal and see.is_(EVENTS):
        state = TaskState(asked.state).label
        yield RuleFinding(summary=f"the task was {state} before the request; UnsupportedOperationError must answer it")


@rule(
    "A2A-STREAM-012",
    "Subscription to an unknown task not refused",
    Severity.ERROR,
    section="1.0 3.1.6",
    scope=EvidenceScope.LIVE,
    lines=Dialects.SINCE_0_2,
    when=FrameFlag.FIRST,
    operations=SUBSCRIBE,
    flagged=rpc(
        "SubscribeToTask", {"id": "zz"}, error=rpc_error(-32602, "INVALID_PARAMS", "Task zz not found"), headers=_ACCEPT
    ),
    clean=rpc(
        "SubscribeToTask", {"id": "zz"}, error=rpc_error(-32001, "TASK_NOT_FOUND", "Task zz not found"), headers=_ACCEPT
    ),
)
def unknown(see: RuleContext) -> Iterator[RuleFinding]:
    """A subscription to a task that this agent does not know is answered with something else than TaskNotFoundError:
    an error that says in words that there is no such task, a Message, or a task that begins with this request. A task
    that is merely new to the proxy is none of these.

    Clients tell by the error that their id is stale and begin anew; otherwise they try again, or wait for nothing.
    """
    asked = see.track.asked
    if asked is None or asked.known:
        return
    if see.is_(FrameFlag.ERROR):
        yield from _other_error(see)
    elif see.is_(FrameFlag.MESSAGE):
        yield RuleFinding(summary="a Message answers the subscription to a task never seen; TaskNotFoundError must")
    elif see.is_(FrameFlag.TASK) and see.frame.state == int(TaskState.SUBMITTED) and instant(see) >= see.track.started:
        told = "the task was made after the subscription asked for it; TaskNotFoundError must answer"
        yield RuleFinding(summary=told, sure=False)


def _other_error(see: RuleContext) -> Iterator[RuleFinding]:
    failure = see.failure
    text = failure.text.lower()
    named = failure.name or failure.status_name
    if "not found" not in text or "task" not in text or "NOT_FOUND" in named or failure.code in (404, -32001, -32601):
        return
    yield RuleFinding(summary=f'"{failure.text[:80]}" comes as {named} {failure.code}; it must be TaskNotFoundError')


@rule(
    "A2A-STREAM-019",
    "Snapshot of a subscription is behind what was told before",
    Severity.WARNING,
    section="1.0 3.1.6",
    bindings=NETWORK,
    scope=EvidenceScope.LIVE,
    lines=Dialects.V1,
    when=FrameFlag.FIRST,
    operations=SUBSCRIBE,
    flagged=rpc("GetTask", _ID, task("WORKING", generation="7"), version="1.1")
    + rpc_stream("SubscribeToTask", _ID, snapshot("WORKING", generation="5"), finish="open", version="1.1"),
    clean=rpc("GetTask", _ID, task("WORKING", generation="7"), version="1.1")
    + rpc_stream("SubscribeToTask", _ID, snapshot("WORKING", generation="7"), finish="open", version="1.1"),
)
def behind(see: RuleContext) -> Iterator[RuleFinding]:
    """The Task at the beginning of a subscription is older than what had passed before the request: its generation is
    lower, or, without one, it is active again after a terminal state, or SUBMITTED after another state.

    The client that came back to catch up sees its task jump backwards and may act on it twice.
    """
    asked, frame = see.track.asked, see.frame
    if asked is None or not asked.known or not see.is_(FrameFlag.TASK):
        return
    if frame.generation > 0 and asked.known_generation:
        if frame.generation < asked.known_generation:
            told = f"generation {frame.generation}, but {asked.known_generation} had passed before the request"
            yield RuleFinding(summary=told, path=f"{see.root}task.generation", value=str(frame.generation))
        return
    again = frame.state == int(TaskState.SUBMITTED) and asked.state not in (0, frame.state)
    if frame.state and (again or (asked.terminal and frame.state not in TERMINAL)):
        told = f"{TaskState(frame.state).label}, but it was {TaskState(asked.state).label} before the request"
        yield RuleFinding(summary=told, path=f"{see.root}task.status.state", value=TaskState(frame.state).label)
