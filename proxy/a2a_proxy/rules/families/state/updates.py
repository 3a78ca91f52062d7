"""Status updates, one after the other, and what becomes of a cancellation (1.0 3.1.5, 3.5.2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import EvidenceScope, FrameFlag, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc, rpc_error, rpc_stream
from a2a_proxy.rules.examples.objects import artifact, reply, send, snapshot, status, task
from a2a_proxy.rules.facts.naming import holder
from a2a_proxy.rules.facts.partial_decode import earlier, status_of
from a2a_proxy.rules.families.state.terminal import label
from a2a_proxy.rules.state.state_sequence import SECOND, TERMINAL

_GET = {"id": "t1"}
_DONE = rpc("SendMessage", send(), snapshot("COMPLETED", artifacts=[artifact()]))
_STARTED = rpc("SendMessage", send(configuration={"returnImmediately": True}), snapshot("WORKING"))


@rule(
    "A2A-STATE-008",
    "The timestamp of a status goes back",
    Severity.WARNING,
    section="1.0 3.5.2",
    scope=EvidenceScope.EXCHANGE,
    when=FrameFlag.BACKWARDS,
    flagged=rpc_stream(
        "SendStreamingMessage", send(), snapshot(), status("WORKING", second=5), status("COMPLETED", second=1)
    ),
    clean=rpc_stream(
        "SendStreamingMessage", send(), snapshot(), status("WORKING", second=1), status("COMPLETED", second=5)
    ),
)
def backwards(see: RuleContext) -> Iterator[RuleFinding]:
    """The status of an event has a timestamp that is more than a second earlier than one shown on this stream before.

    Where there are no generations, clients put events in order by timestamp: they take this one for an old one.
    """
    behind = earlier(status_of(see.frame).stamp, see.track.stamp) / SECOND
    path = f"{see.root}{holder(see.frame, see.v1, see.operation)}status.timestamp"
    told = f"the timestamp of {label(see.frame.state)} is {behind:.1f} s before one that this stream has shown"
    yield RuleFinding(summary=told, path=path)


@rule(
    "A2A-STATE-012",
    "A status update that says nothing new",
    Severity.INFO,
    section="1.0 3.5.2",
    scope=EvidenceScope.EXCHANGE,
    when=FrameFlag.IDLE,
    also=("A2A-STREAM-020",),
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
        status("WORKING", second=2, said=reply("half of it", taskId="t1")),
        status("COMPLETED", second=3),
    ),
)
def idle(see: RuleContext) -> Iterator[RuleFinding]:
    """A status update has the state and the timestamp of the one before on its stream, and neither of them has a
    message or metadata.

    It costs every client and every webhook a message, and tells nothing.
    """
    see.needs_payload()
    frame = see.frame
    if not frame.generation or frame.generation == see.generation_before:
        told = f"the state is {label(frame.state)} again, with nothing new: no message, no metadata, the same timestamp"
        yield RuleFinding(summary=told, path=see.root + holder(frame, see.v1, see.operation).rstrip("."))


_OTHER = frozenset(
    {"UNSUPPORTED_OPERATION", "OPERATION_NOT_SUPPORTED", "INVALID_PARAMS", "INVALID_REQUEST", "INVALID_AGENT_RESPONSE"}
)
"""Errors by which an agent says something else; those of a server in trouble, or in its way, are none of them."""


@rule(
    "A2A-STATE-010",
    "Cancelling a task that is over is not refused",
    Severity.ERROR,
    section="1.0 3.1.5",
    scope=EvidenceScope.LIVE,
    when=FrameFlag.FIRST,
    operations=("CancelTask",),
    flagged=_DONE + rpc("CancelTask", _GET, task("COMPLETED", artifacts=[artifact()])),
    clean=_DONE + rpc("CancelTask", _GET, error=rpc_error(-32002, "TASK_NOT_CANCELABLE", "t1 is completed")),
)
def cancelled(see: RuleContext) -> Iterator[RuleFinding]:
    """CancelTask for a task that is in a terminal state is answered with success, or with an A2A error other than
    TaskNotCancelableError and TaskNotFoundError (a warning). Information where a task that was canceled is shown as
    canceled again.

    The client believes that it has stopped work that was done, or does not learn why it could not.
    """
    asked, frame = see.track.asked, see.frame
    if asked is None or not asked.terminal:
        return
    was = f"task {asked.task_id} was {label(asked.state)}"
    if see.succeeded and frame.state:
        again = frame.state == asked.state == TaskState.CANCELED
        told = f"{was}, CancelTask is answered with success in {label(frame.state)}"
        yield RuleFinding(summary=told, severity=Severity.INFO if again else None)
    elif see.is_(FrameFlag.ERROR) and see.failure.name in _OTHER:
        told = f"{was}, CancelTask is answered with {see.failure.name}, it must be TASK_NOT_CANCELABLE"
        yield RuleFinding(summary=told, severity=Severity.WARNING)


_WAIT = 30
"""Seconds in which a cancellation should show."""


def _not_canceled(see: RuleContext) -> Iterator[RuleFinding]:
    """Nothing has come of it."""
    if see.task is not None and not see.task.terminal:
        told = f"CancelTask was answered with {see.due_note}, and task {see.task.task_id} is not over {_WAIT} s later"
        yield RuleFinding(summary=told, seq=see.due_seq)


@rule(
    "A2A-STATE-011",
    "A cancellation without effect",
    Severity.INFO,
    section="1.0 3.1.5",
    scope=EvidenceScope.LIVE,
    when=FrameFlag.TASK,
    operations=("CancelTask",),
    due=_not_canceled,
    flagged=_STARTED
    + rpc("CancelTask", _GET, task("WORKING")).then(rpc("GetTask", _GET, task("WORKING", second=31)), 31 * SECOND),
    clean=_STARTED + rpc("CancelTask", _GET, task("CANCELED", second=1)),
)
def no_effect(see: RuleContext) -> Iterable[RuleFinding]:
    """CancelTask is answered with success and a task that is not in a terminal state, and within 30 seconds none is
    shown on any connection. Asking is allowed to take its time; it should lead to something.

    The user has stopped it, and it works on.
    """
    frame = see.frame
    if see.succeeded and frame.state and frame.state not in TERMINAL:
        see.later(_WAIT, label(frame.state))
    return ()
