"""Rules about the trailers and the status of a gRPC call (A2A 1.0 section 10.6)."""

import re
from collections.abc import Iterator

import msgspec

from a2a_proxy.model.values import Actor, FrameKind, Severity
from a2a_proxy.protocol.errors import GRPC_STATUS_NAMES
from a2a_proxy.protocol.operations import LIVE_OPERATIONS
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import GRPC, Dialects, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import grpc
from a2a_proxy.rules.examples.objects import TASK_PARAMS, error_info, send, task
from a2a_proxy.rules.state.state_sequence import TERMINAL

_UNKNOWN_CODE, _DEADLINE_CODE, _NOT_FOUND_CODE, _PRECONDITION_CODE, _ABORTED_CODE = 2, 4, 5, 9, 10
_DOMAIN = "a2a-protocol.org"
_DETAILS_TRAILER = "trailer:grpc-status-details-bin"
_OPERATIONS_WITHOUT_TASK = frozenset({"GetExtendedAgentCard", "ListTasks"})
"""Operations that name no task: NOT_FOUND has another meaning there."""
"""Live streams, for which the proposals require only a status."""
_DEADLINE_TOLERANCE = 250_000_000
"""Distance (ns, as the relay saw it) from its deadline at which a client's cancel counts as caused
by the deadline."""
_TIMEOUT = re.compile(r"([0-9]{1,8})([HMSmun])")
_TIMEOUT_UNITS = {
    "H": 3_600_000_000_000,
    "M": 60_000_000_000,
    "S": 1_000_000_000,
    "m": 1_000_000,
    "u": 1000,
    "n": 1,
}


@rule(
    "A2A-GRPC-004",
    "Invalid grpc-status",
    Severity.ERROR,
    section="gRPC over HTTP/2; gRPC status codes",
    bindings=GRPC,
    trigger_flags=FrameFlag.END,
    flagged=grpc("GetTask", TASK_PARAMS, task(), trailers={"grpc-status": "OK"}),
    clean=grpc("GetTask", TASK_PARAMS, task()),
)
def illegal_status(context: RuleContext) -> Iterator[RuleFinding]:
    """The value of `grpc-status` is not a whole number from 0 to 16.

    Clients treat such a status as UNKNOWN, even if the agent meant success. The agent must send the
    number of the status, not its name.
    """
    frame = context.frame
    if b'["grpc-status","0"]' in frame.payload:
        return
    for value in _trailer_values(frame.payload, "grpc-status"):
        if not value.isascii() or not value.isdecimal() or int(value[:9]) > 16:
            yield RuleFinding(
                summary=f"grpc-status is {value[:40]!r}, it must be a number from 0 to 16",
                value=value,
            )


def _trailer_values(payload: bytes, name: str) -> list[str]:
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
    dialects=Dialects.V1,
    bindings=GRPC,
    trigger_flags=FrameFlag.ERROR,
    flagged=grpc("GetTask", {"id": "t9"}, status=_NOT_FOUND_CODE, text="there is no such task"),
    clean=grpc(
        "GetTask",
        {"id": "t9"},
        status=_NOT_FOUND_CODE,
        text="there is no such task",
        details=[error_info("TASK_NOT_FOUND", taskId="t9")],
    ),
)
def no_error_info(context: RuleContext) -> Iterator[RuleFinding]:
    """A call fails with a status that stands for an A2A error, and its details have no ErrorInfo of
    the domain `a2a-protocol.org`. Such statuses are NOT_FOUND if the call names a task,
    FAILED_PRECONDITION, and ABORTED if the request has `ifGenerationMatch`; other statuses may come
    from the library or a gateway. Details that cannot be decoded are A2A-GRPC-013.

    Several A2A errors share one status: without the reason in the ErrorInfo, the client does not
    know which error it is and how to react. The agent must add the ErrorInfo to
    `grpc-status-details-bin`.
    """
    frame = context.frame
    if frame.kind is not FrameKind.END or not _is_a2a_status(context, frame.error_code):
        return
    if isinstance(context.failure.body, str):
        return
    info = context.failure.info
    if info is None:
        told = (
            f"the agent sends {context.failure.status_name} {context.failure.text[:60]!r} without "
            f"ErrorInfo"
        )
        yield RuleFinding(summary=f"{told} in grpc-status-details-bin", path=_DETAILS_TRAILER)
    elif info.get("domain") != _DOMAIN:
        found = str(info.get("domain", ""))
        told = f"the only ErrorInfo of {context.failure.status_name} has the domain {found!r}"
        yield RuleFinding(
            summary=f"{told}, expected {_DOMAIN!r}", path=_DETAILS_TRAILER, value=found
        )


def _is_a2a_status(context: RuleContext, status: int) -> bool:
    if context.operation in LIVE_OPERATIONS:
        return False
    if status == _NOT_FOUND_CODE:
        return context.operation not in _OPERATIONS_WITHOUT_TASK
    if status == _ABORTED_CODE:
        return bool(context.record.request_snapshot and context.record.request_snapshot.generation)
    return status == _PRECONDITION_CODE


@rule(
    "A2A-GRPC-013",
    "Error details contradict grpc-status",
    Severity.WARNING,
    section="gRPC richer error model",
    bindings=GRPC,
    trigger_flags=FrameFlag.ERROR,
    flagged=grpc(
        "GetTask",
        {"id": "t9"},
        status=_NOT_FOUND_CODE,
        text="there is no such task",
        details=[error_info("TASK_NOT_FOUND", taskId="t9")],
        details_code=_PRECONDITION_CODE,
    ),
    clean=grpc(
        "GetTask",
        {"id": "t9"},
        status=_NOT_FOUND_CODE,
        text="there is no such task",
        details=[error_info("TASK_NOT_FOUND", taskId="t9")],
    ),
)
def contradiction(context: RuleContext) -> Iterator[RuleFinding]:
    """The google.rpc.Status in `grpc-status-details-bin` has another code than `grpc-status`, or
    cannot be decoded.

    gRPC libraries compare the two: they drop the details, or report the wrong status. The agent
    must send the same code in both.
    """
    frame = context.frame
    if frame.kind is not FrameKind.END:
        return
    body = context.failure.body
    if isinstance(body, str):
        yield RuleFinding(
            summary="grpc-status-details-bin cannot be decoded as google.rpc.Status",
            path=_DETAILS_TRAILER,
            value=body[:60],
        )
    elif isinstance(body, dict) and body.get("code") != frame.error_code:
        code = body.get("code")
        yield RuleFinding(
            summary=f"grpc-status is {frame.error_code}, but the code in "
            f"grpc-status-details-bin is "
            f"{code}",
            value=str(code),
        )


@rule(
    "A2A-GRPC-017",
    "Deadline exceeded",
    Severity.INFO,
    actor=Actor.CLIENT,
    section="gRPC deadlines",
    hook_points=HookPoint.CLOSED,
    scope=EvidenceScope.EXCHANGE,
    bindings=GRPC,
    required_flags=FrameFlag.ODD_END,
    flagged=grpc(
        "SendMessage", send(), status=_DEADLINE_CODE, headers={"grpc-timeout": "2S"}, seconds=2
    ),
    clean=grpc("SendMessage", send(), {"task": task()}, headers={"grpc-timeout": "2S"}, seconds=1),
)
def deadline(context: RuleContext) -> Iterator[RuleFinding]:
    """A call ends with DEADLINE_EXCEEDED, or the client cancels it when the time of its
    `grpc-timeout` is over, before the task has reached a terminal state.

    The agent continues with the task, but the client does not learn the result. Blocking sends and
    streams take as long as the task: the client should set no deadline for them, or use
    `returnImmediately` and call GetTask later.
    """
    exchange = context.exchange
    if context.record.state in TERMINAL:
        return
    limit = context.request_header("grpc-timeout")
    allowed = f"the client allows {limit}" if limit else "the client sets no deadline"
    if exchange.grpc_status == _DEADLINE_CODE:
        yield RuleFinding(
            summary=f"{exchange.method} ends with DEADLINE_EXCEEDED, {allowed}", value=limit
        )
    elif exchange.how == "client cancel" and (found := _TIMEOUT.fullmatch(limit)) is not None:
        late = exchange.closed - exchange.started - int(found[1]) * _TIMEOUT_UNITS[found[2]]
        if abs(late) < _DEADLINE_TOLERANCE:
            yield RuleFinding(
                summary=f"the client cancels {exchange.method} at its deadline, {allowed}",
                value=limit,
            )


@rule(
    "A2A-GRPC-018",
    "Call fails with status UNKNOWN",
    Severity.WARNING,
    section="1.0 3.3.2",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.V1,
    bindings=GRPC,
    trigger_flags=FrameFlag.ERROR,
    flagged=grpc("SendMessage", send(), status=_UNKNOWN_CODE, text="it failed"),
    clean=grpc(
        "SendMessage",
        send(),
        status=GRPC_STATUS_NAMES.index("INTERNAL"),
        text="it failed",
        details=[error_info("INTERNAL_ERROR")],
    ),
)
def unmapped(context: RuleContext) -> Iterator[RuleFinding]:
    """A call ends with the status UNKNOWN, which gRPC libraries send for an exception that the
    agent's code does not catch.

    UNKNOWN says nothing about the cause, so the client does not know whether to try again. The
    agent must catch the exception and answer INTERNAL with an ErrorInfo.
    """
    frame = context.frame
    if frame.kind is FrameKind.END and frame.error_code == _UNKNOWN_CODE:
        yield RuleFinding(
            summary=f"{context.exchange.method} ends with UNKNOWN: {context.failure.text[:100]!r}"
        )
