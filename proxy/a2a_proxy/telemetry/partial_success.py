"""What a backend says it did not take of a request that it took: the exporters of the SDK pass over it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from a2a_proxy.telemetry.session import own_session


class PartialSuccessListener:
    """Listens to the answers of one exporter of spans."""

    def __init__(self) -> None:
        self.rejected = 0
        """Spans of the last request that the backend did not take."""
        self.why = ""

    def clear(self) -> None:
        """A request begins."""
        self.rejected, self.why = 0, ""

    def wrap_grpc_exporter(self, exporter: Any) -> Any:
        """The same class, heard: its stub answers what the backend has answered, and is made anew now and then."""
        partial = self

        class Heard(exporter):  # type: ignore[misc]
            def _initialize_channel_and_stub(self) -> None:
                super()._initialize_channel_and_stub()
                self._client: Any = _ListeningStub(self._client, partial)

        return Heard

    def http_session(self, variables: Mapping[str, str]) -> Any:
        """A session that is heard; None where the SDK is to make one that variables describe."""
        session = own_session(variables)
        if session is not None:
            session.hooks["response"].append(self._on_http_response)
        return session

    def add_response(self, response: Any) -> None:
        """An ExportTraceServiceResponse."""
        self.rejected = max(response.partial_success.rejected_spans, 0)
        self.why = " ".join(response.partial_success.error_message.split())

    def _on_http_response(self, response: Any, *_: Any, **__: Any) -> None:
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

        if response.ok:
            try:
                self.add_response(ExportTraceServiceResponse.FromString(response.content))
            except DecodeError:
                return  # a backend that answers in words of its own: it took all


class _ListeningStub:
    def __init__(self, stub: Any, partial: PartialSuccessListener) -> None:
        self._stub = stub
        self._partial = partial

    def Export(self, *given: Any, **named: Any) -> Any:
        response = self._stub.Export(*given, **named)
        self._partial.add_response(response)
        return response
