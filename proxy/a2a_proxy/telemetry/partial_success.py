"""Spans that a backend rejected from a request that it accepted: the exporters of the SDK ignore
them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from a2a_proxy.telemetry.session import own_session


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
