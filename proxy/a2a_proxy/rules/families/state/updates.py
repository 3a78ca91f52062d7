"""Status updates, one after the other, and what becomes of a cancellation (1.0 3.1.5, 3.5.2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc, rpc_error, rpc_stream
from a2a_proxy.rules.examples.objects import artifact, reply, send, snapshot, status, task
from a2a_proxy.rules.facts.naming import object_prefix
from a2a_proxy.rules.facts.partial_decode import decode_status, time_before
from a2a_proxy.rules.families.state.terminal import state_label
from a2a_proxy.rules.state.state_sequence import SECOND_NS, TERMINAL

_TASK_PARAMS = {"id": "t1"}
_COMPLETED_CALL = rpc("SendMessage", send(), snapshot("COMPLETED", artifacts=[artifact()]))
_STARTED_CALL = rpc("SendMessage", send(configuration={"returnImmediately": True}), snapshot("WORKING"))


@rule(
    "A2A-STATE-008",
    "The timestamp of a status goes back",
    Severity.WARNING,
    section="1.0 3.5.2",
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.BACKWARDS,
    flagged=rpc_stream(
        "SendStreamingMessage", send(), snapshot(), status("WORKING", second=5), status("COMPLETED", second=1)
    ),
    clean=rpc_stream(
        "SendStreamingMessage", send(), snapshot(), status("WORKING", second=1), status("COMPLETED", second=5)
    ),
)
def backwards(context: RuleContext) -> Iterator[RuleFinding]:
    """The status of an event has a timestamp that is more than a second earlier than one shown on this stream before.

    Where there are no generations, clients put events in order by timestamp: they take this one for an old one.
    """
    behind = time_before(decode_status(context.frame).stamp, context.record.stamp) / SECOND_NS
    path = f"{context.root}{object_prefix(context.frame, context.is_v1, context.operation)}status.timestamp"
    told = (
        f"the timestamp of {state_label(context.frame.state)} is {behind:.1f} s before one that this stream has shown"
    )
    yield RuleFinding(summary=told, path=path)


@rule(
    "A2A-STATE-012",
    "A status update that says nothing new",
    Severity.INFO,
    section="1.0 3.5.2",
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.IDLE,
    also_broken=("A2A-STREAM-020",),
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        status("WORKING", second=1),
        status("WORKING", second=1),
        status("COMPLETED", second=2),
    ),
    clean=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        status("WORKING", second=1),
        status("WORKING", second=2, message=reply("half of it", taskId="t1")),
        status("COMPLETED", second=3),
    ),
)
def idle(context: RuleContext) -> Iterator[RuleFinding]:
    """A status update has the state and the timestamp of the one before on its stream, and neither of them has a
    message or metadata.

    It costs every client and every webhook a message, and tells nothing.
    """
    context.needs_payload()
    frame = context.frame
    if not frame.generation or frame.generation == context.generation_before:
        told = (
            f"the state is {state_label(frame.state)} again, with nothing new: no message, no metadata, the same "
            "timestamp"
        )
        yield RuleFinding(
            summary=told, path=context.root + object_prefix(frame, context.is_v1, context.operation).rstrip(".")
        )


_OTHER_CALL = frozenset(
    {"UNSUPPORTED_OPERATION", "OPERATION_NOT_SUPPORTED", "INVALID_PARAMS", "INVALID_REQUEST", "INVALID_AGENT_RESPONSE"}
)
"""Errors by which an agent says something else; those of a server in trouble, or in its way, are none of them."""


@rule(
    "A2A-STATE-010",
    "Cancelling a task that is over is not refused",
    Severity.ERROR,
    section="1.0 3.1.5",
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.FIRST,
    operations=("CancelTask",),
    flagged=_COMPLETED_CALL + rpc("CancelTask", _TASK_PARAMS, task("COMPLETED", artifacts=[artifact()])),
    clean=_COMPLETED_CALL
    + rpc("CancelTask", _TASK_PARAMS, error=rpc_error(-32002, "TASK_NOT_CANCELABLE", "t1 is completed")),
)
def cancelled(context: RuleContext) -> Iterator[RuleFinding]:
    """CancelTask for a task that is in a terminal state is answered with success, or with an A2A error other than
    TaskNotCancelableError and TaskNotFoundError (a warning). Information where a task that was canceled is shown as
    canceled again.

    The client believes that it has stopped work that was done, or does not learn why it could not.
    """
    request_snapshot, frame = context.record.request_snapshot, context.frame
    if request_snapshot is None or not request_snapshot.terminal:
        return
    was = f"task {request_snapshot.task_id} was {state_label(request_snapshot.state)}"
    if context.is_success and frame.state:
        again = frame.state == request_snapshot.state == TaskState.CANCELED
        told = f"{was}, CancelTask is answered with success in {state_label(frame.state)}"
        yield RuleFinding(summary=told, severity=Severity.INFO if again else None)
    elif context.has_flag(FrameFlag.ERROR) and context.failure.name in _OTHER_CALL:
        told = f"{was}, CancelTask is answered with {context.failure.name}, it must be TASK_NOT_CANCELABLE"
        yield RuleFinding(summary=told, severity=Severity.WARNING)


_CANCEL_WAIT = 30
"""Seconds in which a cancellation should show."""


def _check_canceled(context: RuleContext) -> Iterator[RuleFinding]:
    """Nothing has come of it."""
    if context.task is not None and not context.task.terminal:
        told = (
            f"CancelTask was answered with {context.due_note}, and task {context.task.task_id} is not over "
            f"{_CANCEL_WAIT} s later"
        )
        yield RuleFinding(summary=told, seq=context.due_seq)


@rule(
    "A2A-STATE-011",
    "A cancellation without effect",
    Severity.INFO,
    section="1.0 3.1.5",
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.TASK,
    operations=("CancelTask",),
    due=_check_canceled,
    flagged=_STARTED_CALL
    + rpc("CancelTask", _TASK_PARAMS, task("WORKING")).then(
        rpc("GetTask", _TASK_PARAMS, task("WORKING", second=31)), 31 * SECOND_NS
    ),
    clean=_STARTED_CALL + rpc("CancelTask", _TASK_PARAMS, task("CANCELED", second=1)),
)
def no_effect(context: RuleContext) -> Iterable[RuleFinding]:
    """CancelTask is answered with success and a task that is not in a terminal state, and within 30 seconds none is
    shown on any connection. Asking is allowed to take its time; it should lead to something.

    The user has stopped it, and it works on.
    """
    frame = context.frame
    if context.is_success and frame.state and frame.state not in TERMINAL:
        context.schedule_due(_CANCEL_WAIT, state_label(frame.state))
    return ()
