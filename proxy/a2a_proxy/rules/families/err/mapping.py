"""One A2A error, its code on each binding (A2A 1.0 section 5.4)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import GRPC, JSONRPC, REST, Dialects, EvidenceScope, FrameFlag, RuleFinding, rule
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
    """An error answer names an A2A error in its ErrorInfo and has another HTTP status than the one of that error.

    Clients and gateways decide by the status alone whether a task is unknown, a call is to be repeated or refused.
    """
    failure = context.failure
    row = ERROR_TABLE.get(failure.reason)
    status = context.exchange.status
    if row is None or status < 400 or status == row.http:
        return
    yield RuleFinding(
        summary=f"{failure.reason} under HTTP {status}, it must be {row.http}",
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
    flagged=grpc("GetTask", _TASK_PARAMS, status=13, text="no task t9", details=[error_info("TASK_NOT_FOUND")]),
    clean=grpc("GetTask", _TASK_PARAMS, status=5, text="no task t9", details=[error_info("TASK_NOT_FOUND")]),
)
def grpc_status(context: RuleContext) -> Iterator[RuleFinding]:
    """The trailers name an A2A error in their ErrorInfo and have another gRPC status than the one of that error.

    gRPC clients map the status to an exception before anybody reads the details: a wrong one is the wrong exception.
    """
    failure = context.failure
    row = ERROR_TABLE.get(failure.reason)
    if row is None or failure.status_name == row.grpc:
        return
    yield RuleFinding(
        summary=f"{failure.reason} with status {failure.status_name}, it must be {row.grpc}",
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
    """A JSON-RPC error has the code of one A2A error and an ErrorInfo with the reason of another.

    A client that goes by the code and one that goes by the reason do different things with the same answer.
    """
    failure = context.failure
    row = ERROR_TABLE.get(failure.reason)
    if row is not None and failure.code != row.code:
        yield RuleFinding(
            summary=f"code {failure.code} with reason {failure.reason}, the code of which is {row.code}",
            path="error.code",
            value=str(failure.code),
        )
