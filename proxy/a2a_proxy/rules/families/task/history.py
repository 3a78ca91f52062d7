"""Rules about the length of the history in an answer (A2A 1.0 section 3.2.4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.values import Severity
from a2a_proxy.protocol.schema import is_protobuf
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import Dialects, EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc
from a2a_proxy.rules.examples.objects import message, reply, task
from a2a_proxy.rules.families.task.numbers import parse_integer
from a2a_proxy.rules.run.request_flags import HISTORY_TAG

_HISTORY_MESSAGES = [message(taskId="t1", contextId="c1"), reply(taskId="t1")]


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
    section="1.0 3.2.4",
    dialects=Dialects.V1,
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.TASK | FrameFlag.LIST,
    required_flags=FrameFlag.LIMITS | FrameFlag.LIST,
    flagged=rpc("GetTask", {"id": "t1", "historyLength": 1}, task(history=_HISTORY_MESSAGES)),
    clean=rpc("GetTask", {"id": "t1", "historyLength": 2}, task(history=_HISTORY_MESSAGES)),
)
def too_much(context: RuleContext) -> Iterator[RuleFinding]:
    """A task in an answer has more messages in its history than the `historyLength` of the request
    allows.

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
            yield RuleFinding(summary=summary, path=f"{path}.history", value=str(len(history)))


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
