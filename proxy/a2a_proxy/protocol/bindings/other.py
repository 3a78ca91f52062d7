"""HTTP that is not A2A, and the parts of A2A bindings that are not: comments, responses of another
type."""

from functools import lru_cache
from http import HTTPStatus

from a2a_proxy.model.values import JSONRPC_BINDINGS, Binding, ExchangeFields, FrameKind
from a2a_proxy.model.wire import Headers
from a2a_proxy.protocol.call import (
    TO_AGENT,
    TO_CLIENT,
    ByteSpan,
    ExchangeDecoder,
    Out,
    SpanPiece,
    make_detail,
)
from a2a_proxy.protocol.errors import error_line, header_value, read_error_body
from a2a_proxy.protocol.operations import OPERATION_BY_NAME, ResponseKind
from a2a_proxy.protocol.schema import BYTES, JSON, TEXT
from a2a_proxy.protocol.session_facts import CardFacts
from a2a_proxy.protocol.summary import NO_SUMMARY
from a2a_proxy.wire.sse import SseEvent

_A2A_SUFFIXES = (
    ":send",
    ":stream",
    ":cancel",
    ":subscribe",
    "/extendedAgentCard",
    "/authenticatedExtendedCard",
)
"""Path endings that only A2A has; other services too have `/tasks` and `/tasks/{id}`."""
NO_RESULT = "answer without a result of "
"""Begin of the error of a call whose answer is well-formed, and no result of its operation."""
ARRAY = "array in place of one object"
INSIDE = "answer inside "
"""Errors of calls whose answer is in a wrong container."""
_EXPECTED_FORMATS = {Binding.JSONRPC: "JSON-RPC", Binding.REST: "JSON", Binding.CARD: "JSON"}

_CALL_BINDINGS = JSONRPC_BINDINGS | {*_EXPECTED_FORMATS, Binding.GRPC}


def is_json(headers: Headers) -> bool:
    """Whether the content type is JSON, also with a `+json` suffix."""
    kind = header_value(headers, b"content-type").partition(b";")[0].strip().lower()
    return kind == b"application/json" or kind.endswith(b"+json")


def is_text(headers: Headers) -> bool:
    """Whether the body can be shown as text."""
    return is_json(headers) or header_value(headers, b"content-type").strip().lower().startswith(
        (b"text/", b"application/xml")
    )


@lru_cache(256)
def may_carry_a2a(headers: Headers) -> bool:
    """Whether the body may contain A2A: JSON, events, or no content type at all."""
    kind = header_value(headers, b"content-type").lower()
    return not kind or is_json(headers) or kind.startswith((b"text/event-stream", b"text/plain"))


def schema_for(headers: Headers, span: ByteSpan) -> str:
    """Return the schema of a body that is not A2A."""
    if not span.size:
        return ""
    return JSON if is_json(headers) else TEXT if is_text(headers) else BYTES


def is_certain_call(exchange: ExchangeFields, card: CardFacts) -> bool:
    """Whether the request is certainly an A2A call, and not one of another service with the same
    path or method.

    `card` are the facts of the agent's card, empty if none was seen.
    """
    headers = exchange.request_headers
    if exchange.binding is Binding.JSONRPC:
        # The Model Context Protocol has methods such as `tasks/get` too.
        is_mcp = header_value(headers, b"mcp-protocol-version") or header_value(
            headers, b"mcp-session-id"
        )
        return bool(exchange.operation) and not is_mcp
    if exchange.binding is not Binding.REST:
        return exchange.binding is Binding.CARD
    path = exchange.target.partition("?")[0]
    media_types = header_value(headers, b"accept") + header_value(headers, b"content-type")
    return bool(
        exchange.version_header
        or exchange.extensions
        or b"a2a+json" in media_types.lower()
        or path.endswith(_A2A_SUFFIXES)
        or "/pushNotificationConfigs" in path
        or card.interfaces
    )


def read_request(call: ExchangeDecoder, body: ByteSpan, out: Out) -> None:
    """Emit a request that is not A2A."""
    schema = schema_for(call.exchange.request_headers, body)
    call.emit_frame(out, TO_AGENT, FrameKind.OTHER, body, schema, NO_SUMMARY)


def read_response(call: ExchangeDecoder, body: ByteSpan, out: Out, framing: str = "") -> None:
    """Emit a response that is not A2A. It is an error if it answers an A2A call with an error
    status, or with a body in place of a result, unless an answer is inside the body."""
    if body.size and call.read_wrapped(body, out):
        return
    exchange = call.exchange
    schema = schema_for(exchange.response_headers, body)
    failed = exchange.status >= 400
    if failed:
        withheld = call.link.facts.forwarded and exchange.binding is Binding.OTHER
        call.record_error(
            exchange.status,
            http_error_line(exchange.status) if withheld else error_message(exchange.status, body),
        )
    elif exchange.status // 100 == 3:
        is_cached = exchange.status == HTTPStatus.NOT_MODIFIED and "Card" in exchange.operation
        if not is_cached and _has_result(call):
            call.record_error(exchange.status, http_error_line(exchange.status))
    elif not body.size:
        if exchange.method != "HEAD":
            record_no_result(call)
    elif _has_result(call):
        call.record_error(
            exchange.status,
            f"HTTP {exchange.status} instead of {_EXPECTED_FORMATS[exchange.binding]}",
        )
    if exchange.binding is Binding.OTHER:
        detail = make_detail(framing=framing)
        call.emit_frame(out, TO_CLIENT, FrameKind.OTHER, body, schema, NO_SUMMARY, detail)
    elif failed:
        call.emit_frame(
            out,
            TO_CLIENT,
            FrameKind.ERROR,
            body,
            schema,
            NO_SUMMARY,
            make_detail(error_code=exchange.status, framing=framing),
        )
    else:
        kind = FrameKind.OTHER if body.size else FrameKind.RESPONSE
        note = "" if body.size else f"status {exchange.status}"
        detail = make_detail(note=note, framing=framing)
        call.emit_frame(out, TO_CLIENT, kind, body, schema, NO_SUMMARY, detail)


def record_no_result(call: ExchangeDecoder) -> None:
    """Record that the answer to an A2A call is no result of its operation, if it must have one."""
    exchange = call.exchange
    if _has_result(call) and exchange.status // 100 in (0, 2):
        call.record_error(exchange.status, f"{NO_RESULT}{exchange.operation}")


def _has_result(call: ExchangeDecoder) -> bool:
    """Whether the exchange is an A2A call whose answer has content: no notification, and no
    delete."""
    exchange = call.exchange
    operation = OPERATION_BY_NAME.get(exchange.operation)
    if (
        exchange.binding not in _CALL_BINDINGS
        or operation is None
        or operation.answer is ResponseKind.EMPTY
    ):
        return False
    if exchange.binding is Binding.GRPC:
        return True
    if not exchange.rpc_id and exchange.binding in JSONRPC_BINDINGS:
        return False
    return exchange.binding in (Binding.STDIO, Binding.WEBSOCKET) or is_certain_call(
        exchange, call.link.shared.get_card(call.exchange.agent)
    )


def error_message(status: int, body: ByteSpan) -> str:
    """Return an error status with the body's error, or with the standard phrase."""
    reason, message = read_error_body(body.data)
    if not (reason or message):
        return http_error_line(status)
    return error_line(f"HTTP {status}", reason, message)


def http_error_line(status: int) -> str:
    """Format an HTTP status: `HTTP 404: Not Found`."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return error_line("HTTP", status, phrase)


def read_event(call: ExchangeDecoder, sse_event: SseEvent, out: Out) -> None:
    """Emit an event of a stream that is not A2A."""
    call.emit_frame(
        out,
        TO_CLIENT,
        FrameKind.OTHER,
        sse_event,
        TEXT,
        NO_SUMMARY,
        make_detail(framing=sse_event.framing),
    )


def read_comment(call: ExchangeDecoder, sse_event: SseEvent, out: Out) -> None:
    """Emit a comment, or an event without data. The comment is the payload if there are no data
    lines (`framing` has both)."""
    text = b"" if sse_event.lines else sse_event.comment.encode("utf-8", "replace")
    span = SpanPiece(sse_event.began, sse_event.at, sse_event.start, sse_event.end, text, len(text))
    schema, detail = TEXT if text else "", make_detail(framing=sse_event.framing)
    call.emit_frame(out, TO_CLIENT, FrameKind.COMMENT, span, schema, NO_SUMMARY, detail)
