"""Rules about push configurations from creation to deletion (A2A 1.0 sections 3.1.8 to 3.1.10)."""

from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.values import Binding, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import Dialects, EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc, rpc_error
from a2a_proxy.rules.run.request_flags import CREATE_CONFIG
from a2a_proxy.rules.state.card_declarations import string_member
from a2a_proxy.rules.state.push_configs import (
    DELETE_CONFIG,
    GET_CONFIG,
    LIST_CONFIGS,
    answered_configs,
    client_identity,
    config_reference,
    configs_before,
    has_concurrent_call,
)
from a2a_proxy.rules.state.state_sequence import TERMINAL

_WEBHOOK = "https://client.example.com/hook"
_CREATED_CONFIG = rpc(
    CREATE_CONFIG, {"taskId": "t1", "url": _WEBHOOK}, {"id": "p1", "taskId": "t1", "url": _WEBHOOK}
)
_CONFIG_PARAMS = {"taskId": "t1", "id": "p1"}
_DELETED_CONFIG = rpc(DELETE_CONFIG, _CONFIG_PARAMS, {})
_NOT_FOUND_REASON = "TASK_NOT_FOUND"
_EXCUSED_ERRORS = frozenset(
    {_NOT_FOUND_REASON, "PUSH_NOTIFICATION_NOT_SUPPORTED", "VERSION_NOT_SUPPORTED"}
)
_GRPC_ERRORS = frozenset({2, 3, 9, 12, 13})
"""UNKNOWN, INVALID_ARGUMENT, FAILED_PRECONDITION, UNIMPLEMENTED, INTERNAL: errors of the agent
itself."""


def _is_known_before(context: RuleContext, entry: dict[str, Any]) -> bool:
    """Return whether the same client created or deleted the configuration before this request was
    sent."""
    return bool(entry["at"] < context.record.started and entry["by"] == client_identity(context))


@rule(
    "A2A-PUSH-015",
    "Second delete of a push configuration fails",
    Severity.ERROR,
    section="1.0 3.1.10",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.V1,
    trigger_flags=FrameFlag.FIRST,
    operations=(CREATE_CONFIG, DELETE_CONFIG),
    flagged=_CREATED_CONFIG
    + _DELETED_CONFIG
    + rpc(
        DELETE_CONFIG, _CONFIG_PARAMS, error=rpc_error(-32603, "INTERNAL_ERROR", "no such config")
    ),
    clean=_CREATED_CONFIG + _DELETED_CONFIG + _DELETED_CONFIG,
)
def twice(context: RuleContext) -> Iterator[RuleFinding]:
    """A configuration that the same client has deleted before is deleted again, and the agent
    answers with an error other than TaskNotFoundError or an error about credentials.

    Deletes must be idempotent: a client that repeats a delete after a lost answer takes the error
    for a failure. The agent must answer with success.
    """
    known = configs_before(context)
    if context.operation != DELETE_CONFIG or not context.has_flag(FrameFlag.ERROR):
        return
    _, config = config_reference(context)
    entry = known.get(config)
    if (
        entry is None
        or entry["on"]
        or not _is_known_before(context, entry)
        or has_concurrent_call(context, CREATE_CONFIG, DELETE_CONFIG)
    ):
        return
    failure = context.failure
    own = (
        failure.name
        if context.binding is not Binding.GRPC
        else failure.name or failure.code in _GRPC_ERRORS
    )
    if own and failure.name not in _EXCUSED_ERRORS and context.exchange.status not in (401, 403):
        name = failure.name or failure.status_name
        yield RuleFinding(
            summary=f'the second delete of push configuration "{config}" fails: {name} '
            f"{failure.text[:100]}"
        )


@rule(
    "A2A-PUSH-016",
    "Active push configuration is missing in the list",
    Severity.WARNING,
    section="1.0 3.1.9; 0.3 7.7",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.FIRST,
    operations=(CREATE_CONFIG, DELETE_CONFIG, LIST_CONFIGS),
    flagged=_CREATED_CONFIG + rpc(LIST_CONFIGS, {"taskId": "t1"}, {"configs": []}),
    clean=_CREATED_CONFIG
    + rpc(
        LIST_CONFIGS, {"taskId": "t1"}, {"configs": [{"id": "p1", "taskId": "t1", "url": _WEBHOOK}]}
    ),
)
def missing(context: RuleContext) -> Iterator[RuleFinding]:
    """The complete list of a task's push configurations (not a page of it) lacks a configuration
    that the same client has created and not deleted. Not judged once the task is finished, because
    the agent may then drop them, and before 1.0 if the client has set another one since, which may
    replace it; low confidence if the task's state is not known.

    The client takes the configuration for lost, creates it again, and gets every notification
    twice. The agent must list all active configurations.
    """
    known = configs_before(context)
    if (
        context.operation != LIST_CONFIGS
        or not context.is_success
        or context.event.get("nextPageToken")
        or context.params.get("pageToken")
    ):
        return
    task_id, _ = config_reference(context)
    task = context.session.task_record(context.record.agent, task_id)
    if (task is not None and task.state in TERMINAL) or has_concurrent_call(context, DELETE_CONFIG):
        return
    shown = {string_member(each, "id") for each in answered_configs(context)}
    newest = max((each["at"] for each in known.values() if each["on"]), default=0)
    for config, entry in known.items():
        is_replaced = not context.is_v1 and entry["at"] < newest
        if not entry["on"] or config in shown or is_replaced:
            continue
        if _is_known_before(context, entry):
            yield RuleFinding(
                summary=f'the push configuration "{config}" is active but not in the list',
                is_sure=task is not None,
            )


@rule(
    "A2A-PUSH-017",
    "Deleted push configuration is still returned",
    Severity.WARNING,
    section="1.0 3.1.8, 3.1.10; 0.3 7.8",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.FIRST,
    operations=(CREATE_CONFIG, DELETE_CONFIG, GET_CONFIG, LIST_CONFIGS),
    flagged=_CREATED_CONFIG
    + _DELETED_CONFIG
    + rpc(GET_CONFIG, _CONFIG_PARAMS, {"id": "p1", "taskId": "t1", "url": _WEBHOOK}),
    clean=_CREATED_CONFIG
    + _DELETED_CONFIG
    + rpc(
        GET_CONFIG,
        _CONFIG_PARAMS,
        error=rpc_error(-32001, _NOT_FOUND_REASON, "there is no such config"),
    ),
)
def still_there(context: RuleContext) -> Iterator[RuleFinding]:
    """Get or List returns a push configuration that the same client has deleted with success and
    not created again.

    The agent still sends notifications to a webhook that the client has removed. The agent must
    delete the configuration.
    """
    known = configs_before(context)
    if context.operation not in (GET_CONFIG, LIST_CONFIGS) or not context.is_success:
        return
    for config in answered_configs(context):
        ident = string_member(config, "id")
        entry = known.get(ident)
        if (
            entry is not None
            and not entry["on"]
            and _is_known_before(context, entry)
            and not has_concurrent_call(context, CREATE_CONFIG)
        ):
            yield RuleFinding(
                summary=f'the push configuration "{ident}" was deleted, but the agent returns it'
            )
