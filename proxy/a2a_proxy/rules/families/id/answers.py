"""Rules that compare the task and context ids of an answer with its request (A2A 1.0 section
3.4)."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import EventKind, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import Dialects, EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc, rpc_error, rpc_stream
from a2a_proxy.rules.examples.objects import (
    TASK_PARAMS,
    input_required,
    message,
    send,
    snapshot,
    state,
    status,
    task,
)
from a2a_proxy.rules.facts.naming import are_different, event_phrase, object_prefix
from a2a_proxy.rules.run.request_flags import CREATE_CONFIG
from a2a_proxy.rules.state.card_declarations import indexed_objects, object_member, string_member
from a2a_proxy.rules.state.push_configs import (
    GET_CONFIG,
    LIST_CONFIGS,
    answered_configs,
    config_reference,
)
from a2a_proxy.rules.state.records import RequestSnapshot
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS

_TASK_EVENTS = frozenset({EventKind.TASK, EventKind.STATUS, EventKind.ARTIFACT, EventKind.MESSAGE})
_QUESTION = rpc("SendMessage", send(), snapshot("INPUT_REQUIRED", status=input_required()))
_IMMEDIATE_CONFIGURATION = {"returnImmediately": True}


def _answered_request(context: RuleContext) -> RequestSnapshot | None:
    """Return the request of a send whose first answer is not an error, or None."""
    return (
        context.record.request_snapshot
        if context.is_success and context.frame.event in _TASK_EVENTS
        else None
    )


@rule(
    "A2A-ID-001",
    "Task id made up by the client is accepted",
    Severity.ERROR,
    section="1.0 3.4.2; 0.3 6.4",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.FIRST,
    operations=SENDING_OPERATIONS,
    required_flags=FrameFlag.NAMES,
    flagged=rpc(
        "SendMessage",
        send(taskId="mine-1", configuration=_IMMEDIATE_CONFIGURATION),
        snapshot(id="mine-1"),
    ),
    clean=rpc("SendMessage", send(configuration=_IMMEDIATE_CONFIGURATION), snapshot()),
)
def made_up(context: RuleContext) -> Iterator[RuleFinding]:
    """A message names a task id that this agent has not sent in this recording, and the agent
    accepts it as the id of a new task. Reported as information (low confidence) if the task is not
    new to the agent: then it began before the recording; or if the agent answers with a Message
    that names no task.

    Only agents may create task ids: ids that clients make up can collide with tasks of other
    clients, by accident or on purpose. The agent must answer TaskNotFoundError; the client must
    send its first message without `taskId`.
    """
    asked = _answered_request(context)
    if (
        asked is None
        or not asked.task_id
        or asked.is_task_known
        or context.frame.task_id not in (asked.task_id, "")
    ):
        return
    if not context.frame.task_id:
        if context.frame.event is EventKind.MESSAGE and not asked.is_task_forgotten:
            told = f"the message names task {asked.task_id}, which is not in the recording before"
            yield RuleFinding(
                summary=f"{told}, and the answer is a Message of no task",
                value=asked.task_id,
                severity=Severity.INFO,
                is_sure=False,
            )
    elif context.frame.state == TaskState.SUBMITTED:
        told = (
            f"the client made up the task id {asked.task_id}, and the agent created a task with it"
        )
        yield RuleFinding(summary=told, value=asked.task_id)
    else:
        told = f"the task {asked.task_id} continues here, but is not in the recording before"
        yield RuleFinding(summary=told, value=asked.task_id, severity=Severity.INFO, is_sure=False)


@rule(
    "A2A-ID-002",
    "Answer is about another task than the message",
    Severity.ERROR,
    section="1.0 3.4.2; 0.3 7.1",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.FIRST,
    operations=SENDING_OPERATIONS,
    required_flags=FrameFlag.NAMES,
    flagged=_QUESTION
    + rpc("SendMessage", send(id="m2", taskId="t1"), snapshot("COMPLETED", id="t2")),
    clean=_QUESTION
    + rpc("SendMessage", send(id="m2", taskId="t1"), snapshot("COMPLETED", second=1)),
)
def other_task(context: RuleContext) -> Iterator[RuleFinding]:
    """A message names an existing task, but the answer, or the first event of the stream, has
    another task id.

    The client receives a task that it did not ask for, and waits for the other one. The agent must
    answer with the task that the message names, or with an error.
    """
    asked, frame = _answered_request(context), context.frame
    if asked is not None and are_different(asked.task_id, frame.task_id):
        told = (
            f"the message is for task {asked.task_id}, the answer is {event_phrase(frame)} of task "
            f"{frame.task_id}"
        )
        yield RuleFinding(summary=told, path=_id_path(context, "id", "taskId"), value=frame.task_id)


def _id_path(context: RuleContext, of_task: str, of_other: str) -> str:
    name = of_task if context.frame.event is EventKind.TASK else of_other
    return f"{context.root}{object_prefix(context.frame, context.is_v1, context.operation)}{name}"


@rule(
    "A2A-ID-003",
    "Message with a context that is not the task's is accepted",
    Severity.ERROR,
    section="1.0 3.4.3; 0.3 6.4",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.FIRST,
    operations=SENDING_OPERATIONS,
    required_flags=FrameFlag.NAMES,
    flagged=_QUESTION
    + rpc(
        "SendMessage", send(id="m2", taskId="t1", contextId="c2"), snapshot("COMPLETED", second=1)
    ),
    clean=_QUESTION
    + rpc(
        "SendMessage",
        send(id="m2", taskId="t1", contextId="c2"),
        error=rpc_error(-32602, text="contextId does not match the task"),
    ),
)
def wrong_context(context: RuleContext) -> Iterator[RuleFinding]:
    """A message names a task and a context, the task is known to belong to another context, and the
    agent answers with success.

    Client and agent disagree about the conversation that the message belongs to, and neither
    notices. The agent must refuse the message; the client must send the task's context, or none.
    """
    asked = _answered_request(context)
    if (
        asked is not None
        and asked.is_task_known
        and are_different(asked.context_id, asked.known_context)
    ):
        told = (
            f"task {asked.task_id} is in context {asked.known_context}, the message names "
            f"{asked.context_id}"
        )
        yield RuleFinding(summary=f"{told}, but the agent accepts it", value=asked.context_id)


@rule(
    "A2A-ID-005",
    "Agent replaced the client's context",
    Severity.ERROR,
    section="1.0 3.4.1; 0.3 6.4",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.FIRST,
    operations=SENDING_OPERATIONS,
    required_flags=FrameFlag.NAMES,
    flagged=rpc("SendMessage", send(contextId="c1"), snapshot("COMPLETED", contextId="c9")),
    clean=rpc("SendMessage", send(contextId="c1"), snapshot("COMPLETED")),
)
def replaced_context(context: RuleContext) -> Iterator[RuleFinding]:
    """A message names a context and no task, but the answer is in another context.

    The conversation falls apart: further messages in the client's context have no connection with
    this answer. The agent must use the client's context, or answer with an error if it cannot.
    """
    asked, frame = _answered_request(context), context.frame
    if (
        asked is not None
        and not asked.task_id
        and are_different(asked.context_id, frame.context_id)
    ):
        told = (
            f"the message is in context {asked.context_id}, the answer is {event_phrase(frame)} in "
            f"{frame.context_id}"
        )
        yield RuleFinding(
            summary=told, path=_id_path(context, "contextId", "contextId"), value=frame.context_id
        )


@rule(
    "A2A-ID-006",
    "Answer has no contextId",
    Severity.ERROR,
    section="1.0 3.4.1, 4.1.4; 0.3 6.1",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.FIRST,
    operations=SENDING_OPERATIONS,
    flagged=rpc(
        "SendMessage", send(contextId="c1"), {"task": {"id": "t1", "status": state("COMPLETED")}}
    ),
    clean=rpc("SendMessage", send(contextId="c1"), snapshot("COMPLETED")),
)
def no_context(context: RuleContext) -> Iterator[RuleFinding]:
    """The answer to a message is a new Task, or a Message, without `contextId`. Reported as a
    warning if the client's message had none either, because the agent may not have created a
    context; as information for a Message, where the member is optional.

    The client cannot continue the conversation: its next message has no context to name. The agent
    must send the `contextId`, its own or the client's.
    """
    asked, frame = _answered_request(context), context.frame
    if asked is None or frame.context_id or frame.truncated:
        return
    if frame.event is EventKind.MESSAGE:
        severity = Severity.INFO
    elif frame.event is EventKind.TASK and not asked.task_id:
        severity = Severity.ERROR if asked.context_id else Severity.WARNING
    else:
        return
    yield RuleFinding(
        summary=f"the agent answers with {event_phrase(frame)} without `contextId`",
        path=_id_path(context, "contextId", "contextId"),
        severity=severity,
    )


@rule(
    "A2A-ID-011",
    "One task id for two tasks",
    Severity.ERROR,
    section="1.0 3.4.2; 0.3 6.1",
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.FIRST,
    operations=SENDING_OPERATIONS,
    flagged=rpc("SendMessage", send(), snapshot("COMPLETED"))
    + rpc_stream(
        "SendStreamingMessage", send(id="m2"), snapshot(second=2), status("COMPLETED", second=3)
    ),
    clean=rpc("SendMessage", send(), snapshot("COMPLETED"))
    + rpc("SendMessage", send(id="m2"), snapshot("COMPLETED", id="t2", second=2)),
)
def issued_twice(context: RuleContext) -> Iterator[RuleFinding]:
    """A message that names no task is answered with a task id that an earlier message had created.
    Not reported: the same message sent again, and a task that continues in the context of the
    message.

    Everything stored under the task id is mixed up: states, artifacts and push configurations of
    two tasks. The agent must create a unique id for each task.
    """
    asked, task = _answered_request(context), context.task
    if (
        asked is not None
        and not asked.task_id
        and task is not None
        and task.reissued
        and task.created_by == context.record.id
    ):
        told = f"a new message is answered with task {task.task_id}, the id of an earlier task"
        yield RuleFinding(summary=told, path=_id_path(context, "id", "taskId"), value=task.task_id)


@rule(
    "A2A-ID-014",
    "Answer is about another task than requested",
    Severity.ERROR,
    section="1.0 3.1.3, 3.1.5, 3.1.7, 3.1.8, 3.1.9; 0.3 7.3, 7.4, 7.5, 7.6, 7.7",
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.TASK | FrameFlag.PUSH,
    operations=("GetTask", "CancelTask", CREATE_CONFIG, GET_CONFIG, LIST_CONFIGS),
    flagged=rpc("GetTask", TASK_PARAMS, task(id="t2")),
    clean=rpc("GetTask", TASK_PARAMS, task()),
)
def not_asked_for(context: RuleContext) -> Iterator[RuleFinding]:
    """GetTask or CancelTask is answered with a task whose id is not the id in the request; or a
    call for the push configurations of a task with one of another task, or with another
    configuration.

    The client shows or cancels the wrong task, which may be another user's, or takes the
    configuration for its own. The agent, or a shared cache or gateway in front of it, must return
    what was requested.
    """
    request_snapshot, frame = context.record.request_snapshot, context.frame
    if context.has_flag(FrameFlag.PUSH):
        yield from _check_configs(context)
    elif request_snapshot is not None and are_different(request_snapshot.task_id, frame.task_id):
        told = (
            f"{context.operation} is for task {request_snapshot.task_id}, the answer is task "
            f"{frame.task_id}"
        )
        yield RuleFinding(summary=told, path=_id_path(context, "id", "id"), value=frame.task_id)


def _check_configs(context: RuleContext) -> Iterator[RuleFinding]:
    """Compare the configurations of the answer with the ids in the request. Names of resources,
    which gRPC had before 1.0, are not compared."""
    task_id, ident = config_reference(context)
    wanted = [("task", "taskId", task_id)]
    wanted += [("push configuration", "id", ident)] if context.operation == GET_CONFIG else []
    for config in answered_configs(context):
        for what, name, asked in wanted:
            found = string_member(config, name)
            if are_different(asked, found) and "/" not in asked + found:
                yield RuleFinding(
                    summary=f"{context.operation} is for {what} {asked}, the answer has {found}",
                    value=found,
                )


_PLAIN_ID = re.compile(r"[\w.:@+-]+", re.ASCII)
"""An id that no encoder of JSON escapes."""
_OTHER_TEXT = task(history=[message("goodbye", taskId="t1", contextId="c1")])
_SAME_TEXT = task(history=[message(taskId="t1", contextId="c1")])


@rule(
    "A2A-ID-016",
    "History has another text under the id of the sent message",
    Severity.WARNING,
    section="1.0 4.1.1, 4.1.4; 0.3 6.1, 6.4",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.TASK,
    operations=SENDING_OPERATIONS,
    flagged=rpc("SendMessage", send(), {"task": _OTHER_TEXT}),
    clean=rpc("SendMessage", send(), {"task": _SAME_TEXT}),
)
def other_text(context: RuleContext) -> Iterator[RuleFinding]:
    """The history of the answer has a message of a user with the `messageId` of the message that
    was sent, but with another text. White space, invisible characters and forms of one character
    are not compared. Not judged if the client has used the id for another message before.

    A client that shows the history shows its user words that nobody said, and the agent may have
    worked on them. The agent must keep the messages of the client as they are.
    """
    frame, request = context.frame, context.request
    ident = request.message_id if request is not None else ""
    is_plain = _PLAIN_ID.fullmatch(ident) is not None
    if not ident or (is_plain and ident.encode() not in frame.payload):
        return  # the usual case is decided without the content
    if any(each is None or each.redacted or each.truncated for each in (frame, request)):
        return
    if "reused" in (context.record.notes or {}):  # A2A-ID-009
        return
    history = context.object.get("history")
    text = _text_of(object_member(context.params, "message"))
    if not text:
        return
    for index, each in indexed_objects(history):
        is_said = string_member(each, "messageId") == ident and not _is_agents(each)
        found = _text_of(each) if is_said else ""
        if found and found != text:
            place = object_prefix(frame, context.is_v1, context.operation)
            yield RuleFinding(
                summary=f"the history has another text under {ident}, the id of the sent message",
                path=f"{context.root}{place}history[{index}].parts",
                value=found,
                expected=text,
            )


def _is_agents(message: dict[str, Any]) -> bool:
    """Whether a message is the agent's, whose ids are its own."""
    return string_member(message, "role").lower().endswith("agent")


def _text_of(message: dict[str, Any]) -> str:
    """Return the text of a message in one form of its characters, without white space and invisible
    characters; empty if it has other parts too."""
    parts = message.get("parts")
    texts = [each.get("text") for _, each in indexed_objects(parts)]
    if not isinstance(parts, list) or not all(isinstance(each, str) for each in texts):
        return ""
    text = "".join("".join(map(str, texts)).split())
    if text.isascii():
        return text
    shown = (each for each in text if unicodedata.category(each) not in ("Cf", "Cs", "Co"))
    return unicodedata.normalize("NFKC", "".join(shown))
