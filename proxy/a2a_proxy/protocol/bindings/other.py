"""HTTP that is not A2A, and the parts of A2A bindings that carry none: comments, answers of another type."""

from __future__ import annotations

from http import HTTPStatus

import msgspec

from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.frame import FrameKind
from a2a_proxy.model.wire import Headers
from a2a_proxy.protocol.call import TO_AGENT, TO_CLIENT, ByteSpan, ExchangeDecoder, Out, SpanPiece
from a2a_proxy.protocol.errors import error_line, header, rest_error
from a2a_proxy.protocol.json_shapes import UNREADABLE
from a2a_proxy.protocol.schema import BYTES, JSON, TEXT
from a2a_proxy.protocol.summary import NOTHING
from a2a_proxy.wire.sse import SseEvent


def is_json(headers: Headers) -> bool:
    """The content type is JSON, in any of its forms."""
    kind = header(headers, b"content-type").partition(b";")[0].strip().lower()
    return kind == b"application/json" or kind.endswith(b"+json")


def is_text(headers: Headers) -> bool:
    """The body may be shown as text."""
    return is_json(headers) or header(headers, b"content-type").strip().lower().startswith(
        (b"text/", b"application/xml")
    )


def may_be_a2a(headers: Headers) -> bool:
    """The body may carry A2A: JSON, events, or no content type at all."""
    kind = header(headers, b"content-type").lower()
    return not kind or is_json(headers) or kind.startswith((b"text/event-stream", b"text/plain"))


def schema_for(headers: Headers, span: ByteSpan) -> str:
    """How a body that is not A2A is shown."""
    if not span.size:
        return ""
    return JSON if is_json(headers) else TEXT if is_text(headers) else BYTES


def request(call: ExchangeDecoder, body: ByteSpan, out: Out) -> None:
    """A request that is none of A2A's."""
    schema = schema_for(call.exchange.request_headers, body)
    call.emit(out, TO_AGENT, FrameKind.OTHER, body, schema, NOTHING)


def response(call: ExchangeDecoder, body: ByteSpan, out: Out) -> None:
    """A response that is none of A2A's; to an A2A call an error status makes it an error."""
    exchange = call.exchange
    schema = schema_for(exchange.response_headers, body)
    failed = exchange.status >= 400
    if failed:
        call.fail(exchange.status, _told(exchange.status, body, schema))
    if exchange.binding is Binding.OTHER:
        call.emit(out, TO_CLIENT, FrameKind.OTHER, body, schema, NOTHING)
    elif failed:
        call.emit(out, TO_CLIENT, FrameKind.ERROR, body, schema, NOTHING, error_code=exchange.status)
    else:
        kind = FrameKind.OTHER if body.size else FrameKind.RESPONSE
        call.emit(out, TO_CLIENT, kind, body, schema, NOTHING, note="" if body.size else f"status {exchange.status}")


def _told(status: int, body: ByteSpan, schema: str) -> str:
    """An error status with what the body says of it (`rest_error`), or with the usual phrase."""
    if schema != JSON:
        return http_error(status)
    try:
        reason, message = rest_error(msgspec.json.decode(body.data))
    except UNREADABLE:
        return http_error(status)
    if not (reason or message):
        return http_error(status)
    return error_line(f"HTTP {status}", reason, message)


def http_error(status: int) -> str:
    """An HTTP status in words: `HTTP 404: Not Found`."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return error_line("HTTP", status, phrase)


def event(call: ExchangeDecoder, event: SseEvent, out: Out) -> None:
    """An event of a stream that is not A2A's."""
    call.emit(out, TO_CLIENT, FrameKind.OTHER, event, TEXT, NOTHING, framing=event.framing)


def comment(call: ExchangeDecoder, event: SseEvent, out: Out) -> None:
    """A comment, or an event without data. Its text is the payload where it has no data lines (`framing` has all)."""
    text = b"" if event.lines else event.comment.encode("utf-8", "replace")
    span = SpanPiece(event.began, event.at, event.start, event.end, text, len(text))
    call.emit(out, TO_CLIENT, FrameKind.COMMENT, span, TEXT if text else "", NOTHING, framing=event.framing)
