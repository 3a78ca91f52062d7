"""A gRPC call on HTTP/2: its heads, and how it ends (A2A 1.0 section 10.1; manual/protocol.md "gRPC framing")."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import EventKind
from a2a_proxy.model.wire import Headers
from a2a_proxy.protocol.errors import header_value
from a2a_proxy.rules.context import RuleContext, header_values, strip_parameters
from a2a_proxy.rules.define.conditions import GRPC, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import grpc
from a2a_proxy.rules.examples.objects import send, snapshot, status, task
from a2a_proxy.rules.state.state_sequence import INTERRUPTED, TERMINAL

_TASK_PARAMS = {"id": "t1"}
_CONTENT_TYPES = frozenset({"application/grpc", "application/grpc+proto"})
_CLIENT_STATUSES = {
    400: "INTERNAL",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "UNIMPLEMENTED",
} | dict.fromkeys((429, 502, 503, 504), "UNAVAILABLE")
"""What gRPC clients make of an HTTP status without grpc-status."""
_SERVICE_PARAMETERS = frozenset({b"a2a-version", b"a2a-extensions", b"x-a2a-extensions"})


@rule(
    "A2A-GRPC-001",
    "Content type is not application/grpc",
    Severity.ERROR,
    section="1.0 10.1; gRPC over HTTP/2",
    hook_points=HookPoint.HEADS,
    bindings=GRPC,
    flagged=grpc("GetTask", _TASK_PARAMS, task(), reply_headers={"content-type": "application/grpc+json"}),
    clean=grpc("GetTask", _TASK_PARAMS, task(), reply_headers={"content-type": "application/grpc+proto"}),
)
def content_type(context: RuleContext) -> Iterator[RuleFinding]:
    """Request or response of a gRPC call has a content type other than `application/grpc` and `application/grpc+proto`.
    An answer with an HTTP error status is another rule's.

    Servers refuse such calls, and clients fail them with UNKNOWN, whatever the answer holds.
    """
    exchange = context.exchange
    asked = _content_type(exchange.request_headers)
    if strip_parameters(asked) not in _CONTENT_TYPES:
        yield RuleFinding(summary=f"the request's content type is {asked!r}, it must be application/grpc", value=asked)
    found = _content_type(exchange.response_headers) if exchange.status == 200 else "application/grpc"
    if strip_parameters(found) not in _CONTENT_TYPES:
        told = f"is {found!r}" if found else "is missing"
        yield RuleFinding(summary=f"the response's content type {told}, it must be application/grpc", value=found)


def _content_type(headers: Headers) -> str:
    return header_value(headers, b"content-type").decode("latin-1").strip()


@rule(
    "A2A-GRPC-002",
    "HTTP status of a gRPC call is not 200",
    Severity.ERROR,
    section="gRPC over HTTP/2",
    hook_points=HookPoint.HEADS,
    bindings=GRPC,
    required_flags=FrameFlag.ODD_HEAD,
    flagged=grpc("GetTask", _TASK_PARAMS, http_status=502, status=None, reply_headers={"content-type": "text/html"}),
    clean=grpc("GetTask", _TASK_PARAMS, task()),
)
def http_status(context: RuleContext) -> Iterator[RuleFinding]:
    """A gRPC call is answered with an HTTP status other than 200, as gateways do for a page of their own.

    There is no grpc-status then: clients make one up from the HTTP status, and what the agent had to say is lost.
    """
    status = context.exchange.status
    if status not in (0, 200):
        said = _CLIENT_STATUSES.get(status, "UNKNOWN")
        yield RuleFinding(
            summary=f"HTTP status {status} in place of 200: clients take it for {said}", value=str(status)
        )


def _has_grpc_status(context: RuleContext) -> bool:
    exchange = context.exchange
    return bool(
        header_values(exchange.trailers, "grpc-status") or header_values(exchange.response_headers, "grpc-status")
    )


def _is_stream_unfinished(context: RuleContext) -> bool:
    """The call streams a task, and the stream has not shown a state in which it may end."""
    record = context.record
    done = record.state in TERMINAL or record.state in INTERRUPTED or record.first is EventKind.MESSAGE
    return record.is_streaming and not done and not record.final_at


def _is_reset_in_mid_stream(context: RuleContext) -> bool:
    how, cut = context.exchange.how, context.record.abort_cause
    if how == "agent gone":
        return _is_stream_unfinished(context)
    quiet = ("rst_stream no_error", "rst_stream cancel", "rst_stream refused_stream")
    return how == "agent reset" and cut not in quiet and _is_stream_unfinished(context)


@rule(
    "A2A-GRPC-003",
    "Call ended without grpc-status",
    Severity.ERROR,
    section="gRPC over HTTP/2",
    hook_points=HookPoint.CLOSED,
    scope=EvidenceScope.EXCHANGE,
    bindings=GRPC,
    required_flags=FrameFlag.ODD_END,
    flagged=grpc("GetTask", _TASK_PARAMS, task(), status=None),
    clean=grpc("GetTask", _TASK_PARAMS, task()),
)
def no_status(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent ends the stream (END_STREAM, or RST_STREAM) and there is no `grpc-status`, neither in trailers nor in
    a response of headers only. Not meant: a call that the client cancels, one that is refused unprocessed
    (REFUSED_STREAM), one whose HTTP status or content type is wrong already, and a task's stream that is reset before
    its end (A2A-GRPC-016).

    Clients report UNKNOWN or INTERNAL, and drop an answer that may have been fine.
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
    yield RuleFinding(summary=f"the call ends with {how} and without grpc-status")


@rule(
    "A2A-GRPC-009",
    "Unknown method of the A2A service",
    Severity.WARNING,
    section="1.0 10.3",
    hook_points=HookPoint.HEADS,
    bindings=GRPC,
    required_flags=FrameFlag.ODD_HEAD,
    flagged=grpc("TaskSubscription", b"", status=12, text="unknown method"),
    clean=grpc("SubscribeToTask", _TASK_PARAMS, snapshot("WORKING"), status("COMPLETED")),
)
def unknown_method(context: RuleContext) -> Iterator[RuleFinding]:
    """A call goes to the A2A service and names a method that this service has in no version: a method of 0.3 under the
    package of 1.0, or the other way round, or one of nobody's.

    Agents answer UNIMPLEMENTED. The names changed with 1.0 (`TaskSubscription` became `SubscribeToTask`).
    """
    if not context.operation:
        service, _, method = context.exchange.target.strip("/").partition("/")
        yield RuleFinding(summary=f"{service} has no method {method!r}", value=context.exchange.target)


@rule(
    "A2A-GRPC-014",
    "Service parameters are not usable metadata",
    Severity.WARNING,
    section="1.0 10.2; RFC 9113 8.2.1",
    hook_points=HookPoint.HEADS,
    bindings=GRPC,
    flagged=grpc(
        "GetTask",
        _TASK_PARAMS,
        task(),
        headers={"a2a-extensions": "https://example.com/a/v1\0https://example.com/b/v1"},
    ),
    clean=grpc(
        "GetTask", _TASK_PARAMS, task(), headers={"a2a-extensions": "https://example.com/a/v1,https://example.com/b/v1"}
    ),
)
def metadata(context: RuleContext) -> Iterator[RuleFinding]:
    """The request has a metadata name with upper-case letters; or `a2a-version` more than once; or its extensions in
    several entries in place of one list with commas.

    HTTP/2 forbids upper case, and strict peers reset such a call. Of several entries most servers read the first.
    """
    found: dict[bytes, list[str]] = {}
    for name, value in context.exchange.request_headers:
        low = name.lower()
        if name != low:
            word = name.decode("latin-1")
            yield RuleFinding(
                summary=f"the metadata name {word!r} is not in lower case, HTTP/2 forbids that", value=word
            )
        if low in _SERVICE_PARAMETERS:
            found.setdefault(low, []).append(value.decode("latin-1"))
    for low, values in found.items():
        word = low.decode()
        if len(values) > 1:
            yield RuleFinding(
                summary=f"{word} comes in {len(values)} entries, one was expected", value="; ".join(values)
            )
        elif low == b"a2a-version" and "," in values[0]:
            yield RuleFinding(summary=f"{word} has several values: {values[0][:60]!r}", value=values[0])


@rule(
    "A2A-GRPC-016",
    "Stream reset by the agent",
    Severity.WARNING,
    section="gRPC over HTTP/2; RFC 9113 6.4, 6.8",
    hook_points=HookPoint.CLOSED,
    scope=EvidenceScope.EXCHANGE,
    bindings=GRPC,
    required_flags=FrameFlag.ODD_END,
    flagged=grpc("SendStreamingMessage", send(), snapshot("WORKING"), finish="cut"),
    clean=grpc("SendStreamingMessage", send(), snapshot("WORKING"), status("COMPLETED")),
)
def reset(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent's side breaks off the stream of a task by RST_STREAM (other than NO_ERROR and CANCEL), GOAWAY or the
    end of the connection, and the stream has shown neither a terminal nor an interrupted state, nor a message.

    The client cannot know what became of the task: it has to ask with GetTask or subscribe anew.
    """
    if _is_reset_in_mid_stream(context) and not _has_grpc_status(context):
        state = context.record.state
        last = f"in state {TaskState(state).name}" if state else "before any state"
        yield RuleFinding(
            summary=f"the agent breaks the stream off {last}: {context.record.abort_cause or context.exchange.how}"
        )
