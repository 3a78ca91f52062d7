"""Rules that compare the task and context ids of a task's events (A2A 1.0 sections 3.1.2,
3.4.2)."""

from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.values import EventKind, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import ALL_BINDINGS, Dialects, EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc, rpc_stream
from a2a_proxy.rules.examples.objects import reply, send, snapshot, state, status, task
from a2a_proxy.rules.facts.naming import are_different, event_phrase, object_prefix

_STREAM_OPERATIONS = frozenset(
    {"SendStreamingMessage", "SubscribeToTask", "SendLiveMessage", "ReconnectToTask"}
)
_PUSH_BINDINGS = frozenset({"SendStreamingMessage", "SubscribeToTask"})
_COMPLETED_EVENT = status("COMPLETED", second=1)
_FOREIGN_EVENT = {"statusUpdate": status("WORKING", second=1)["statusUpdate"] | {"taskId": "t2"}}
_STRAY_EVENT = {"statusUpdate": status("COMPLETED", second=1)["statusUpdate"] | {"contextId": "c2"}}
_FOLLOWED_STREAM = rpc_stream(
    "SendStreamingMessage", send(), snapshot(), status("WORKING"), _COMPLETED_EVENT
)


@rule(
    "A2A-ID-007",
    "Event of another task on a stream",
    Severity.ERROR,
    section="1.0 3.1.2; 0.3 7.2",
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.FOREIGN,
    operations=_PUSH_BINDINGS,
    flagged=rpc_stream(
        "SendStreamingMessage", send(), snapshot(), _FOREIGN_EVENT, _COMPLETED_EVENT
    ),
    clean=_FOLLOWED_STREAM,
)
def foreign(context: RuleContext) -> Iterator[RuleFinding]:
    """A Task, a status update or an artifact update on a stream has another task id than the
    stream's task: the task of the subscription, or else of the first event. On live streams this is
    A2A-LIVE-007.

    Clients apply the event to the task that they follow, or drop it: either way they show one task
    wrongly. The agent must send events of one task only on a stream.
    """
    record, frame = context.record, context.frame
    request_snapshot = (
        record.request_snapshot.task_id
        if record.request_snapshot is not None and context.operation == "SubscribeToTask"
        else ""
    )
    wanted = request_snapshot or record.task_id
    if frame.task_id != wanted and are_different(wanted, frame.task_id):
        told = f"{event_phrase(frame)} of task {frame.task_id} on the stream of task {wanted}"
        name = "id" if frame.event is EventKind.TASK else "taskId"
        yield RuleFinding(
            summary=told,
            path=f"{context.root}{object_prefix(frame, context.is_v1, context.operation)}{name}",
            value=frame.task_id,
        )


def _context_path(context: RuleContext) -> str:
    return (
        f"{context.root}{object_prefix(context.frame, context.is_v1, context.operation)}contextId"
    )


@rule(
    "A2A-ID-008",
    "Event in another context than its stream",
    Severity.ERROR,
    section="1.0 3.4.2; 0.3 7.2.2, 7.2.3",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.FOREIGN,
    operations=_STREAM_OPERATIONS,
    flagged=rpc_stream("SendStreamingMessage", send(), snapshot(), status("WORKING"), _STRAY_EVENT),
    clean=_FOLLOWED_STREAM,
)
def other_context(context: RuleContext) -> Iterator[RuleFinding]:
    """An event of the stream's task has another `contextId` than earlier events of the stream.

    Clients that sort by context put the event into another conversation. The agent must send the
    same `contextId` with all events of a task.
    """
    record, frame = context.record, context.frame
    if frame.task_id == record.task_id and are_different(record.context_id, frame.context_id):
        told = (
            f"{event_phrase(frame)} with context {frame.context_id} on a stream with context "
            f"{record.context_id}"
        )
        yield RuleFinding(summary=told, path=_context_path(context), value=frame.context_id)


@rule(
    "A2A-ID-004",
    "Task changed its context",
    Severity.ERROR,
    section="1.0 3.4.2; 0.3 6.1",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    bindings=ALL_BINDINGS,
    trigger_flags=FrameFlag.FOREIGN,
    flagged=rpc("SendMessage", send(), snapshot("COMPLETED"))
    + rpc("GetTask", {"id": "t1"}, task("COMPLETED", contextId="c2")),
    clean=rpc("SendMessage", send(), snapshot("COMPLETED"))
    + rpc("GetTask", {"id": "t1"}, task("COMPLETED")),
)
def changed_context(context: RuleContext) -> Iterator[RuleFinding]:
    """A task is shown with another `contextId` than in an earlier exchange. Reported once per
    exchange. A change within one stream is A2A-ID-008; an event of a task other than the stream's
    is A2A-ID-007.

    A task belongs to one context for its whole life: clients that group tasks by context lose this
    one. The agent must not change the `contextId` of a task.
    """
    record, frame = context.record, context.frame
    if frame.context_id == context.context_before or record.context_id != frame.context_id:
        return
    if frame.task_id != record.task_id:  # another task on this stream, which is A2A-ID-007
        return
    if are_different(context.context_before, frame.context_id) and not (record.notes or {}).get(
        "A2A-ID-004"
    ):
        record.writable_notes()["A2A-ID-004"] = True
        told = (
            f"task {frame.task_id} was in context {context.context_before}, {event_phrase(frame)} "
            f"now has "
            f"{frame.context_id}"
        )
        yield RuleFinding(summary=told, path=_context_path(context), value=frame.context_id)


_STRAY_MESSAGE = reply("half of it", id="r2", taskId="t2")


@rule(
    "A2A-ID-010",
    "Message inside a task names another task or context",
    Severity.WARNING,
    section="1.0 4.1.4; 0.3 6.4",
    dialects=Dialects.SINCE_0_2,
    bindings=ALL_BINDINGS,
    trigger_flags=FrameFlag.STRAY,
    flagged=rpc("GetTask", {"id": "t1"}, task(status=state("COMPLETED", message=_STRAY_MESSAGE))),
    clean=rpc("GetTask", {"id": "t1"}, task(status=state("COMPLETED", message=reply(taskId="t1")))),
)
def nested(context: RuleContext) -> Iterator[RuleFinding]:
    """The message of a status, or a message in a task's history, has another `taskId` or
    `contextId` than the Task or update that contains it. Messages in the history may omit them.

    It is unclear which of the two is meant; clients that sort messages by these ids lose this one.
    The agent must set the ids of the Task or update, or omit them in the history.
    """
    frame = context.frame
    around = context.object
    place = f"{context.root}{object_prefix(frame, context.is_v1, context.operation)}"
    for path, message in _status_messages(around):
        for name, outer in (("taskId", frame.task_id), ("contextId", frame.context_id)):
            inner = message.get(name)
            if isinstance(inner, str) and are_different(outer, inner):
                told = f"{path} has {name} {inner}, but {event_phrase(frame)} around it has {outer}"
                yield RuleFinding(summary=told, path=f"{place}{path}.{name}", value=inner)


def _status_messages(holder: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield path and value of the status message and of each message in the history."""
    held = holder.get("status")
    said = held.get("message") if isinstance(held, dict) else None
    if isinstance(said, dict):
        yield "status.message", said
    history = holder.get("history")
    for index, each in enumerate(history if isinstance(history, list) else ()):
        if isinstance(each, dict):
            yield f"history[{index}]", each
