"""Clients that keep connections, through `--tls`, to an agent behind an nginx that ends them
soon."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import trustme

from a2a_proxy.recording.read.reader import Recording
from support_nginx import nginx
from support_peers import ENVIRONMENTS, PEERS, agent, require_peers
from support_proxy import environment, program, proxy
from support_relay import refusing_port

NUMBER = 100
KEPT = 20
"""Requests that nginx answers on one connection."""
EVERY, PAUSE = 30, 1.5
"""After each 30 requests the client waits longer than nginx keeps a connection."""
CONNECTIONS = 7
"""20 and 10 requests for each 30; pauses of a slow machine can only add to them."""
SECONDS = 120
SERVER = """  server {{
    listen 127.0.0.1:{port} ssl reuseport; keepalive_requests {kept}; keepalive_timeout 1s;
    ssl_certificate {folder}/leaf.pem; ssl_certificate_key {folder}/leaf.pem;
    location / {{ proxy_pass {agent}; proxy_http_version 1.1; proxy_set_header Connection ""; }}
  }}
"""


@pytest.mark.peers
@pytest.mark.parametrize("library", ["httpx", "requests"])
def test_clients_see_each_end_before_they_use_the_connection_again(
    tmp_path: Path, library: str
) -> None:
    """No request fails, as without the proxy: neither after `Connection: close`, nor after a
    pause."""
    require_peers("sdk1")
    port, ca = refusing_port(), trustme.CA()
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    ca.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(
        str(tmp_path / "leaf.pem")
    )
    with agent("sdk1") as far:
        server = SERVER.format(port=port, kept=KEPT, folder=tmp_path, agent=far.base_url)
        upstream = f"https://localhost:{port}"
        with (
            nginx(tmp_path, port, server),
            proxy(
                tmp_path, upstream, "", "--tls", "--upstream-ca", str(tmp_path / "ca.pem")
            ) as between,
        ):
            assert run_client(between.state, library, between.port) == {"200": NUMBER}
            between.stop()
    with Recording(between.recording) as recording:
        calls = [row.exchange.connection for row in recording.read_exchanges()]
    assert len(calls) == NUMBER
    assert CONNECTIONS <= len(set(calls)) <= NUMBER // 2


def run_client(state: Path, library: str, port: int) -> dict[str, int]:
    """Run the client in a shell in which `ca env` was evaluated; return the number of each
    result."""
    url = f"https://localhost:{port}/.well-known/agent-card.json"
    client = (
        str(ENVIRONMENTS / "sdk1" / "bin" / "python"),
        str(PEERS / "tls" / "keepalive_client.py"),
    )
    words = (library, url, str(NUMBER), str(EVERY), str(PAUSE))
    script = 'variables=$("$0" ca env) && eval "$variables" && exec "$@"'
    done = subprocess.run(
        ["/bin/sh", "-c", script, program("a2a-proxy"), *client, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        timeout=SECONDS,
        env=environment(state),
        check=True,
    )
    results: dict[str, int] = json.loads(done.stdout)
    return results
