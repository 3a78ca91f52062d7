"""The error table (A2A 1.0 section 5.4): JSON-RPC code, gRPC status and HTTP status of each A2A
error."""

import msgspec

ERROR_DOMAIN = "a2a-protocol.org"


class ErrorRow(msgspec.Struct, frozen=True):
    """The codes of one error; gRPC statuses are given by name."""

    code: int
    grpc: str
    http: int
    old_grpc: str = ""
    """The status required by 1.0.0 and the release candidate, if it was different."""
    old_http: int = 0


ERROR_TABLE: dict[str, ErrorRow] = {
    "TASK_NOT_FOUND": ErrorRow(-32001, "NOT_FOUND", 404),
    "TASK_NOT_CANCELABLE": ErrorRow(-32002, "FAILED_PRECONDITION", 400, old_http=409),
    "PUSH_NOTIFICATION_NOT_SUPPORTED": ErrorRow(
        -32003, "FAILED_PRECONDITION", 400, "UNIMPLEMENTED"
    ),
    "UNSUPPORTED_OPERATION": ErrorRow(-32004, "FAILED_PRECONDITION", 400, "UNIMPLEMENTED"),
    "CONTENT_TYPE_NOT_SUPPORTED": ErrorRow(-32005, "INVALID_ARGUMENT", 400, old_http=415),
    "INVALID_AGENT_RESPONSE": ErrorRow(-32006, "INTERNAL", 500, old_http=502),
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED": ErrorRow(-32007, "FAILED_PRECONDITION", 400),
    "EXTENSION_SUPPORT_REQUIRED": ErrorRow(-32008, "FAILED_PRECONDITION", 400),
    "VERSION_NOT_SUPPORTED": ErrorRow(-32009, "FAILED_PRECONDITION", 400, "UNIMPLEMENTED"),
}
"""Rows by reason; the generation mismatch (1.1) has its own rule, A2A-GEN-016."""

ERROR_BY_REASON = frozenset(ERROR_TABLE) | {
    "TASK_GENERATION_MISMATCH",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "INVALID_PARAMS",
    "INTERNAL_ERROR",
    "PARSE_ERROR",
}
"""Reasons allowed in an A2A ErrorInfo: the errors of the specification and the names that SDKs add
for JSON-RPC errors.
"""

ERROR_BY_CODE = {row.code: reason for reason, row in ERROR_TABLE.items()}
