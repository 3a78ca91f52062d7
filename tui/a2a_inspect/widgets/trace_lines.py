"""The Trace tab: ids that connect an exchange to others (trace, task, context, message), and its
latencies."""

from collections.abc import Iterator

from a2a_inspect.data.source import ExchangeStream
from a2a_inspect.widgets.facts import Fact, section_lines
from a2a_proxy.model.values import Exchange, Frame
from a2a_proxy.present import text

_TRACEPARENT_PARTS = 4
"""Parts of a `traceparent`: version, trace id, parent span, flags (W3C Trace Context)."""


def trace_lines(stream: ExchangeStream, frame: Frame | None, timing: list[str]) -> list[str]:
    """Return the lines of the tab; `timing` is the result of `conversation.timing_lines`."""
    exchange = stream.row.exchange
    lines = section_lines("Trace", _trace_facts(exchange))
    lines += section_lines("Ids", _id_facts(exchange, frame))
    lines += section_lines("Latencies", _latency_facts(exchange))
    return lines + timing


def _trace_facts(exchange: Exchange) -> Iterator[Fact]:
    parts, traceparent = exchange.trace_context.split("-"), exchange.traceparent.split("-")
    yield "traceparent", exchange.traceparent or "none sent"
    if exchange.is_trace_replaced:
        yield "forwarded as", exchange.trace_context
    if len(parts) >= _TRACEPARENT_PARTS:
        yield "trace id", parts[1]
        yield "parent span", traceparent[2] if len(traceparent) >= _TRACEPARENT_PARTS else ""
        yield "sampled", "yes" if parts[3][-1:] in "13579bdf" else "no"
        yield "filter", f"~~{parts[1][:8]}"
    for name, value in exchange.request_headers:
        if name.lower() == b"tracestate":
            yield "tracestate", value.decode("utf-8", "backslashreplace")


def _id_facts(exchange: Exchange, frame: Frame | None) -> Iterator[Fact]:
    yield "task", exchange.task_id
    yield "context", exchange.context_id
    if frame is not None:
        if frame.task_id != exchange.task_id:
            yield "this frame's task", frame.task_id
        yield "message", frame.message_id
        yield "artifact", frame.artifact_id
        yield "rpc id", frame.rpc_id


def _latency_facts(exchange: Exchange) -> Iterator[Fact]:
    zero = text.latency_origin(exchange)
    since = "after the request" if zero != exchange.started else "after its first byte"
    yield (
        "request",
        _latency_words(exchange.request_ended, exchange.started, "from its first to its last byte"),
    )
    yield "response head", _latency_words(exchange.response_started, zero, since)
    yield "first event", _latency_words(exchange.first_event, zero, since)
    yield "last event", _latency_words(exchange.last_event, zero, since)
    yield "closed", _latency_words(exchange.closed, zero, since) or "still open"


def _latency_words(at: int, zero: int, since: str) -> str:
    if 0 < at < zero:
        return "before the request body had arrived"
    return f"{text.format_duration(at - zero)} {since}" if at else ""
