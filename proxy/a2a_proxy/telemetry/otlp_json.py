"""Spans and log records as OTLP JSON: one object has the content of one request to a backend. No I/O.

In OTLP JSON, ids are hexadecimal, 64-bit numbers are strings, enumerations are numbers, and names are lowerCamelCase.
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
    clamp_time,
    valid_value,
)

_STATUS_ERROR = 2
"""STATUS_CODE_ERROR."""
_FLAG_SAMPLED = 1
_SCOPE_OBJECT = {"name": SCOPE, "version": __version__}


def spans_object(resource: Mapping[str, Value], spans: Iterable[SpanValue]) -> dict[str, Any]:
    """Return an ExportTraceServiceRequest."""
    scope = {"scope": _SCOPE_OBJECT, "spans": [_span_object(each) for each in spans], "schemaUrl": SCHEMA_URL}
    return {"resourceSpans": [{"resource": {"attributes": _attribute_objects(resource)}, "scopeSpans": [scope]}]}


def logs_object(resource: Mapping[str, Value], logs: Iterable[LogValue]) -> dict[str, Any]:
    """Return an ExportLogsServiceRequest."""
    scope = {"scope": _SCOPE_OBJECT, "logRecords": [_log_object(each) for each in logs], "schemaUrl": SCHEMA_URL}
    return {"resourceLogs": [{"resource": {"attributes": _attribute_objects(resource)}, "scopeLogs": [scope]}]}


def _span_object(span: SpanValue) -> dict[str, Any]:
    made: dict[str, Any] = {
        "traceId": span.context.trace,
        "spanId": span.context.span,
        "flags": _FLAG_SAMPLED,
        "name": span.name,
        "kind": int(span.kind),
        "startTimeUnixNano": str(clamp_time(span.started)),
        "endTimeUnixNano": str(clamp_time(span.ended)),
        "attributes": _attribute_objects(span.attributes),
        "events": [_event_object(each) for each in span.events],
        "links": [_link_object(each) for each in span.links],
        "status": {"code": _STATUS_ERROR, "message": valid_value(span.error)} if span.error else {},
    }
    if span.parent is not None:
        made["parentSpanId"] = span.parent.span
    if span.context.state:
        made["traceState"] = span.context.state
    if span.dropped_events:
        made["droppedEventsCount"] = span.dropped_events
    return made


def _event_object(event: SpanEvent) -> dict[str, Any]:
    return {
        "timeUnixNano": str(clamp_time(event.at)),
        "name": event.name,
        "attributes": _attribute_objects(event.attributes),
    }


def _link_object(link: SpanLink) -> dict[str, Any]:
    return {
        "traceId": link.context.trace,
        "spanId": link.context.span,
        "attributes": _attribute_objects(link.attributes),
    }


def _log_object(log: LogValue) -> dict[str, Any]:
    return {
        "timeUnixNano": str(clamp_time(log.at)),
        "severityNumber": int(log.level),
        "severityText": LogLevel(log.level).name,
        "body": {"stringValue": valid_value(log.body)},
        "attributes": _attribute_objects(log.attributes),
        "traceId": log.context.trace,
        "spanId": log.context.span,
        "flags": _FLAG_SAMPLED,
        "eventName": log.name,
    }


def _attribute_objects(attributes: Mapping[str, Value]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value_object(valid_value(value))} for name, value in attributes.items()]


def _value_object(value: Value) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, str):
        return {"stringValue": value}
    return {"arrayValue": {"values": [_value_object(each) for each in value]}}
