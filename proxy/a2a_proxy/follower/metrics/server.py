"""The three pages: `/metrics`, `/healthz` (the process is alive) and `/readyz` (all traffic is
recorded)."""

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec

_TEXT_TYPE = "text/plain; charset=utf-8"
_REQUEST_SECONDS = 10.0
"""Seconds for a client to send its request."""


class MetricsPages(msgspec.Struct):
    """The current pages. Replaced as a whole by the thread that counts."""

    metrics: bytes = b""
    kind: str = _TEXT_TYPE
    lacking: str = "the recording does not exist yet"
    """Why it is not ready; empty if it is ready."""

    def make_page(self, path: str) -> tuple[int, str, bytes]:
        """Return status, content type and body."""
        path = path.partition("?")[0]
        if path == "/healthz":
            return 200, _TEXT_TYPE, b"alive\n"
        if path == "/readyz":
            return (
                (503, _TEXT_TYPE, f"{self.lacking}\n".encode())
                if self.lacking
                else (200, _TEXT_TYPE, b"ready\n")
            )
        if path == "/metrics":
            if not self.metrics:
                return 503, _TEXT_TYPE, b"not counted yet\n"
            return 200, self.kind, self.metrics
        return 404, _TEXT_TYPE, b"use /metrics, /healthz or /readyz\n"


def serve_pages(sockets: list[socket.socket], pages: MetricsPages) -> None:
    """Serve the pages on listening sockets, in threads of their own. Returns at once."""

    class Handler(BaseHTTPRequestHandler):
        timeout = _REQUEST_SECONDS
        server_version, sys_version = "a2a-proxy", ""

        def do_GET(self) -> None:
            status, kind, body = pages.make_page(self.path)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    for sock in sockets:
        sock.setblocking(True)
        server = ThreadingHTTPServer(sock.getsockname()[:2], Handler, bind_and_activate=False)
        server.socket.close()
        server.socket = sock
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
