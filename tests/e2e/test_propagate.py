"""`--propagate` through a real proxy: the caller's span that an agent receives is a span that the
export sends."""

from __future__ import annotations

import threading
import urllib.request
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import grpc

from a2a_proxy.telemetry.offline import BackendSink, RecordingExport
from a2a_proxy.telemetry.sdk import SdkBackend
from a2a_proxy.telemetry.target import otlp_target
from support_otlp import http_backend
from support_proxy import finished, proxy

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CAME = f"00-{TRACE}-{SPAN}-00"
CALL = b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t"}}'


class Echo(BaseHTTPRequestHandler):
    """Answers each call with its `traceparent`."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:  # the interface
        self.rfile.read(int(self.headers["Content-Length"]))
        said = (
            b'{"jsonrpc":"2.0","id":1,"result":{"id":"%s"}}'
            % ",".join(self.headers.get_all("traceparent")).encode()
        )
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class GrpcEcho(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        told = ",".join(
            str(value) for name, value in details.invocation_metadata if name == "traceparent"
        ).encode()
        return grpc.unary_unary_rpc_method_handler(lambda request, context: told)


def test_agent_spans_are_children_of_the_client_span(tmp_path: Path) -> None:
    """Client, SERVER, CLIENT, agent: over JSON-RPC and gRPC, with a trace of the client's and
    without one."""
    agent = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=agent.serve_forever, daemon=True).start()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((GrpcEcho(),))
    grpc_port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    upstreams = f"127.0.0.1:{agent.server_port}", f"127.0.0.1:{grpc_port}"
    try:
        with proxy(tmp_path, *upstreams, "--propagate") as running:
            told = [_http(running.base_url, {}), _http(running.base_url, {"TraceParent": CAME})]
            with grpc.insecure_channel(running.address) as channel:
                call = channel.unary_unary("/lf.a2a.v1.A2AService/GetTask")
                told += [
                    call(b"", metadata=metadata, timeout=60).decode()
                    for metadata in ((), (("traceparent", CAME),))
                ]
            recording = finished(running)
    finally:
        server.stop(0).wait()
        agent.shutdown()
        agent.server_close()
    with recording, http_backend() as received:
        backend = SdkBackend(otlp_target(received.endpoint, received.protocol, {}))
        RecordingExport(recording, BackendSink(backend)).run(None)
        backend.close()
        calls = [row.exchange for row in recording.read_exchanges()]
        (session,) = recording.read_sessions()
        found = [
            row.exchange.sent_traceparent
            for row in recording.find_exchanges(f"trace:{told[0][3:35]}")
        ]
    assert [call.sent_traceparent for call in calls] == told
    assert [call.traceparent for call in calls] == ["", CAME, "", CAME], (
        "the captured copy is the client's"
    )
    assert session.edits == len(told)
    assert found == told[:1]
    spans = {span.span_id.hex(): span for span in received.spans()}
    assert len(spans) == 2 * len(told)
    for seen, call in zip(told, calls, strict=True):
        _, trace, parent, flags = seen.split("-")
        client = spans[parent]
        above = spans[client.parent_span_id.hex()]
        assert {client.trace_id.hex(), above.trace_id.hex()} == {trace}
        assert (client.kind, above.kind) == (client.SPAN_KIND_CLIENT, client.SPAN_KIND_SERVER)
        assert (above.parent_span_id.hex(), flags) == (
            (SPAN, "00") if call.traceparent else ("", "01")
        )
        assert (trace == TRACE) == bool(call.traceparent)


def _http(url: str, headers: dict[str, str]) -> str:
    request = urllib.request.Request(url, CALL, {"Content-Type": "application/json", **headers})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(answer.read().split(b'"')[-2].decode())
