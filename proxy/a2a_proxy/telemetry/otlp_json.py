"""Spans and log records as OTLP JSON: one object is what one request to a backend would hold. Pure.

Ids are hexadecimal there, 64-bit numbers are strings, enumerations numbers, and names in lowerCamelCase.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from a2a_proxy import __version__
from a2a_proxy.telemetry.values import (
    SCHEMA_URL,
    SCOPE,
    LogLevel,
    LogValue,
    SpanEvent,
    SpanLink,
    SpanValue,
    Value,
    moment,
    sound,
)

_ERROR = 2
"""STATUS_CODE_ERROR."""
_SAMPLED = 1
_SCOPE = {"name": SCOPE, "version": __version__}


def spans_object(resource: Mapping[str, Value], spans: Iterable[SpanValue]) -> dict[str, Any]:
    """An ExportTraceServiceRequest."""
    scope = {"scope": _SCOPE, "spans": [_span(each) for each in spans], "schemaUrl": SCHEMA_URL}
    return {"resourceSpans": [{"resource": {"attributes": _pairs(resource)}, "scopeSpans": [scope]}]}


def logs_object(resource: Mapping[str, Value], logs: Iterable[LogValue]) -> dict[str, Any]:
    """An ExportLogsServiceRequest."""
    scope = {"scope": _SCOPE, "logRecords": [_log(each) for each in logs], "schemaUrl": SCHEMA_URL}
    return {"resourceLogs": [{"resource": {"attributes": _pairs(resource)}, "scopeLogs": [scope]}]}


def _span(span: SpanValue) -> dict[str, Any]:
    made: dict[str, Any] = {
        "traceId": span.context.trace,
        "spanId": span.context.span,
        "flags": _SAMPLED,
        "name": span.name,
        "kind": int(span.kind),
        "startTimeUnixNano": str(moment(span.started)),
        "endTimeUnixNano": str(moment(span.ended)),
        "attributes": _pairs(span.attributes),
        "events": [_event(each) for each in span.events],
        "links": [_link(each) for each in span.links],
        "status": {"code": _ERROR, "message": sound(span.error)} if span.error else {},
    }
    if span.parent is not None:
        made["parentSpanId"] = span.parent.span
    if span.context.state:
        made["traceState"] = span.context.state
    if span.dropped_events:
        made["droppedEventsCount"] = span.dropped_events
    return made


def _event(event: SpanEvent) -> dict[str, Any]:
    return {"timeUnixNano": str(moment(event.at)), "name": event.name, "attributes": _pairs(event.attributes)}


def _link(link: SpanLink) -> dict[str, Any]:
    return {"traceId": link.context.trace, "spanId": link.context.span, "attributes": _pairs(link.attributes)}


def _log(log: LogValue) -> dict[str, Any]:
    return {
        "timeUnixNano": str(moment(log.at)),
        "severityNumber": int(log.level),
        "severityText": LogLevel(log.level).name,
        "body": {"stringValue": sound(log.body)},
        "attributes": _pairs(log.attributes),
        "traceId": log.context.trace,
        "spanId": log.context.span,
        "flags": _SAMPLED,
        "eventName": log.name,
    }


def _pairs(attributes: Mapping[str, Value]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(sound(value))} for name, value in attributes.items()]


def _value(value: Value) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, str):
        return {"stringValue": value}
    return {"arrayValue": {"values": [_value(each) for each in value]}}
