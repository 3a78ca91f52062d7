"""What the trailers of a gRPC call say (A2A 1.0 section 10.6)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import FrameKind
from a2a_proxy.protocol.errors import GRPC_STATUS_NAMES
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import GRPC, Dialects, EvidenceScope, FrameFlag, HookPoint, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import grpc
from a2a_proxy.rules.examples.objects import error_info, send, task
from a2a_proxy.rules.state.state_sequence import TERMINAL

_GET = {"id": "t1"}
_UNKNOWN, _DEADLINE, _NOT_FOUND, _PRECONDITION, _ABORTED = 2, 4, 5, 9, 10
_DOMAIN = "a2a-protocol.org"
_DETAILS = "trailer:grpc-status-details-bin"
_NO_TASK = frozenset({"GetExtendedAgentCard", "ListTasks"})
"""Operations that name no task: NOT_FOUND says something else there."""
_LIVE = frozenset({"SendLiveMessage", "ReconnectToTask"})
"""The proposals want a status and no more."""
_NEAR = 250_000_000
"""A client that cancels this long before or after its deadline (ns, as the relay saw it) cancels because of it."""
_TIMEOUT = re.compile(r"([0-9]{1,8})([HMSmun])")
_UNITS = {"H": 3_600_000_000_000, "M": 60_000_000_000, "S": 1_000_000_000, "m": 1_000_000, "u": 1000, "n": 1}


@rule(
    "A2A-GRPC-004",
    "Illegal grpc-status",
    Severity.ERROR,
    section="gRPC over HTTP/2; gRPC status codes",
    bindings=GRPC,
    when=FrameFlag.END,
    flagged=grpc("GetTask", _GET, task(), trailers={"grpc-status": "OK"}),
    clean=grpc("GetTask", _GET, task()),
)
def illegal_status(see: RuleContext) -> Iterator[RuleFinding]:
    """The value of `grpc-status` is no whole number from 0 to 16.

    Clients take such a status for UNKNOWN, also where the agent meant success.
    """
    frame = see.frame
    if b'["grpc-status","0"]' in frame.payload:
        return
    for value in _trailer(frame.payload, "grpc-status"):
        if not value.isascii() or not value.isdecimal() or int(value[:9]) > 16:
            yield RuleFinding(summary=f"grpc-status is {value[:40]!r}, it must be a number from 0 to 16", value=value)


def _trailer(payload: bytes, name: str) -> list[str]:
    try:
        pairs = msgspec.json.decode(payload, type=list[tuple[str, str]]) if payload else []
    except msgspec.MsgspecError:
        return []
    return [value.strip() for key, value in pairs if key.lower() == name]


@rule(
    "A2A-GRPC-012",
    "A2A error without ErrorInfo",
    Severity.ERROR,
    section="1.0 10.6",
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.V1,
    bindings=GRPC,
    when=FrameFlag.ERROR,
    flagged=grpc("GetTask", {"id": "t9"}, status=_NOT_FOUND, text="there is no such task"),
    clean=grpc(
        "GetTask",
        {"id": "t9"},
        status=_NOT_FOUND,
        text="there is no such task",
        details=[error_info("TASK_NOT_FOUND", taskId="t9")],
    ),
)
def no_error_info(see: RuleContext) -> Iterator[RuleFinding]:
    """A call fails with a status that stands for an A2A error, and its details have no ErrorInfo of the domain
    `a2a-protocol.org`: NOT_FOUND where the call is about a task, FAILED_PRECONDITION, and ABORTED where a generation
    was to match. Other statuses may be those of the library or of a gateway; of details that cannot be read
    A2A-GRPC-013 tells.

    Several A2A errors share one status: without the reason a client cannot tell which it is and what to do.
    """
    frame = see.frame
    if frame.kind is not FrameKind.END or not _stands_for_a2a(see, frame.error_code):
        return
    if isinstance(see.failure.body, str):
        return
    info = see.failure.info
    if info is None:
        told = f"{see.failure.status_name} {see.failure.text[:60]!r} comes without ErrorInfo"
        yield RuleFinding(summary=f"{told} in grpc-status-details-bin", path=_DETAILS)
    elif info.get("domain") != _DOMAIN:
        found = str(info.get("domain", ""))
        told = f"the only ErrorInfo of {see.failure.status_name} is of the domain {found!r}"
        yield RuleFinding(summary=f"{told}, {_DOMAIN!r} was expected", path=_DETAILS, value=found)


def _stands_for_a2a(see: RuleContext, status: int) -> bool:
    if see.operation in _LIVE:
        return False
    if status == _NOT_FOUND:
        return see.operation not in _NO_TASK
    if status == _ABORTED:
        return bool(see.track.asked and see.track.asked.generation)
    return status == _PRECONDITION


@rule(
    "A2A-GRPC-013",
    "Details contradict grpc-status",
    Severity.WARNING,
    section="gRPC richer error model",
    bindings=GRPC,
    when=FrameFlag.ERROR,
    flagged=grpc(
        "GetTask",
        {"id": "t9"},
        status=_NOT_FOUND,
        text="there is no such task",
        details=[error_info("TASK_NOT_FOUND", taskId="t9")],
        details_code=_PRECONDITION,
    ),
    clean=grpc(
        "GetTask",
        {"id": "t9"},
        status=_NOT_FOUND,
        text="there is no such task",
        details=[error_info("TASK_NOT_FOUND", taskId="t9")],
    ),
)
def contradiction(see: RuleContext) -> Iterator[RuleFinding]:
    """The google.rpc.Status in `grpc-status-details-bin` has another code than `grpc-status`, or cannot be decoded.

    Libraries compare the two and drop the details, or report the one that was not meant.
    """
    frame = see.frame
    if frame.kind is not FrameKind.END:
        return
    body = see.failure.body
    if isinstance(body, str):
        yield RuleFinding(summary="grpc-status-details-bin is not a google.rpc.Status", path=_DETAILS, value=body[:60])
    elif isinstance(body, dict) and body.get("code") != frame.error_code:
        code = body.get("code")
        yield RuleFinding(
            summary=f"grpc-status is {frame.error_code}, the code in the details is {code}", value=str(code)
        )


@rule(
    "A2A-GRPC-017",
    "Deadline exceeded",
    Severity.INFO,
    section="gRPC deadlines",
    moment=HookPoint.CLOSED,
    scope=EvidenceScope.EXCHANGE,
    bindings=GRPC,
    needs=FrameFlag.ODD_END,
    flagged=grpc("SendMessage", send(), status=_DEADLINE, headers={"grpc-timeout": "2S"}, seconds=2),
    clean=grpc("SendMessage", send(), {"task": task()}, headers={"grpc-timeout": "2S"}, seconds=1),
)
def deadline(see: RuleContext) -> Iterator[RuleFinding]:
    """A call ends with DEADLINE_EXCEEDED, or its client cancels it when the time of its `grpc-timeout` is over, before
    it has shown a terminal state.

    The agent goes on with the task, and its client does not learn the outcome. Blocking sends and streams take as long
    as the task: they want no deadline, or `returnImmediately` and a look at the task later.
    """
    exchange = see.exchange
    if see.track.state in TERMINAL:
        return
    limit = see.asked_field("grpc-timeout")
    allowed = f"the client allows {limit}" if limit else "the client names no deadline"
    if exchange.grpc_status == _DEADLINE:
        yield RuleFinding(summary=f"{exchange.method} ends with DEADLINE_EXCEEDED, {allowed}", value=limit)
    elif exchange.how == "client cancel" and (found := _TIMEOUT.fullmatch(limit)) is not None:
        late = exchange.closed - exchange.started - int(found[1]) * _UNITS[found[2]]
        if abs(late) < _NEAR:
            yield RuleFinding(summary=f"the client cancels {exchange.method} at its deadline, {allowed}", value=limit)


@rule(
    "A2A-GRPC-018",
    "Failure without a mapped status",
    Severity.WARNING,
    section="1.0 3.3.2",
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.V1,
    bindings=GRPC,
    when=FrameFlag.ERROR,
    flagged=grpc("SendMessage", send(), status=_UNKNOWN, text="it failed"),
    clean=grpc(
        "SendMessage",
        send(),
        status=GRPC_STATUS_NAMES.index("INTERNAL"),
        text="it failed",
        details=[error_info("INTERNAL_ERROR")],
    ),
)
def unmapped(see: RuleContext) -> Iterator[RuleFinding]:
    """A call ends with the status UNKNOWN, which is what libraries send for an exception that nobody caught.

    It says nothing about the cause, and clients cannot tell whether to try again. An agent that fails inside says
    INTERNAL, with an ErrorInfo.
    """
    frame = see.frame
    if frame.kind is FrameKind.END and frame.error_code == _UNKNOWN:
        yield RuleFinding(summary=f"{see.exchange.method} ends with UNKNOWN: {see.failure.text[:100]!r}")
