"""The answers of the proxy to calls that `--fault` makes fail, in the form of each binding."""

from http import HTTPStatus

import msgspec

from a2a_proxy.faults.live import WEBHOOK, LiveFault
from a2a_proxy.http.hpack import Field
from a2a_proxy.relay.problem import Problem, encode_problem, percent_encode


def encode_http1_failure(fault: LiveFault, rpc_id: bytes, *, streaming: bool, head: bool) -> bytes:
    """Return the whole response to a failing call, after which the connection continues. `rpc_id`
    is JSON, `streaming` says that the call asks for a stream of events, `head` that the request is
    a HEAD."""
    if fault.code >= 0:
        status, kind, body = (
            fault.code,
            "application/problem+json",
            encode_problem(_problem_of(fault)),
        )
    else:
        error = {"code": fault.code, "message": _describe(fault)}
        body = msgspec.json.encode(
            {"jsonrpc": "2.0", "id": msgspec.Raw(rpc_id or b"null"), "error": error}
        )
        status, kind = 200, "application/json"
        if streaming:
            kind, body = "text/event-stream", b"data: " + body + b"\n\n"
    start = (
        f"HTTP/1.1 {status} {_reason_of(status)}\r\nServer: a2a-proxy\r\nContent-Type: {kind}\r\n"
    )
    return f"{start}Content-Length: {len(body)}\r\n\r\n".encode() + (b"" if head else body)


def make_grpc_failure(fault: LiveFault) -> list[Field]:
    """Return the header fields of the whole response to a failing gRPC call: trailers alone, or an
    HTTP status."""
    if fault.code:
        return [
            (b":status", b"%d" % fault.code),
            (b"server", b"a2a-proxy"),
            (b"content-length", b"0"),
        ]
    return [
        (b":status", b"200"),
        (b"content-type", b"application/grpc"),
        (b"grpc-status", b"%d" % fault.grpc_status),
        (b"grpc-message", percent_encode(_describe(fault))),
    ]


def _describe(fault: LiveFault) -> str:
    server = "webhook" if fault.operation == WEBHOOK else "agent"
    return f"answered by a2a-proxy, not by the {server}: --fault {fault.text}"


def _problem_of(fault: LiveFault) -> Problem:
    return Problem(fault.code, _reason_of(fault.code), _describe(fault))


def _reason_of(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Failed"
