"""JSON-RPC 2.0 of all dialects (A2A 1.0 sections 9.1 to 9.5), over HTTP and on a pipe.

A call that is not A2A has no operation.
"""

import msgspec

from a2a_proxy.model.values import Binding, Dialect, EventKind, FrameKind
from a2a_proxy.protocol.bindings import other
from a2a_proxy.protocol.call import (
    TO_AGENT,
    TO_CLIENT,
    ByteSpan,
    ExchangeDecoder,
    Out,
    SpanPiece,
    make_detail,
)
from a2a_proxy.protocol.dialect import (
    DialectEvidence,
    classify_dialect,
    correct_guess,
    dialect_of_request,
    dialect_of_result,
    dialect_with_generation,
)
from a2a_proxy.protocol.errors import (
    GENERATION_MISMATCH,
    error_line,
    message_with_details,
    rpc_reason,
)
from a2a_proxy.protocol.json_shapes import (
    UNREADABLE_ERRORS,
    ErrorShape,
    ParamsShape,
    ResultShape,
    decode_envelope,
    decode_params,
    decode_result,
    decode_untyped,
)
from a2a_proxy.protocol.json_summary import (
    expected_generations,
    fit_params,
    push_url_of,
    summarise_answer,
    summarise_leniently,
    summarise_params,
    summarise_result,
)
from a2a_proxy.protocol.operations import (
    JSONRPC_METHODS,
    OPERATION_BY_NAME,
    Operation,
    ResponseKind,
)
from a2a_proxy.protocol.rest_path import query_parameter
from a2a_proxy.protocol.schema import JSON
from a2a_proxy.protocol.summary import NO_SUMMARY, Summary, to_int64
from a2a_proxy.wire.sse import SseEvent


class _CallShape(msgspec.Struct):
    jsonrpc: msgspec.Raw = msgspec.Raw()
    method: str | None = None
    id: msgspec.Raw = msgspec.Raw()
    params: msgspec.Raw = msgspec.Raw()


class _ResponseShape(msgspec.Struct):
    """A response whose result has an unusual shape."""

    jsonrpc: msgspec.Raw = msgspec.Raw()
    id: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


_decode_call = msgspec.json.Decoder(_CallShape).decode
_decode_response = msgspec.json.Decoder(_ResponseShape).decode
_decode_batch = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_error = msgspec.json.Decoder(ErrorShape).decode

NOTE_BARE = "without envelope"
"""First part of the note of an event that is a result without its JSON-RPC envelope."""
NOTE_EVENT_MEMBER = "in `event`"
"""Note of an event that is the member `event` of its message, in place of `result`; its payload is
that member."""
_RESPONSE, _EVENT, _NO_EVENT = FrameKind.RESPONSE, FrameKind.EVENT, EventKind.NONE
_EVENT_ANSWERS = frozenset({ResponseKind.SEND, ResponseKind.TASK, ResponseKind.STREAM})


def is_request(data: bytes) -> bool:
    """Whether the body is a JSON-RPC call or a batch of calls; a missing `jsonrpc` member is
    tolerated for A2A methods."""
    try:
        if data[:64].lstrip()[:1] == b"[":
            batch = _decode_batch(data)
            return bool(batch) and is_request(bytes(batch[0]))
        shape = _decode_call(data)
    except UNREADABLE_ERRORS:
        return False
    return bool(shape.jsonrpc) or shape.method in JSONRPC_METHODS


def is_response(data: bytes) -> bool:
    """Whether the body is a JSON-RPC response or a batch of responses."""
    try:
        if data[:64].lstrip()[:1] == b"[":
            batch = _decode_batch(data)
            return bool(batch) and is_response(bytes(batch[0]))
        return bool(_decode_response(data).jsonrpc)
    except UNREADABLE_ERRORS:
        return False


# --- requests


def read_request(call: ExchangeDecoder, body: ByteSpan, out: Out) -> None:
    """Emit one frame per call; the first call determines the exchange's operation."""
    data = body.data
    if data[:64].lstrip()[:1] != b"[":
        read_one_request(call, body, out)
        return
    for item in _decode_batch_or_none(data) or ():
        read_one_request(call, _span_of_item(body, bytes(item)), out, note="batch")


def _span_of_item(body: ByteSpan, data: bytes) -> SpanPiece:
    return SpanPiece(body.began, body.at, body.start, body.end, data, len(data))


def is_posted_call(data: bytes) -> bool:
    """Whether the body of a request to the path of a REST operation is one JSON-RPC call."""
    return b'"jsonrpc"' in data and data[:64].lstrip()[:1] == b"{" and is_request(data)


def read_posted_call(call: ExchangeDecoder, body: ByteSpan, out: Out) -> None:
    """Emit a call that was posted to the path of a REST operation. The exchange is named by
    `name_posted_call`, if the response is JSON-RPC too."""
    read_one_request(call, body, out, names=False)


def name_posted_call(call: ExchangeDecoder, data: bytes) -> None:
    """Set what the call in `data` determines of its exchange."""
    shape = _decode_call(data)
    _name_exchange(call, shape, _decode_request_params(shape.params))


def read_one_request(
    call: ExchangeDecoder,
    body: ByteSpan,
    out: Out,
    note: str = "",
    framing: str = "",
    *,
    names: bool = True,
) -> None:
    """Emit one call; the first one names the exchange, unless `names` is false."""
    try:
        shape = _decode_call(body.data)
    except UNREADABLE_ERRORS:
        call.emit_frame(
            out,
            TO_AGENT,
            FrameKind.UNDECODABLE,
            body,
            JSON,
            NO_SUMMARY,
            ("", 0, "not a JSON-RPC call", framing),
        )
        return
    rpc_id = text_of_id(shape.id)
    operation, _ = JSONRPC_METHODS.get(shape.method or "", _NO_METHOD)
    if operation is not None:
        call.calls[rpc_id] = operation.name
    params = _decode_request_params(shape.params)
    if names and not call.exchange.requests:
        _name_exchange(call, shape, params)
    call.link.shared.learn_push_url(push_url_of(params), call.exchange.agent)
    summary = summarise_params(params) if operation is not None else NO_SUMMARY
    if summary[6]:
        call.exchange.dialect = dialect_with_generation(call.exchange.dialect)
    call.emit_frame(
        out, TO_AGENT, FrameKind.REQUEST, body, JSON, summary, (rpc_id, 0, note, framing)
    )


_NO_METHOD: tuple[Operation | None, Dialect] = (None, Dialect.UNKNOWN)


def _name_exchange(call: ExchangeDecoder, shape: _CallShape, params: ParamsShape) -> None:
    """Set what the first call determines of the exchange."""
    _set_operation(call, shape)
    call.exchange.tenant = params.tenant or ""
    call.exchange.set_expected_generations(*expected_generations(params))


def _set_operation(call: ExchangeDecoder, shape: _CallShape) -> None:
    """Set the exchange's method, operation and dialect."""
    operation, proof = JSONRPC_METHODS.get(shape.method or "", _NO_METHOD)
    exchange = call.exchange
    exchange.method = shape.method or ""
    exchange.rpc_id = text_of_id(shape.id)
    if operation is None:
        return
    exchange.operation = operation.name
    exchange.streaming = operation.is_streaming
    if not exchange.version_header and "?" in exchange.target:
        exchange.version_header = query_parameter(exchange.target, "a2a-version")
    shared, agent = call.link.shared, exchange.agent
    evidence = DialectEvidence(
        proof,
        exchange.version_header,
        dialect_of_request(bytes(shape.params)),
        shared.get_dialect(agent),
        shared.get_card(agent),
    )
    exchange.dialect, call.guessed = classify_dialect(evidence)
    if not call.guessed:
        shared.learn_dialect(agent, exchange.dialect)


def _decode_request_params(raw: msgspec.Raw) -> ParamsShape:
    data = bytes(raw)
    if not data:
        return ParamsShape()
    try:
        return decode_params(data)
    except UNREADABLE_ERRORS:
        return fit_params(decode_untyped(data))


def text_of_id(raw: msgspec.Raw) -> str:
    """Return a JSON-RPC id as its JSON text."""
    return bytes(raw).decode("utf-8", "replace")


# --- responses


def read_response(call: ExchangeDecoder, body: ByteSpan, out: Out, framing: str = "") -> None:
    """Emit a response that is not a stream: one response or a batch of them."""
    if not body.data:
        other.read_response(call, body, out)
        return
    if body.data[:64].lstrip()[:1] != b"[":
        read_one_response(call, body, _RESPONSE, out, framing=framing)
        return
    batch = _decode_batch_or_none(body.data)
    if not batch:
        other.read_response(call, body, out, framing)
        return
    for item in batch:
        read_one_response(call, _span_of_item(body, bytes(item)), _RESPONSE, out, note="batch")


def _decode_batch_or_none(data: bytes) -> list[msgspec.Raw] | None:
    try:
        return _decode_batch(data)
    except UNREADABLE_ERRORS:
        return None


def read_event(call: ExchangeDecoder, sse_event: SseEvent, out: Out) -> None:
    """Emit one event of a stream."""
    note = "" if sse_event.complete else "unterminated"
    if sse_event.event:
        note = (
            f"{note}, event: {sse_event.event}"
            if note
            else "event: error"
            if sse_event.event == "error"
            else f"event: {sse_event.event}"
        )
    read_one_response(call, sse_event, _EVENT, out, note, sse_event.framing)


def read_event_member(
    call: ExchangeDecoder, body: ByteSpan, event: bytes, rpc_id: str, out: Out, framing: str
) -> None:
    """Emit an event that is the member `event` of its message."""
    span = _span_of_item(body, event)
    try:
        result = decode_result(event)
        summary = summarise_result(result, streaming=True)
    except UNREADABLE_ERRORS:
        result, summary = None, summarise_leniently(decode_untyped(event), streaming=True)
    if result is not None:
        _learn_from_result(call, result, summary)
    detail = (rpc_id, 0, NOTE_EVENT_MEMBER, framing)
    call.emit_frame(out, TO_CLIENT, _EVENT, span, JSON, summary, detail)


def read_one_response(
    call: ExchangeDecoder,
    body: ByteSpan,
    kind: FrameKind,
    out: Out,
    note: str = "",
    framing: str = "",
) -> None:
    """Emit one response, or one event of a stream."""
    exchange = call.exchange
    message = (
        None if call.guessed or len(call.calls) > 1 else call.reader.read(body.data, exchange, kind)
    )
    if message is not None and message.summary is not None:
        summary, rpc_id = message.summary, message.rpc_id
    else:
        try:
            envelope = decode_envelope(body.data)
        except UNREADABLE_ERRORS:
            _read_odd_response(call, body, kind, out, note, framing)
            return
        if envelope.error is not None:
            _emit_error(call, body, envelope.error, text_of_id(envelope.id), out, note, framing)
            return
        result = envelope.result
        operation = call.calls.get(rpc_id := text_of_id(envelope.id), exchange.operation)
        if result is None or (kind is _RESPONSE and operation in _OTHER_ANSWER_OPERATIONS):
            _read_odd_response(call, body, kind, out, note, framing)
            return
        summary = summarise_result(result, kind is _EVENT)
        if summary[0] is _NO_EVENT:
            _read_odd_response(call, body, kind, out, note, framing)
            return
        if call.guessed:
            _correct_dialect(call, result)
    if summary[6] and exchange.dialect is Dialect.V1_0:
        exchange.dialect = Dialect.V1_1
    detail = rpc_id, 0, note, framing
    call.emit_frame(out, TO_CLIENT, kind, body, JSON, summary, detail, message)


_OTHER_ANSWER_OPERATIONS = frozenset(
    name for name, operation in OPERATION_BY_NAME.items() if operation.answer not in _EVENT_ANSWERS
)
"""Operations whose result is neither a Task nor a Message."""


def _learn_from_result(call: ExchangeDecoder, result: ResultShape, summary: Summary) -> None:
    """Set the dialect that a result shows."""
    if call.guessed:
        _correct_dialect(call, result)
    if summary[6] and call.exchange.dialect is Dialect.V1_0:
        call.exchange.dialect = Dialect.V1_1


def _correct_dialect(call: ExchangeDecoder, result: ResultShape) -> None:
    """Correct a guessed dialect from the first response."""
    exchange = call.exchange
    if not exchange.operation:
        return
    call.guessed = False
    exchange.dialect = correct_guess(exchange.dialect, dialect_of_result(result, exchange.method))
    call.link.shared.learn_dialect(exchange.agent, exchange.dialect)


def _emit_error(
    call: ExchangeDecoder,
    body: ByteSpan,
    error: ErrorShape,
    rpc_id: str,
    out: Out,
    note: str,
    framing: str,
) -> None:
    exchange = call.exchange
    data = decode_untyped(bytes(error.data)) if error.data else None
    reason = rpc_reason(error.code, data, exchange.dialect)
    if reason == GENERATION_MISMATCH:
        exchange.dialect = dialect_with_generation(exchange.dialect)
    code = to_int64(error.code)
    call.record_error(
        code,
        error_line(reason, error.code, message_with_details(reason, error.message or "", data)),
    )
    summary = NO_SUMMARY
    task_id = data.get("taskId") if isinstance(data, dict) else None
    if isinstance(task_id, str):
        summary = (_NO_EVENT, task_id, *NO_SUMMARY[2:])
    call.emit_frame(
        out, TO_CLIENT, FrameKind.ERROR, body, JSON, summary, (rpc_id, code, note, framing)
    )


def _read_odd_response(
    call: ExchangeDecoder, body: ByteSpan, kind: FrameKind, out: Out, note: str, framing: str
) -> None:
    """Emit a response that the typed decode rejects: other results, unexpected types, or no
    JSON-RPC at all."""
    try:
        shape = _decode_response(body.data)
    except UNREADABLE_ERRORS:
        _emit_without_envelope(call, body, kind, out, note, framing)
        return
    if shape.error and not (kind is _RESPONSE and _is_server_error(call, shape)):
        _emit_error(
            call,
            body,
            _decode_odd_error(bytes(shape.error)),
            text_of_id(shape.id),
            out,
            note,
            framing,
        )
        return
    if not shape.jsonrpc and not shape.result:
        _emit_without_envelope(call, body, kind, out, note, framing)
        return
    rpc_id = text_of_id(shape.id)
    result = decode_untyped(bytes(shape.result)) if shape.result else None
    summary = _summarise_odd_result(call, rpc_id, kind, result)
    if kind is _RESPONSE and (summary[0] is _NO_EVENT or not isinstance(result, dict | list)):
        other.record_no_result(call)
    call.emit_frame(out, TO_CLIENT, kind, body, JSON, summary, (rpc_id, 0, note, framing))


def _summarise_odd_result(
    call: ExchangeDecoder, rpc_id: str, kind: FrameKind, result: object
) -> Summary:
    operation = OPERATION_BY_NAME.get(call.calls.get(rpc_id, call.exchange.operation))
    if operation is None or result is None:
        return NO_SUMMARY
    if kind is _EVENT or operation.answer in _EVENT_ANSWERS:
        return summarise_leniently(result, kind is _EVENT)
    if operation.answer is ResponseKind.CARD:
        call.link.shared.learn_card(call.exchange.agent, result, call.link.facts.upstream)
    return summarise_answer(operation.answer, result)


def _is_server_error(call: ExchangeDecoder, shape: _ResponseShape) -> bool:
    """Whether the error is one of the HTTP server, not of the agent:
    `{"error": "Unauthorized", "message": ...}`."""
    return call.exchange.status >= 400 and not shape.jsonrpc and bytes(shape.error)[:1] != b"{"


def _decode_odd_error(data: bytes) -> ErrorShape:
    try:
        return _decode_error(data)
    except UNREADABLE_ERRORS:
        value = decode_untyped(data)
        return ErrorShape(
            message=value if isinstance(value, str) else "the error is not a JSON-RPC error object"
        )


def _emit_without_envelope(
    call: ExchangeDecoder, body: ByteSpan, kind: FrameKind, out: Out, note: str, framing: str
) -> None:
    if (
        kind is _EVENT
        and call.exchange.operation
        and _emit_bare_event(call, body, out, note, framing)
    ):
        return
    if kind is _RESPONSE and call.exchange.binding is Binding.JSONRPC:
        other.read_response(call, body, out, framing)
    else:
        detail = make_detail(note="not JSON-RPC", framing=framing)
        call.emit_frame(out, TO_CLIENT, FrameKind.UNDECODABLE, body, "text", NO_SUMMARY, detail)


def _emit_bare_event(
    call: ExchangeDecoder, body: ByteSpan, out: Out, note: str, framing: str
) -> bool:
    """Emit an event that is a result without its envelope; return whether it is one. The call
    fails, because clients read `result`."""
    try:
        result = decode_result(body.data)
        summary = summarise_result(result, streaming=True)
    except UNREADABLE_ERRORS:
        return False
    if summary[0] in (_NO_EVENT, EventKind.UNKNOWN):
        return False
    _learn_from_result(call, result, summary)
    call.record_error(call.exchange.status, "events without JSON-RPC envelope")
    detail = make_detail(note=f"{NOTE_BARE}, {note}" if note else NOTE_BARE, framing=framing)
    call.emit_frame(out, TO_CLIENT, _EVENT, body, JSON, summary, detail)
    return True
