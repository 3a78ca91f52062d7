"""Converts spans and log records to the types of the OpenTelemetry packages and sends them with
their exporters.

Like `metrics` and `partial_success`, imported only where something is sent, because the packages
are an optional extra.

Spans that a backend rejected from a request that it accepted: the exporters of the SDK ignore
them.

The HTTP session of an exporter.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from a2a_proxy import __version__
from a2a_proxy.installation import install_hint
from a2a_proxy.telemetry.errors import TelemetryError
from a2a_proxy.telemetry.request_outcome import (
    SENT,
    ExporterLogHandler,
    RequestOutcome,
    RequestResult,
)
from a2a_proxy.telemetry.target import OtlpTarget, bypass_proxies
from a2a_proxy.telemetry.values import (
    SCHEMA_URL,
    SCOPE,
    Attributes,
    LogLevel,
    LogValue,
    SpanContextIds,
    SpanEvent,
    SpanValue,
    Value,
    clamp_time,
    service_resource,
    valid_value,
)

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import ReadableLogRecord
    from opentelemetry.sdk._logs.export import LogRecordExporter
    from opentelemetry.sdk.metrics.export import MetricExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

_PACKAGES = ("sdk.trace", "exporter.otlp.proto.grpc", "exporter.otlp.proto.http")
"""Modules below `opentelemetry`."""


_PROVIDER = "CREDENTIAL_PROVIDER"
"""Part of the names of variables that give the SDK a session of the user's own."""


def own_session(variables: Mapping[str, str]) -> Any:
    """Return a session that trusts the certificates in `OTEL_EXPORTER_OTLP_CERTIFICATE`, which a
    plain `requests` session ignores if `REQUESTS_CA_BUNDLE` is set. None if the SDK must create a
    session from variables."""
    if any(_PROVIDER in name for name in variables):
        return None
    import requests

    class Session(requests.Session):
        def merge_environment_settings(
            self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any
        ) -> Any:
            trusted = (
                self.verify if verify is None else verify
            )  # set by the exporter: a file precedes the bundle
            return super().merge_environment_settings(url, proxies, stream, trusted, cert)

    return Session()


class PartialSuccessListener:
    """Reads the responses to one span exporter."""

    def __init__(self) -> None:
        self.rejected = 0
        """Number of spans of the last request that the backend rejected."""
        self.why = ""

    def clear(self) -> None:
        """Reset before a request."""
        self.rejected, self.why = 0, ""

    def wrap_grpc_exporter(self, exporter: Any) -> Any:
        """Return a subclass of the exporter whose stub reports its responses; the SDK recreates the
        stub at times."""
        partial = self

        class Heard(exporter):  # type: ignore[misc]
            def _initialize_channel_and_stub(self) -> None:
                super()._initialize_channel_and_stub()
                self._client: Any = _ListeningStub(self._client, partial)

        return Heard

    def http_session(self, variables: Mapping[str, str]) -> Any:
        """Return a session that reports its responses, or None if the SDK must create the session
        from variables."""
        session = own_session(variables)
        if session is not None:
            session.hooks["response"].append(self._on_http_response)
        return session

    def add_response(self, response: Any) -> None:
        """Read an ExportTraceServiceResponse."""
        self.rejected = max(response.partial_success.rejected_spans, 0)
        self.why = " ".join(response.partial_success.error_message.split())

    def _on_http_response(self, response: Any, *_: Any, **__: Any) -> None:
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceResponse,
        )

        if response.ok:
            try:
                self.add_response(ExportTraceServiceResponse.FromString(response.content))
            except DecodeError:
                return  # a response of another form: the backend has accepted all spans


class _ListeningStub:
    def __init__(self, stub: Any, partial: PartialSuccessListener) -> None:
        self._stub = stub
        self._partial = partial

    def Export(self, *given: Any, **named: Any) -> Any:
        response = self._stub.Export(*given, **named)
        self._partial.add_response(response)
        return response


def check_installed() -> None:
    """Raise TelemetryError if the extra is not installed."""
    for name in _PACKAGES:
        try:
            found = find_spec(f"opentelemetry.{name}")
        except ImportError:
            found = None
        if found is None:
            raise TelemetryError("OpenTelemetry needs the extra otlp", install_hint("otlp"))


class SdkBackend:
    """Sends to one backend. Not thread-safe."""

    def __init__(self, target: OtlpTarget) -> None:
        """Raises TelemetryError if the packages are missing or a variable of OpenTelemetry is
        invalid."""
        check_installed()
        bypass_proxies(os.environ)
        self.target = target
        self._log_handler = ExporterLogHandler()
        try:
            self._partial_success = PartialSuccessListener()
            self._exporter_of_spans = _span_exporter(target, self._partial_success)
            self._exporter_of_logs = _log_exporter(target)
        except Exception as wrong:
            self._log_handler.detach_handler()
            raise TelemetryError(
                f"OTLP cannot be set up: {' '.join(str(wrong).split())}",
                "check the variables OTEL_EXPORTER_OTLP_*",
            ) from wrong
        self._log_handler.remove_filters()

    def set_retry_listener(self, on_retry: Callable[[RequestOutcome], None]) -> None:
        """Call `on_retry` with the result of each try after which the exporter tries again by
        itself."""
        self._log_handler.on_retry = on_retry

    def send_spans(self, resource: Attributes, spans: Sequence[SpanValue]) -> RequestOutcome:
        """Send one request, retried for at most `OTEL_EXPORTER_OTLP_TIMEOUT`."""
        resources = {
            service: sdk_resource(service_resource(resource, service))
            for service in _services(spans)
        }
        readable = [readable_span(each, resources[each.service]) for each in spans]
        self._partial_success.clear()
        outcome = self._export_outcome(lambda: self._exporter_of_spans.export(readable).name)
        if outcome.result is RequestResult.SENT and self._partial_success.rejected:
            return RequestOutcome(
                RequestResult.SENT,
                self._partial_success.why or "no reason given",
                min(self._partial_success.rejected, len(spans)),
            )
        return outcome

    def send_logs(self, resource: Attributes, logs: Sequence[LogValue]) -> RequestOutcome:
        """Send one request with log records."""
        resources = {
            service: sdk_resource(service_resource(resource, service))
            for service in _services(logs)
        }
        readable = [readable_log(each, resources[each.service]) for each in logs]
        return self._export_outcome(lambda: self._exporter_of_logs.export(readable).name)

    def close(self) -> None:
        """Shut down; a request that waits for its next try is given up."""
        self._exporter_of_spans.shutdown()
        self._exporter_of_logs.shutdown()  # type: ignore[no-untyped-call]
        self._log_handler.detach_handler()

    def _export_outcome(self, export: Callable[[], str]) -> RequestOutcome:
        self._log_handler.begin_request()
        if export() == "SUCCESS":
            return SENT
        return self._log_handler.get_outcome()


def _services(values: Sequence[SpanValue] | Sequence[LogValue]) -> set[str]:
    return {each.service for each in values}


def _span_exporter(target: OtlpTarget, partial: PartialSuccessListener) -> SpanExporter:
    if target.protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as Grpc

        heard: type[Grpc] = partial.wrap_grpc_exporter(Grpc)
        return heard(endpoint=target.endpoint_of_signal("traces"))
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as Http

    return Http(
        endpoint=target.endpoint_of_signal("traces"), session=partial.http_session(os.environ)
    )


def _log_exporter(target: OtlpTarget) -> LogRecordExporter:
    if target.protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as Grpc

        return Grpc(endpoint=target.endpoint_of_signal("logs"))
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as Http

    return Http(endpoint=target.endpoint_of_signal("logs"), session=own_session(os.environ))


def metric_exporter(target: OtlpTarget) -> MetricExporter:
    """Return the exporter for a reader of the metrics SDK."""
    if target.protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import (
            OTLPMetricExporter as Grpc,
        )

        return Grpc(endpoint=target.endpoint_of_signal("metrics"))
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as Http

    return Http(endpoint=target.endpoint_of_signal("metrics"), session=own_session(os.environ))


def sdk_resource(resource: Attributes) -> Resource:
    """Return a resource of the SDK, without the attributes of this process that its detectors would
    add."""
    from opentelemetry.sdk.resources import Resource

    return Resource(_sdk_attributes(resource))


def readable_span(span: SpanValue, resource: Resource) -> ReadableSpan:
    """Return the span as a finished span of the SDK."""
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util import BoundedList
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import Link, SpanKind, Status, StatusCode

    events: Any = BoundedList.from_seq(len(span.events), [_sdk_event(each) for each in span.events])
    events.dropped = span.dropped_events
    return ReadableSpan(
        name=span.name,
        kind=SpanKind[span.kind.name],
        context=_sdk_span_context(span.context),
        parent=_sdk_span_context(span.parent, remote=True) if span.parent is not None else None,
        resource=resource,
        attributes=_sdk_attributes(span.attributes),
        events=events,
        links=[
            Link(_sdk_span_context(each.context), _sdk_attributes(each.attributes))
            for each in span.links
        ],
        status=Status(StatusCode.ERROR, str(valid_value(span.error))) if span.error else Status(),
        start_time=clamp_time(span.started),
        end_time=clamp_time(span.ended),
        instrumentation_scope=InstrumentationScope(SCOPE, __version__, SCHEMA_URL),
    )


def readable_log(log: LogValue, resource: Resource) -> ReadableLogRecord:
    """Return the log record as a record of the SDK that is ready to export."""
    from opentelemetry._logs import LogRecord, SeverityNumber
    from opentelemetry.sdk._logs import ReadableLogRecord
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import NonRecordingSpan, set_span_in_context

    record = LogRecord(
        timestamp=clamp_time(log.at),
        observed_timestamp=clamp_time(log.at),
        context=set_span_in_context(NonRecordingSpan(_sdk_span_context(log.context))),
        severity_number=SeverityNumber(int(log.level)),
        severity_text=LogLevel(log.level).name,
        body=str(valid_value(log.body)),
        attributes=_sdk_attributes(log.attributes),
        event_name=log.name,
    )
    return ReadableLogRecord(record, resource, InstrumentationScope(SCOPE, __version__, SCHEMA_URL))


def _sdk_event(event: SpanEvent) -> Any:
    from opentelemetry.sdk.trace import Event

    return Event(event.name, _sdk_attributes(event.attributes), timestamp=clamp_time(event.at))


def _sdk_span_context(context: SpanContextIds, *, remote: bool = False) -> Any:
    from opentelemetry.trace import SpanContext, TraceFlags, TraceState

    sampled = TraceFlags(TraceFlags.SAMPLED)
    members = [
        (key, value)
        for key, _, value in (each.partition("=") for each in context.state.split(",") if each)
    ]
    return SpanContext(
        int(context.trace, 16), int(context.span, 16), remote, sampled, TraceState(members)
    )


def _sdk_attributes(attributes: Mapping[str, Value]) -> dict[str, Any]:
    return {name: valid_value(value) for name, value in attributes.items()}
