"""Log records: one per frame if enabled, and reports of long calls. No I/O.

Each has the context and the service of the span of its call.
"""

from a2a_proxy.model.event import state_label
from a2a_proxy.model.values import EventKind, Exchange, Finding, Frame, Severity
from a2a_proxy.model.wire import Direction
from a2a_proxy.telemetry.attributes import binding_label, span_name
from a2a_proxy.telemetry.values import (
    Attributes,
    LogLevel,
    LogValue,
    SpanContextIds,
    Value,
    cut_text,
    shorten_value,
)

_SEVERITY_LEVELS = {
    Severity.INFO: LogLevel.INFO,
    Severity.WARNING: LogLevel.WARN,
    Severity.ERROR: LogLevel.ERROR,
}


def frame_log(frame: Frame, context: SpanContextIds, service: str) -> LogValue:
    """Return the record of one frame, without its payload."""
    values: dict[str, Value] = {
        "a2a_proxy.frame.seq": frame.seq,
        "a2a_proxy.frame.direction": "to agent"
        if frame.direction is Direction.TO_AGENT
        else "to client",
        "a2a_proxy.frame.kind": frame.kind.name.lower(),
        "a2a_proxy.frame.event": frame.event.name.lower()
        if frame.event is not EventKind.NONE
        else "",
        "a2a_proxy.frame.size": frame.size,
        "a2a.task.id": frame.task_id,
        "a2a.task.state": state_label(frame.state),
        "a2a.message.id": frame.message_id,
        "gen_ai.conversation.id": frame.context_id,
    }
    if frame.generation:
        values["a2a_proxy.generation"] = frame.generation
    attributes = {name: shorten_value(value) for name, value in values.items() if value != ""}
    return LogValue(
        name="a2a.frame",
        at=frame.at,
        level=LogLevel.DEBUG,
        context=context,
        attributes=attributes,
        service=service,
    )


def started_log(exchange: Exchange, context: SpanContextIds, service: str) -> LogValue:
    """Return the record of a call that has been open for a while; its span is sent when it ends."""
    return LogValue(
        name="a2a.operation.started",
        at=exchange.started,
        level=LogLevel.INFO,
        context=context,
        service=service,
        body=f"{span_name(exchange)} is still running",
        attributes=_log_attributes(exchange),
    )


def alive_log(exchange: Exchange, context: SpanContextIds, service: str, at: int) -> LogValue:
    """Return the next record of a call that is still open at `at`, ns."""
    return LogValue(
        name="a2a.operation.alive",
        at=at,
        level=LogLevel.INFO,
        context=context,
        service=service,
        body=f"{span_name(exchange)} is still running after "
        f"{(at - exchange.started) // 1_000_000_000} s",
        attributes={**_log_attributes(exchange), "a2a_proxy.stream.events": exchange.events},
    )


def finding_log(finding: Finding, context: SpanContextIds, service: str) -> LogValue:
    """Return the record of a finding about a call whose span has already been sent."""
    attributes: Attributes = {"a2a_proxy.finding.rule": finding.rule}
    attributes["a2a_proxy.finding.severity"] = finding.severity.name.lower()
    level = _SEVERITY_LEVELS[finding.severity]
    return LogValue(
        name="a2a_proxy.finding",
        at=finding.at,
        level=level,
        context=context,
        service=service,
        body=cut_text(finding.summary),
        attributes=attributes,
    )


def _log_attributes(exchange: Exchange) -> Attributes:
    values: Attributes = {
        "a2a.method.name": span_name(exchange),
        "a2a_proxy.binding": binding_label(exchange),
        "a2a.task.id": exchange.task_id,
        "a2a.task.state": exchange.states[-1] if exchange.states else "",
        "gen_ai.conversation.id": exchange.context_id,
        "a2a_proxy.exchange": exchange.id,
    }
    return {name: shorten_value(value) for name, value in values.items() if value != ""}
