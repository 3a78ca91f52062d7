"""Push configurations in requests and answers, and the ones known to be active (A2A 1.0 sections
3.1.7 to 3.1.10)."""

from typing import Any

from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.facts.credentials import principal_digest
from a2a_proxy.rules.run.request_flags import CREATE_CONFIG, may_have_push_config
from a2a_proxy.rules.state.card_declarations import (
    Json,
    indexed_objects,
    object_member,
    string_member,
)
from a2a_proxy.rules.state.records import ExchangeRecord
from a2a_proxy.rules.state.session_state import SessionState
from a2a_proxy.rules.state.task_owners import tenant_of_call

GET_CONFIG, LIST_CONFIGS, DELETE_CONFIG = (
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
)
_NOTE = "push configs"
_TASK_NAME, _CONFIG_NAME = 1000, 50
"""Maximum number of remembered tasks of one agent, and of configurations of one task."""


def requested_config(context: RuleContext) -> Json | None:
    """Return the push configuration of the first request in the 1.0 form; None if it has none."""
    if context.operation == CREATE_CONFIG:
        return context.params or None
    request = context.request
    if request is None or not may_have_push_config(request.payload):
        return None
    found = object_member(context.params, "configuration").get("taskPushNotificationConfig")
    return found if isinstance(found, dict) else None


def secret_members(config: Json) -> list[str]:
    """Return the names of the secret members that a configuration has."""
    found = ["`token`"] if config.get("token") else []
    return found + (
        ["`authentication.credentials`"]
        if object_member(config, "authentication").get("credentials")
        else []
    )


def answered_configs(context: RuleContext) -> list[Json]:
    """Return the push configurations in an answer, in the 1.0 form."""
    event = context.event
    if context.operation == LIST_CONFIGS:
        return [each for _, each in indexed_objects(event.get("configs"))]
    return [event] if event else []


def config_reference(context: RuleContext) -> tuple[str, str]:
    """Return the task id and the configuration id named by the request."""
    return string_member(context.params, "taskId"), string_member(context.params, "id")


def configs_before(context: RuleContext) -> dict[str, Any]:
    """Return the configurations of the request's task as known before this answer, by id; then
    learn from it.

    An entry has `on` (active), `at` (since when, ns), and `by` (the client that created or deleted
    it).
    """
    notes = context.record.writable_notes()
    found: dict[str, Any] | None = notes.get(_NOTE)
    if found is None:
        task, config = config_reference(context)
        all_of_agent = context.agent.notes.setdefault(_NOTE, {})
        found = notes[_NOTE] = dict(all_of_agent.get(task, {}))
        if context.is_success and context.operation in (CREATE_CONFIG, DELETE_CONFIG):
            ident = (
                config
                if context.operation == DELETE_CONFIG
                else next((string_member(each, "id") for each in answered_configs(context)), "")
            )
            _learn_config(context, all_of_agent, task, ident)
    return found


def _learn_config(
    context: RuleContext, all_of_agent: dict[str, Any], task: str, config: str
) -> None:
    if not task or not config:
        return
    entries = dict(all_of_agent.pop(task, {}))
    entries[config] = {
        "on": context.operation == CREATE_CONFIG,
        "at": context.at,
        "by": client_identity(context),
    }
    if len(all_of_agent) >= _TASK_NAME:
        del all_of_agent[next(iter(all_of_agent))]
    while len(entries) > _CONFIG_NAME:
        del entries[next(iter(entries))]
    all_of_agent[task] = entries


def forget_after_delete(session: SessionState, record: ExchangeRecord) -> None:
    """Forget the configurations of a task at the end of a delete without a whole answer: it may
    have happened."""
    agent = session.agents.get(record.agent)
    is_answered = record.notes is not None and _NOTE in record.notes
    if agent is not None and record.request_snapshot is not None and not is_answered:
        agent.notes.get(_NOTE, {}).pop(record.request_snapshot.task_id, None)


def client_identity(context: RuleContext) -> str:
    """Return the identity of the calling client and the tenant for which it calls; agents keep
    configurations by owner."""
    principal = principal_digest(context.exchange, context.declarations)
    return f"{context.record.client} {principal} {tenant_of_call(context)}"


def has_concurrent_call(context: RuleContext, *operations: str) -> bool:
    """Whether another exchange with one of these operations on this task is open; its effect is not
    known yet."""
    task, _ = config_reference(context)
    return any(
        each.operation in operations
        and each.id != context.record.id
        and (each.request_snapshot is None or each.request_snapshot.task_id == task)
        for each in context.session.exchange_records.values()
    )
