"""The only place that knows the OpenTelemetry packages: values become theirs, their exporters send them.

Imported where something is sent; the packages are an extra.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import msgspec

from a2a_proxy import __version__
from a2a_proxy.telemetry.errors import TelemetryError
from a2a_proxy.telemetry.partial import Partial
from a2a_proxy.telemetry.target import Target
from a2a_proxy.telemetry.values import (
    SCHEMA_URL,
    SCOPE,
    Attributes,
    Context,
    Level,
    Log,
    Span,
    SpanEvent,
    Value,
    moment,
    sound,
)

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import ReadableLogRecord
    from opentelemetry.sdk._logs.export import LogRecordExporter
    from opentelemetry.sdk.metrics.export import MetricExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

_PACKAGES = ("sdk.trace", "exporter.otlp.proto.grpc", "exporter.otlp.proto.http")
"""Below `opentelemetry`."""
_ANSWERED = ("INTERNAL", "UNKNOWN")
_LATER = ("CANCELLED", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS")
"""gRPC statuses after which one tries again."""
_TOO_LARGE = "larger than max"
"""In the words of gRPC for a message that is larger than its peer takes; mostly 4 MiB."""
_LATER_HTTP = (408, 429)
_LARGE_HTTP = 413
_ERRNO = re.compile(r"\[Errno -?\d+\] ([\w ]+)")


class Answer(Enum):
    """How a request went."""

    SENT = "sent"
    LATER = "later"
    """Nobody was there, or the backend asks for patience."""
    FAILED = "failed"
    """The backend failed with this one: it may fail again, or not."""
    REFUSED = "refused"
    """It does not want it, now or later."""
    LARGE = "large"
    """It would take less at once."""


class Outcome(msgspec.Struct, frozen=True):
    """How a request went, and why."""

    answer: Answer
    why: str = ""
    rejected: int = 0
    """Spans of a request that was SENT which the backend did not take all the same: `partial_success`."""


SENT = Outcome(Answer.SENT)


def check_installed() -> None:
    """Raises TelemetryError where the extra is not installed."""
    for name in _PACKAGES:
        try:
            found = find_spec(f"opentelemetry.{name}")
        except ImportError:
            found = None
        if found is None:
            raise TelemetryError(
                "the OpenTelemetry packages are not installed", "install them with: pip install 'a2a-proxy[otlp]'"
            )


class Backend:
    """Sends to one backend. Not for two threads at once."""

    def __init__(self, target: Target) -> None:
        """Raises TelemetryError: not installed, or a variable of OpenTelemetry cannot be read."""
        check_installed()
        self.target = target
        try:
            self._partial = Partial()
            self._spans = _span_exporter(target, self._partial)
            self._logs = _log_exporter(target)
        except Exception as wrong:
            raise TelemetryError(
                f"OTLP cannot be set up: {' '.join(str(wrong).split())}", "check the variables OTEL_EXPORTER_OTLP_*"
            ) from wrong
        self._heard = _Heard()

    def send_spans(self, resource: Attributes, spans: Sequence[Span]) -> Outcome:
        """One request, tried for as long as `OTEL_EXPORTER_OTLP_TIMEOUT` says."""
        made = sdk_resource(resource)
        readable = [readable_span(each, made) for each in spans]
        self._partial.clear()
        outcome = self._sent(lambda: self._spans.export(readable).name)
        if outcome.answer is Answer.SENT and self._partial.rejected:
            return Outcome(Answer.SENT, self._partial.why or "no reason given", min(self._partial.rejected, len(spans)))
        return outcome

    def send_logs(self, resource: Attributes, logs: Sequence[Log]) -> Outcome:
        """The same for log records."""
        made = sdk_resource(resource)
        readable = [readable_log(each, made) for each in logs]
        return self._sent(lambda: self._logs.export(readable).name)

    def close(self) -> None:
        """End it; a request that waits for its next try waits no more."""
        self._spans.shutdown()
        self._logs.shutdown()  # type: ignore[no-untyped-call]
        self._heard.leave()

    def _sent(self, export: Callable[[], str]) -> Outcome:
        self._heard.begin()
        if export() == "SUCCESS":
            return SENT
        return self._heard.outcome()


class _Heard(logging.Handler):
    """Hears from the exporters' log why a request failed: they say it nowhere else."""

    def __init__(self) -> None:
        """The exporters are there: they filter what they say, a second error of a kind within a minute."""
        super().__init__(logging.WARNING)
        self.begin()
        self._logger = logging.getLogger("opentelemetry")
        self._logger.addHandler(self)
        self._logger.propagate = False
        for name in list(logging.root.manager.loggerDict):
            if name.startswith("opentelemetry.exporter"):
                logging.getLogger(name).filters.clear()

    def begin(self) -> None:
        """A request begins, in this thread: metrics are sent in another one."""
        self._thread = threading.get_ident()
        self._last = Outcome(Answer.LATER, "no answer")
        self._said = ""

    def leave(self) -> None:
        """Hear no more."""
        self._logger.removeHandler(self)

    def outcome(self) -> Outcome:
        """What was said last."""
        return self._last

    def emit(self, record: logging.LogRecord) -> None:
        """`logging.Handler`."""
        if record.thread != self._thread:
            return
        arguments = record.args if isinstance(record.args, tuple) else ()
        if record.levelno < logging.ERROR:
            if "max_request_size" in record.msg:  # the exporter does not try, and says nothing more
                self._last = Outcome(Answer.LARGE, " ".join(record.getMessage().split()))
            self._said = _reason(arguments) or self._said
            return
        self._last = _judged(arguments, self._said or " ".join(record.getMessage().split()))


def _reason(arguments: tuple[Any, ...]) -> str:
    """What a warning about one try says: first of all the error; of one of the system, its words."""
    said = " ".join(str(arguments[0]).split()) if arguments else ""
    found = _ERRNO.search(said)
    return found[1].lower() if found else said


def _judged(arguments: tuple[Any, ...], said: str) -> Outcome:
    for each in arguments:
        name = getattr(each, "name", "")
        if name and name.isupper():
            details = str(arguments[-1] or "") if arguments[-1] is not each else ""
            answer = Answer.LARGE if name == "RESOURCE_EXHAUSTED" and _TOO_LARGE in details else _by_status(name)
            return Outcome(answer, f"{name}: {' '.join(details.split())}" if details else name)
        if isinstance(each, int) and 100 <= each < 600:
            return Outcome(_by_http(each), f"HTTP {each}: {' '.join(str(arguments[-1]).split())}")
    return Outcome(Answer.LATER, said)


def _by_status(name: str) -> Answer:
    if name in _LATER:
        return Answer.LATER
    return Answer.FAILED if name in _ANSWERED else Answer.REFUSED


def _by_http(status: int) -> Answer:
    if status in _LATER_HTTP or status in (502, 503, 504):
        return Answer.LATER
    if status == _LARGE_HTTP:
        return Answer.LARGE
    return Answer.FAILED if status >= 500 else Answer.REFUSED


def _span_exporter(target: Target, partial: Partial) -> SpanExporter:
    if target.protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as Grpc

        heard: type[Grpc] = partial.of_grpc(Grpc)
        return heard(endpoint=target.of("traces"))
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as Http

    return Http(endpoint=target.of("traces"), session=partial.session(os.environ))


def _log_exporter(target: Target) -> LogRecordExporter:
    if target.protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as Grpc

        return Grpc(endpoint=target.of("logs"))
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as Http

    return Http(endpoint=target.of("logs"))


def metric_exporter(target: Target) -> MetricExporter:
    """For a reader of the metrics SDK."""
    if target.protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as Grpc

        return Grpc(endpoint=target.of("metrics"))
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as Http

    return Http(endpoint=target.of("metrics"))


def sdk_resource(resource: Attributes) -> Resource:
    """As the SDK has it; without what its detectors would add about this process."""
    from opentelemetry.sdk.resources import Resource

    return Resource(_attributes(resource))


def readable_span(span: Span, resource: Resource) -> ReadableSpan:
    """The span as the SDK has those that are over."""
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util import BoundedList
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import Link, SpanKind, Status, StatusCode

    events: Any = BoundedList.from_seq(len(span.events), [_event(each) for each in span.events])
    events.dropped = span.dropped_events
    return ReadableSpan(
        name=span.name,
        kind=SpanKind[span.kind.name],
        context=_context(span.context),
        parent=_context(span.parent, remote=True) if span.parent is not None else None,
        resource=resource,
        attributes=_attributes(span.attributes),
        events=events,
        links=[Link(_context(each.context), _attributes(each.attributes)) for each in span.links],
        status=Status(StatusCode.ERROR, str(sound(span.error))) if span.error else Status(),
        start_time=moment(span.started),
        end_time=moment(span.ended),
        instrumentation_scope=InstrumentationScope(SCOPE, __version__, SCHEMA_URL),
    )


def readable_log(log: Log, resource: Resource) -> ReadableLogRecord:
    """The log record as the SDK has those that are on their way."""
    from opentelemetry._logs import LogRecord, SeverityNumber
    from opentelemetry.sdk._logs import ReadableLogRecord
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import NonRecordingSpan, set_span_in_context

    record = LogRecord(
        timestamp=moment(log.at),
        observed_timestamp=moment(log.at),
        context=set_span_in_context(NonRecordingSpan(_context(log.context))),
        severity_number=SeverityNumber(int(log.level)),
        severity_text=Level(log.level).name,
        body=str(sound(log.body)),
        attributes=_attributes(log.attributes),
        event_name=log.name,
    )
    return ReadableLogRecord(record, resource, InstrumentationScope(SCOPE, __version__, SCHEMA_URL))


def _event(event: SpanEvent) -> Any:
    from opentelemetry.sdk.trace import Event

    return Event(event.name, _attributes(event.attributes), timestamp=moment(event.at))


def _context(context: Context, *, remote: bool = False) -> Any:
    from opentelemetry.trace import SpanContext, TraceFlags, TraceState

    sampled = TraceFlags(TraceFlags.SAMPLED)
    members = [(key, value) for key, _, value in (each.partition("=") for each in context.state.split(",") if each)]
    return SpanContext(int(context.trace, 16), int(context.span, 16), remote, sampled, TraceState(members))


def _attributes(attributes: Mapping[str, Value]) -> dict[str, Any]:
    return {name: _value(value) for name, value in attributes.items()}


def _value(value: Value) -> Any:
    return sound(value)
