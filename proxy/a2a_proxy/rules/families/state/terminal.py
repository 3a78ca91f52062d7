"""Rules about tasks in a terminal state, which must not change any more (A2A 1.0 section 3.1.1,
topic "Task Immutability")."""

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Actor, EventKind, Frame, Severity
from a2a_proxy.protocol.artifact_chunks import chunks_of_frame
from a2a_proxy.protocol.bindings.rpc_calls import NOTE_AFTER_END
from a2a_proxy.protocol.json_summary import summarise_leniently
from a2a_proxy.protocol.status_summary import decode_status
from a2a_proxy.protocol.task_list import split_task_list
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    RPC,
    WEBHOOK,
    Dialects,
    EvidenceScope,
    FrameFlag,
    HookPoint,
)
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import (
    COMPLETED_CALL,
    EventPause,
    rpc,
    rpc_error,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import (
    TASK_PARAMS,
    agent_reply,
    artifact,
    chunk,
    send,
    snapshot,
    status,
    task,
)
from a2a_proxy.rules.examples.script import run_together
from a2a_proxy.rules.facts.compared_values import NO_PARTS, add_parts, time_before
from a2a_proxy.rules.facts.naming import event_phrase, object_prefix, state_label
from a2a_proxy.rules.facts.request_summary import summarise_request
from a2a_proxy.rules.families.stdio.reading import ended_call
from a2a_proxy.rules.state.records import TaskRecord
from a2a_proxy.rules.state.state_sequence import SECOND_NS, SENDING_OPERATIONS, TERMINAL

_CROSSING_TIME = SECOND_NS // 4
"""Time in ns for which a state may still be on its way to the client when the client sends a
message."""
_REFUSED_SEND = rpc(
    "SendMessage",
    send(id="m2", taskId="t1"),
    error=rpc_error(-32004, "UNSUPPORTED_OPERATION", "t1 is completed"),
)


def first_terminal_label(task: TaskRecord) -> str:
    """Return the name of the first terminal state that was recorded for the task."""
    return next((state_label(state) for _, state in task.states if state in TERMINAL), "over")


def _state_path(context: RuleContext) -> str:
    prefix = object_prefix(context.frame, context.is_v1, context.operation)
    return f"{context.root}{prefix}status.state"


@rule(
    "A2A-STATE-001",
    "Task left a terminal state",
    Severity.ERROR,
    actor=Actor.AGENT,
    section='1.0 3.1.1, topic "Task Immutability"; 0.3 topic "Life of a Task"',
    hook_points=(HookPoint.ANSWER, HookPoint.CONNECTION),
    scope=EvidenceScope.LIVE,
    bindings=RPC | WEBHOOK,
    trigger_flags=FrameFlag.LEFT_TERMINAL | FrameFlag.LIST,
    also_broken=("A2A-STREAM-005",),
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        status("FAILED", second=1),
        status("COMPLETED", second=2),
    ),
    clean=rpc_stream("SendStreamingMessage", send(), snapshot(), status("FAILED", second=1)),
)
def left(context: RuleContext) -> Iterator[RuleFinding]:
    """A task that was COMPLETED, FAILED, CANCELED or REJECTED is shown in another state: later on
    the same stream, in a snapshot or a list of tasks with a later timestamp, or anywhere, also in a
    push, in another terminal state. An outdated snapshot is reported by A2A-STATE-009, an accepted
    message to such a task by A2A-STATE-004.

    Clients stop following a task at its terminal state and never see later changes. The agent must
    not change a task after its end; for more work it must create a new task.
    """
    if not context.frame.exchange:
        yield from _find_second_end_on_pipe(context)
    elif context.has_flag(FrameFlag.LIST):
        yield from _find_left_in_list(context)
    elif context.task is not None:
        was = (
            state_label(context.stream_state_before)
            if context.stream_state_before in TERMINAL
            else first_terminal_label(context.task)
        )
        told = (
            f"task {context.frame.task_id} was in state {was}, but "
            f"{event_phrase(context.frame)} now shows {state_label(context.frame.state)}"
        )
        yield RuleFinding(
            summary=told, path=_state_path(context), value=state_label(context.frame.state)
        )


def _find_second_end_on_pipe(context: RuleContext) -> Iterator[RuleFinding]:
    """Report another terminal state in a message after the end of a stream, which belongs to no
    call on a pipe."""
    result = context.value.get("result") if context.frame.note == NOTE_AFTER_END else None
    if not isinstance(result, dict):
        return
    _, task_id, *_, state = summarise_leniently(result, streaming=True)[:6]
    known = context.session.task_record(context.agent.name, task_id)
    call = ended_call(context)
    if (
        known is None
        or call is None
        or not known.terminal
        or state not in TERMINAL
        or state == known.state
    ):
        return
    told = (
        f"task {task_id} was in state {first_terminal_label(known)}, but a message after the end "
        f"of its stream shows"
    )
    label = state_label(state)
    yield RuleFinding(summary=f"{told} {label}", value=label, track=call, seq=-1)


def _find_left_in_list(context: RuleContext) -> Iterator[RuleFinding]:
    """Report once for each task and state."""
    for listed, known in _ended_tasks_of_list(context):
        is_shown = listed.state in TERMINAL and any(
            state == listed.state for _, state in known.states
        )
        if is_shown or not _has_left(context, listed, known):
            continue
        notes = known.writable_notes()
        if notes.get("left in list") == listed.state:
            continue
        notes["left in list"] = listed.state
        told = (
            f"task {listed.task_id} was in state {first_terminal_label(known)}, "
            "but the list now shows"
        )
        label = state_label(listed.state)
        yield RuleFinding(summary=f"{told} {label}", value=label, is_sure=bool(known.created_by))


def _ended_tasks_of_list(context: RuleContext) -> Iterator[tuple[Frame, TaskRecord]]:
    """Return the listed tasks that had ended before the request, each with its record."""
    request_snapshot = context.record.request_snapshot
    for each in split_task_list(context.frame):
        known = context.session.task_record(context.record.agent, each.task_id)
        if (
            known is not None
            and request_snapshot is not None
            and 0 < known.terminal < request_snapshot.at
        ):
            yield each, known


def _has_left(context: RuleContext, listed: Frame, known: TaskRecord) -> bool:
    """Whether a listed task has changed after its end, and is not outdated."""
    if listed.state in TERMINAL:
        return True
    return (
        bool(listed.state)
        and time_before(known.stamp, _listed_timestamp(context, listed.task_id)) > 0
    )


def _listed_timestamp(context: RuleContext, task_id: str) -> str:
    tasks = context.event.get("tasks")
    for each in tasks if isinstance(tasks, list) else ():
        if (
            isinstance(each, dict)
            and each.get("id") == task_id
            and isinstance(shown := each.get("status"), dict)
        ):
            stamp = shown.get("timestamp")
            return stamp if isinstance(stamp, str) else ""
    return ""


@rule(
    "A2A-STATE-004",
    "Agent accepts a message to a task that has ended",
    Severity.ERROR,
    section='1.0 3.1.1; 0.3 topic "Life of a Task"',
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.FIRST,
    operations=SENDING_OPERATIONS,
    also_broken=("A2A-STATE-005",),
    required_flags=FrameFlag.NAMES,
    flagged=COMPLETED_CALL
    + rpc("SendMessage", send(id="m2", taskId="t1"), snapshot("FAILED", id="t1", second=2)),
    clean=COMPLETED_CALL
    + rpc("SendMessage", send(id="m2", contextId="c1", referenceTaskIds=["t1"]), agent_reply()),
)
def accepted(context: RuleContext) -> Iterator[RuleFinding]:
    """A message names a task in a terminal state, and the agent answers with success.

    The result that the client already holds changes, or the message is silently dropped. The agent
    must answer UnsupportedOperationError; to continue, the client starts a new task in the same
    context.
    """
    request_snapshot, frame = context.record.request_snapshot, context.frame
    if (
        request_snapshot is None
        or not request_snapshot.terminal
        or not request_snapshot.task_id
        or not context.is_success
        or not frame.event
    ):
        return
    request = context.request
    if (
        context.operation == "SendLiveMessage"
        and request is not None
        and not summarise_request(request).parts
    ):
        return  # the form that reconnects: it requests the final Task
    told = (
        f"task {request_snapshot.task_id} was {state_label(request_snapshot.state)}, but a message "
        f"to it is answered "
        f"with {event_phrase(frame)}"
    )
    yield RuleFinding(summary=told, value=request_snapshot.task_id)


@rule(
    "A2A-STATE-005",
    "Client sends a message to a task that has ended",
    Severity.WARNING,
    section='1.0 3.1.1; 0.3 topic "Life of a Task"',
    hook_points=HookPoint.REQUEST,
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    operations=SENDING_OPERATIONS,
    required_flags=FrameFlag.NAMES,
    flagged=COMPLETED_CALL.then(_REFUSED_SEND, 2 * SECOND_NS),
    clean=COMPLETED_CALL
    + rpc("SendMessage", send(id="m2", contextId="c1", referenceTaskIds=["t1"]), agent_reply()),
)
def written_to(context: RuleContext) -> Iterator[RuleFinding]:
    """A client's message names a task in a terminal state. Reported as information if the agent
    sent that state less than 0.25 s before, because the client may not have received it yet.

    The agent must refuse the message. To continue, the client must send a message to the same
    context with the task in `referenceTaskIds`, which starts a new task.
    """
    request_snapshot, first = context.record.request_snapshot, context.request
    if (
        request_snapshot is None
        or not request_snapshot.terminal
        or not request_snapshot.task_id
        or first is None
        or context.frame.seq != first.seq
    ):
        return
    if context.operation == "SendLiveMessage" and not summarise_request(first).parts:
        return
    crossed = request_snapshot.at - request_snapshot.terminal < _CROSSING_TIME
    told = (
        f"the client's message is for task {request_snapshot.task_id}, which was already "
        f"{state_label(request_snapshot.state)}"
    )
    severity = Severity.INFO if crossed else None
    yield RuleFinding(
        summary=told,
        path=f"{context.root}message.taskId",
        value=request_snapshot.task_id,
        severity=severity,
        is_sure=not crossed,
    )


@rule(
    "A2A-STATE-009",
    "Agent returns an outdated snapshot of a task",
    Severity.WARNING,
    section="1.0 3.1.3; 0.3 7.3",
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.TASK | FrameFlag.LIST,
    operations=("GetTask", "ListTasks", "SubscribeToTask"),
    flagged=COMPLETED_CALL + rpc("GetTask", TASK_PARAMS, task("WORKING")),
    clean=COMPLETED_CALL + rpc("GetTask", TASK_PARAMS, task("COMPLETED", artifacts=[artifact()])),
)
def stale(context: RuleContext) -> Iterator[RuleFinding]:
    """GetTask, ListTasks or a subscription returns a task in a state older than the state sent
    before this request: not ended although it had ended, or in another state with a status over a
    second older than a known one. Or GetTask returns a lower generation than the one sent before
    the request, whatever the timestamps say. The first Task of a 1.0 subscription is judged by
    A2A-STREAM-019, a generation below that of the request by A2A-GEN-011.

    A client that polls sees the task go back; a client that trusts the answer waits for an end that
    has already happened. The agent must return the current task, also if several instances serve it
    or a cache is in front of it.
    """
    if context.has_flag(FrameFlag.LIST):
        yield from _check_task_list(context)
        return
    frame, request_snapshot = context.frame, context.record.request_snapshot
    if (
        request_snapshot is None
        or context.has_flag(FrameFlag.LATER)
        or (context.is_v1 and context.operation == "SubscribeToTask")
    ):
        return
    if context.has_flag(FrameFlag.STALE) and context.task is not None:
        told = (
            f"task {frame.task_id} was {first_terminal_label(context.task)} before the request, "
            f"but the answer shows {state_label(frame.state)}"
        )
        yield RuleFinding(summary=told, path=_state_path(context), value=state_label(frame.state))
    elif (
        context.operation == "GetTask" and 0 < frame.generation < request_snapshot.known_generation
    ):
        if request_snapshot.generation <= frame.generation:
            told = (
                f"the answer has generation {frame.generation}, but "
                f"{request_snapshot.known_generation} was sent"
            )
            prefix = object_prefix(frame, context.is_v1, context.operation)
            yield RuleFinding(
                summary=f"{told} before the request",
                path=f"{context.root}{prefix}generation",
                value=str(frame.generation),
            )
    elif (
        request_snapshot.stamp
        and request_snapshot.state
        and frame.state
        and frame.state != request_snapshot.state
        and not request_snapshot.terminal
    ):
        behind = time_before(decode_status(frame).stamp, request_snapshot.stamp)
        if behind > SECOND_NS:
            told = (
                f"the status {state_label(frame.state)} is {behind / SECOND_NS:.0f} s older than "
                f"{state_label(request_snapshot.state)}"
            )
            yield RuleFinding(
                summary=f"{told}, which was sent before the request",
                path=_state_path(context),
                value=state_label(frame.state),
            )


def _check_task_list(context: RuleContext) -> Iterator[RuleFinding]:
    for each, known in _ended_tasks_of_list(context):
        if each.state and not _has_left(context, each, known):
            told = (
                f"task {each.task_id} was {first_terminal_label(known)} before the request, but "
                f"the list shows "
                f"{state_label(each.state)}"
            )
            yield RuleFinding(summary=told, value=each.task_id, is_sure=bool(known.created_by))


@rule(
    "A2A-STATE-013",
    "Artifacts of a task changed after its end",
    Severity.ERROR,
    section='1.0 topic "Task Immutability"; 0.3 topic "Life of a Task"',
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.AFTER_TERMINAL,
    also_broken=("A2A-STREAM-005",),
    flagged=rpc_stream(
        "SendStreamingMessage", send(), snapshot(), status("COMPLETED", second=1), chunk()
    ),
    clean=rpc_stream(
        "SendStreamingMessage", send(), snapshot(), chunk(), status("COMPLETED", second=1)
    ),
)
def changed(context: RuleContext) -> Iterator[RuleFinding]:
    """An artifact update follows the terminal state of its task on the same stream, or adds a new
    artifact on a later stream. As a warning: GetTask returns other artifacts than an earlier
    GetTask did, both requested after the end of the task.

    Clients take the result at the terminal state: they never show later additions, and two clients
    hold different results of one task. The agent must send all artifacts before the terminal state.
    """
    frame, request_snapshot = context.frame, context.record.request_snapshot
    if frame.event is EventKind.ARTIFACT:
        revived = (
            request_snapshot is not None
            and request_snapshot.terminal
            and request_snapshot.task_id
            and context.operation in SENDING_OPERATIONS
        )
        if context.record.terminal or not (revived or context.has_flag(FrameFlag.KNOWN_ARTIFACT)):
            was = (
                state_label(context.record.state)
                if context.record.terminal
                else first_terminal_label(context.task)
                if context.task is not None
                else "over"
            )
            told = (
                f"an update of artifact {frame.artifact_id} follows, "
                f"but task {frame.task_id} was already {was}"
            )
            yield RuleFinding(
                summary=told,
                path=context.root
                + object_prefix(frame, context.is_v1, context.operation).rstrip("."),
            )
    elif (
        frame.event is EventKind.TASK
        and context.operation == "GetTask"
        and context.task is not None
    ):
        yield from _compare_snapshots(context, context.task)


def _compare_snapshots(context: RuleContext, task: TaskRecord) -> Iterator[RuleFinding]:
    """Compare a snapshot with the first snapshot returned after the end of the task."""
    request_snapshot, frame = context.record.request_snapshot, context.frame
    if (
        request_snapshot is None
        or not request_snapshot.terminal
        or frame.state not in TERMINAL
        or frame.redacted
        or frame.truncated
    ):
        return
    now = _describe_artifacts(frame)
    before = task.writable_notes().setdefault("artifacts", now)
    if before != now:
        task.writable_notes()["artifacts"] = now
        told = (
            f"task {frame.task_id} was {first_terminal_label(task)}, its artifacts were {before} "
            f"and are now {now}"
        )
        yield RuleFinding(summary=told, path=f"{context.root}artifacts", severity=Severity.WARNING)


def _describe_artifacts(frame: Frame) -> str:
    """Describe the artifacts in a few words that differ if their content does."""
    found = []
    for each in sorted(chunks_of_frame(frame), key=lambda one: one.artifact_id)[:5]:
        content = add_parts(NO_PARTS, each.pieces)
        rest = (
            f", {content.other_parts} other parts of {content.byte_count} bytes"
            if content.other_parts
            else ""
        )
        found.append(
            f"{each.artifact_id[:40]} ({content.length} bytes of text, CRC "
            f"{content.digest:08x}{rest})"
        )
    return "; ".join(found) or "none"


_CANCELED_CALL = rpc("CancelTask", TASK_PARAMS, task("CANCELED", second=1))


@rule(
    "A2A-STATE-018",
    "Task continues after a confirmed cancellation",
    Severity.WARNING,
    section="1.0 3.1.5; 0.3 7.4",
    scope=EvidenceScope.LIVE,
    bindings=RPC | WEBHOOK,
    trigger_flags=FrameFlag.OVERDUE | FrameFlag.TERMINAL,
    flagged=run_together(
        rpc_stream(
            "SendStreamingMessage",
            send(),
            snapshot("WORKING"),
            EventPause(9),
            status("WORKING", second=9, message=agent_reply(taskId="t1")["message"]),
            finish="leave",
        ),
        rpc("CancelTask", TASK_PARAMS, task("CANCELED", second=1)),
        after=SECOND_NS,
    ),
    clean=run_together(
        rpc_stream(
            "SendStreamingMessage",
            send(),
            snapshot("WORKING"),
            EventPause(1),
            status("CANCELED", second=1),
        ),
        _CANCELED_CALL,
        after=SECOND_NS // 2,
    ),
)
def goes_on(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent answered CancelTask with CANCELED, but a stream of the task that was open then
    still delivers another state or an artifact, more than five seconds later or with a later
    timestamp. A push notification counts only with a later timestamp, because it may arrive late.

    The client and its user believe that the work has stopped, while it still costs money and
    changes things. The agent must stop the work before it confirms the cancellation.
    """
    frame, task = context.frame, context.task
    if task is None:
        return
    if not context.has_flag(FrameFlag.OVERDUE):
        if context.operation == "CancelTask" and frame.state == TaskState.CANCELED:
            task.writable_notes()["canceled"] = frame.at
        return
    canceled = (task.notes or {}).get("canceled", 0)
    if canceled and frame.state not in TERMINAL:
        after = (frame.at - canceled) / SECOND_NS
        told = (
            f"task {frame.task_id} was canceled, but {after:.1f} s later the agent sends "
            f"{event_phrase(frame)}"
        )
        yield RuleFinding(
            summary=f"{told} ({state_label(frame.state)})" if frame.state else told,
            path=context.root.rstrip("."),
        )
