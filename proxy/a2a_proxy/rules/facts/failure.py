"""An error of any binding in one form (manual/protocol.md "Error bodies")."""

from typing import Any

import msgspec

from a2a_proxy.model.values import JSONRPC_BINDINGS, Binding, Dialect, Frame
from a2a_proxy.protocol.errors import (
    GRPC_STATUS_NAMES,
    RPC_REASONS,
    RPC_REASONS_0_1,
    read_details,
)

_A2A_DOMAIN = "a2a-protocol.org"


class Failure(msgspec.Struct, frozen=True):
    """An error reported by an agent."""

    code: int
    """JSON-RPC error code, HTTP status, or gRPC status."""
    text: str = ""
    """The error message."""
    reason: str = ""
    """`reason` of the ErrorInfo; empty if there is none."""
    name: str = ""
    """Name of the A2A error: the reason, otherwise the name of the JSON-RPC code; empty if neither
    identifies it."""
    details: tuple[Any, ...] = ()
    """The error details as plain JSON."""
    info: dict[str, Any] | None = None
    """The first ErrorInfo."""
    body: Any = None
    """The whole error as plain JSON: the `error` member, the body, or the google.rpc.Status."""

    @property
    def status_name(self) -> str:
        """Name of the gRPC status, such as `NOT_FOUND`."""
        return (
            GRPC_STATUS_NAMES[self.code]
            if 0 <= self.code < len(GRPC_STATUS_NAMES)
            else str(self.code)
        )


def failure_from_json(frame: Frame, value: Any, binding: Binding, dialect: Dialect) -> Failure:
    """Return the failure of a JSON-RPC or REST error frame; `value` is its decoded payload."""
    error = value.get("error") if isinstance(value, dict) else None
    if not isinstance(error, dict):
        return Failure(frame.error_code, body=value)
    details = error.get("data") if binding in JSONRPC_BINDINGS else error.get("details")
    found = tuple(details) if isinstance(details, list) else ()
    info = _error_info(found)
    reason = _string_member(info, "reason")
    name = reason
    if not name and binding in JSONRPC_BINDINGS:
        name = (RPC_REASONS_0_1 if dialect is Dialect.V0_1 else RPC_REASONS).get(
            frame.error_code, ""
        )
    return Failure(
        frame.error_code, _string_member(error, "message"), reason, name, found, info, error
    )


def failure_from_trailers(frame: Frame, fields: list[tuple[str, str]]) -> Failure:
    """Return the failure in gRPC trailers with a status other than 0."""
    named = {name.lower(): value for name, value in fields}
    text = named.get("grpc-message", "")
    coded = named.get("grpc-status-details-bin", "")
    if not coded:
        return Failure(frame.error_code, text)
    status = read_details(coded.encode("latin-1"))
    if status is None:
        return Failure(frame.error_code, text, body=coded)
    details = status.get("details")
    found = tuple(details) if isinstance(details, list) else ()
    info = _error_info(found)
    reason = _string_member(info, "reason")
    return Failure(frame.error_code, text, reason, reason, found, info, status)


def _error_info(details: tuple[Any, ...]) -> dict[str, Any] | None:
    """Return the ErrorInfo with the A2A domain, otherwise the first one."""
    found = [each for each in details if isinstance(each, dict) and "reason" in each]
    return next(
        (each for each in found if each.get("domain") == _A2A_DOMAIN), found[0] if found else None
    )


def _string_member(value: Any, name: str) -> str:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""
