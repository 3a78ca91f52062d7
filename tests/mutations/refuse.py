"""Turn an answer into an error, in the form of its binding and version."""

from __future__ import annotations

import base64
import json
from typing import Any

from a2a_proto import message_class
from a2a_proxy.model.values import Binding, Dialect
from a2a_proxy.protocol.errors import GRPC_STATUS_NAMES, RPC_REASONS
from a2a_proxy.rules.examples.objects import error_info
from a2a_proxy.rules.families.err.table import ERROR_TABLE
from support_mutations import Ex, Msg

CODES = {reason: code for code, reason in RPC_REASONS.items()}
_OWN = {
    "METHOD_NOT_FOUND": ("UNIMPLEMENTED", 404),
    "INTERNAL_ERROR": ("INTERNAL", 500),
    "TASK_GENERATION_MISMATCH": ("ABORTED", 409),
}
"""gRPC and HTTP statuses of errors that A2A 1.0 does not define; the last one is of the 1.1
draft."""


def refuse(call: Ex, reason: str, text: str) -> Msg | None:
    """Answer this call with an error of that name; return its message (None: gRPC trailers)."""
    at, v1 = call.ended, call.facts.dialect is Dialect.V1_0
    status, http = (
        (ERROR_TABLE[reason].grpc, ERROR_TABLE[reason].http)
        if reason in ERROR_TABLE
        else _OWN[reason]
    )
    details = [error_info(reason)] if v1 else []
    if call.grpc:
        _trailers(
            call, GRPC_STATUS_NAMES.index(status if v1 else _old(reason, status)), text, details
        )
        return None
    body: Any
    if call.facts.binding is Binding.JSONRPC:
        error = {"code": CODES[reason], "message": text} | ({"data": details} if v1 else {})
        body = {"jsonrpc": "2.0", "id": call.requests[0].value["id"], "error": error}
    elif v1:
        call.status = http
        body = {"error": {"code": http, "status": status, "message": text, "details": details}}
    else:
        call.status, body = http, {"message": text}
    call.set("content-type", "application/json", reply=True)
    call.answers = [Msg(json.dumps(body).encode(), at, "json")]
    return call.answers[0]


def _old(reason: str, status: str) -> str:
    """Return the gRPC status of 0.3, which is the same for most unsupported operations."""
    return ERROR_TABLE[reason].old_grpc or status if reason in ERROR_TABLE else status


def _trailers(call: Ex, status: int, text: str, details: list[dict[str, Any]]) -> None:
    """Replace the answer with a response of headers only."""
    call.answers, call.trailers = [], []
    call.set("grpc-status", str(status), reply=True)
    call.set("grpc-message", text, reply=True)
    call.set("grpc-status-details-bin", None, reply=True)
    if details:
        whole: Any = message_class("rpc", "google.rpc.Status")(code=status, message=text)
        for each in details:
            info: Any = message_class("rpc", "google.rpc.ErrorInfo")(
                reason=each["reason"], domain=each["domain"]
            )
            whole.details.add(type_url=each["@type"], value=info.SerializeToString())
        call.set(
            "grpc-status-details-bin",
            base64.b64encode(whole.SerializeToString()).decode(),
            reply=True,
        )
