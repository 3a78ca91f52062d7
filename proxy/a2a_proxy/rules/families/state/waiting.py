"""States in which a task waits, and going back (A2A 1.0 sections 3.4.3, 7.6.1)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import ALL_BINDINGS, Dialects, EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc, rpc_stream
from a2a_proxy.rules.examples.objects import input_required, reply, send, snapshot, state, status
from a2a_proxy.rules.facts.naming import event_phrase, object_prefix
from a2a_proxy.rules.facts.partial_decode import decode_status, time_before
from a2a_proxy.rules.families.state.terminal import state_label
from a2a_proxy.rules.state.records import TaskRecord
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS, TERMINAL

_WORKING_EVENTS = frozenset({TaskState.WORKING, TaskState.COMPLETED})
_QUESTION_EVENT = reply("which one?", id="q1", taskId="t1")
_AUTH_EVENT = state("AUTH_REQUIRED", message=reply("a token for the calendar, please", id="q1", taskId="t1"))
_QUESTION_CALL = rpc("SendMessage", send(), snapshot("INPUT_REQUIRED", status=input_required()))


def _status_path(context: RuleContext) -> str:
    return f"{context.root}{object_prefix(context.frame, context.is_v1, context.operation)}status"


@rule(
    "A2A-STATE-002",
    "A task went back to SUBMITTED",
    Severity.WARNING,
    section="1.0 4.1.3",
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.CHANGED,
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot("WORKING"),
        status("SUBMITTED", second=1),
        status("COMPLETED", second=2),
    ),
    clean=rpc_stream("SendStreamingMessage", send(), snapshot(), status("WORKING"), status("COMPLETED", second=1)),
)
def back(context: RuleContext) -> Iterator[RuleFinding]:
    """A task that this stream has shown in another state, or that a message went on with in another state, is shown as
    SUBMITTED.

    SUBMITTED means that the agent has the task and has not begun. Progress displays start again, and what waits for the
    state to advance waits on.
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
    if before and before not in TERMINAL:
        told = f"task {frame.task_id} was {state_label(before)}, {event_phrase(frame)} now says submitted"
        yield RuleFinding(summary=told, path=f"{_status_path(context)}.state", value="submitted")


@rule(
    "A2A-STATE-003",
    "A task left INPUT_REQUIRED without input",
    Severity.WARNING,
    section="1.0 3.4.3",
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
    clean=_QUESTION_CALL + rpc("SendMessage", send("this one", id="m2", taskId="t1"), snapshot("COMPLETED", second=2)),
)
def unasked(context: RuleContext) -> Iterator[RuleFinding]:
    """A task goes from INPUT_REQUIRED to WORKING or COMPLETED, and no client has sent it a message since the state
    before that, on any connection seen. FAILED, CANCELED and REJECTED need none.

    A client that shows the question has the answer form open for nothing; if the agent has answered for the user, no
    one knows with what.
    """
    frame, task = context.frame, context.task
    if frame.state not in _WORKING_EVENTS or task is None or not _is_after_input(context):
        return
    if task.client_message_at <= _input_began(task):
        told = f"task {frame.task_id} was input-required, {event_phrase(frame)} says {state_label(frame.state)}"
        yield RuleFinding(summary=f"{told}, and no message came in between", path=f"{_status_path(context)}.state")


def _is_after_input(context: RuleContext) -> bool:
    """INPUT_REQUIRED is what this stream has shown last; or a snapshot is later than that was, by its timestamp."""
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
    """When the state before INPUT_REQUIRED began: a message after that may have waited for it. The change to the
    present state is the last entry."""
    states = task.states[:-1]
    index = max((at for at, (_, state) in enumerate(states) if state == TaskState.INPUT_REQUIRED), default=0)
    return states[index - 1][0] if index else task.first


@rule(
    "A2A-STATE-006",
    "AUTH_REQUIRED without an explanation",
    Severity.WARNING,
    section="1.0 7.6.1",
    dialects=Dialects.V1,
    bindings=ALL_BINDINGS,
    trigger_flags=FrameFlag.INTERRUPTED,
    flagged=rpc("SendMessage", send(), snapshot("AUTH_REQUIRED")),
    clean=rpc("SendMessage", send(), snapshot("AUTH_REQUIRED", status=_AUTH_EVENT)),
)
def unexplained(context: RuleContext) -> Iterator[RuleFinding]:
    """A task goes to AUTH_REQUIRED, and its status has no message. The message has to say which credentials are wanted,
    unless that was agreed upon in another way, which cannot be seen.

    A client has nothing to show to its user, and nothing to get credentials with.
    """
    if context.frame.state == TaskState.AUTH_REQUIRED and _is_silent_change(context):
        told = f"task {context.frame.task_id} is auth-required, and its status has no message that says what is wanted"
        yield RuleFinding(summary=told, path=_status_path(context))


def _is_silent_change(context: RuleContext) -> bool:
    """The state is new, and the status has no message."""
    frame = context.frame
    if not context.has_flag(FrameFlag.CHANGED) or frame.message_id or frame.truncated:
        return False
    return decode_status(frame).message_content is None


@rule(
    "A2A-STATE-007",
    "INPUT_REQUIRED without a question",
    Severity.INFO,
    section="1.0 3.4.3",
    bindings=ALL_BINDINGS,
    trigger_flags=FrameFlag.INTERRUPTED,
    flagged=rpc("SendMessage", send(), snapshot("INPUT_REQUIRED")),
    clean=_QUESTION_CALL,
)
def unquestioned(context: RuleContext) -> Iterator[RuleFinding]:
    """A task goes to INPUT_REQUIRED, and its status has no message.

    A client can tell its user that something is missing, but not what.
    """
    if context.frame.state == TaskState.INPUT_REQUIRED and _is_silent_change(context):
        told = f"task {context.frame.task_id} is input-required, and its status has no message that asks for something"
        yield RuleFinding(summary=told, path=_status_path(context))
