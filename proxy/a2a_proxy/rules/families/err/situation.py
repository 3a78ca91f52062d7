"""Rules about the code of an A2A error on each binding, the error required in a situation, and its
consistency across bindings (A2A 1.0 sections 3.1, 3.3.2, 5.1, 5.4)."""

from collections.abc import Iterator

from a2a_proxy.model.values import Binding, FrameKind, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    GRPC,
    JSONRPC,
    NETWORK,
    REST,
    RPC,
    Dialects,
    EvidenceScope,
    FrameFlag,
)
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import grpc, rest, rest_error, rpc, rpc_error
from a2a_proxy.rules.examples.objects import error_info, send, task
from a2a_proxy.rules.families.err.table import ERROR_TABLE

_OTHER_REASONS = frozenset({"VERSION_NOT_SUPPORTED", "EXTENSION_SUPPORT_REQUIRED"})
"""Errors about the call, not about the task."""
_TASK_ID_OPERATIONS = ("GetTask", "CancelTask", "SubscribeToTask")
_GENERIC_ERRORS = {"INTERNAL_ERROR": -32603, "INVALID_REQUEST": -32600, "METHOD_NOT_FOUND": -32601}
_TASK_PARAMS = {"id": "t9"}
_NOT_FOUND_BODY = rest_error(404, "NOT_FOUND", "TASK_NOT_FOUND", "no task t9")
_WRONG_STATUS = rest_error(400, "INVALID_ARGUMENT", "TASK_NOT_FOUND", "no task t9")


def _error_name(context: RuleContext) -> str:
    """Return the A2A error that the failure stands for, the same for all bindings; empty if
    undetermined."""
    failure = context.failure
    if failure.name:
        return failure.name
    if context.binding is Binding.GRPC:
        return {5: "TASK_NOT_FOUND", 13: "INTERNAL_ERROR", 2: "INTERNAL_ERROR"}.get(
            failure.code, ""
        )
    if context.binding is Binding.REST and isinstance(
        context.value, dict
    ):  # not an HTML page of a server in front of the agent
        return {404: "TASK_NOT_FOUND", 500: "INTERNAL_ERROR"}.get(context.exchange.status, "")
    return ""


def is_unknown_task(context: RuleContext) -> bool:
    """Whether the call names a task that this agent, recorded from its first task on, never
    mentioned."""
    request_snapshot = context.record.request_snapshot
    if (
        request_snapshot is None
        or not request_snapshot.task_id
        or request_snapshot.is_task_known
        or request_snapshot.is_task_forgotten
    ):
        return False
    return context.session.is_complete


@rule(
    "A2A-ERR-007",
    "Wrong error for the situation",
    Severity.ERROR,
    section="1.0 3.1, 3.3.2; 0.3 8.2",
    dialects=Dialects.SINCE_0_2,
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.ERROR,
    operations=(*_TASK_ID_OPERATIONS, "SendMessage", "SendStreamingMessage"),
    flagged=rpc("SendMessage", send(), {"task": task()})
    + rpc(
        "SendMessage", send(id="m2", taskId="t1"), error=rpc_error(-32603, "INTERNAL_ERROR"), id=2
    ),
    clean=rpc("GetTask", {"id": "t9"}, error=rpc_error(-32001, "TASK_NOT_FOUND")),
    also_broken=("A2A-STATE-005",),
)
def wrong_error(context: RuleContext) -> Iterator[RuleFinding]:
    """A message to a finished task is refused with an error other than UnsupportedOperationError.
    Reported as a warning for invalid params and invalid request, which some SDKs use. Or a call for
    a task that never appeared in this recording fails with an internal error instead of
    TaskNotFoundError; reported as a warning, because something else may have failed.

    Clients expect that a task can be finished or unknown, and handle that; an internal error makes
    them retry or give up. The agent must send the specified error.
    """
    kind, request_snapshot = _error_name(context), context.record.request_snapshot
    if (
        request_snapshot is None
        or not kind
        or context.record.events
        or not context.has_flag(FrameFlag.FIRST)
    ):
        return
    if context.operation in ("SendMessage", "SendStreamingMessage"):
        if request_snapshot.terminal and kind not in (
            "UNSUPPORTED_OPERATION",
            "TASK_NOT_FOUND",
            "VERSION_NOT_SUPPORTED",
        ):
            lenient = kind in ("INVALID_PARAMS", "INVALID_REQUEST") or context.failure.code == 3
            summary = (
                f"a message to a finished task was refused with {kind}, expected "
                f"UNSUPPORTED_OPERATION"
            )
            if kind in _GENERIC_ERRORS or lenient:
                yield RuleFinding(
                    summary=summary, value=kind, severity=Severity.WARNING if lenient else None
                )
    elif is_unknown_task(context) and kind == "INTERNAL_ERROR":
        summary = (
            f"{context.operation} of an unknown task failed with {kind}, expected TASK_NOT_FOUND"
        )
        yield RuleFinding(summary=summary, severity=Severity.WARNING, is_sure=False)


@rule(
    "A2A-ERR-008",
    "Bindings of one agent disagree about an error",
    Severity.WARNING,
    section="1.0 5.1",
    bindings=NETWORK,
    dialects=Dialects.V1,
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.ERROR,
    operations=_TASK_ID_OPERATIONS,
    flagged=rpc("GetTask", {"id": "t8"}, error=rpc_error(-32001, "TASK_NOT_FOUND"))
    + grpc(
        "GetTask", {"id": "t9"}, status=9, text="no", details=[error_info("UNSUPPORTED_OPERATION")]
    ),
    clean=rpc("GetTask", {"id": "t8"}, error=rpc_error(-32001, "TASK_NOT_FOUND"))
    + grpc("GetTask", {"id": "t9"}, status=5, text="no", details=[error_info("TASK_NOT_FOUND")]),
)
def bindings_disagree(context: RuleContext) -> Iterator[RuleFinding]:
    """The same operation for an unknown task fails with different A2A errors on two bindings of one
    agent.

    A client that switches to another binding receives errors that its error handling does not
    expect. The agent must map an error in the same way in all its bindings.
    """
    kind, request_snapshot = _error_name(context), context.record.request_snapshot
    if (
        kind not in ERROR_TABLE
        or kind in _OTHER_REASONS
        or request_snapshot is None
        or request_snapshot.is_task_known
        or not request_snapshot.task_id
        or context.frame.kind is FrameKind.EVENT
    ):
        return
    told: dict[str, str] = context.agent.notes.setdefault("errors", {})
    for binding in sorted(RPC - {context.binding}):
        other = told.get(f"{binding} {context.operation}", kind)
        if other != kind:
            yield RuleFinding(
                summary=f"{context.operation} of an unknown task fails with {kind} here, but with "
                f"{other} on {binding}",
                value=kind,
            )
            return
    told[f"{context.binding} {context.operation}"] = kind


@rule(
    "A2A-ERR-001",
    "Wrong HTTP status for an A2A error",
    Severity.ERROR,
    section="1.0 5.4, 11.6",
    dialects=Dialects.V1,
    bindings=REST,
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.ERROR,
    flagged=rest("GET", "/tasks/t9", None, _WRONG_STATUS, status=400),
    clean=rest("GET", "/tasks/t9", None, _NOT_FOUND_BODY, status=404),
)
def http_status(context: RuleContext) -> Iterator[RuleFinding]:
    """An error response names an A2A error in its ErrorInfo, but has another HTTP status than the
    specification assigns to that error. Reported as information if an earlier version assigned this
    status.

    Clients and gateways decide by the status alone whether a task is unknown and whether a call is
    repeated. The agent must send the status of the specification, and a gateway in between must not
    change it.
    """
    failure = context.failure
    row = ERROR_TABLE.get(failure.reason)
    status = context.exchange.status
    if row is None or status < 400 or status == row.http:
        return
    yield RuleFinding(
        summary=f"{failure.reason} is sent with HTTP status {status}, expected {row.http}",
        path="error.details",
        value=failure.reason,
        severity=Severity.INFO if status == row.old_http else None,
    )


@rule(
    "A2A-ERR-002",
    "Wrong gRPC status for an A2A error",
    Severity.ERROR,
    section="1.0 5.4, 10.6",
    dialects=Dialects.V1,
    bindings=GRPC,
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.ERROR,
    flagged=grpc(
        "GetTask",
        _TASK_PARAMS,
        status=13,
        text="no task t9",
        details=[error_info("TASK_NOT_FOUND")],
    ),
    clean=grpc(
        "GetTask", _TASK_PARAMS, status=5, text="no task t9", details=[error_info("TASK_NOT_FOUND")]
    ),
)
def grpc_status(context: RuleContext) -> Iterator[RuleFinding]:
    """The trailers name an A2A error in their ErrorInfo, but have another gRPC status than the
    specification assigns to that error. Reported as information if an earlier version assigned this
    status.

    gRPC clients turn the status into an exception before the details are read, so a wrong status
    becomes the wrong exception. The agent must send the status of the specification.
    """
    failure = context.failure
    row = ERROR_TABLE.get(failure.reason)
    if row is None or failure.status_name == row.grpc:
        return
    yield RuleFinding(
        summary=f"{failure.reason} is sent with gRPC status {failure.status_name}, "
        f"expected {row.grpc}",
        value=failure.status_name,
        severity=Severity.INFO if failure.status_name == row.old_grpc else None,
    )


@rule(
    "A2A-ERR-006",
    "JSON-RPC code and reason disagree",
    Severity.ERROR,
    section="1.0 5.4",
    dialects=Dialects.V1,
    bindings=JSONRPC,
    trigger_flags=FrameFlag.ERROR,
    flagged=rpc("GetTask", _TASK_PARAMS, error=rpc_error(-32001, "UNSUPPORTED_OPERATION")),
    clean=rpc("GetTask", _TASK_PARAMS, error=rpc_error(-32001, "TASK_NOT_FOUND")),
)
def code_and_reason(context: RuleContext) -> Iterator[RuleFinding]:
    """A JSON-RPC error has the code of one A2A error and the ErrorInfo reason of another.

    Clients that read the code and clients that read the reason handle the same response
    differently. The agent must send the code that belongs to the reason.
    """
    failure = context.failure
    row = ERROR_TABLE.get(failure.reason)
    if row is not None and failure.code != row.code:
        yield RuleFinding(
            summary=f"code {failure.code} is sent with reason {failure.reason}, whose code is "
            f"{row.code}",
            path="error.code",
            value=str(failure.code),
        )
