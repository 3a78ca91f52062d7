"""Push configurations from their creation to their end (A2A 1.0 sections 3.1.8 to 3.1.10)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import Dialects, EvidenceScope, FrameFlag, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc, rpc_error
from a2a_proxy.rules.run.request_flags import CREATE
from a2a_proxy.rules.state.card_declarations import word
from a2a_proxy.rules.state.push_configs import DELETE, GET, LIST, asker, before, others, reference, told
from a2a_proxy.rules.state.state_sequence import TERMINAL

_HOOK = "https://client.example.com/hook"
_CREATED = rpc(CREATE, {"taskId": "t1", "url": _HOOK}, {"id": "p1", "taskId": "t1", "url": _HOOK})
_THIS = {"taskId": "t1", "id": "p1"}
_DELETED = rpc(DELETE, _THIS, {})
_NOT_FOUND = "TASK_NOT_FOUND"
_NOT_OUR_MATTER = frozenset({_NOT_FOUND, "PUSH_NOTIFICATION_NOT_SUPPORTED", "VERSION_NOT_SUPPORTED"})
_GRPC_FAULTS = frozenset({2, 3, 9, 12, 13})
"""UNKNOWN, INVALID_ARGUMENT, FAILED_PRECONDITION, UNIMPLEMENTED, INTERNAL: an agent's own refusal."""


def _since(see: RuleContext, entry: dict[str, Any]) -> bool:
    """It was so, by the same client, before the request came."""
    return bool(entry["at"] < see.track.started and entry["by"] == asker(see))


@rule(
    "A2A-PUSH-015",
    "A push configuration cannot be deleted twice",
    Severity.ERROR,
    section="1.0 3.1.10",
    scope=EvidenceScope.LIVE,
    lines=Dialects.V1,
    when=FrameFlag.FIRST,
    operations=(CREATE, DELETE),
    flagged=_CREATED + _DELETED + rpc(DELETE, _THIS, error=rpc_error(-32603, "INTERNAL_ERROR", "no such config")),
    clean=_CREATED + _DELETED + _DELETED,
)
def twice(see: RuleContext) -> Iterator[RuleFinding]:
    """A configuration that the same client deleted before is deleted again, and the agent answers with an error other
    than TaskNotFoundError, or than one about credentials.

    Deletes must be idempotent: a client that repeats one after a lost answer takes the error for a failure.
    """
    known = before(see)
    if see.operation != DELETE or not see.is_(FrameFlag.ERROR):
        return
    _, config = reference(see)
    entry = known.get(config)
    if entry is None or entry["on"] or not _since(see, entry) or others(see, CREATE, DELETE):
        return
    failure = see.failure
    own = failure.name if see.binding is not Binding.GRPC else failure.name or failure.code in _GRPC_FAULTS
    if own and failure.name not in _NOT_OUR_MATTER and see.exchange.status not in (401, 403):
        name = failure.name or failure.status_name
        yield RuleFinding(summary=f'the second delete of "{config}" fails: {name} {failure.text[:100]}')


@rule(
    "A2A-PUSH-016",
    "A list misses an active push configuration",
    Severity.WARNING,
    section="1.0 3.1.9",
    scope=EvidenceScope.LIVE,
    lines=Dialects.V1,
    when=FrameFlag.FIRST,
    operations=(CREATE, DELETE, LIST),
    flagged=_CREATED + rpc(LIST, {"taskId": "t1"}, {"configs": []}),
    clean=_CREATED + rpc(LIST, {"taskId": "t1"}, {"configs": [{"id": "p1", "taskId": "t1", "url": _HOOK}]}),
)
def missing(see: RuleContext) -> Iterator[RuleFinding]:
    """The whole list of a task's configurations (not a page of it) lacks one that the same client has created and not
    deleted. Not judged once the task is over, when the agent may drop them; less sure where its state is not known.

    The client takes it for lost and creates it again: from then on it gets every notification twice.
    """
    known = before(see)
    if see.operation != LIST or not see.succeeded or see.event.get("nextPageToken") or see.params.get("pageToken"):
        return
    task_id, _ = reference(see)
    task = see.world.task(see.track.agent, task_id)
    if (task is not None and task.state in TERMINAL) or others(see, DELETE):
        return
    shown = {word(each, "id") for each in told(see)}
    for config, entry in known.items():
        if entry["on"] and config not in shown and _since(see, entry):
            yield RuleFinding(
                summary=f'the push configuration "{config}" is active and not in the list', sure=task is not None
            )


@rule(
    "A2A-PUSH-017",
    "A deleted push configuration is still there",
    Severity.WARNING,
    section="1.0 3.1.8, 3.1.10",
    scope=EvidenceScope.LIVE,
    lines=Dialects.V1,
    when=FrameFlag.FIRST,
    operations=(CREATE, DELETE, GET, LIST),
    flagged=_CREATED + _DELETED + rpc(GET, _THIS, {"id": "p1", "taskId": "t1", "url": _HOOK}),
    clean=_CREATED + _DELETED + rpc(GET, _THIS, error=rpc_error(-32001, _NOT_FOUND, "there is no such config")),
)
def still_there(see: RuleContext) -> Iterator[RuleFinding]:
    """Get or List shows a configuration that the same client has deleted, with success, and not created again.

    Notifications go on to a webhook that nobody expects them at.
    """
    known = before(see)
    if see.operation not in (GET, LIST) or not see.succeeded:
        return
    for config in told(see):
        ident = word(config, "id")
        entry = known.get(ident)
        if entry is not None and not entry["on"] and _since(see, entry) and not others(see, CREATE):
            yield RuleFinding(summary=f'the push configuration "{ident}" was deleted and is shown')
