"""Rules about states in which a task waits, and about going back to SUBMITTED (A2A 1.0 sections
3.4.3, 7.6.1)."""

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Severity
from a2a_proxy.protocol.status_summary import decode_status
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import ALL_BINDINGS, Dialects, EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import QUESTION_CALL, rpc, rpc_stream
from a2a_proxy.rules.examples.objects import reply, send, snapshot, state, status
from a2a_proxy.rules.facts.compared_values import time_before
from a2a_proxy.rules.facts.naming import event_phrase, object_prefix, state_label
from a2a_proxy.rules.state.records import TaskRecord
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS
from a2a_proxy.rules.state.transitions import Change, change_of

_INPUT_REQUIRED = int(TaskState.INPUT_REQUIRED)
_QUESTION_EVENT = reply("which one?", id="q1", taskId="t1")
_AUTH_EVENT = state(
    "AUTH_REQUIRED", message=reply("a token for the calendar, please", id="q1", taskId="t1")
)


def _status_path(context: RuleContext) -> str:
    return f"{context.root}{object_prefix(context.frame, context.is_v1, context.operation)}status"


@rule(
    "A2A-STATE-002",
    "Task went back to SUBMITTED",
    Severity.WARNING,
    section="1.0 4.1.3; 0.3 6.3",
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.CHANGED,
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot("WORKING"),
        status("SUBMITTED", second=1),
        status("COMPLETED", second=2),
    ),
    clean=rpc_stream(
        "SendStreamingMessage", send(), snapshot(), status("WORKING"), status("COMPLETED", second=1)
    ),
)
def back(context: RuleContext) -> Iterator[RuleFinding]:
    """A task is shown as SUBMITTED although this stream has shown it in another state, or the
    message of this call was sent to it in another state.

    SUBMITTED means that the agent has the task and has not started it. Progress displays start
    again, and a client that waits for progress waits longer. The agent must keep a started task in
    WORKING or a later state.
    """
    frame, request_snapshot = context.frame, context.record.request_snapshot
    if frame.state != TaskState.SUBMITTED or context.has_flag(FrameFlag.STALE):
        return
    before = context.stream_state_before
    if (
        not before
        and request_snapshot is not None
        and request_snapshot.task_id == frame.task_id
        and context.operation in SENDING_OPERATIONS
    ):
        before = request_snapshot.state
    if change_of(before, frame.state) is Change.BACK:
        told = (
            f"task {frame.task_id} was {state_label(before)}, but {event_phrase(frame)} now shows "
            f"submitted"
        )
        yield RuleFinding(summary=told, path=f"{_status_path(context)}.state", value="submitted")


@rule(
    "A2A-STATE-003",
    "Task left INPUT_REQUIRED without input",
    Severity.WARNING,
    section="1.0 3.4.3; 0.3 9.4",
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.CHANGED,
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        status("INPUT_REQUIRED", second=1, message=_QUESTION_EVENT),
        status("WORKING", second=2),
        status("COMPLETED", second=3),
    ),
    clean=QUESTION_CALL
    + rpc("SendMessage", send("this one", id="m2", taskId="t1"), snapshot("COMPLETED", second=2)),
)
def unasked(context: RuleContext) -> Iterator[RuleFinding]:
    """A task goes from INPUT_REQUIRED to WORKING or COMPLETED although no client has sent it a
    message since the state before that, on any recorded connection. FAILED, CANCELED and REJECTED
    need no message.

    A client that shows the question keeps its answer form open for nothing; if the agent answered
    for the user, the answer is unknown. The agent should wait for the message. If another client
    answered on a connection that is not recorded, nothing is wrong.
    """
    frame, task = context.frame, context.task
    answered = change_of(_INPUT_REQUIRED, frame.state) is Change.ANSWERED
    if not answered or task is None or not _is_after_input(context):
        return
    if task.client_message_at <= _input_began(task):
        told = (
            f"task {frame.task_id} was input-required, but {event_phrase(frame)} shows "
            f"{state_label(frame.state)}"
        )
        yield RuleFinding(
            summary=f"{told} without a message from a client in between",
            path=f"{_status_path(context)}.state",
        )


def _is_after_input(context: RuleContext) -> bool:
    """Whether this stream has last shown INPUT_REQUIRED, or a snapshot is later than that state by
    its timestamp."""
    if context.stream_state_before or context.operation in SENDING_OPERATIONS:
        return context.stream_state_before == TaskState.INPUT_REQUIRED
    request_snapshot = context.record.request_snapshot
    if (
        request_snapshot is None
        or request_snapshot.state != TaskState.INPUT_REQUIRED
        or context.state_before != request_snapshot.state
    ):
        return False
    return time_before(request_snapshot.stamp, decode_status(context.frame).stamp) > 0


def _input_began(task: TaskRecord) -> int:
    """Return the time at which the state before INPUT_REQUIRED began, ns: a message sent after that
    may have waited for the question. The last entry of the states is the current one."""
    states = task.states[:-1]
    index = max(
        (at for at, (_, state) in enumerate(states) if state == TaskState.INPUT_REQUIRED), default=0
    )
    return states[index - 1][0] if index else task.first


@rule(
    "A2A-STATE-006",
    "AUTH_REQUIRED without a message",
    Severity.WARNING,
    section="1.0 7.6.1; 0.3 4.5",
    dialects=Dialects.SINCE_0_2,
    bindings=ALL_BINDINGS,
    trigger_flags=FrameFlag.INTERRUPTED,
    flagged=rpc("SendMessage", send(), snapshot("AUTH_REQUIRED")),
    clean=rpc("SendMessage", send(), snapshot("AUTH_REQUIRED", status=_AUTH_EVENT)),
)
def unexplained(context: RuleContext) -> Iterator[RuleFinding]:
    """A task goes to AUTH_REQUIRED, and its status has no message. The message must say which
    credentials are needed, unless this was agreed in another way, which a recording cannot show.

    The client can neither explain the request to its user nor obtain credentials. The agent must
    send a message with the status.
    """
    if context.frame.state == TaskState.AUTH_REQUIRED and _is_silent_change(context):
        told = (
            f"task {context.frame.task_id} is auth-required, but its status has no message about "
            f"the credentials"
        )
        yield RuleFinding(summary=told, path=_status_path(context))


def _is_silent_change(context: RuleContext) -> bool:
    """Whether the state is new and the status has no message."""
    frame = context.frame
    if not context.has_flag(FrameFlag.CHANGED) or frame.message_id or frame.truncated:
        return False
    return decode_status(frame).message_content is None


@rule(
    "A2A-STATE-007",
    "INPUT_REQUIRED without a message",
    Severity.INFO,
    section="1.0 3.4.3; 0.3 9.4",
    bindings=ALL_BINDINGS,
    trigger_flags=FrameFlag.INTERRUPTED,
    flagged=rpc("SendMessage", send(), snapshot("INPUT_REQUIRED")),
    clean=QUESTION_CALL,
)
def unquestioned(context: RuleContext) -> Iterator[RuleFinding]:
    """A task goes to INPUT_REQUIRED, and its status has no message.

    The client can tell its user that input is missing, but not which. The agent should send its
    question as the message of the status.
    """
    if context.frame.state == TaskState.INPUT_REQUIRED and _is_silent_change(context):
        told = (
            f"task {context.frame.task_id} is input-required, but its status has no message with a "
            f"question"
        )
        yield RuleFinding(summary=told, path=_status_path(context))
