"""Do the events of a task name the same task and context throughout? (A2A 1.0 sections 3.1.2, 3.4.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import EventKind
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import EVERY, Dialects, EvidenceScope, FrameFlag, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc, rpc_stream
from a2a_proxy.rules.examples.objects import reply, send, snapshot, state, status, task
from a2a_proxy.rules.facts.naming import differ, holder, named

_STREAMED = frozenset({"SendStreamingMessage", "SubscribeToTask", "SendLiveMessage", "ReconnectToTask"})
_ONE_WAY = frozenset({"SendStreamingMessage", "SubscribeToTask"})
_DONE = status("COMPLETED", second=1)
_FOREIGN = {"statusUpdate": status("WORKING", second=1)["statusUpdate"] | {"taskId": "t2"}}
_ASTRAY = {"statusUpdate": status("COMPLETED", second=1)["statusUpdate"] | {"contextId": "c2"}}
_FOLLOWED = rpc_stream("SendStreamingMessage", send(), snapshot(), status("WORKING"), _DONE)


@rule(
    "A2A-ID-007",
    "Event of another task on a stream",
    Severity.ERROR,
    section="1.0 3.1.2",
    scope=EvidenceScope.EXCHANGE,
    when=FrameFlag.FOREIGN,
    operations=_ONE_WAY,
    flagged=rpc_stream("SendStreamingMessage", send(), snapshot(), _FOREIGN, _DONE),
    clean=_FOLLOWED,
)
def foreign(see: RuleContext) -> Iterator[RuleFinding]:
    """A Task, a status update or an artifact update on a stream has another task id than the stream's task: the one
    that was subscribed to, else that of the first event. On a live stream it is A2A-LIVE-007.

    Clients apply the event to the task they follow, or drop it: either way one task is shown wrong.
    """
    track, frame = see.track, see.frame
    asked = track.asked.task_id if track.asked is not None and see.operation == "SubscribeToTask" else ""
    wanted = asked or track.task_id
    if frame.task_id != wanted and differ(wanted, frame.task_id):
        told = f"{named(frame)} of task {frame.task_id} on the stream of task {wanted}"
        name = "id" if frame.event is EventKind.TASK else "taskId"
        yield RuleFinding(
            summary=told, path=f"{see.root}{holder(frame, see.v1, see.operation)}{name}", value=frame.task_id
        )


def _path(see: RuleContext) -> str:
    return f"{see.root}{holder(see.frame, see.v1, see.operation)}contextId"


@rule(
    "A2A-ID-008",
    "Event in another context than the stream",
    Severity.ERROR,
    section="1.0 3.4.2",
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.SINCE_0_2,
    when=FrameFlag.FOREIGN,
    operations=_STREAMED,
    flagged=rpc_stream("SendStreamingMessage", send(), snapshot(), status("WORKING"), _ASTRAY),
    clean=_FOLLOWED,
)
def other_context(see: RuleContext) -> Iterator[RuleFinding]:
    """An event of a stream's task has another `contextId` than the stream has shown before.

    Clients that sort by context file the event in another conversation.
    """
    track, frame = see.track, see.frame
    if frame.task_id == track.task_id and differ(track.context_id, frame.context_id):
        told = f"{named(frame)} in context {frame.context_id} on a stream in context {track.context_id}"
        yield RuleFinding(summary=told, path=_path(see), value=frame.context_id)


@rule(
    "A2A-ID-004",
    "A task changed its context",
    Severity.ERROR,
    section="1.0 3.4.2",
    scope=EvidenceScope.LIVE,
    lines=Dialects.SINCE_0_2,
    bindings=EVERY,
    when=FrameFlag.FOREIGN,
    flagged=rpc("SendMessage", send(), snapshot("COMPLETED"))
    + rpc("GetTask", {"id": "t1"}, task("COMPLETED", contextId="c2")),
    clean=rpc("SendMessage", send(), snapshot("COMPLETED")) + rpc("GetTask", {"id": "t1"}, task("COMPLETED")),
)
def changed_context(see: RuleContext) -> Iterator[RuleFinding]:
    """A known task is shown with another `contextId` than before, in another exchange. Told once an exchange; a change
    within one stream is A2A-ID-008, an event of another task than the stream's is A2A-ID-007.

    A task belongs to one context for good. Clients that group tasks by context lose this one.
    """
    track, frame = see.track, see.frame
    if frame.context_id == see.context_before or track.context_id != frame.context_id:
        return
    if frame.task_id != track.task_id:  # the wrong id on its stream, in the right context
        return
    if differ(see.context_before, frame.context_id) and not (track.notes or {}).get("A2A-ID-004"):
        track.remember()["A2A-ID-004"] = True
        told = f"task {frame.task_id} was in context {see.context_before}, {named(frame)} says {frame.context_id}"
        yield RuleFinding(summary=told, path=_path(see), value=frame.context_id)


_STRAY = reply("half of it", id="r2", taskId="t2")


@rule(
    "A2A-ID-010",
    "A message inside a task names another task or context",
    Severity.WARNING,
    section="1.0 4.1.4",
    lines=Dialects.SINCE_0_2,
    bindings=EVERY,
    when=FrameFlag.STRAY,
    flagged=rpc("GetTask", {"id": "t1"}, task(status=state("COMPLETED", message=_STRAY))),
    clean=rpc("GetTask", {"id": "t1"}, task(status=state("COMPLETED", message=reply(taskId="t1")))),
)
def nested(see: RuleContext) -> Iterator[RuleFinding]:
    """The message of a status, or one in a task's history, has a `taskId` or `contextId` other than the task or update
    around it. Messages in the history may be without.

    Nobody can tell which of the two is meant; clients that sort messages by these ids lose this one.
    """
    frame = see.frame
    around = see.object
    place = f"{see.root}{holder(frame, see.v1, see.operation)}"
    for path, message in _messages(around):
        for name, outer in (("taskId", frame.task_id), ("contextId", frame.context_id)):
            inner = message.get(name)
            if isinstance(inner, str) and differ(outer, inner):
                told = f"{path} has {name} {inner}, {named(frame)} around it has {outer}"
                yield RuleFinding(summary=told, path=f"{place}{path}.{name}", value=inner)


def _messages(around: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Path and value of each."""
    held = around.get("status")
    said = held.get("message") if isinstance(held, dict) else None
    if isinstance(said, dict):
        yield "status.message", said
    history = around.get("history")
    for index, each in enumerate(history if isinstance(history, list) else ()):
        if isinstance(each, dict):
            yield f"history[{index}]", each
