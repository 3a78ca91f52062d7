"""Rules about requests for tasks: tasks that are not found or polled too often, and the length of
the history in an answer (A2A 1.0 section 3.2.4)."""

import re
from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.values import Actor, Binding, Severity
from a2a_proxy.protocol.schema import is_protobuf
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import Dialects, EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc, rpc_error
from a2a_proxy.rules.examples.objects import message, reply, send, task
from a2a_proxy.rules.facts.credentials import principal_digest
from a2a_proxy.rules.families.err.situation import is_unknown_task
from a2a_proxy.rules.families.task.numbers import parse_integer
from a2a_proxy.rules.run.request_flags import HISTORY_TAG
from a2a_proxy.rules.state.task_owners import note_owner, owner_of

_TASK_ID_OPERATIONS = ("GetTask", "CancelTask", "SubscribeToTask")

_SENT_CALL = rpc("SendMessage", send(), {"task": task()})
_HISTORY_MESSAGES = [message(taskId="t1", contextId="c1"), reply(taskId="t1")]


@rule(
    "A2A-TASK-009",
    "Agent does not find a task that it returned before",
    Severity.WARNING,
    section="1.0 3.1.3; 0.3 7.3",
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.NEW_TASK | FrameFlag.ERROR,
    flagged=_SENT_CALL
    + rpc("GetTask", {"id": "t1"}, error=rpc_error(-32001, "TASK_NOT_FOUND"), id=2),
    clean=_SENT_CALL
    + rpc("GetTask", {"id": "t2"}, error=rpc_error(-32001, "TASK_NOT_FOUND"), id=2),
)
def known_not_found(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent answers TaskNotFoundError for a task that it returned earlier in this session. Not
    reported for a client with credentials other than those that created the task, because the agent
    may hide the task from it.

    The agent deletes tasks sooner than its clients expect, or several instances of it do not share
    their tasks. The operator of the agent must keep tasks longer, or make all instances use one
    task store.
    """
    if context.has_flag(FrameFlag.NEW_TASK):
        note_owner(context)
        return
    request_snapshot = context.record.request_snapshot
    if (
        request_snapshot is None
        or not request_snapshot.is_task_known
        or not context.has_flag(FrameFlag.FIRST)
        or context.operation not in _TASK_ID_OPERATIONS
    ):
        return
    failure, known = (
        context.failure,
        context.session.task_record(context.record.agent, request_snapshot.task_id),
    )
    born = known is not None and known.created_by != 0
    if known is not None and born and owner_of(known) != principal_digest(context.exchange):
        return
    by_status = {
        Binding.GRPC: failure.code == 5,
        Binding.REST: context.exchange.status == 404 and _is_agent_error(context),
    }
    if failure.name == "TASK_NOT_FOUND" or (
        not failure.name and by_status.get(context.binding, False)
    ):
        yield RuleFinding(
            summary=f"task {request_snapshot.task_id} is not found, although the agent returned it "
            f"before",
            is_sure=born,
        )


@rule(
    "A2A-TASK-013",
    "Message to a task that the agent does not know",
    Severity.INFO,
    actor=Actor.CLIENT,
    section="1.0 3.4.2; 0.3 6.4",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.ERROR,
    operations=("SendMessage", "SendStreamingMessage"),
    required_flags=FrameFlag.NAMES,
    flagged=rpc("SendMessage", send(taskId="mine-1"), error=rpc_error(-32001, "TASK_NOT_FOUND")),
    clean=rpc("SendMessage", send(), error=rpc_error(-32001, "TASK_NOT_FOUND")),
)
def message_to_unknown_task(context: RuleContext) -> Iterator[RuleFinding]:
    """A message names a task id that this agent has not sent in this recording, and the agent
    answers TaskNotFoundError, or another error whose text says that the task is not found. Low
    confidence: the task may be older than the recording. Not reported for a REST or gRPC error
    without either, which a wrong path or tenant gives too.

    The message is lost. Only agents create task ids: the client must send the first message of a
    task without `taskId`, and continue with the id that the agent returns.
    """
    asked = context.record.request_snapshot
    if asked is not None and is_unknown_task(context) and _is_not_found(context, asked.task_id):
        told = f"the client names task {asked.task_id}, which no answer of this recording has shown"
        yield RuleFinding(
            summary=f"{told}; a message that begins a task has no taskId",
            value=asked.task_id,
            is_sure=False,
        )


_NOT_FOUND_TEXT = re.compile(r"not (be )?found|(not|n't) exist|unknown|no such", re.IGNORECASE)


def _is_not_found(context: RuleContext, task_id: str) -> bool:
    """Whether the error says that there is no such task, by its name or by its text."""
    failure, frame = context.failure, context.frame
    if failure.name == "TASK_NOT_FOUND":
        return True
    text = failure.text or frame.payload[:500].decode("utf-8", "replace")
    return ("task" in text.lower() or task_id in text) and bool(_NOT_FOUND_TEXT.search(text))


def _is_agent_error(context: RuleContext) -> bool:
    """Whether the agent sent the 404 itself: neither an error page of a server in front of it, nor
    a task under a wrong status (A2A-HTTP-010)."""
    return isinstance(context.value, dict) and not isinstance(context.value.get("status"), dict)


def _history_length(context: RuleContext) -> int | None:
    """Return `historyLength` of the request, or None if it has none. The member's place depends on
    the operation."""
    if not _may_limit_history(context):
        return None
    params = context.params
    configuration = params.get("configuration")
    found = params.get("historyLength")
    if found is None and isinstance(configuration, dict):
        found = configuration.get("historyLength")
    return parse_integer(found)


def _may_limit_history(context: RuleContext) -> bool:
    """Whether the request may have a `historyLength`, judged without decoding it."""
    asked = context.request
    if asked is None:
        return False
    if is_protobuf(asked.schema):
        return HISTORY_TAG in asked.payload or context.has_flag(FrameFlag.LIST)
    return b"istory" in asked.payload or "istory" in context.exchange.target


def _answered_tasks(context: RuleContext) -> list[tuple[str, dict[str, Any]]]:
    """Return the tasks of an answer, each with its path."""
    body = context.body
    if not isinstance(body, dict):
        return []
    if context.has_flag(FrameFlag.LIST):
        listed = body.get("tasks")
        tasks = listed if isinstance(listed, list) else []
        return [
            (f"{context.root}tasks[{n}]", each)
            for n, each in enumerate(tasks)
            if isinstance(each, dict)
        ]
    wrapped = body.get("task")
    if isinstance(wrapped, dict):
        return [(f"{context.root}task", wrapped)]
    return [(context.root.rstrip("."), body)]


@rule(
    "A2A-TASK-001",
    "More history than requested",
    Severity.ERROR,
    section="1.0 3.2.4; 0.3 7.3.1",
    dialects=Dialects.SINCE_0_2,
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.TASK | FrameFlag.LIST,
    required_flags=FrameFlag.LIMITS | FrameFlag.LIST,
    flagged=rpc("GetTask", {"id": "t1", "historyLength": 1}, task(history=_HISTORY_MESSAGES)),
    clean=rpc("GetTask", {"id": "t1", "historyLength": 2}, task(history=_HISTORY_MESSAGES)),
)
def too_much(context: RuleContext) -> Iterator[RuleFinding]:
    """A task in an answer has more messages in its history than the `historyLength` of the request
    allows. Reported as a warning before 1.0, which does not demand it.

    Clients set `historyLength` to limit the size of answers; a longer history defeats that limit.
    The agent must return at most that many messages.
    """
    wanted = _history_length(context)
    if not wanted or wanted < 0:
        return
    for path, each in _answered_tasks(context):
        history = each.get("history")
        if isinstance(history, list) and len(history) > wanted:
            summary = (
                f"{len(history)} messages of history, but `historyLength` of the request is "
                f"{wanted}"
            )
            yield RuleFinding(
                summary=summary,
                path=f"{path}.history",
                value=str(len(history)),
                severity=None if context.is_v1 else Severity.WARNING,
            )


@rule(
    "A2A-TASK-002",
    "History although `historyLength` is 0",
    Severity.WARNING,
    section="1.0 3.2.4",
    dialects=Dialects.V1,
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.TASK | FrameFlag.LIST,
    required_flags=FrameFlag.LIMITS | FrameFlag.LIST,
    flagged=rpc("GetTask", {"id": "t1", "historyLength": 0}, task(history=_HISTORY_MESSAGES)),
    clean=rpc("GetTask", {"id": "t1", "historyLength": 0}, task()),
)
def none_wanted(context: RuleContext) -> Iterator[RuleFinding]:
    """The request has `historyLength: 0`, but a task of the answer has the member `history`,
    possibly empty.

    0 means that the agent leaves the member out; a client that sends 0 may not expect it. The agent
    should omit `history`.
    """
    if _history_length(context) != 0:
        return
    for path, each in _answered_tasks(context):
        if "history" in each:
            yield RuleFinding(
                summary="the answer has `history` although `historyLength` of the request is 0",
                path=f"{path}.history",
            )
