"""May the client open a live stream here? (manual/protocol.md "Live rules")."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import (
    GRPC,
    HTTP,
    STDIO,
    Dialects,
    EvidenceScope,
    FrameFlag,
    HookPoint,
    RuleFinding,
    rule,
)
from a2a_proxy.rules.examples.conversation import fetch_card, grpc, rpc, rpc_error
from a2a_proxy.rules.examples.objects import card, send, snapshot, status
from a2a_proxy.rules.families.live.words import (
    EXCUSED,
    FAILED_PRECONDITION,
    LIVE,
    UNIMPLEMENTED,
    ended_empty,
    plain_live,
    refused,
)

_DECLARED = fetch_card(card(capabilities={"streaming": True, "bidiStreaming": True}))
_LIVE_STREAM = grpc("SendLiveMessage", send(), snapshot(), status("COMPLETED", second=1), half_close=False)
_REFUSED = grpc("SendLiveMessage", send(), status=UNIMPLEMENTED, text="there are no live streams", half_close=False)


def _undeclared(see: RuleContext) -> bool:
    declared = see.declared
    return declared is not None and not declared.live


def _sure(see: RuleContext) -> bool:
    """There is no extended card that was not seen: it may declare more."""
    return see.declared is None or not see.declared.extended or see.agent.extended is not None


@rule(
    "A2A-LIVE-001",
    "Live stream without the capability",
    Severity.WARNING,
    section="1.1 draft 3.3.4",
    moment=HookPoint.HEADS,
    scope=EvidenceScope.LIVE,
    lines=Dialects.DRAFT_1_1,
    bindings=GRPC,
    operations=LIVE,
    draft=True,
    flagged=fetch_card() + _REFUSED,
    clean=_DECLARED + _LIVE_STREAM,
)
def undeclared(see: RuleContext) -> Iterator[RuleFinding]:
    """A client opens a live stream by SendLiveMessage or ReconnectToTask, and the cards seen do not declare
    `bidiStreaming`. Information where its messages are those of the proposal that has no such capability.

    An agent without it refuses the call; one that takes it nevertheless may stop doing so without notice.
    """
    if _undeclared(see):
        request = see.request
        other = request is not None and request.schema.endswith("@live-2153")
        told = f"the client calls `{see.operation}`, the card does not declare `bidiStreaming`"
        yield RuleFinding(summary=told, seq=-1, severity=Severity.INFO if other else None, sure=_sure(see))


@rule(
    "A2A-LIVE-002",
    "Undeclared live stream not refused",
    Severity.ERROR,
    section="1.1 draft 3.3.4",
    scope=EvidenceScope.LIVE,
    lines=Dialects.DRAFT_1_1,
    bindings=GRPC,
    when=FrameFlag.FIRST | FrameFlag.END,
    operations=LIVE,
    draft=True,
    also=("A2A-LIVE-001",),
    flagged=fetch_card() + _LIVE_STREAM,
    clean=_DECLARED + _LIVE_STREAM,
)
def not_refused(see: RuleContext) -> Iterator[RuleFinding]:
    """The cards seen do not declare `bidiStreaming`, and a live stream is answered with success, or refused otherwise
    than with UNIMPLEMENTED. FAILED_PRECONDITION with the reason UNSUPPORTED_OPERATION is accepted, as are the statuses
    with which any call may end: of authentication, overload, deadlines and cancellation.

    Clients find out by UNIMPLEMENTED that they have to send their messages one by one; from anything else they conclude
    that something is wrong with their message.
    """
    if not _undeclared(see) or not plain_live(see):
        return
    absent = "though the card does not declare `bidiStreaming`"
    if ended_empty(see):
        yield RuleFinding(
            summary=f"`{see.operation}` ends with OK, {absent}: it must be UNIMPLEMENTED", sure=_sure(see)
        )
    elif refused(see):
        code, failure = see.frame.error_code, see.failure
        unsupported = code == FAILED_PRECONDITION and failure.reason == "UNSUPPORTED_OPERATION"
        if code != UNIMPLEMENTED and code not in EXCUSED and not unsupported:
            told = f"`{see.operation}` is refused with {failure.status_name}, {absent}: it must be UNIMPLEMENTED"
            yield RuleFinding(summary=told, value=failure.status_name, sure=_sure(see))
    elif see.is_(FrameFlag.FIRST) and see.succeeded and see.frame.event:
        yield RuleFinding(summary=f"`{see.operation}` is answered, {absent}", sure=_sure(see))


@rule(
    "A2A-LIVE-003",
    "Live stream on another binding than gRPC",
    Severity.ERROR,
    section="1.1 draft 3.1, 5.3",
    moment=(HookPoint.ANSWER, HookPoint.CLOSED),
    lines=Dialects.DRAFT_1_1,
    bindings=HTTP | STDIO,
    when=FrameFlag.FIRST,
    operations=LIVE,
    draft=True,
    flagged=rpc(
        "SendLiveMessage",
        send(),
        error=rpc_error(-32601, text="Method not found"),
        headers={"Accept": "text/event-stream"},
    ),
    clean=_LIVE_STREAM,
)
def not_grpc(see: RuleContext) -> Iterator[RuleFinding]:
    """SendLiveMessage or ReconnectToTask is called on JSON-RPC, or by a path that stands for them on REST. Information
    where the agent takes it: other proposals have names for these bindings.

    Live streams are defined for gRPC only. An agent answers that it knows no such method, and what the client has to
    say is lost.
    """
    request = see.request
    told = f"`{see.operation}` on {see.binding}, live streams are defined for gRPC only"
    if see.shown is None:
        if not see.track.answers:
            yield RuleFinding(summary=told, seq=request.seq if request is not None else -1)
    elif see.is_(FrameFlag.FIRST):
        taken = see.succeeded and bool(see.frame.event)
        severity = Severity.INFO if taken else None
        yield RuleFinding(summary=told, seq=request.seq if request is not None else None, severity=severity)
