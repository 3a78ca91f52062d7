"""curl with the variables of `a2a-proxy ca env --forward`; SDK clients are in
`test_sdk_clients.py`."""

from __future__ import annotations

import http.server
import ssl
import subprocess
import threading
from pathlib import Path

import pytest
import trustme

from a2a_proxy.recording.read.reader import Recording
from support_proxy import environment, program, proxy


class Echo(http.server.BaseHTTPRequestHandler):
    """Answers each request with its path."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = self.path.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("opened", [True, False])
def test_curl_with_the_variables_of_ca_env(tmp_path: Path, opened: bool) -> None:
    """`https` URLs: read with --intercept, with the certificate that curl trusts by `ca env` alone;
    else unread, and curl sees the origin's own certificate. Plain `http` works either way."""
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("localhost").configure_cert(context)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = (
            ("--intercept", "private", "--upstream-ca", str(tmp_path / "ca.pem")) if opened else ()
        )
        with proxy(tmp_path, "", "", "--forward", "127.0.0.1:0", *options) as between:
            shell = f'eval "$({program("a2a-proxy")} ca env --forward {between.address})"; curl -sS'
            shell += f" https://localhost:{server.server_port}/path" + (
                "" if opened else f" --cacert {tmp_path}/ca.pem"
            )
            done = subprocess.run(
                ["bash", "-c", shell],
                capture_output=True,
                text=True,
                env=environment(between.state),
                timeout=60,
            )
            assert (done.stdout, done.stderr) == ("/path", "")
            between.stop()
        server.shutdown()
    with Recording(tmp_path / "recording.a2a") as recording:
        exchanges = [row.exchange for row in recording.read_exchanges()]
        (connection,) = [row.connection for row in recording.read_connections()]
        assert [each.target for each in exchanges] == ["/path"] * opened
        assert connection.kind == ("http/1.1" if opened else "tls")
        assert connection.bytes_to_client > 1000 or opened
