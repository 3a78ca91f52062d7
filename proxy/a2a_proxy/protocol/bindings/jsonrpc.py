"""JSON-RPC 2.0, all lines (A2A 1.0 sections 9.1 to 9.5), over HTTP and on a pipe.

What is no A2A has no operation.
"""

from __future__ import annotations

import msgspec

from a2a_proxy.model.exchange import Binding, Dialect
from a2a_proxy.model.frame import EventKind, FrameKind
from a2a_proxy.protocol.bindings import other
from a2a_proxy.protocol.call import TO_AGENT, TO_CLIENT, ByteSpan, Out, RpcExchange, SpanPiece
from a2a_proxy.protocol.dialect import Evidence, classify, corrected, of_request, of_result, with_generation
from a2a_proxy.protocol.errors import GENERATION_MISMATCH, error_line, mismatch, rpc_reason
from a2a_proxy.protocol.json_shapes import UNREADABLE, Envelope, ErrorShape, ParamsShape, decode_envelope, decode_params
from a2a_proxy.protocol.json_summary import (
    fit_params,
    generations_asked,
    lenient_result,
    summarise,
    summarise_answer,
    summarise_params,
    webhook_of,
)
from a2a_proxy.protocol.operations import BY_NAME, JSONRPC_METHODS, Operation, ResponseKind
from a2a_proxy.protocol.rest_path import query_parameter
from a2a_proxy.protocol.schema import JSON
from a2a_proxy.protocol.summary import NOTHING, Summary, int64
from a2a_proxy.wire.sse import SseEvent


class _CallShape(msgspec.Struct):
    jsonrpc: msgspec.Raw = msgspec.Raw()
    method: str | None = None
    id: msgspec.Raw = msgspec.Raw()
    params: msgspec.Raw = msgspec.Raw()


class _ResponseShape(msgspec.Struct):
    """A response whose result is none of the usual shapes."""

    jsonrpc: msgspec.Raw = msgspec.Raw()
    id: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


_decode_call = msgspec.json.Decoder(_CallShape).decode
_decode_response = msgspec.json.Decoder(_ResponseShape).decode
_decode_batch = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_error = msgspec.json.Decoder(ErrorShape).decode

_RESPONSE, _EVENT, _NONE = FrameKind.RESPONSE, FrameKind.EVENT, EventKind.NONE
_PLAIN_ANSWERS = frozenset({ResponseKind.SEND, ResponseKind.TASK, ResponseKind.STREAM})


def is_request(data: bytes) -> bool:
    """The body is a JSON-RPC call, or a batch of them; also one whose `jsonrpc` member was forgotten."""
    try:
        if data[:64].lstrip()[:1] == b"[":
            batch = _decode_batch(data)
            return bool(batch) and is_request(bytes(batch[0]))
        shape = _decode_call(data)
    except UNREADABLE:
        return False
    return bool(shape.jsonrpc) or shape.method in JSONRPC_METHODS


def is_response(data: bytes) -> bool:
    """The body is a JSON-RPC response, or a batch of them."""
    try:
        if data[:64].lstrip()[:1] == b"[":
            batch = _decode_batch(data)
            return bool(batch) and is_response(bytes(batch[0]))
        return bool(_decode_response(data).jsonrpc)
    except UNREADABLE:
        return False


# --- requests -----------------------------------------------------------------------------------------------------


def request(call: RpcExchange, body: ByteSpan, out: Out) -> None:
    """One frame per call; the exchange is named after the first."""
    data = body.data
    if data[:64].lstrip()[:1] != b"[":
        one_request(call, body, out)
        return
    for item in _batch(data) or ():
        one_request(call, _part(body, bytes(item)), out, note="batch")


def _part(body: ByteSpan, data: bytes) -> SpanPiece:
    return SpanPiece(body.began, body.at, body.start, body.end, data, len(data))


def one_request(call: RpcExchange, body: ByteSpan, out: Out, note: str = "", framing: str = "") -> None:
    """One call."""
    try:
        shape = _decode_call(body.data)
    except UNREADABLE:
        call.emit(out, TO_AGENT, FrameKind.UNDECODABLE, body, JSON, NOTHING, "", 0, "not a JSON-RPC call", framing)
        return
    rpc_id = id_text(shape.id)
    operation, proof = JSONRPC_METHODS.get(shape.method or "", (None, Dialect.UNKNOWN))
    if operation is not None:
        call.calls[rpc_id] = operation.name
    params = _params(shape.params)
    if not call.exchange.requests:
        _name(call, shape, operation, proof, rpc_id)
        call.exchange.tenant = params.tenant or ""
        call.exchange.asks(*generations_asked(params))
    call.link.shared.learn_push_url(webhook_of(params))
    summary = summarise_params(params) if operation is not None else NOTHING
    if summary[6]:
        call.exchange.dialect = with_generation(call.exchange.dialect)
    call.emit(out, TO_AGENT, FrameKind.REQUEST, body, JSON, summary, rpc_id, 0, note, framing)


def _name(call: RpcExchange, shape: _CallShape, operation: Operation | None, proof: Dialect, rpc_id: str) -> None:
    """Give the exchange its method, operation and dialect."""
    exchange = call.exchange
    exchange.method = shape.method or ""
    exchange.rpc_id = rpc_id
    if operation is None:
        return
    exchange.operation = operation.name
    exchange.streaming = operation.streams
    if not exchange.version_header and "?" in exchange.target:
        exchange.version_header = query_parameter(exchange.target, "a2a-version")
    shared, agent = call.link.shared, call.link.facts.upstream
    evidence = Evidence(
        proof, exchange.version_header, of_request(bytes(shape.params)), shared.dialect(agent), shared.card(agent)
    )
    exchange.dialect, call.guessed = classify(evidence)
    if not call.guessed:
        shared.learn_dialect(agent, exchange.dialect)


def _params(raw: msgspec.Raw) -> ParamsShape:
    data = bytes(raw)
    if not data:
        return ParamsShape()
    try:
        return decode_params(data)
    except UNREADABLE:
        return fit_params(_untyped(data))


def _untyped(data: bytes) -> object:
    try:
        return msgspec.json.decode(data)
    except UNREADABLE:
        return None


def id_text(raw: msgspec.Raw) -> str:
    """A JSON-RPC id as it stands there."""
    return bytes(raw).decode("utf-8", "replace")


# --- responses ----------------------------------------------------------------------------------------------------


def response(call: RpcExchange, body: ByteSpan, out: Out) -> None:
    """The answer in one piece: one response, or a batch of them."""
    if not body.data:
        other.response(call, body, out)
        return
    if body.data[:64].lstrip()[:1] != b"[":
        one_response(call, body, _RESPONSE, out)
        return
    batch = _batch(body.data)
    if batch is None:
        other.response(call, body, out)
        return
    for item in batch:
        one_response(call, _part(body, bytes(item)), _RESPONSE, out, note="batch")


def _batch(data: bytes) -> list[msgspec.Raw] | None:
    try:
        return _decode_batch(data)
    except UNREADABLE:
        return None


def event(call: RpcExchange, event: SseEvent, out: Out) -> None:
    """One event of a stream."""
    note = "" if event.complete else "unterminated"
    if event.event:
        note = (
            f"{note}, event: {event.event}"
            if note
            else "event: error"
            if event.event == "error"
            else f"event: {event.event}"
        )
    one_response(call, event, _EVENT, out, note, event.framing)


def one_response(
    call: RpcExchange, body: ByteSpan, kind: FrameKind, out: Out, note: str = "", framing: str = ""
) -> None:
    """One response, or one event of a stream of them."""
    try:
        envelope = decode_envelope(body.data)
    except UNREADABLE:
        _odd_response(call, body, kind, out, note, framing)
        return
    if envelope.error is not None:
        _error(call, body, envelope.error, id_text(envelope.id), out, note, framing)
        return
    result = envelope.result
    exchange = call.exchange
    operation = call.calls.get(rpc_id := id_text(envelope.id), exchange.operation)
    if result is None or (kind is _RESPONSE and operation in _SPECIAL):
        _odd_response(call, body, kind, out, note, framing)
        return
    summary = summarise(result, kind is _EVENT)
    if summary[0] is _NONE:
        _odd_response(call, body, kind, out, note, framing)
        return
    if call.guessed:
        _correct(call, envelope)
    if summary[6] and exchange.dialect is Dialect.V1_0:
        exchange.dialect = Dialect.V1_1
    call.emit(out, TO_CLIENT, kind, body, JSON, summary, rpc_id, 0, note, framing)


_SPECIAL = frozenset(name for name, operation in BY_NAME.items() if operation.answer not in _PLAIN_ANSWERS)
"""Operations whose result is neither Task nor Message."""


def _correct(call: RpcExchange, envelope: Envelope) -> None:
    """The first response settles a dialect that was a guess."""
    exchange = call.exchange
    if envelope.result is None or not exchange.operation:
        return
    call.guessed = False
    exchange.dialect = corrected(exchange.dialect, of_result(envelope.result, exchange.method))
    call.link.shared.learn_dialect(call.link.facts.upstream, exchange.dialect)


def _error(
    call: RpcExchange, body: ByteSpan, error: ErrorShape, rpc_id: str, out: Out, note: str, framing: str
) -> None:
    exchange = call.exchange
    data = _untyped(bytes(error.data)) if error.data else None
    reason = rpc_reason(error.code, data, exchange.dialect)
    if reason == GENERATION_MISMATCH:
        exchange.dialect = with_generation(exchange.dialect)
    code = int64(error.code)
    call.fail(code, error_line(reason, error.code, mismatch(reason, error.message or "", data)))
    summary = NOTHING
    task_id = data.get("taskId") if isinstance(data, dict) else None
    if isinstance(task_id, str):
        summary = (_NONE, task_id, *NOTHING[2:])
    call.emit(out, TO_CLIENT, FrameKind.ERROR, body, JSON, summary, rpc_id, code, note, framing)


def _odd_response(call: RpcExchange, body: ByteSpan, kind: FrameKind, out: Out, note: str, framing: str) -> None:
    """What the typed decode does not take: other results, surprising types, no JSON-RPC at all."""
    try:
        shape = _decode_response(body.data)
    except UNREADABLE:
        _no_envelope(call, body, kind, out, framing)
        return
    if shape.error and not (kind is _RESPONSE and _plain_failure(call, shape)):
        _error(call, body, _odd_error(bytes(shape.error)), id_text(shape.id), out, note, framing)
        return
    if not shape.jsonrpc and not shape.result:
        _no_envelope(call, body, kind, out, framing)
        return
    rpc_id = id_text(shape.id)
    result = _untyped(bytes(shape.result)) if shape.result else None
    call.emit(out, TO_CLIENT, kind, body, JSON, _odd_summary(call, rpc_id, kind, result), rpc_id, 0, note, framing)


def _odd_summary(call: RpcExchange, rpc_id: str, kind: FrameKind, result: object) -> Summary:
    operation = BY_NAME.get(call.calls.get(rpc_id, call.exchange.operation))
    if operation is None or result is None:
        return NOTHING
    if kind is _EVENT or operation.answer in _PLAIN_ANSWERS:
        return lenient_result(result, kind is _EVENT)
    if operation.answer is ResponseKind.CARD:
        call.link.shared.learn_card(call.link.facts.upstream, result)
    return summarise_answer(operation.answer, result)


def _plain_failure(call: RpcExchange, shape: _ResponseShape) -> bool:
    """An error of the HTTP server, not of the agent in it: `{"error": "Unauthorized", "message": ...}`."""
    return call.exchange.status >= 400 and not shape.jsonrpc and bytes(shape.error)[:1] != b"{"


def _odd_error(data: bytes) -> ErrorShape:
    try:
        return _decode_error(data)
    except UNREADABLE:
        value = _untyped(data)
        return ErrorShape(message=value if isinstance(value, str) else "an error that is no JSON-RPC error")


def _no_envelope(call: RpcExchange, body: ByteSpan, kind: FrameKind, out: Out, framing: str) -> None:
    if kind is _RESPONSE and call.exchange.binding is not Binding.STDIO:
        other.response(call, body, out)
    else:
        call.emit(out, TO_CLIENT, FrameKind.UNDECODABLE, body, "text", NOTHING, note="not JSON-RPC", framing=framing)
