"""HTTP+JSON (A2A 1.0 sections 11.1 to 11.7): the request line determines the operation."""

from typing import Any

from a2a_proxy.model.values import Dialect, EventKind, FrameKind
from a2a_proxy.protocol.bindings import card, other
from a2a_proxy.protocol.call import TO_AGENT, TO_CLIENT, ByteSpan, HttpExchange, Out, make_detail
from a2a_proxy.protocol.dialect import dialect_of_version, dialect_with_generation
from a2a_proxy.protocol.errors import (
    GENERATION_MISMATCH,
    error_line,
    read_rest_error,
)
from a2a_proxy.protocol.json_shapes import (
    UNREADABLE_ERRORS,
    ParamsShape,
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
from a2a_proxy.protocol.operations import ResponseKind
from a2a_proxy.protocol.rest_path import RestMatch
from a2a_proxy.protocol.schema import JSON
from a2a_proxy.protocol.session_facts import path_of
from a2a_proxy.protocol.summary import NO_SUMMARY, Summary, generation_or_none, to_int64
from a2a_proxy.wire.sse import SseEvent

_EVENT_ANSWERS = frozenset({ResponseKind.SEND, ResponseKind.TASK, ResponseKind.STREAM})


def name_exchange(call: HttpExchange, path: RestMatch) -> None:
    """Set the exchange's operation, agent, task, tenant and dialect from its request line."""
    exchange = call.exchange
    exchange.operation = path.operation.name
    exchange.streaming = path.operation.is_streaming
    exchange.task_id = path.task_id
    exchange.version_header = exchange.version_header or path.get_parameter("a2a-version")
    call.set_agent(path_of(path.prefix))
    exchange.tenant = path.get_parameter("tenant") or call.link.shared.tenant_of(
        exchange.agent, path.prefix
    )
    exchange.dialect, call.guessed = _choose_dialect(call, path)


def _choose_dialect(call: HttpExchange, path: RestMatch) -> tuple[Dialect, bool]:
    """Return the dialect and whether it is a guess. `/v1` before the suffix is the 0.3 form, unless
    a 1.0 interface of the card ends in it, or the version header says 1.x and the card does not
    contradict it.
    """
    version_dialect = dialect_of_version(call.exchange.version_header)
    new = version_dialect in (Dialect.V1_0, Dialect.V1_1)
    if not path.prefix.endswith("/v1"):
        return (version_dialect if new else Dialect.V1_0), version_dialect is Dialect.UNKNOWN
    interfaces = call.link.shared.get_card(call.exchange.agent).interfaces
    here = next((each for each in interfaces if each.path == path.prefix and each.version), None)
    if here is not None and dialect_of_version(here.version) is not Dialect.UNKNOWN:
        return (version_dialect if new else dialect_of_version(here.version)), False
    old = bool(interfaces) and all(each.version.startswith("0.") for each in interfaces)
    return (version_dialect if new and not old else Dialect.V0_3), not new


def read_request(call: HttpExchange, body: ByteSpan, out: Out) -> None:
    """Emit the request, with ids from the path first, then from query and body."""
    path = call.path
    assert path is not None
    params = _decode_body_params(body.data) if body.size else ParamsShape()
    call.link.shared.learn_push_url(push_url_of(params), call.exchange.agent)
    call.exchange.tenant = call.exchange.tenant or params.tenant or ""
    event, task_id, context_id, message_id, *_, generation, _append, _last, _final = (
        summarise_params(params)
    )
    current, match = expected_generations(params)
    if current is None:
        current = generation_or_none(path.get_parameter("currentGeneration"))
    call.exchange.set_expected_generations(current, match)
    generation = generation or current or 0
    summary: Summary = (
        event,
        path.task_id or task_id,
        context_id or path.get_parameter("contextId"),
        message_id,
        "",
        0,
        generation,
        False,
        False,
        False,
    )
    if generation:
        call.exchange.dialect = dialect_with_generation(call.exchange.dialect)
    call.emit_frame(out, TO_AGENT, FrameKind.REQUEST, body, JSON if body.size else "", summary)


def _decode_body_params(data: bytes) -> ParamsShape:
    try:
        params = decode_params(data)
    except UNREADABLE_ERRORS:
        return fit_params(decode_untyped(data))
    # snake_case is legal ProtoJSON too, but the typed decode finds no ids in it.
    missed = params.message is not None and not params.message.message_id
    return fit_params(decode_untyped(data)) if missed or params.message is None else params


def read_response(call: HttpExchange, body: ByteSpan, out: Out, framing: str = "") -> None:
    """Emit a response that is not a stream."""
    if call.exchange.status >= 400:
        _emit_error(call, body, out, call.exchange.status, framing=framing)
        return
    if not body.size:
        other.read_response(call, body, out)
        return
    _read_result(call, body, FrameKind.RESPONSE, out, framing=framing)


def read_event(call: HttpExchange, sse_event: SseEvent, out: Out) -> None:
    """Emit one event of a stream."""
    note = "" if sse_event.complete else "unterminated"
    if sse_event.event:
        note = f"{note}, event: {sse_event.event}" if note else f"event: {sse_event.event}"
    _read_result(call, sse_event, FrameKind.EVENT, out, note, sse_event.framing)


def _read_result(
    call: HttpExchange, body: ByteSpan, kind: FrameKind, out: Out, note: str = "", framing: str = ""
) -> None:
    path, exchange = call.path, call.exchange
    assert path is not None
    if kind is FrameKind.EVENT or path.operation.answer in _EVENT_ANSWERS:
        message = None if call.guessed else call.reader.read(body.data, exchange, kind)
        summary = message.summary if message is not None else None
        if summary is None:
            try:
                result = decode_result(body.data)
                summary = summarise_result(result, kind is FrameKind.EVENT)
            except UNREADABLE_ERRORS:
                summary = NO_SUMMARY
        if summary[0] is not EventKind.NONE:
            if call.guessed:
                _correct_dialect(call, body.data)
            if summary[6] and exchange.dialect is Dialect.V1_0:
                exchange.dialect = Dialect.V1_1
            detail = "", 0, note, framing
            call.emit_frame(out, TO_CLIENT, kind, body, JSON, summary, detail, message)
            return
    _read_odd_result(call, body, kind, out, note, framing)


def _read_odd_result(
    call: HttpExchange, body: ByteSpan, kind: FrameKind, out: Out, note: str, framing: str
) -> None:
    """Emit a result that the typed decode rejects: mid-stream errors, other responses, unexpected
    types."""
    value = decode_untyped(body.data)
    path = call.path
    assert path is not None
    answer = path.operation.answer
    is_result = isinstance(value, dict if answer in _EVENT_ANSWERS else dict | list)
    if kind is FrameKind.RESPONSE and not is_result and call.read_wrapped(body, out):
        return
    if value is None:
        if kind is FrameKind.EVENT:
            detail = make_detail(note="not JSON", framing=framing)
            call.emit_frame(out, TO_CLIENT, FrameKind.UNDECODABLE, body, "text", NO_SUMMARY, detail)
        else:
            other.read_response(call, body, out, framing)
        return
    is_error = isinstance(value, dict) and "error" in value
    if kind is FrameKind.EVENT and is_error:
        _emit_error(call, body, out, _code_of(value), note, framing)
        return
    if kind is FrameKind.EVENT or answer in _EVENT_ANSWERS:
        summary = summarise_leniently(value, kind is FrameKind.EVENT)
    else:
        summary = summarise_answer(answer, value)
    if answer is ResponseKind.CARD and isinstance(value, dict):
        card.learn_card(call, value)
    if kind is FrameKind.RESPONSE and (
        summary[0] is EventKind.NONE or not isinstance(value, dict | list)
    ):
        if is_error:
            _record_error(call, _code_of(value), value)
        other.record_no_result(call)
    call.emit_frame(out, TO_CLIENT, kind, body, JSON, summary, ("", 0, note, framing))


def _code_of(value: Any) -> int:
    error = value["error"]
    return to_int64(error.get("code")) if isinstance(error, dict) else 0


def _correct_dialect(call: HttpExchange, data: bytes) -> None:
    """Correct a guessed dialect from the first response: the 0.3 form has `final`, `kind`,
    `content`."""
    call.guessed = False
    exchange = call.exchange
    old = any(
        mark in data for mark in (b'"kind"', b'"final"', b'"content"', b"TASK_STATE_CANCELLED")
    )
    if exchange.dialect is Dialect.V1_0 and old and not exchange.version_header:
        exchange.dialect = Dialect.V0_3


def _emit_error(
    call: HttpExchange, body: ByteSpan, out: Out, code: int, note: str = "", framing: str = ""
) -> None:
    value = decode_untyped(body.data) if body.size else None
    if body.size and not isinstance(value, dict) and call.read_wrapped(body, out):
        return
    if value is None:
        call.record_error(code, other.error_message(code, body))
    else:
        _record_error(call, code, value)
    headers = call.exchange.response_headers
    schema = JSON if value is not None else other.schema_for(headers, body)
    call.emit_frame(
        out, TO_CLIENT, FrameKind.ERROR, body, schema, NO_SUMMARY, ("", code, note, framing)
    )


def _record_error(call: HttpExchange, code: int, value: object) -> None:
    reason, message = read_rest_error(value)
    if reason == GENERATION_MISMATCH:
        call.exchange.dialect = dialect_with_generation(call.exchange.dialect)
    line = other.http_error_line(code) if code else "error without a message"
    if reason or message:
        line = error_line(reason, code or "", message)
    call.record_error(code, line)
