"""Errors are converted to the form of each binding, and unchanged on their own."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from a2a_proto import read_status
from a2a_proxy.model.values import Dialect
from a2a_proxy.protocol.errors import GRPC_STATUS_NAMES
from a2a_proxy.replay.convert.errors import (
    ReplayError,
    parse_grpc_error,
    parse_rest_response,
    parse_rpc_error,
)

NEW, OLD = Dialect.V1_0, Dialect.V0_3
INFO = {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    "reason": "TASK_NOT_FOUND",
    "domain": "a2a-protocol.org",
    "metadata": {"taskId": "t-1"},
}
RPC = {"code": -32001, "message": "no such task", "data": [INFO]}
REST = {"error": {"code": 404, "status": "NOT_FOUND", "message": "no such task", "details": [INFO]}}


def trailers(refusal: ReplayError, dialect: Dialect) -> ReplayError:
    """What a gRPC client reads of it."""
    errors = [
        (b"grpc-status", b"%d" % refusal.grpc_status(dialect)),
        (b"grpc-message", quote(refusal.message).encode()),
    ]
    if details := refusal.status_details(dialect):
        errors.append((b"grpc-status-details-bin", b"\0" + details))
    return parse_grpc_error(tuple(errors))


@pytest.mark.parametrize(
    "error", [parse_rpc_error(RPC, NEW), parse_rest_response(REST, 404)], ids=["jsonrpc", "rest"]
)
def test_errors_convert_between_all_bindings(error: ReplayError) -> None:
    """Code, status, HTTP status and details, from each binding to each."""
    over_grpc = trailers(error, NEW)
    for each in (error, over_grpc):
        assert each.rpc_error(NEW) == RPC
        assert each.rest_response(NEW) == (404, REST)
        assert GRPC_STATUS_NAMES[each.grpc_status(NEW)] == "NOT_FOUND"
        assert read_status(each.status_details(NEW))["details"] == [INFO]


def test_errors_before_1_0_have_no_details() -> None:
    """0.3 has its own statuses, a bare message over REST, and the error's name before the text over
    gRPC."""
    error = parse_rpc_error({"code": -32002, "message": "too late"}, OLD)
    assert error.rest_response(OLD) == (409, {"message": "too late"})
    assert (GRPC_STATUS_NAMES[error.grpc_status(OLD)], error.status_details(OLD)) == (
        "UNIMPLEMENTED",
        b"",
    )
    assert parse_rest_response({"message": "too late"}, 409).rpc_error(OLD) == {
        "code": -32002,
        "message": "too late",
    }
    named = parse_grpc_error(
        ((b"grpc-status", b"5"), (b"grpc-message", b"TaskNotFoundError: no such task"))
    )
    assert named.rpc_error(OLD) == {"code": -32001, "message": "no such task"}
    assert named.rest_response(OLD) == (404, {"message": "no such task"})


def test_unknown_errors_are_kept_as_recorded() -> None:
    """A code, a body and data of an agent's own; on another binding an internal error with the same
    words."""
    error = parse_rpc_error(
        {"code": -32000, "message": "the tool broke", "data": {"taskId": "t-1"}}, NEW
    )
    assert error.rpc_error(NEW) == {
        "code": -32000,
        "message": "the tool broke",
        "data": {"taskId": "t-1"},
    }
    assert error.rest_response(NEW) == (
        500,
        {"error": {"code": 500, "status": "INTERNAL", "message": "the tool broke"}},
    )
    assert parse_rest_response({"detail": "Invalid API key"}, 401).rest_response(NEW) == (
        401,
        {"detail": "Invalid API key"},
    )
    assert parse_rest_response("<html>", 502).rest_response(NEW) == (502, "<html>")


def test_non_text_metadata_becomes_text_in_protobuf() -> None:
    """The Python SDK lists field errors there."""
    info = {
        **INFO,
        "reason": "INVALID_PARAMS",
        "metadata": {"errors": [{"field": "message.parts"}]},
    }
    error = parse_rpc_error({"code": -32602, "message": "Validation failed", "data": [info]}, NEW)
    (detail,) = read_status(error.status_details(NEW))["details"]
    assert detail["metadata"] == {"errors": '[{"field": "message.parts"}]'}
    assert error.rpc_error(NEW)["data"] == [info]


def test_hostile_trailers() -> None:
    """Bytes that are no status leave code and text."""
    error = parse_grpc_error(
        (
            (b"grpc-status", b"5"),
            (b"grpc-message", b"gone"),
            (b"grpc-status-details-bin", b"\0\xff\xff"),
        )
    )
    assert (error.message, error.grpc_status(NEW), error.details) == ("gone", 5, [])
