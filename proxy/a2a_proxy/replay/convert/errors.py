"""Errors in the form of each binding: JSON-RPC error, REST body with its status, gRPC status and
details (manual/protocol.md "Errors" and "Error bodies").

On the recorded binding an error is sent as recorded; on another binding it is built from the table
of errors.
"""

import json
import re
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec

from a2a_proto import RenderError, from_dict
from a2a_proxy.model.values import Dialect
from a2a_proxy.model.wire import Headers
from a2a_proxy.protocol.canonical import Json
from a2a_proxy.protocol.errors import (
    GRPC_STATUS_NAMES,
    GrpcOutcome,
    header_value,
    parse_rest_error,
    read_details,
    rpc_reason,
)
from a2a_proxy.replay.convert.responses import OLD_DIALECTS
from a2a_proxy.rules.families.err.table import ERROR_DOMAIN, ERROR_TABLE

DETAILS = "grpc-status-details-bin"
_ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
_TYPE_NAME = re.compile(r"([A-Z][A-Za-z]+)Error: ?")
_CAMEL_BOUNDARY = re.compile(r"(?<=[a-z])(?=[A-Z])")

_NEW_CODES: dict[str, tuple[int, str, int]] = {
    reason: (row.code, row.grpc, row.http) for reason, row in ERROR_TABLE.items()
} | {
    "TASK_GENERATION_MISMATCH": (-32010, "ABORTED", 409),
    "PARSE_ERROR": (-32700, "INVALID_ARGUMENT", 400),
    "INVALID_REQUEST": (-32600, "INVALID_ARGUMENT", 400),
    "METHOD_NOT_FOUND": (-32601, "UNIMPLEMENTED", 404),
    "INVALID_PARAMS": (-32602, "INVALID_ARGUMENT", 400),
    "INTERNAL_ERROR": (-32603, "INTERNAL", 500),
}
"""From the reason to JSON-RPC code, gRPC status and HTTP status, from 1.0 on."""
_OLD_CODES = _NEW_CODES | {
    "TASK_NOT_CANCELABLE": (-32002, "UNIMPLEMENTED", 409),
    "PUSH_NOTIFICATION_NOT_SUPPORTED": (-32003, "UNIMPLEMENTED", 501),
    "UNSUPPORTED_OPERATION": (-32004, "UNIMPLEMENTED", 501),
    "CONTENT_TYPE_NOT_SUPPORTED": (-32005, "UNIMPLEMENTED", 415),
    "INVALID_AGENT_RESPONSE": (-32006, "INTERNAL", 502),
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED": (-32007, "NOT_FOUND", 404),
    "METHOD_NOT_FOUND": (-32601, "NOT_FOUND", 404),
    "INVALID_PARAMS": (-32602, "INVALID_ARGUMENT", 422),
}
"""The same for agents of 0.3."""
_REASON_BY_HTTP = {
    404: "TASK_NOT_FOUND",
    409: "TASK_NOT_CANCELABLE",
    415: "CONTENT_TYPE_NOT_SUPPORTED",
    422: "INVALID_PARAMS",
    501: "UNSUPPORTED_OPERATION",
    502: "INVALID_AGENT_RESPONSE",
    400: "INVALID_REQUEST",
}
"""The most likely reason for a bare HTTP status of 0.3, whose bodies name no reason."""
_GRPC_OF_HTTP = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    400: "INVALID_ARGUMENT",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
}
_HTTP_OF_GRPC = {GRPC_STATUS_NAMES.index(name): status for status, name in _GRPC_OF_HTTP.items()}
"""For errors that are not defined by A2A."""


class ReplayError(msgspec.Struct, frozen=True):
    """One error, independent of a binding."""

    reason: str
    """`TASK_NOT_FOUND`; empty if it is unknown."""
    message: str
    details: list[Json] = []
    """ProtoJSON, each with its `@type`."""
    code: int = 0
    """JSON-RPC code; 0: from the reason."""
    http: int = 0
    grpc: int = 0
    body: Any = None
    """Body of a REST error, as recorded."""
    error: Json | None = None
    """The `error` of a JSON-RPC answer, as recorded."""
    raw_body: bytes = b""
    """The REST body as bytes, if it can be sent unchanged."""
    is_http_only: bool = False
    """HTTP itself failed, before any binding was reached: every request over HTTP gets that
    body."""
    grpc_text: str = ""
    """`grpc-message` as recorded; `message` lacks the error's name that 0.3 puts before it."""

    def rpc_error(self, dialect: Dialect) -> Json:
        """Return the `error` of JSON-RPC."""
        if self.error is not None:
            return self.error
        error_object: Json = {
            "code": self.code or self._find_codes(dialect)[0],
            "message": self.message,
        }
        details = [] if dialect in OLD_DIALECTS else self.details or self._error_info
        return {**error_object, "data": details} if details else error_object

    def rest_response(self, dialect: Dialect) -> tuple[int, Any]:
        """Return HTTP status and body."""
        status = self.http or self._find_codes(dialect)[2]
        if self.body is not None:
            return status, self.body
        if dialect in OLD_DIALECTS:
            return status, {"message": self.message}
        error: Json = {
            "code": status,
            "status": GRPC_STATUS_NAMES[self.grpc_status(dialect)],
            "message": self.message,
        }
        details = self.details or self._error_info
        return status, {"error": {**error, "details": details} if details else error}

    def grpc_status(self, dialect: Dialect) -> int:
        """Return the gRPC status."""
        return self.grpc or GRPC_STATUS_NAMES.index(self._find_codes(dialect)[1])

    def grpc_message(self, dialect: Dialect) -> str:
        """Return the message of the gRPC status."""
        if self.grpc_text or dialect not in OLD_DIALECTS or self.reason not in _OLD_CODES:
            return self.grpc_text or self.message
        name = "".join(word.capitalize() for word in self.reason.removesuffix("_ERROR").split("_"))
        return f"{name}Error: {self.message}"

    def status_details(self, dialect: Dialect) -> bytes:
        """Return the error as `google.rpc.Status`; empty if it has no details."""
        details = [] if dialect in OLD_DIALECTS else self.details or self._error_info
        if not details:
            return b""
        status_value = {
            "code": self.grpc_status(dialect),
            "message": self.message,
            "details": [_text_metadata(one) for one in details],
        }
        try:
            data: bytes = from_dict(
                "rpc", "google.rpc.Status", status_value, lenient=True
            ).SerializeToString()
        except RenderError:  # a detail of an unknown type
            return b""
        return data

    @property
    def _error_info(self) -> list[Json]:
        return (
            [{"@type": _ERROR_INFO, "reason": self.reason, "domain": ERROR_DOMAIN}]
            if self.reason in _NEW_CODES
            else []
        )

    def _find_codes(self, dialect: Dialect) -> tuple[int, str, int]:
        codes = (_OLD_CODES if dialect in OLD_DIALECTS else _NEW_CODES).get(self.reason)
        return codes or (
            -32603,
            _GRPC_OF_HTTP.get(self.http, "INTERNAL"),
            _HTTP_OF_GRPC.get(self.grpc, 500),
        )


def parse_rpc_error(error: Any, dialect: Dialect) -> ReplayError:
    """Parse the `error` of a JSON-RPC answer."""
    members: Json = error if isinstance(error, dict) else {}
    number, data = members.get("code"), members.get("data")
    code = number if isinstance(number, int) else -32603
    details = (
        [one for one in data if isinstance(one, dict) and "@type" in one]
        if isinstance(data, list)
        else []
    )
    return ReplayError(
        rpc_reason(code, data, dialect),
        str(members.get("message", "")),
        details,
        code,
        error=members,
    )


def parse_rest_response(body: Any, status: int) -> ReplayError:
    """Parse the body of a REST error; `status` is the status of its response, 200 within a
    stream."""
    reason, message = parse_rest_error(body)
    error = body.get("error") if isinstance(body, dict) else None
    inner: Json = error if isinstance(error, dict) else {}
    details = inner.get("details")
    typed_details = (
        [one for one in details if isinstance(one, dict) and "@type" in one]
        if isinstance(details, list)
        else []
    )
    if reason not in _NEW_CODES:
        reason = _REASON_BY_HTTP.get(status, "")
    named = inner.get("status")
    grpc = GRPC_STATUS_NAMES.index(named) if named in GRPC_STATUS_NAMES else 0
    return ReplayError(
        reason, message, typed_details, http=status if status >= 400 else 0, grpc=grpc, body=body
    )


def parse_grpc_error(trailers: Headers) -> ReplayError:
    """Parse the trailers of a gRPC call that ended with another status than OK."""
    outcome = GrpcOutcome(trailers)
    details = (read_details(header_value(trailers, DETAILS.encode())) or {}).get("details", [])
    reason = outcome.reason
    text = message = unquote_to_bytes(header_value(trailers, b"grpc-message")).decode(
        "utf-8", "replace"
    )
    named = _TYPE_NAME.match(message)
    if not reason and named:  # 0.3: `TaskNotFoundError: Task not found`
        found = _CAMEL_BOUNDARY.sub("_", named[1]).upper()
        reason = (
            found
            if found in _NEW_CODES
            else f"{found}_ERROR"
            if f"{found}_ERROR" in _NEW_CODES
            else ""
        )
        message = message[named.end() :] if reason else message
    return ReplayError(reason, message, details, grpc=max(outcome.status, 0), grpc_text=text)


def _text_metadata(detail: Json) -> Json:
    """Return an ErrorInfo with its metadata as strings, as protobuf requires."""
    metadata = detail.get("metadata")
    if not isinstance(metadata, dict):
        return detail
    texts = {
        name: item if isinstance(item, str) else json.dumps(item) for name, item in metadata.items()
    }
    return {**detail, "metadata": texts}
