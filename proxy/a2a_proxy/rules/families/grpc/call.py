"""Rules about the header blocks of a gRPC call on HTTP/2 and about its end (A2A 1.0 section 10.1;
manual/protocol.md "gRPC framing")."""

from collections.abc import Iterator

from a2a_proxy.model.values import Actor, Severity
from a2a_proxy.model.wire import Headers
from a2a_proxy.protocol.errors import header_value
from a2a_proxy.rules.context import RuleContext, header_values, strip_parameters
from a2a_proxy.rules.define.conditions import GRPC, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import grpc
from a2a_proxy.rules.examples.objects import TASK_PARAMS, snapshot, status, task

_CONTENT_TYPES = frozenset({"application/grpc", "application/grpc+proto"})
_CLIENT_STATUSES = {
    400: "INTERNAL",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "UNIMPLEMENTED",
} | dict.fromkeys((429, 502, 503, 504), "UNAVAILABLE")
"""The gRPC status that clients derive from an HTTP status if there is no grpc-status."""
_SERVICE_PARAMETERS = frozenset({b"a2a-version", b"a2a-extensions", b"x-a2a-extensions"})


@rule(
    "A2A-GRPC-001",
    "Content type is not application/grpc",
    Severity.ERROR,
    section="1.0 10.1; 0.3 3.2.2; gRPC over HTTP/2",
    hook_points=HookPoint.HEADS,
    bindings=GRPC,
    flagged=grpc(
        "GetTask", TASK_PARAMS, task(), reply_headers={"content-type": "application/grpc+json"}
    ),
    clean=grpc(
        "GetTask", TASK_PARAMS, task(), reply_headers={"content-type": "application/grpc+proto"}
    ),
)
def content_type(context: RuleContext) -> Iterator[RuleFinding]:
    """The request or the response of a gRPC call has a content type other than `application/grpc`
    or `application/grpc+proto`. A response whose HTTP status is not 200 is not reported here, but
    as A2A-GRPC-002.

    Servers refuse such requests, and clients fail such calls with UNKNOWN, whatever the response
    contains. The sender must set `application/grpc`: the client for the request; the agent, or a
    gateway in front of it, for the response.
    """
    exchange = context.exchange
    asked = _content_type(exchange.request_headers)
    if strip_parameters(asked) not in _CONTENT_TYPES:
        yield RuleFinding(
            summary=f"the content type of the request is {asked!r}, it must be application/grpc",
            value=asked,
            actor=Actor.CLIENT,
        )
    found = (
        _content_type(exchange.response_headers) if exchange.status == 200 else "application/grpc"
    )
    if strip_parameters(found) not in _CONTENT_TYPES:
        told = f"is {found!r}" if found else "is missing"
        yield RuleFinding(
            summary=f"the content type of the response {told}, it must be application/grpc",
            value=found,
            actor=Actor.AGENT,
        )


def _content_type(headers: Headers) -> str:
    return header_value(headers, b"content-type").decode("latin-1").strip()


@rule(
    "A2A-GRPC-002",
    "HTTP status of a gRPC call is not 200",
    Severity.ERROR,
    actor=Actor.BETWEEN,
    section="gRPC over HTTP/2",
    hook_points=HookPoint.HEADS,
    bindings=GRPC,
    required_flags=FrameFlag.ODD_HEAD,
    flagged=grpc(
        "GetTask",
        TASK_PARAMS,
        http_status=502,
        status=None,
        reply_headers={"content-type": "text/html"},
    ),
    clean=grpc("GetTask", TASK_PARAMS, task()),
)
def http_status(context: RuleContext) -> Iterator[RuleFinding]:
    """A gRPC call is answered with an HTTP status other than 200, usually by a gateway with an
    error page of its own.

    Such a response has no grpc-status: clients derive one from the HTTP status, and the agent's own
    error is lost. The gateway must answer gRPC calls with HTTP 200 and a grpc-status.
    """
    status = context.exchange.status
    if status not in (0, 200):
        said = _CLIENT_STATUSES.get(status, "UNKNOWN")
        yield RuleFinding(
            summary=f"the HTTP status is {status}, it must be 200: clients report {said}",
            value=str(status),
        )


def _has_grpc_status(context: RuleContext) -> bool:
    exchange = context.exchange
    return bool(
        header_values(exchange.trailers, "grpc-status")
        or header_values(exchange.response_headers, "grpc-status")
    )


def _is_reset_in_mid_stream(context: RuleContext) -> bool:
    how, cut = context.exchange.how, context.record.abort_cause
    if how == "agent gone":
        return context.is_stream_unfinished
    quiet = ("rst_stream no_error", "rst_stream cancel", "rst_stream refused_stream")
    return how == "agent reset" and cut not in quiet and context.is_stream_unfinished


@rule(
    "A2A-GRPC-003",
    "Call ends without grpc-status",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="gRPC over HTTP/2",
    hook_points=HookPoint.CLOSED,
    scope=EvidenceScope.EXCHANGE,
    bindings=GRPC,
    required_flags=FrameFlag.ODD_END,
    flagged=grpc("GetTask", TASK_PARAMS, task(), status=None),
    clean=grpc("GetTask", TASK_PARAMS, task()),
)
def no_status(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent ends the stream (END_STREAM or RST_STREAM) without a `grpc-status` in the trailers
    or in a response that has header fields only. Not reported: a call that the client cancels, a
    call that is refused unprocessed (REFUSED_STREAM), a call with a wrong HTTP status
    (A2A-GRPC-002) or content type (A2A-GRPC-001), and a task's stream that is reset before its end.

    Clients report UNKNOWN or INTERNAL and drop the answer, even if it was complete. The agent, or a
    proxy in front of it that drops trailers, must send `grpc-status` at the end of each call.
    """
    exchange, cut = context.exchange, context.record.abort_cause
    if exchange.grpc_status >= 0 or exchange.how not in ("complete", "agent reset"):
        return
    if exchange.status not in (0, 200) or _has_grpc_status(context):
        return
    if exchange.status and not context.media_type.startswith("application/grpc"):
        return
    if cut == "rst_stream refused_stream" or _is_reset_in_mid_stream(context):
        return
    how = "END_STREAM" if exchange.how == "complete" else cut.upper() if cut else "RST_STREAM"
    yield RuleFinding(summary=f"the agent ends the call with {how} but without grpc-status")


@rule(
    "A2A-GRPC-009",
    "Unknown method of the A2A service",
    Severity.WARNING,
    actor=Actor.CLIENT,
    section="1.0 10.3",
    hook_points=HookPoint.HEADS,
    bindings=GRPC,
    required_flags=FrameFlag.ODD_HEAD,
    flagged=grpc("TaskSubscription", b"", status=12, text="unknown method"),
    clean=grpc("SubscribeToTask", TASK_PARAMS, snapshot("WORKING"), status("COMPLETED")),
)
def unknown_method(context: RuleContext) -> Iterator[RuleFinding]:
    """A client calls a method of the A2A service that this service does not have: a 0.3 method in
    the 1.0 package, a 1.0 method in the 0.3 package, or an unknown name.

    The agent answers UNIMPLEMENTED. Many methods were renamed in 1.0 (`TaskSubscription` became
    `SubscribeToTask`): the client must use the names of the version that it speaks.
    """
    if not context.operation:
        service, _, method = context.exchange.target.strip("/").partition("/")
        yield RuleFinding(
            summary=f"{service} has no method {method!r}", value=context.exchange.target
        )


@rule(
    "A2A-GRPC-014",
    "Malformed A2A metadata in a gRPC request",
    Severity.WARNING,
    actor=Actor.CLIENT,
    section="1.0 10.2; RFC 9113 8.2.1",
    hook_points=HookPoint.HEADS,
    bindings=GRPC,
    flagged=grpc(
        "GetTask",
        TASK_PARAMS,
        task(),
        headers={"a2a-extensions": "https://example.com/a/v1\0https://example.com/b/v1"},
    ),
    clean=grpc(
        "GetTask",
        TASK_PARAMS,
        task(),
        headers={"a2a-extensions": "https://example.com/a/v1,https://example.com/b/v1"},
    ),
)
def metadata(context: RuleContext) -> Iterator[RuleFinding]:
    """A metadata name in the request has upper-case letters, `a2a-version` is sent more than once,
    or the extensions are sent in several entries instead of one comma-separated list.

    HTTP/2 forbids upper-case names, and strict servers reset such calls. Of several entries, most
    servers read only the first. The client must send each name in lower case and once.
    """
    found: dict[bytes, list[str]] = {}
    for name, value in context.exchange.request_headers:
        low = name.lower()
        if name != low:
            word = name.decode("latin-1")
            yield RuleFinding(
                summary=f"the metadata name {word!r} has upper-case letters, which HTTP/2 forbids",
                value=word,
            )
        if low in _SERVICE_PARAMETERS:
            found.setdefault(low, []).append(value.decode("latin-1"))
    for low, values in found.items():
        word = low.decode()
        if len(values) > 1:
            yield RuleFinding(
                summary=f"the client sends {word} in {len(values)} entries, expected one",
                value="; ".join(values),
            )
        elif low == b"a2a-version" and "," in values[0]:
            yield RuleFinding(
                summary=f"the client sends several values in {word}: {values[0][:60]!r}",
                value=values[0],
            )
