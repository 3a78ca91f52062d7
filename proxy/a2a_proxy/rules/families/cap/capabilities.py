"""What the card declares and what the agent does (A2A 1.0 section 3.3.4)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import Dialects, EvidenceScope, FrameFlag, HookPoint, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import Fields, fetch_card, rpc, rpc_error, rpc_stream
from a2a_proxy.rules.examples.objects import card, send, snapshot, status, task
from a2a_proxy.rules.examples.script import Script
from a2a_proxy.rules.facts.credentials import principal_digest
from a2a_proxy.rules.state.card_declarations import CardDeclarations, has_extended_card
from a2a_proxy.rules.state.state_sequence import TERMINAL

STREAMING = frozenset({"SendStreamingMessage", "SubscribeToTask"})
PUSH = frozenset(
    {
        "CreateTaskPushNotificationConfig",
        "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigs",
        "DeleteTaskPushNotificationConfig",
    }
)
EXTENDED = "GetExtendedAgentCard"
UNSUPPORTED, NO_PUSH, NO_EXTENDED = (
    "UNSUPPORTED_OPERATION",
    "PUSH_NOTIFICATION_NOT_SUPPORTED",
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
)
NO_METHOD = "METHOD_NOT_FOUND"
_UNIMPLEMENTED = 12
"""GRPC status."""
_REFUSALS = frozenset({UNSUPPORTED, NO_PUSH, NO_EXTENDED, NO_METHOD})
_MAX_REFUSED_CALLS = 3
"""Refusals after which a client should know."""
_MAX_CLIENTS = 256
"""Refused operations of one client that are counted."""


def refusal_name(context: RuleContext) -> str:
    """The error's name; gRPC's UNIMPLEMENTED without a reason is one that the method is not there."""
    failure = context.failure
    bare = context.binding is Binding.GRPC and failure.code == _UNIMPLEMENTED and not failure.reason
    return NO_METHOD if bare else failure.name


def declares_operation(declared: CardDeclarations, operation: str) -> bool:
    """The card says that the agent has this operation, or there is no flag for it."""
    if operation in STREAMING:
        return declared.streaming
    if operation in PUSH:
        return declared.push
    return declared.extended if operation == EXTENDED else True


_STREAM_HEADERS: Fields = {"Accept": "text/event-stream"}
_REFUSED_STREAM = rpc(
    "SendStreamingMessage",
    send(),
    error=rpc_error(-32004, UNSUPPORTED, "streaming is not supported"),
    headers=_STREAM_HEADERS,
)
_NO_STREAMING = fetch_card(card(capabilities={"streaming": False}))
_PLAYED_STREAM = (snapshot("WORKING"), status("COMPLETED", second=1))


@rule(
    "A2A-CAP-001",
    "Streaming without the capability",
    Severity.ERROR,
    section="1.0 3.3.4, 3.1.2, 3.1.6; 0.3 7.2",
    hook_points=(HookPoint.HEADS, HookPoint.ANSWER),
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.FIRST | FrameFlag.UNCLEAN,
    operations=STREAMING,
    required_flags=FrameFlag.CARD_KNOWN,
    flagged=_NO_STREAMING + rpc_stream("SendStreamingMessage", send(), *_PLAYED_STREAM),
    clean=_NO_STREAMING + rpc("SendMessage", send(), snapshot("COMPLETED")),
)
def streaming(context: RuleContext) -> Iterator[RuleFinding]:
    """The card does not declare `streaming`, and a call that streams is answered with events; from 1.0 on it is a
    warning where it is refused as an unknown method and not with UnsupportedOperationError, and where a client calls it
    at all.

    Clients that go by the card never stream from this agent; those that try cannot rely on it.
    """
    declared = context.declarations
    if declared is None or declared.streaming:
        return
    if context.frame_or_none is None:
        told = f"the client calls `{context.operation}`, the card does not declare `streaming`"
        yield RuleFinding(summary=told, seq=-1, severity=Severity.WARNING)
    elif context.has_flag(FrameFlag.FIRST):
        if context.is_success:
            yield RuleFinding(summary=f"`{context.operation}` is answered, the card does not declare `streaming`")
        elif context.is_v1 and context.has_flag(FrameFlag.ERROR) and refusal_name(context) == NO_METHOD:
            told = f"`{context.operation}` is refused as an unknown method, it must be UnsupportedOperationError"
            yield RuleFinding(summary=told, severity=Severity.WARNING)


@rule(
    "A2A-CAP-002",
    "A declared capability does not work",
    Severity.ERROR,
    section="1.0 3.3.4, 4.4.3; 0.3 5.5.2",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.ERROR,
    operations=STREAMING | PUSH,
    flagged=fetch_card() + _REFUSED_STREAM,
    clean=fetch_card() + rpc_stream("SendStreamingMessage", send(), *_PLAYED_STREAM),
)
def broken_promise(context: RuleContext) -> Iterator[RuleFinding]:
    """The card declares `streaming` or `pushNotifications`, and a call of it is refused as not supported or not
    implemented, in a binding and version that the card declares. Not judged where the task may be over, which is
    another reason to refuse.

    Clients choose by the card how they follow a task, and are left without an answer.
    """
    declared, operation = context.declarations, context.operation
    if declared is None or not declares_operation(declared, operation):
        return
    name = refusal_name(context)
    wrong = {NO_METHOD, UNSUPPORTED if operation in STREAMING else NO_PUSH}
    if name not in wrong or (name == UNSUPPORTED and _may_be_finished(context)):
        return
    if declared.matching_interfaces(context.binding, context.exchange.dialect):
        flag = "streaming" if operation in STREAMING else "pushNotifications"
        yield RuleFinding(
            summary=f"the card declares `{flag}`, `{operation}` is refused: {name} {context.failure.text[:100]}"
        )


def _may_be_finished(context: RuleContext) -> bool:
    """It is about a task that is over, or not known to go on."""
    named = context.record.request_snapshot.task_id if context.record.request_snapshot else ""
    if context.operation == "SubscribeToTask" and not named:
        return True
    known = context.session.task_record(context.record.agent, named) if named else None
    return bool(named) and (known is None or not known.state or known.state in TERMINAL or not known.streams)


_NO_EXTENDED = fetch_card(card(capabilities={"streaming": True}))


@rule(
    "A2A-CAP-003",
    "The extended card is refused with the wrong error, or served undeclared",
    Severity.ERROR,
    section="1.0 3.3.4, 3.1.11",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.V1,
    trigger_flags=FrameFlag.FIRST,
    operations=(EXTENDED,),
    flagged=_NO_EXTENDED + rpc(EXTENDED, error=rpc_error(-32007, NO_EXTENDED, "there is no extended card")),
    clean=_NO_EXTENDED + rpc(EXTENDED, error=rpc_error(-32004, UNSUPPORTED, "there is no extended card")),
)
def extended(context: RuleContext) -> Iterator[RuleFinding]:
    """Without the capability `extendedAgentCard` the call must fail with UnsupportedOperationError, but it is served
    or fails with ExtendedAgentCardNotConfiguredError or as an unknown method. With it a missing card must be told by
    ExtendedAgentCardNotConfiguredError, but UnsupportedOperationError came.

    Clients tell by the error whether they may ask again after the agent is configured.
    """
    if context.is_success:
        public = context.agent.card
        if public is not None and context.agent.card_at < context.record.started and not has_extended_card(public):
            yield RuleFinding(summary="the extended card is served, the card does not declare `extendedAgentCard`")
        return
    declared = context.declarations
    if declared is None:
        return
    name = refusal_name(context) if context.has_flag(FrameFlag.ERROR) else ""
    if declared.extended and name == UNSUPPORTED:
        yield RuleFinding(summary=f"the card declares `extendedAgentCard`, the call is refused with {name}")
    elif not declared.extended and name in (NO_EXTENDED, NO_METHOD):
        yield RuleFinding(
            summary=f"the card does not declare `extendedAgentCard`, the call must fail with {UNSUPPORTED}: {name}"
        )


def _repeat_script(count: int, script: Script) -> Script:
    whole = script
    for _ in range(count - 1):
        whole += script
    return whole


@rule(
    "A2A-CAP-006",
    "A client repeats what the agent cannot do",
    Severity.INFO,
    section="1.0 3.3.4",
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.ERROR,
    operations=STREAMING | PUSH | {EXTENDED},
    flagged=_NO_STREAMING + _repeat_script(4, _REFUSED_STREAM),
    clean=fetch_card() + rpc("SendMessage", send(), snapshot("COMPLETED")) + rpc("GetTask", {"id": "t1"}, task()),
    also_broken=("A2A-CAP-001",),
)
def stubborn(context: RuleContext) -> Iterator[RuleFinding]:
    """A client calls an operation for the fourth time that this agent refused three times because it does not have the
    capability: as not supported while the card does not declare it, as push notifications that are not supported, or
    as an unknown method. Clients of one host are told apart by `User-Agent` and credentials.

    The client should go by the card, or fall back to polling.
    """
    name = refusal_name(context)
    if name not in _REFUSALS:
        return
    declared = context.declarations
    if name == UNSUPPORTED and (declared is None or declares_operation(declared, context.operation)):
        return  # perhaps because of the task's state
    counts = context.session.client_notes(context.record.client).setdefault("refused", {})
    who = f"{context.request_header('user-agent')} {principal_digest(context.exchange)}"
    key = f"{context.agent.name} {context.operation} {hashlib.sha256(who.encode()).hexdigest()[:16]}"
    count = counts.pop(key, 0) + 1
    if len(counts) >= _MAX_CLIENTS:
        del counts[next(iter(counts))]
    counts[key] = count
    if count == _MAX_REFUSED_CALLS + 1:
        yield RuleFinding(summary=f"`{context.operation}` was refused {count} times to this client: {name}")
