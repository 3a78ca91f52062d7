"""Rules about successive status updates, content that a task shows twice, and the effect of a
cancellation (A2A 1.0 sections 3.1.5, 3.4.3, 3.5.2, 3.7)."""

from collections.abc import Iterable, Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import EventKind, Severity
from a2a_proxy.protocol.artifact_chunks import chunks_of_frame
from a2a_proxy.protocol.client_messages import message_key
from a2a_proxy.protocol.status_summary import decode_status
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import Dialects, EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import (
    COMPLETED_CALL,
    STARTED_CALL,
    Event,
    rpc,
    rpc_error,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import (
    TASK_PARAMS,
    artifact,
    chunk,
    reply,
    send,
    snapshot,
    status,
    task,
)
from a2a_proxy.rules.examples.script import Script
from a2a_proxy.rules.facts.compared_values import NO_PARTS, PartsSummary, add_parts, time_before
from a2a_proxy.rules.facts.naming import object_prefix, state_label
from a2a_proxy.rules.state.records import TaskRecord
from a2a_proxy.rules.state.state_sequence import MIN_REPEATED, SECOND_NS, TERMINAL

_ANSWER_TEXT = "It rains in Oslo"


@rule(
    "A2A-STATE-008",
    "Timestamp of a status goes back",
    Severity.WARNING,
    section="1.0 3.5.2; 0.3 6.2",
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.BACKWARDS,
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        status("WORKING", second=5),
        status("COMPLETED", second=1),
    ),
    clean=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        status("WORKING", second=1),
        status("COMPLETED", second=5),
    ),
)
def backwards(context: RuleContext) -> Iterator[RuleFinding]:
    """The status of an event has a timestamp more than a second earlier than one already sent on
    the same stream.

    Clients without generations sort events by timestamp, so they take this event for an old one and
    ignore it. The agent must not send an older status after a newer one; if several instances serve
    the task, their clocks must agree.
    """
    behind = time_before(decode_status(context.frame).stamp, context.record.stamp) / SECOND_NS
    prefix = object_prefix(context.frame, context.is_v1, context.operation)
    told = (
        f"the timestamp of state {state_label(context.frame.state)} is {behind:.1f} s "
        "before an earlier one of this stream"
    )
    yield RuleFinding(summary=told, path=f"{context.root}{prefix}status.timestamp")


_OTHER_CALL = frozenset(
    {
        "UNSUPPORTED_OPERATION",
        "OPERATION_NOT_SUPPORTED",
        "INVALID_PARAMS",
        "INVALID_REQUEST",
        "INVALID_AGENT_RESPONSE",
    }
)
"""Errors with which an agent refuses the call for another reason. Server failures and access errors
are not included.
"""


@rule(
    "A2A-STATE-010",
    "Cancelling a task that has ended is not refused",
    Severity.ERROR,
    section="1.0 3.1.5; 0.3 7.4",
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.FIRST,
    operations=("CancelTask",),
    flagged=COMPLETED_CALL
    + rpc("CancelTask", TASK_PARAMS, task("COMPLETED", artifacts=[artifact()])),
    clean=COMPLETED_CALL
    + rpc(
        "CancelTask",
        TASK_PARAMS,
        error=rpc_error(-32002, "TASK_NOT_CANCELABLE", "t1 is completed"),
    ),
)
def cancelled(context: RuleContext) -> Iterator[RuleFinding]:
    """CancelTask for a task in a terminal state is answered with success, or with an A2A error
    other than TaskNotCancelableError and TaskNotFoundError (a warning). It is information if a
    canceled task is returned as canceled again.

    The client believes that it has stopped work that was already done, or does not learn why it
    could not be stopped. The agent must answer TaskNotCancelableError.
    """
    request_snapshot, frame = context.record.request_snapshot, context.frame
    if request_snapshot is None or not request_snapshot.terminal:
        return
    was = f"task {request_snapshot.task_id} was {state_label(request_snapshot.state)}"
    if context.is_success and frame.state:
        again = frame.state == request_snapshot.state == TaskState.CANCELED
        told = (
            f"{was}, but CancelTask is answered with success and the state "
            f"{state_label(frame.state)}"
        )
        yield RuleFinding(summary=told, severity=Severity.INFO if again else None)
    elif context.has_flag(FrameFlag.ERROR) and context.failure.name in _OTHER_CALL:
        told = (
            f"{was}; CancelTask is answered with {context.failure.name} instead of "
            f"TASK_NOT_CANCELABLE"
        )
        yield RuleFinding(summary=told, severity=Severity.WARNING)


_CANCEL_WAIT = 30
"""Seconds within which a cancellation should have an effect."""
_CANCEL_RACE = 5
"""Seconds after the answer within which a task may still complete: the cancellation came too late
to stop it."""


def _check_canceled(context: RuleContext) -> Iterator[RuleFinding]:
    """Report a cancellation that has had no effect. At the end of the session, only a task that was
    completed."""
    task, confirmed = context.task, context.due_at - _CANCEL_WAIT * SECOND_NS
    if task is None or (context.is_early and not task.terminal):
        return
    after = (task.terminal - confirmed) / SECOND_NS
    if not task.terminal:
        told = f"has not ended {_CANCEL_WAIT} s later"
    elif (
        task.state == TaskState.COMPLETED
        and after > _CANCEL_RACE
        and task.client_message_at < confirmed
    ):
        told = f"continued and was completed {after:.0f} s later"
    else:
        return
    yield RuleFinding(
        summary=f"CancelTask was answered with state {context.due_note}, but "
        f"task {task.task_id} {told}",
        seq=context.due_seq,
        is_final=bool(task.terminal),
    )


@rule(
    "A2A-STATE-011",
    "Cancellation without effect",
    Severity.INFO,
    section="1.0 3.1.5; 0.3 7.4",
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.TASK,
    operations=("CancelTask",),
    due=_check_canceled,
    settled_at_end=True,
    flagged=(STARTED_CALL + rpc("CancelTask", TASK_PARAMS, task("WORKING")))
    .then(rpc("GetTask", TASK_PARAMS, task("COMPLETED", second=12)), 12 * SECOND_NS)
    .then(rpc("GetTask", TASK_PARAMS, task("COMPLETED", second=12)), 19 * SECOND_NS),
    clean=STARTED_CALL + rpc("CancelTask", TASK_PARAMS, task("CANCELED", second=1)),
)
def no_effect(context: RuleContext) -> Iterable[RuleFinding]:
    """CancelTask is answered with success and a task that is not in a terminal state, and within 30
    seconds no connection shows it in one, or the task is COMPLETED more than five seconds after
    that answer although no client has sent a message to it. A cancellation may take time, but it
    should lead to an end.

    The user has stopped the task, but it continues to run. The agent should end the task as
    CANCELED, or refuse the cancellation with an error.
    """
    frame = context.frame
    if context.is_success and frame.state and frame.state not in TERMINAL:
        context.schedule_due(_CANCEL_WAIT, state_label(frame.state))
    return ()


def _send_stream(*events: Event) -> Script:
    return rpc_stream("SendStreamingMessage", send(), snapshot(), *events)


def _completed(text: str) -> dict[str, object]:
    return status("COMPLETED", second=1, message=reply(text, taskId="t1"))


@rule(
    "A2A-STATE-019",
    "Result sent twice",
    Severity.INFO,
    section="1.0 3.7; 0.3 6.1",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.TERMINAL,
    flagged=_send_stream(chunk(_ANSWER_TEXT, lastChunk=True), _completed(_ANSWER_TEXT)),
    clean=_send_stream(chunk(_ANSWER_TEXT, lastChunk=True), _completed("done")),
)
def sent_twice(context: RuleContext) -> Iterator[RuleFinding]:
    """A task is COMPLETED, and the text of its status message is the complete text of one of its
    artifacts. An artifact of several updates counts with their joined text. Or a status message
    that this stream sent before, or all of them joined, has at least 16 bytes and is the text of an
    artifact or of the last status message.

    A client that shows messages and artifacts shows the result twice. The agent should send the
    result as an artifact only, and leave the message out or write a remark into it.
    """
    frame, task = context.frame, context.task
    if (
        task is None
        or frame.state != TaskState.COMPLETED
        or not context.has_flag(FrameFlag.CHANGED)
    ):
        return
    if frame.redacted or frame.truncated:
        return
    message, earlier = context.status_summary.message_content, _earlier_messages(context, task)
    if not (message or earlier):
        return
    shown = (
        {each.artifact_id: add_parts(NO_PARTS, each.pieces) for each in chunks_of_frame(frame)}
        if frame.event is EventKind.TASK
        else {name: each.content for name, each in task.artifacts.items() if each.is_fully_recorded}
    )
    said = add_parts(NO_PARTS, [message or b""])
    if (said in earlier or said in shown.values()) and _has_other_parts(context):
        said = NO_PARTS
    if said in earlier:
        told = f"the status message of task {task.task_id} repeats {earlier[said]}"
        yield RuleFinding(summary=f"{told} ({said.length} bytes)", path=_message_path(context))
        return
    for name, content in shown.items():
        is_message = said.length and content == said
        if is_message or content in earlier:
            repeated = "the status message" if is_message else earlier[content]
            told = f"{repeated} of task {task.task_id} repeats the text of artifact {name}"
            yield RuleFinding(
                summary=f"{told} ({content.length} bytes)",
                path=_message_path(context) if is_message else "",
                value=name,
            )
            return


def _earlier_messages(context: RuleContext, task: TaskRecord) -> dict[PartsSummary, str]:
    """Return the texts that this stream has sent in status messages before the end, with what each
    is in words."""
    record = context.record
    own = message_key(context.frame.message_id)
    known = [task.last_message, *(task.status_messages or {}).values()]
    found = {
        PartsSummary(each.length, each.digest): "an earlier status message"
        for each in known
        if each is not None and each.exchange == record.id and each.ident != own
    }
    if record.said_count > 1:
        joined = PartsSummary(record.said_length, record.said_digest)
        found.setdefault(joined, f"the joined text of {record.said_count} earlier status messages")
    return {each: words for each, words in found.items() if each.length >= MIN_REPEATED}


def _has_other_parts(context: RuleContext) -> bool:
    """Whether the status message has parts that are not text."""
    held = context.object.get("status")
    message = held.get("message") if isinstance(held, dict) else None
    parts = message.get("parts") if isinstance(message, dict) else None
    return isinstance(parts, list) and not all(
        isinstance(each, dict) and isinstance(each.get("text"), str) for each in parts
    )


def _message_path(context: RuleContext) -> str:
    prefix = object_prefix(context.frame, context.is_v1, context.operation)
    return f"{context.root}{prefix}status.message"
