"""A task that is over stays as it is (A2A 1.0 section 3.1.1, topic "Task Immutability")."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import EventKind, Frame
from a2a_proxy.protocol.task_list import split_task_list
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import Dialects, EvidenceScope, FrameFlag, HookPoint, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import EventPause, rpc, rpc_error, rpc_stream
from a2a_proxy.rules.examples.objects import artifact, chunk, said, send, snapshot, status, task
from a2a_proxy.rules.examples.script import both
from a2a_proxy.rules.facts.naming import holder, named
from a2a_proxy.rules.facts.partial_decode import NOTHING, add, artifacts_of, earlier, status_of
from a2a_proxy.rules.facts.request_summary import sent
from a2a_proxy.rules.state.records import TaskRecord
from a2a_proxy.rules.state.state_sequence import SECOND, SENDING_OPERATIONS, TERMINAL

_CROSSING = SECOND // 4
"""ns. What may be under way to a client when it sends a message."""
_GET = {"id": "t1"}
_DONE = rpc("SendMessage", send(), snapshot("COMPLETED", artifacts=[artifact()]))
_REFUSED = rpc(
    "SendMessage", send(id="m2", taskId="t1"), error=rpc_error(-32004, "UNSUPPORTED_OPERATION", "t1 is completed")
)


def label(state: int) -> str:
    """`input-required`."""
    return TaskState(state).label


def ended(task: TaskRecord) -> str:
    """The terminal state that was seen first."""
    return next((label(state) for _, state in task.states if state in TERMINAL), "over")


def _path(see: RuleContext) -> str:
    return f"{see.root}{holder(see.frame, see.v1, see.operation)}status.state"


@rule(
    "A2A-STATE-001",
    "A task left a terminal state",
    Severity.ERROR,
    section='1.0 3.1.1, topic "Task Immutability"',
    scope=EvidenceScope.LIVE,
    when=FrameFlag.LEFT_TERMINAL,
    also=("A2A-STREAM-005",),
    flagged=rpc_stream(
        "SendStreamingMessage", send(), snapshot(), status("FAILED", second=1), status("COMPLETED", second=2)
    ),
    clean=rpc_stream("SendStreamingMessage", send(), snapshot(), status("FAILED", second=1)),
)
def left(see: RuleContext) -> Iterator[RuleFinding]:
    """A task that was COMPLETED, FAILED, CANCELED or REJECTED is shown in another state: later on the same stream, with
    a later timestamp in a snapshot, or in another terminal state anywhere. An old snapshot is A2A-STATE-009, a message
    that is accepted A2A-STATE-004.

    Clients stop to follow a task at its terminal state; what happens after that they never see.
    """
    if see.task is not None:
        was = label(see.shown_before) if see.shown_before in TERMINAL else ended(see.task)
        told = f"task {see.frame.task_id} was {was}, {named(see.frame)} now says {label(see.frame.state)}"
        yield RuleFinding(summary=told, path=_path(see), value=label(see.frame.state))


@rule(
    "A2A-STATE-004",
    "A message to a task that is over is accepted",
    Severity.ERROR,
    section="1.0 3.1.1",
    scope=EvidenceScope.LIVE,
    lines=Dialects.SINCE_0_2,
    when=FrameFlag.FIRST,
    operations=SENDING_OPERATIONS,
    also=("A2A-STATE-005",),
    needs=FrameFlag.NAMES,
    flagged=_DONE + rpc("SendMessage", send(id="m2", taskId="t1"), snapshot("FAILED", id="t1", second=2)),
    clean=_DONE + rpc("SendMessage", send(id="m2", contextId="c1", referenceTaskIds=["t1"]), said()),
)
def accepted(see: RuleContext) -> Iterator[RuleFinding]:
    """A message names a task that is in a terminal state, and the agent answers with success. It must refuse with
    UnsupportedOperationError; to go on, a client starts a new task in the same context.

    What the client holds for the final result changes, or its message is dropped without a word.
    """
    asked, frame = see.track.asked, see.frame
    if asked is None or not asked.terminal or not asked.task_id or not see.succeeded or not frame.event:
        return
    request = see.request
    if see.operation == "SendLiveMessage" and request is not None and not sent(request).parts:
        return  # the reconnect form: it asks for the final Task
    told = f"task {asked.task_id} was {label(asked.state)}, a message to it is answered with {named(frame)}"
    yield RuleFinding(summary=told, value=asked.task_id)


@rule(
    "A2A-STATE-005",
    "A client writes to a task that is over",
    Severity.WARNING,
    section="1.0 3.1.1",
    moment=HookPoint.REQUEST,
    scope=EvidenceScope.LIVE,
    lines=Dialects.SINCE_0_2,
    operations=SENDING_OPERATIONS,
    needs=FrameFlag.NAMES,
    flagged=_DONE.then(_REFUSED, 2 * SECOND),
    clean=_DONE + rpc("SendMessage", send(id="m2", contextId="c1", referenceTaskIds=["t1"]), said()),
)
def written_to(see: RuleContext) -> Iterator[RuleFinding]:
    """A message names a task that is in a terminal state. Information where that state passed less than 0.25 s
    before: it may have crossed the message.

    The agent must refuse it. A message to the same context, with the task in `referenceTaskIds`, starts a new task.
    """
    asked, first = see.track.asked, see.request
    if asked is None or not asked.terminal or not asked.task_id or first is None or see.frame.seq != first.seq:
        return
    if see.operation == "SendLiveMessage" and not sent(first).parts:
        return
    crossed = asked.at - asked.terminal < _CROSSING
    told = f"the message is for task {asked.task_id}, which was {label(asked.state)} by then"
    severity = Severity.INFO if crossed else None
    yield RuleFinding(
        summary=told, path=f"{see.root}message.taskId", value=asked.task_id, severity=severity, sure=not crossed
    )


@rule(
    "A2A-STATE-009",
    "A snapshot is older than what was told before",
    Severity.WARNING,
    section="1.0 3.1.3",
    scope=EvidenceScope.LIVE,
    when=FrameFlag.TASK | FrameFlag.LIST,
    operations=("GetTask", "ListTasks", "SubscribeToTask"),
    flagged=_DONE + rpc("GetTask", _GET, task("WORKING")),
    clean=_DONE + rpc("GetTask", _GET, task("COMPLETED", artifacts=[artifact()])),
)
def stale(see: RuleContext) -> Iterator[RuleFinding]:
    """GetTask, ListTasks or a subscription shows a task as it was before something that had been relayed before this
    request: not over, though it was, or with a status that is over a second older than one known and in another state.
    The first Task of a 1.0 subscription is A2A-STREAM-019.

    A client that polls sees the task go back; one that trusts the answer waits for an end that has come already.
    """
    if see.is_(FrameFlag.LIST):
        yield from _in_list(see)
        return
    frame, asked = see.frame, see.track.asked
    if asked is None or see.is_(FrameFlag.LATER) or (see.v1 and see.operation == "SubscribeToTask"):
        return
    if see.is_(FrameFlag.STALE) and see.task is not None:
        told = f"task {frame.task_id} was {ended(see.task)} before the request, the answer says {label(frame.state)}"
        yield RuleFinding(summary=told, path=_path(see), value=label(frame.state))
    elif asked.stamp and asked.state and frame.state and frame.state != asked.state and not asked.terminal:
        behind = earlier(status_of(frame).stamp, asked.stamp)
        if behind > SECOND:
            told = f"the status {label(frame.state)} is {behind / SECOND:.0f} s older than {label(asked.state)}"
            yield RuleFinding(
                summary=f"{told}, which was told before the request", path=_path(see), value=label(frame.state)
            )


def _in_list(see: RuleContext) -> Iterator[RuleFinding]:
    asked = see.track.asked
    for each in split_task_list(see.frame):
        known = see.world.task(see.track.agent, each.task_id)
        if known is None or asked is None or not 0 < known.terminal < asked.at:
            continue
        if each.state and each.state not in TERMINAL:
            told = f"task {each.task_id} was {ended(known)} before the request, the list says {label(each.state)}"
            yield RuleFinding(summary=told, value=each.task_id, sure=bool(known.born))


@rule(
    "A2A-STATE-013",
    "The content of a task changed after its end",
    Severity.ERROR,
    section='1.0 topic "Task Immutability"',
    scope=EvidenceScope.LIVE,
    when=FrameFlag.AFTER_TERMINAL,
    also=("A2A-STREAM-005",),
    flagged=rpc_stream("SendStreamingMessage", send(), snapshot(), status("COMPLETED", second=1), chunk()),
    clean=rpc_stream("SendStreamingMessage", send(), snapshot(), chunk(), status("COMPLETED", second=1)),
)
def changed(see: RuleContext) -> Iterator[RuleFinding]:
    """An artifact update comes after the terminal state of its task on the same stream, or on a later one with a new
    artifact. As a warning: GetTask shows other artifacts than an earlier GetTask did, both asked for after the end.

    Clients take the result at the terminal state; what is added later they never show, and two clients hold two
    different results of one task.
    """
    frame, asked = see.frame, see.track.asked
    if frame.event is EventKind.ARTIFACT:
        revived = asked is not None and asked.terminal and asked.task_id and see.operation in SENDING_OPERATIONS
        if see.track.terminal or not (revived or see.is_(FrameFlag.KNOWN_ARTIFACT)):
            was = label(see.track.state) if see.track.terminal else ended(see.task) if see.task is not None else "over"
            told = f"an update of artifact {frame.artifact_id} after task {frame.task_id} was {was}"
            yield RuleFinding(summary=told, path=see.root + holder(frame, see.v1, see.operation).rstrip("."))
    elif frame.event is EventKind.TASK and see.operation == "GetTask" and see.task is not None:
        yield from _compared(see, see.task)


def _compared(see: RuleContext, task: TaskRecord) -> Iterator[RuleFinding]:
    """A snapshot with the first one after the end."""
    asked, frame = see.track.asked, see.frame
    if asked is None or not asked.terminal or frame.state not in TERMINAL or frame.redacted or frame.truncated:
        return
    now = _artifacts(frame)
    before = task.remember().setdefault("artifacts", now)
    if before != now:
        task.remember()["artifacts"] = now
        told = f"task {frame.task_id} was {ended(task)}, its artifacts were {before}, and are {now} now"
        yield RuleFinding(summary=told, path=f"{see.root}artifacts", severity=Severity.WARNING)


def _artifacts(frame: Frame) -> str:
    """In a few words that differ where the content does."""
    found = []
    for each in sorted(artifacts_of(frame), key=lambda one: one.artifact_id)[:5]:
        content = add(NOTHING, each.pieces)
        rest = f", {content.others} other parts of {content.octets} octets" if content.others else ""
        found.append(f"{each.artifact_id[:40]} ({content.length} octets of text, CRC {content.digest:08x}{rest})")
    return "; ".join(found) or "none"


_CANCELED = rpc("CancelTask", _GET, task("CANCELED", second=1))


@rule(
    "A2A-STATE-018",
    "Work goes on after a confirmed cancellation",
    Severity.WARNING,
    section="1.0 3.1.5",
    scope=EvidenceScope.LIVE,
    when=FrameFlag.OVERDUE | FrameFlag.TERMINAL,
    flagged=both(
        rpc_stream(
            "SendStreamingMessage",
            send(),
            snapshot("WORKING"),
            EventPause(9),
            status("WORKING", second=9, said=said(taskId="t1")["message"]),
            finish="leave",
        ),
        rpc("CancelTask", _GET, task("CANCELED", second=1)),
        after=SECOND,
    ),
    clean=both(
        rpc_stream("SendStreamingMessage", send(), snapshot("WORKING"), EventPause(1), status("CANCELED", second=1)),
        _CANCELED,
        after=SECOND // 2,
    ),
)
def goes_on(see: RuleContext) -> Iterator[RuleFinding]:
    """CancelTask was answered with CANCELED, and over five seconds later, or with a later timestamp, a stream of the
    task that was open then still brings work: another state, or an artifact.

    The user was told that it had stopped. It still costs, and still changes things.
    """
    frame, task = see.frame, see.task
    if task is None:
        return
    if not see.is_(FrameFlag.OVERDUE):
        if see.operation == "CancelTask" and frame.state == TaskState.CANCELED:
            task.remember()["canceled"] = frame.at
        return
    canceled = (task.notes or {}).get("canceled", 0)
    if canceled and frame.state not in TERMINAL:
        after = (frame.at - canceled) / SECOND
        told = f"task {frame.task_id} was canceled, {after:.1f} s later comes {named(frame)}"
        yield RuleFinding(summary=f"{told} ({label(frame.state)})" if frame.state else told, path=see.root.rstrip("."))
