"""HTTP+JSON (A2A 1.0 sections 11.1 to 11.7): the request line names the operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from a2a_proxy.model.exchange import Dialect
from a2a_proxy.model.frame import EventKind, FrameKind
from a2a_proxy.protocol.bindings import card, other
from a2a_proxy.protocol.call import TO_AGENT, TO_CLIENT, ByteSpan, Out
from a2a_proxy.protocol.dialect import of_version, with_generation
from a2a_proxy.protocol.errors import GENERATION_MISMATCH, error_line, header, mismatch, rest_error
from a2a_proxy.protocol.json_shapes import UNREADABLE, ParamsShape, decode_params, decode_result
from a2a_proxy.protocol.json_summary import (
    fit_params,
    generations_asked,
    lenient_result,
    summarise,
    summarise_answer,
    summarise_params,
    webhook_of,
)
from a2a_proxy.protocol.operations import ResponseKind
from a2a_proxy.protocol.rest_path import RestMatch
from a2a_proxy.protocol.schema import JSON
from a2a_proxy.protocol.summary import NOTHING, Summary, generation_or_none, int64
from a2a_proxy.wire.sse import SseEvent

if TYPE_CHECKING:
    from a2a_proxy.protocol.bindings.http import HttpCall

_PLAIN_ANSWERS = frozenset({ResponseKind.SEND, ResponseKind.TASK, ResponseKind.STREAM})


def opened(call: HttpCall, path: RestMatch) -> None:
    """Name the exchange by its request line."""
    exchange = call.exchange
    exchange.operation = path.operation.name
    exchange.streaming = path.operation.streams
    exchange.task_id = path.task_id
    exchange.version_header = exchange.version_header or path.parameter("a2a-version")
    exchange.tenant = path.parameter("tenant") or call.link.shared.tenant_of(call.link.facts.upstream, path.prefix)
    exchange.dialect, call.guessed = _dialect(call, path)


def _dialect(call: HttpCall, path: RestMatch) -> tuple[Dialect, bool]:
    """`/v1` before the suffix is the 0.3 form, unless a 1.0 interface of the card ends so, or the version says else and
    the card does not contradict it.
    """
    said = of_version(call.exchange.version_header)
    new = said in (Dialect.V1_0, Dialect.V1_1)
    if not path.prefix.endswith("/v1"):
        return (said if new else Dialect.V1_0), said is Dialect.UNKNOWN
    interfaces = call.link.shared.card(call.link.facts.upstream).interfaces
    here = next((each for each in interfaces if each.path == path.prefix and each.version), None)
    if here is not None and of_version(here.version) is not Dialect.UNKNOWN:
        return (said if new else of_version(here.version)), False
    old = bool(interfaces) and all(each.version.startswith("0.") for each in interfaces)
    return (said if new and not old else Dialect.V0_3), not new


def request(call: HttpCall, body: ByteSpan, out: Out) -> None:
    """The call: ids from the path first, then from query and body."""
    path = call.path
    assert path is not None
    params = _params(body.data) if body.size else ParamsShape()
    call.link.shared.learn_push_url(webhook_of(params))
    call.exchange.tenant = call.exchange.tenant or params.tenant or ""
    event, task_id, context_id, message_id, *_, generation, _append, _last, _final = summarise_params(params)
    current, match = generations_asked(params)
    if current is None:
        current = generation_or_none(path.parameter("currentGeneration"))
    call.exchange.asks(current, match)
    generation = generation or current or 0
    summary: Summary = (
        event,
        path.task_id or task_id,
        context_id or path.parameter("contextId"),
        message_id,
        "",
        0,
        generation,
        False,
        False,
        False,
    )
    if generation:
        call.exchange.dialect = with_generation(call.exchange.dialect)
    call.emit(out, TO_AGENT, FrameKind.REQUEST, body, JSON if body.size else "", summary)


def _params(data: bytes) -> ParamsShape:
    try:
        params = decode_params(data)
    except UNREADABLE:
        return fit_params(_untyped(data))
    # snake_case is legal ProtoJSON too; the typed decode sees no ids in it.
    missed = params.message is not None and not params.message.message_id
    return fit_params(_untyped(data)) if missed or params.message is None else params


def response(call: HttpCall, body: ByteSpan, out: Out) -> None:
    """The answer in one piece."""
    if call.exchange.status >= 400:
        _error(call, body, out, call.exchange.status)
        return
    if not body.size:
        other.response(call, body, out)
        return
    _one(call, body, FrameKind.RESPONSE, out)


def event(call: HttpCall, event: SseEvent, out: Out) -> None:
    """One event of a stream."""
    note = "" if event.complete else "unterminated"
    if event.event:
        note = f"{note}, event: {event.event}" if note else f"event: {event.event}"
    _one(call, event, FrameKind.EVENT, out, note, event.framing)


def _one(call: HttpCall, body: ByteSpan, kind: FrameKind, out: Out, note: str = "", framing: str = "") -> None:
    path, exchange = call.path, call.exchange
    assert path is not None
    if kind is FrameKind.EVENT or path.operation.answer in _PLAIN_ANSWERS:
        try:
            result = decode_result(body.data)
            summary = summarise(result, kind is FrameKind.EVENT)
        except UNREADABLE:
            summary = NOTHING
        if summary[0] is not EventKind.NONE:
            if call.guessed:
                _correct(call, body.data)
            if summary[6] and exchange.dialect is Dialect.V1_0:
                exchange.dialect = Dialect.V1_1
            call.emit(out, TO_CLIENT, kind, body, JSON, summary, "", 0, note, framing)
            return
    _odd(call, body, kind, out, note, framing)


def _odd(call: HttpCall, body: ByteSpan, kind: FrameKind, out: Out, note: str, framing: str) -> None:
    """Errors in mid-stream, other answers, surprising types."""
    value = _untyped(body.data)
    path = call.path
    assert path is not None
    if value is None:
        if kind is FrameKind.EVENT:
            call.emit(out, TO_CLIENT, FrameKind.UNDECODABLE, body, "text", NOTHING, note="not JSON", framing=framing)
        else:
            other.response(call, body, out)
        return
    if kind is FrameKind.EVENT and isinstance(value, dict) and "error" in value:
        error = value["error"]
        code = error.get("code") if isinstance(error, dict) else 0
        _error(call, body, out, int64(code), note, framing)
        return
    answer = path.operation.answer
    if kind is FrameKind.EVENT or answer in _PLAIN_ANSWERS:
        summary = lenient_result(value, kind is FrameKind.EVENT)
    else:
        summary = summarise_answer(answer, value)
    if answer is ResponseKind.CARD and isinstance(value, dict):
        card.learn(call, value)
    call.emit(out, TO_CLIENT, kind, body, JSON, summary, "", 0, note, framing)


def _correct(call: HttpCall, data: bytes) -> None:
    """Look once into the first answer: the 0.3 form has `final`, `kind`, `content`."""
    call.guessed = False
    exchange = call.exchange
    old = any(mark in data for mark in (b'"kind"', b'"final"', b'"content"', b"TASK_STATE_CANCELLED"))
    if exchange.dialect is Dialect.V1_0 and old and not exchange.version_header:
        exchange.dialect = Dialect.V0_3


def _error(call: HttpCall, body: ByteSpan, out: Out, code: int, note: str = "", framing: str = "") -> None:
    exchange = call.exchange
    value = _untyped(body.data) if body.size else None
    reason, message = rest_error(value)
    if value is None and not body.size:
        reason, message = "", ""
    message = mismatch(reason, message, value)
    if reason == GENERATION_MISMATCH:
        exchange.dialect = with_generation(exchange.dialect)
    kind = header(exchange.response_headers, b"content-type").lower()
    if (
        kind.startswith(b"application/problem+json")
        and exchange.dialect is Dialect.V1_0
        and not exchange.version_header
    ):
        # Only the release candidate answers so under paths without /v1.
        exchange.dialect = Dialect.RC
    line = error_line(reason, code or "", message) if reason or message else other.http_error(code)
    call.fail(code, line)
    schema = JSON if value is not None else other.schema_for(exchange.response_headers, body)
    call.emit(out, TO_CLIENT, FrameKind.ERROR, body, schema, NOTHING, "", code, note, framing)


def _untyped(data: bytes) -> object:
    try:
        return msgspec.json.decode(data)
    except UNREADABLE:
        return None
