"""Push configurations in requests and answers, and which of them are known to be active
(A2A 1.0 sections 3.1.7 to 3.1.10)."""

from __future__ import annotations

from typing import Any

from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.facts.credentials import principal
from a2a_proxy.rules.run.request_flags import CREATE, may_push
from a2a_proxy.rules.state.card_declarations import Json, member, objects, word

GET, LIST, DELETE = (
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
)
_TASKS, _CONFIGS = 1000, 50
"""Tasks of one agent, and configurations of one task, that are remembered."""


def pushed(see: RuleContext) -> Json | None:
    """The push configuration of the first request, in the form of 1.0; None where it has none."""
    if see.operation == CREATE:
        return see.params or None
    request = see.request
    if request is None or not may_push(request.payload):
        return None
    found = member(see.params, "configuration").get("taskPushNotificationConfig")
    return found if isinstance(found, dict) else None


def secrets_of(config: Json) -> list[str]:
    """Which of its secrets a configuration has."""
    found = ["`token`"] if config.get("token") else []
    return found + (["`authentication.credentials`"] if member(config, "authentication").get("credentials") else [])


def told(see: RuleContext) -> list[Json]:
    """The push configurations that an answer shows, in the form of 1.0."""
    event = see.event
    if see.operation == LIST:
        return [each for _, each in objects(event.get("configs"))]
    return [event] if event else []


def reference(see: RuleContext) -> tuple[str, str]:
    """Task and configuration that the request names."""
    return word(see.params, "taskId"), word(see.params, "id")


def before(see: RuleContext) -> dict[str, Any]:
    """The configurations of the request's task as they were known before this answer: id -> entry. Learns from it.

    An entry has `on` (active), `at` (since when, ns), and `by` (who created or deleted it).
    """
    notes = see.track.remember()
    found: dict[str, Any] | None = notes.get("push configs")
    if found is None:
        task, config = reference(see)
        all_of_agent = see.agent.notes.setdefault("push configs", {})
        found = notes["push configs"] = dict(all_of_agent.get(task, {}))
        if see.succeeded and see.operation in (CREATE, DELETE):
            ident = config if see.operation == DELETE else next((word(each, "id") for each in told(see)), "")
            _learn(see, all_of_agent, task, ident)
    return found


def _learn(see: RuleContext, all_of_agent: dict[str, Any], task: str, config: str) -> None:
    if not task or not config:
        return
    entries = dict(all_of_agent.pop(task, {}))
    entries[config] = {"on": see.operation == CREATE, "at": see.at, "by": asker(see)}
    if len(all_of_agent) >= _TASKS:
        del all_of_agent[next(iter(all_of_agent))]
    while len(entries) > _CONFIGS:
        del entries[next(iter(entries))]
    all_of_agent[task] = entries


def asker(see: RuleContext) -> str:
    """Who asks: agents keep configurations by owner."""
    return f"{see.track.client} {principal(see.exchange, see.declared)}"


def others(see: RuleContext, *operations: str) -> bool:
    """Another exchange with one of these operations on this task is going on: what it does to it is not known yet."""
    task, _ = reference(see)
    return any(
        each.operation in operations and each.id != see.track.id and (each.asked is None or each.asked.task_id == task)
        for each in see.world.tracks.values()
    )
