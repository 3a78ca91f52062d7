"""Real clients that use the proxy by environment variables behave as without it, and everything is recorded."""

from __future__ import annotations

import asyncio
import http.server
import ssl
import subprocess
import threading
from collections import Counter
from pathlib import Path

import pytest
import trustme

from a2a_proxy.recording.read.reader import Recording
from support_account import lines, match, told
from support_peers import Transcript, agent, missing, normalise, run_client
from support_proxy import environment, program, proxy

SCENARIOS = [
    "card",
    "streaming",
    "failures",
    "errors",
    "concurrent",
    "unary",
    "parts",
    "input",
    "cancel",
    "push",
    "big",
]
ALL = ("jsonrpc", "rest", "grpc")
CLIENTS = {"sdk1": ("sdk1", ALL), "sdk03": ("sdk03", ALL), "js": ("sdk1", ("grpc",))}
"""Each client with its agent and the bindings that use a proxy: HTTP of Python in absolute form, gRPC by CONNECT.
`fetch` of Node before 22.21 uses none."""


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
    """`https` URLs: read with --intercept, with the certificate that curl trusts by `ca env` alone; else unread, and
    curl sees the origin's own certificate. Plain `http` works either way."""
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("localhost").configure_cert(context)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = ("--intercept", "private", "--upstream-ca", str(tmp_path / "ca.pem")) if opened else ()
        with proxy(tmp_path, "", "", "--forward", "127.0.0.1:0", *options) as between:
            shell = f'eval "$({program("a2a-proxy")} ca env --forward {between.address})"; curl -sS'
            shell += f" https://localhost:{server.server_port}/path" + (
                "" if opened else f" --cacert {tmp_path}/ca.pem"
            )
            done = subprocess.run(
                ["bash", "-c", shell], capture_output=True, text=True, env=environment(between.state), timeout=60
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


def proxy_variables(address: str) -> dict[str, str]:
    """Return the variables with which HTTP and gRPC clients use a proxy, for this machine too."""
    names = ("HTTP_PROXY", "http_proxy", "grpc_proxy")
    empty = dict.fromkeys(("NO_PROXY", "no_proxy", "no_grpc_proxy"), "")
    return {**dict.fromkeys(names, f"http://{address}"), **empty}


@pytest.mark.peers
@pytest.mark.parametrize("client", CLIENTS)
def test_sdk_clients(tmp_path: Path, client: str) -> None:
    """The transcripts of each binding are those without the proxy, each event is recorded once, and every connection
    has the agent as its upstream."""
    kind, bindings = CLIENTS[client]
    scenarios = SCENARIOS if "rest" in bindings else SCENARIOS[1:]
    if why := missing(kind, client):
        pytest.skip(why)

    async def run_all(base_url: str, grpc: str, variables: dict[str, str]) -> dict[str, list[Transcript]]:
        seen = await asyncio.gather(
            *(run_client(client, each, scenarios, base_url, grpc, variables=variables) for each in bindings)
        )
        return dict(zip(bindings, seen, strict=True))

    with agent(kind) as far:
        with proxy(tmp_path, "", "", "--forward", "127.0.0.1:0") as between:
            forwarded = asyncio.run(run_all(far.base_url, far.grpc_target, proxy_variables(between.address)))
            summary = between.stop()
        direct = asyncio.run(run_all(far.base_url, far.grpc_target, {}))
    for binding in bindings:
        assert normalise(direct[binding]) == normalise(forwarded[binding])
    account = [line for binding, seen in forwarded.items() for line in lines(binding, seen, frozenset())]
    with Recording(tmp_path / "recording.a2a") as recording:
        match(told(recording), account)
        assert {(line.binding, line.scenario, line.stream): line.untold for line in account if line.untold} == {}
        upstreams = Counter(row.connection.upstream for row in recording.read_connections())
        assert set(upstreams) <= {f"127.0.0.1:{far.http}", far.grpc_target}
        exchanges = Counter(str(row.exchange.binding) for row in recording.read_exchanges())
        assert set(bindings) <= set(exchanges)
    assert summary["complete"]
