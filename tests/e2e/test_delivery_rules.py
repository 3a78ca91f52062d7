"""The push notifications of SDK agents through `--forward`: each is recorded and judged, and no
finding is an error."""

from __future__ import annotations

import asyncio
import http.server
import json
import os
import shlex
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from a2a_proxy.model.values import Binding, Severity
from a2a_proxy.recording.read.reader import Recording
from support_peers import NODE24, agent, require_peers, run_client
from support_proxy import Proxy, environment, program, proxy

pytestmark = pytest.mark.peers


def variables_of(between: Proxy) -> dict[str, str]:
    """Return the variables of `a2a-proxy ca env --forward`, with a Node.js whose `fetch` follows
    them."""
    line, env = (
        [program("a2a-proxy"), "ca", "env", "--forward", between.address],
        environment(between.state),
    )
    done = subprocess.run(line, capture_output=True, text=True, env=env, check=True)
    exports = (shlex.split(line)[1] for line in done.stdout.splitlines())
    return dict(export.split("=", 1) for export in exports) | {
        "PATH": f"{NODE24.parent}:{os.environ['PATH']}"
    }


def judged(path: Path) -> tuple[int, set[tuple[str, Severity]]]:
    """Return the number of deliveries, and the rules and severities of the findings about them."""
    with Recording(path) as recording:
        rows = [
            row for row in recording.read_exchanges() if row.exchange.binding is Binding.WEBHOOK
        ]
        numbers = {row.exchange.id for row in rows}
        found = [row.finding for row in recording.read_findings()]
    return len(rows), {(each.rule, each.severity) for each in found if each.exchange in numbers}


class Receiver(http.server.BaseHTTPRequestHandler):
    """A webhook that answers 200, or 500 at `/failing`; it keeps the bodies on its server."""

    def do_POST(self) -> None:
        bodies: list[Any] = self.server.bodies  # type: ignore[attr-defined]
        bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(500 if self.path == "/failing" else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[http.server.ThreadingHTTPServer]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        server.bodies = []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize("binding", ["jsonrpc", "grpc"])
@pytest.mark.parametrize(
    ("kind", "expected"), [("sdk1", {("A2A-PUSH-008", Severity.INFO)}), ("sdk03", set())]
)
def test_python(
    kind: str, expected: set[tuple[str, Severity]], binding: str, tmp_path: Path
) -> None:
    """Configurations of calls and of messages. The SDK 1.x sends another content type than the
    specification's."""
    require_peers(kind)
    with proxy(tmp_path, "", "", "--forward", "127.0.0.1:0") as between:
        variables = variables_of(between)
        with agent(kind, variables=variables) as far:
            run = run_client(
                kind,
                binding,
                ["push", "webhook"],
                far.base_url,
                far.grpc_target,
                variables=variables,
            )
            asyncio.run(run)
        between.stop()
    count, found = judged(between.recording)
    assert count > 1
    assert found == expected


@pytest.mark.parametrize(
    ("path", "expected"), [("/hook", set()), ("/failing", {("A2A-PUSH-010", Severity.ERROR)})]
)
def test_javascript(
    path: str,
    expected: set[tuple[str, Severity]],
    receiver: http.server.ThreadingHTTPServer,
    tmp_path: Path,
) -> None:
    """Its deliveries come before the task is known. It does not try again after a failure, and may
    send the same Task twice (A2A-PUSH-013).
    """
    require_peers("js03", "node24")
    with proxy(tmp_path, "", "", "--forward", "127.0.0.1:0") as between:
        variables = variables_of(between)
        with agent("js03", variables=variables) as far:
            message = {
                "kind": "message",
                "messageId": "m-1",
                "role": "user",
                "parts": [{"kind": "text", "text": "hello"}],
            }
            config = {
                "url": f"http://127.0.0.1:{receiver.server_port}{path}",
                "token": "push-token-3",
            }
            params = {
                "message": message,
                "configuration": {"pushNotificationConfig": config, "blocking": True},
            }
            body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params}
            through = urllib.request.build_opener(
                urllib.request.ProxyHandler({"http": f"http://{between.address}"})
            )
            asked = urllib.request.Request(
                f"{far.base_url}/a2a/jsonrpc",
                json.dumps(body).encode(),
                {"Content-Type": "application/json"},
            )
            with through.open(asked, timeout=60) as answer:
                assert json.load(answer)["result"]["status"]["state"] == "completed"
            until = time.monotonic() + 60
            while "completed" not in json.dumps(receiver.bodies) and time.monotonic() < until:  # type: ignore[attr-defined]
                time.sleep(0.05)
        between.stop()
    count, found = judged(between.recording)
    assert count == len(receiver.bodies) > 1  # type: ignore[attr-defined]
    assert found - {("A2A-PUSH-013", Severity.INFO)} == expected
