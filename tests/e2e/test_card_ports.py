"""An agent card cannot publish local services of the agent's host: the real proxy, as a user starts
it."""

from __future__ import annotations

import contextlib
import json
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from support_process import listening_ports
from support_proxy import Proxy


class Agent(BaseHTTPRequestHandler):
    """An agent that serves the test's card; every other path is the secret of a local service."""

    card = b""

    def do_GET(self) -> None:
        body = self.card if self.path.endswith("agent-card.json") else b"of this machine only"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Agent) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.fixture
def local() -> Iterator[int]:
    """A service of this machine that must not be reachable."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Agent) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@contextlib.contextmanager
def listening_on(folder: Path, listen: str, port: int, *extra: str) -> Iterator[Proxy]:
    one = Proxy(folder, f"localhost:{port}", "", *extra)
    one.words[1] = listen
    try:
        yield one.start()
    finally:
        one.kill()


def get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as response:
        return bytes(response.read())


@pytest.mark.parametrize(
    ("listen", "extra", "opened"),
    [
        ("0.0.0.0:0", (), False),
        ("[::]:0", (), False),
        ("0.0.0.0:0", ("--rewrite-card", "always"), False),
        ("0.0.0.0:0", ("--learn-ports", "LOCAL"), True),
        ("127.0.0.1:0", (), True),
        ("127.0.0.1:0", ("--rewrite-card", "never"), False),
    ],
)
def test_a_card_opens_ports_only_as_allowed(
    tmp_path: Path, port: int, local: int, listen: str, extra: tuple[str, ...], opened: bool
) -> None:
    """The listeners of the proxy after a client has read a card with a port of the host, and the
    lines on the console."""
    urls = [f"http://127.0.0.1:{each}/" for each in (port, local)]
    entries = [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"} for url in urls]
    Agent.card = json.dumps({"name": "a", "supportedInterfaces": entries}).encode()
    words = [word.replace("LOCAL", str(local)) for word in extra]
    with listening_on(tmp_path, listen, port, *words) as one:
        before = listening_ports(one.process.pid)
        card = json.loads(get(f"http://127.0.0.1:{one.port}/.well-known/agent-card.json"))
        _, url = [each["url"] for each in card["supportedInterfaces"]]
        new = listening_ports(one.process.pid) - before
        assert len(new) == int(opened)
        if opened:
            assert {host for host, _ in new} == {listen.rpartition(":")[0]}
            assert get(url) == b"of this machine only"
        else:
            assert url == urls[1]
        one.stop()
        hints = [
            said["hint"] for said in one.said("warning") if "is not relayed" in said["message"]
        ]
        closed = not opened and "never" not in extra
        assert [hint.partition(": ")[2] for hint in hints] == [f"--learn-ports {local}"] * closed
