"""Rules about the code of an A2A error on each binding (A2A 1.0 section 5.4)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.values import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    GRPC,
    JSONRPC,
    REST,
    Dialects,
    EvidenceScope,
    FrameFlag,
)
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import grpc, rest, rest_error, rpc, rpc_error
from a2a_proxy.rules.examples.objects import error_info
from a2a_proxy.rules.families.err.table import ERROR_TABLE

_TASK_PARAMS = {"id": "t9"}
_NOT_FOUND_BODY = rest_error(404, "NOT_FOUND", "TASK_NOT_FOUND", "no task t9")
_WRONG_STATUS = rest_error(400, "INVALID_ARGUMENT", "TASK_NOT_FOUND", "no task t9")


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
