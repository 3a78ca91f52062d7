"""Spans and log records as OTLP JSON: one object has the content of one request to a backend. No
I/O.

In OTLP JSON, ids are hexadecimal, 64-bit numbers are strings, enumerations are numbers, and names
are lowerCamelCase.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from a2a_proxy import __version__
from a2a_proxy.telemetry.values import (
    SCHEMA_URL,
    SCOPE,
    Attributes,
    LogLevel,
    LogValue,
    SpanValue,
    Value,
    clamp_time,
    service_resource,
    valid_value,
)

_Value = TypeVar("_Value", SpanValue, LogValue)
_STATUS_ERROR = 2
"""STATUS_CODE_ERROR."""
_FLAG_SAMPLED = 1
_SCOPE_OBJECT = {"name": SCOPE, "version": __version__}


def spans_object(resource: Attributes, spans: Iterable[SpanValue]) -> dict[str, Any]:
    """Return an ExportTraceServiceRequest."""
    return {
        "resourceSpans": _resource_objects("scopeSpans", "spans", resource, spans, _span_object)
    }


def logs_object(resource: Attributes, logs: Iterable[LogValue]) -> dict[str, Any]:
    """Return an ExportLogsServiceRequest."""
    return {
        "resourceLogs": _resource_objects("scopeLogs", "logRecords", resource, logs, _log_object)
    }


def _resource_objects(
    scopes: str,
    items: str,
    resource: Attributes,
    values: Iterable[_Value],
    convert: Callable[[_Value], dict[str, Any]],
) -> list[dict[str, Any]]:
    """Return the values grouped by service, each group with its resource."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for each in values:
        groups.setdefault(each.service, []).append(convert(each))
    return [
        {
            "resource": {"attributes": _attribute_objects(service_resource(resource, service))},
            scopes: [{"scope": _SCOPE_OBJECT, items: group, "schemaUrl": SCHEMA_URL}],
        }
        for service, group in groups.items()
    ]


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
        "events": [
            {
                "timeUnixNano": str(clamp_time(each.at)),
                "name": each.name,
                "attributes": _attribute_objects(each.attributes),
            }
            for each in span.events
        ],
        "links": [
            {
                "traceId": each.context.trace,
                "spanId": each.context.span,
                "attributes": _attribute_objects(each.attributes),
            }
            for each in span.links
        ],
        "status": {"code": _STATUS_ERROR, "message": valid_value(span.error)} if span.error else {},
    }
    if span.parent is not None:
        made["parentSpanId"] = span.parent.span
    if span.context.state:
        made["traceState"] = span.context.state
    if span.dropped_events:
        made["droppedEventsCount"] = span.dropped_events
    return made


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
    return [
        {"key": name, "value": _value_object(valid_value(value))}
        for name, value in attributes.items()
    ]


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
