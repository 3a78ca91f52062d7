"""A small OTLP backend in this process, over gRPC and HTTP, with configurable responses."""

from __future__ import annotations

import gzip
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs_pb
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics_pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_pb

from a2a_proxy.telemetry.values import Attributes, LogValue, SpanValue

_SERVICES: dict[str, tuple[Any, Any]] = {
    "traces": (trace_pb.ExportTraceServiceRequest, trace_pb.ExportTraceServiceResponse),
    "logs": (logs_pb.ExportLogsServiceRequest, logs_pb.ExportLogsServiceResponse),
    "metrics": (metrics_pb.ExportMetricsServiceRequest, metrics_pb.ExportMetricsServiceResponse),
}
_METHODS = {
    "traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    "logs": "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    "metrics": "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
}


class Kept:
    """A sink of an export that keeps the exported data."""

    def __init__(self) -> None:
        self.got: list[SpanValue] = []
        self.told: list[LogValue] = []

    def write_spans(self, resource: Attributes, spans: Sequence[SpanValue]) -> None:
        self.got += spans

    def write_logs(self, resource: Attributes, logs: Sequence[LogValue]) -> None:
        self.told += logs


class Received:
    """The received requests, and the results of the next ones: a gRPC or HTTP status each, or a
    function that runs first."""

    def __init__(self, protocol: str) -> None:
        self.requests: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.answers: list[Any] = []
        self.rejects = 0
        """Spans of each request that it says it did not take."""
        self.asked = 0
        """Requests, those that were not taken too."""
        self.before: Callable[[], None] = lambda: None
        self.endpoint = ""
        self.protocol = protocol
        self._lock = threading.Lock()

    def take(self, request: Any, headers: dict[str, str]) -> Any:
        """Return the result of this request; None accepts it."""
        self.before()
        with self._lock:
            self.asked += 1
            answer = self.answers.pop(0) if self.answers else None
            if answer is None:
                self.requests.append(request)
                self.headers.append(headers)
            return answer

    def response(self, signal: str) -> Any:
        """Return the response to an accepted request."""
        made = _SERVICES[signal][1]()
        if signal == "traces" and self.rejects:
            made.partial_success.rejected_spans = self.rejects
            made.partial_success.error_message = "too old"
        return made

    def spans(self) -> list[Any]:
        """Return every span in order of arrival, including duplicates."""
        some = [
            each for each in self.requests if isinstance(each, trace_pb.ExportTraceServiceRequest)
        ]
        scopes = [
            scope for each in some for part in each.resource_spans for scope in part.scope_spans
        ]
        return [span for scope in scopes for span in scope.spans]

    def services(self) -> set[str]:
        """Return the names of the services of all spans."""
        some = [
            each for each in self.requests if isinstance(each, trace_pb.ExportTraceServiceRequest)
        ]
        return {
            attributes(part.resource)["service.name"]
            for each in some
            for part in each.resource_spans
        }

    def logs(self) -> list[Any]:
        """Return every log record."""
        some = [
            each for each in self.requests if isinstance(each, logs_pb.ExportLogsServiceRequest)
        ]
        scopes = [
            scope for each in some for part in each.resource_logs for scope in part.scope_logs
        ]
        return [record for scope in scopes for record in scope.log_records]

    def metrics(self) -> dict[str, Any]:
        """Return the last value of every metric, by name."""
        some = [
            each
            for each in self.requests
            if isinstance(each, metrics_pb.ExportMetricsServiceRequest)
        ]
        scopes = [
            scope for each in some for part in each.resource_metrics for scope in part.scope_metrics
        ]
        return {metric.name: metric for scope in scopes for metric in scope.metrics}

    def resource(self) -> dict[str, Any]:
        """Return the attributes of the first resource."""
        return attributes(self.requests[0].resource_spans[0].resource)


def attributes(value: Any) -> dict[str, Any]:
    """Return the attributes of a message that has attributes."""
    return {pair.key: _plain(pair.value) for pair in value.attributes}


def _plain(value: Any) -> Any:
    name = value.WhichOneof("value")
    found = getattr(value, name) if name else None
    return (
        [_plain(each) for each in found.values]
        if name == "array_value" and found is not None
        else found
    )


@contextmanager
def grpc_backend(port: int = 0, given: Received | None = None) -> Iterator[Received]:
    """Run it over gRPC; results are gRPC status codes."""
    received = given or Received("grpc")
    server = grpc.server(futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((_Handler(received),))
    received.endpoint = f"http://127.0.0.1:{server.add_insecure_port(f'127.0.0.1:{port}')}"
    server.start()
    try:
        yield received
    finally:
        server.stop(0).wait()


class _Handler(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    def __init__(self, received: Received) -> None:
        self._received = received

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any] | None:
        signal = next((name for name, method in _METHODS.items() if method == details.method), None)
        if signal is None:
            return None
        request, response = _SERVICES[signal]

        def export(asked: Any, context: grpc.ServicerContext) -> Any:
            metadata = {key: str(value) for key, value in context.invocation_metadata()}
            if not context.is_active():
                return response()  # the client's timeout passed meanwhile, so no response is sent
            answer = self._received.take(asked, metadata)
            if answer is not None:
                context.abort(answer, "told so")
            return self._received.response(signal)

        return grpc.unary_unary_rpc_method_handler(
            export, request.FromString, response.SerializeToString
        )


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, address: Any) -> None:
        if not isinstance(
            sys.exception(), ConnectionError
        ):  # a client that closed before the response
            super().handle_error(request, address)


@contextmanager
def http_backend(port: int = 0, given: Received | None = None) -> Iterator[Received]:
    """Run it over HTTP with protobuf; results are HTTP statuses."""
    received = given or Received("http/protobuf")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            signal = self.path.rpartition("/v1/")[2]
            if signal not in _SERVICES:
                return self._answer(404)
            request = _SERVICES[signal][0].FromString(body)
            status = received.take(
                request, {key.lower(): value for key, value in self.headers.items()}
            )
            return self._answer(
                status, b"" if status else received.response(signal).SerializeToString()
            )

        def _answer(self, status: int | None, body: bytes = b"") -> None:
            self.send_response(status or 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = _Server(("127.0.0.1", port), Handler)
    received.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
