"""Rules about whether a client may open a live stream (manual/protocol.md "Live rules")."""

from collections.abc import Iterator

from a2a_proxy.model.values import Actor, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    HTTP,
    STDIO,
    Dialects,
    EvidenceScope,
    FrameFlag,
    HookPoint,
)
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import fetch_card, grpc, rpc, rpc_error
from a2a_proxy.rules.examples.objects import card, send, snapshot, status
from a2a_proxy.rules.families.live.words import (
    EXCUSED_STATUSES,
    FAILED_PRECONDITION,
    LIVE_OPERATIONS,
    UNIMPLEMENTED,
    is_ended_empty,
    is_plain_live,
    is_refused,
    live_rule,
)

_DECLARING_CARD = fetch_card(card(capabilities={"streaming": True, "bidiStreaming": True}))
_LIVE_STREAM = grpc(
    "SendLiveMessage", send(), snapshot(), status("COMPLETED", second=1), half_close=False
)
_REFUSED_CALL = grpc(
    "SendLiveMessage",
    send(),
    status=UNIMPLEMENTED,
    text="there are no live streams",
    half_close=False,
)


def _is_live_undeclared(context: RuleContext) -> bool:
    declared = context.declarations
    return declared is not None and not declared.live


def _is_card_complete(context: RuleContext) -> bool:
    """Return whether all cards were seen: an extended card that was not seen may declare more."""
    return (
        context.declarations is None
        or not context.declarations.extended
        or context.agent.extended is not None
    )


@live_rule(
    "A2A-LIVE-001",
    "Live stream without the capability",
    Severity.WARNING,
    actor=Actor.EITHER,
    section="1.1 draft 3.3.4",
    hook_points=HookPoint.HEADS,
    scope=EvidenceScope.LIVE,
    operations=LIVE_OPERATIONS,
    flagged=fetch_card() + _REFUSED_CALL,
    clean=_DECLARING_CARD + _LIVE_STREAM,
)
def undeclared(context: RuleContext) -> Iterator[RuleFinding]:
    """A client opens a live stream with SendLiveMessage or ReconnectToTask, but the agent cards
    seen do not declare `bidiStreaming`. Reported as information for the messages of a proposal that
    has no such capability.

    An agent without the capability refuses the call; an agent that accepts it may stop doing so
    without notice. The client must check the card first, or the agent must declare the capability.
    """
    if _is_live_undeclared(context):
        request = context.request
        other = request is not None and request.schema.endswith("@live-2153")
        told = (
            f"the client calls `{context.operation}`, but the card does not declare `bidiStreaming`"
        )
        yield RuleFinding(
            summary=told,
            seq=-1,
            severity=Severity.INFO if other else None,
            is_sure=_is_card_complete(context),
        )


@live_rule(
    "A2A-LIVE-002",
    "Undeclared live stream is not refused",
    Severity.ERROR,
    section="1.1 draft 3.3.4",
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.FIRST | FrameFlag.END,
    operations=LIVE_OPERATIONS,
    also_broken=("A2A-LIVE-001",),
    flagged=fetch_card() + _LIVE_STREAM,
    clean=_DECLARING_CARD + _LIVE_STREAM,
)
def not_refused(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent cards seen do not declare `bidiStreaming`, but a live stream is answered with
    success, or refused with a status other than UNIMPLEMENTED. FAILED_PRECONDITION with the reason
    UNSUPPORTED_OPERATION is accepted, and so are the statuses with which any call may end:
    authentication, overload, deadline, cancellation.

    UNIMPLEMENTED tells clients to send their messages one by one; from another status they conclude
    that their message is wrong. The agent must answer UNIMPLEMENTED, or declare the capability.
    """
    if not _is_live_undeclared(context) or not is_plain_live(context):
        return
    absent = "although the card does not declare `bidiStreaming`"
    if is_ended_empty(context):
        yield RuleFinding(
            summary=f"`{context.operation}` ends with OK, {absent}: it must be UNIMPLEMENTED",
            is_sure=_is_card_complete(context),
        )
    elif is_refused(context):
        code, failure = context.frame.error_code, context.failure
        unsupported = code == FAILED_PRECONDITION and failure.reason == "UNSUPPORTED_OPERATION"
        if code != UNIMPLEMENTED and code not in EXCUSED_STATUSES and not unsupported:
            told = (
                f"`{context.operation}` is refused with {failure.status_name}, {absent}: it must "
                f"be UNIMPLEMENTED"
            )
            yield RuleFinding(
                summary=told, value=failure.status_name, is_sure=_is_card_complete(context)
            )
    elif context.has_flag(FrameFlag.FIRST) and context.is_success and context.frame.event:
        yield RuleFinding(
            summary=f"the agent accepts `{context.operation}` {absent}",
            is_sure=_is_card_complete(context),
        )


@rule(
    "A2A-LIVE-003",
    "Live stream on another binding than gRPC",
    Severity.ERROR,
    actor=Actor.CLIENT,
    section="1.1 draft 3.1, 5.3",
    hook_points=(HookPoint.ANSWER, HookPoint.CLOSED),
    dialects=Dialects.DRAFT_1_1,
    bindings=HTTP | STDIO,
    trigger_flags=FrameFlag.FIRST,
    operations=LIVE_OPERATIONS,
    flagged=rpc(
        "SendLiveMessage",
        send(),
        error=rpc_error(-32601, text="Method not found"),
        headers={"Accept": "text/event-stream"},
    ),
    clean=_LIVE_STREAM,
)
def not_grpc(context: RuleContext) -> Iterator[RuleFinding]:
    """A client calls SendLiveMessage or ReconnectToTask on JSON-RPC or stdio, or with a path for
    them on REST. Reported as information if the agent accepts the call: other proposals define
    these bindings.

    Live streams are defined for gRPC only: an agent answers that the method is unknown, and the
    client's message is lost. The client must use gRPC, or SendStreamingMessage.
    """
    request = context.request
    told = (
        f"the client calls `{context.operation}` on {context.binding}, live streams are defined "
        f"for gRPC only"
    )
    if context.frame_or_none is None:
        if not context.record.answers:
            yield RuleFinding(summary=told, seq=request.seq if request is not None else -1)
    elif context.has_flag(FrameFlag.FIRST):
        taken = context.is_success and bool(context.frame.event)
        severity = Severity.INFO if taken else None
        yield RuleFinding(
            summary=told, seq=request.seq if request is not None else None, severity=severity
        )
