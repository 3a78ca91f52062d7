"""`--card-keys` through a real proxy: cards signed by real SDKs keep their bytes, and their
verdicts are recorded."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from a2a_proxy.recording.read.reader import Recording
from support_cli import SECONDS, environment, run, until
from support_proxy import finished, inspect, proxy
from support_signed_cards import FOLDER, KEYS, private_jwk
from support_stdio import CARD, frame, wrapped

NAMES = ("python-1.3/ascii", "python-0.3/umlauts", "javascript-1.3/security")
ALTERED = (
    (FOLDER / "python-1.3" / "ascii.json").read_bytes().replace(b"Plans trips", b"Plans traps")
)


class Cards(BaseHTTPRequestHandler):
    """Serves the signed card that the first part of the path names."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:  # the interface
        name = "/".join(self.path.split("/")[1:3])
        body = ALTERED if name.startswith("altered") else (FOLDER / f"{name}.json").read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def agent() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Cards)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def verdicts(recording: Path) -> list[list[str]]:
    """Return the verdicts about the card of each call."""
    with Recording(recording) as stored:
        return [
            [each.verdict.name for each in row.exchange.card_signatures]
            for row in stored.read_exchanges()
        ]


def test_cards_of_sdks_through_the_proxy(tmp_path: Path, agent: ThreadingHTTPServer) -> None:
    """The verdict of each on the console, in `show` and in JSON; the file has a private key, which
    is said."""
    keys = tmp_path / "keys.json"
    other = private_jwk(Ed25519PrivateKey.generate(), kid="other")
    keys.write_text(json.dumps({"keys": [*json.loads(KEYS.read_bytes())["keys"], other]}))
    with proxy(tmp_path, f"127.0.0.1:{agent.server_port}", "", "--card-keys", str(keys)) as running:
        for name in (*NAMES, "altered/card"):
            url = f"{running.base_url}/{name}/.well-known/agent-card.json"
            with urllib.request.urlopen(url, timeout=60) as answer:
                got = answer.read()
            assert got == (
                ALTERED if name == "altered/card" else (FOLDER / f"{name}.json").read_bytes()
            )
        recording = finished(running)
        assert f"--card-keys {keys} has private keys (other)" in running.text
    with recording:
        calls = [row.exchange for row in recording.read_exchanges()]
        found = {
            row.finding.exchange: row.finding.severity.name
            for row in recording.read_findings()
            if row.finding.rule == "A2A-CARD-013"
        }
        path = recording.path
    assert [[each.verdict.name for each in call.card_signatures] for call in calls] == [
        *([["VERIFIED"]] * len(NAMES)),
        ["FAILED"],
    ]
    assert found == {2: "INFO", 3: "INFO", 4: "WARNING"}
    shown = inspect(tmp_path / "state", "show", path)
    jku = "jku https://agent.example.com/jwks.json (not fetched)"
    uncovered = "not covered: securityRequirements[0]"
    assert [
        line.strip() for line in shown.splitlines() if line.strip().startswith("card signed")
    ] == [
        f"card signed by python-1.3 (ES256), verified, {jku}",
        f"card signed by python-0.3 (ES256), verified, only in the form: Python SDK 0.3, {jku}",
        (
            "card signed by javascript-1.3 (ES256), verified, "
            f"only in the form: SDKs of today, {uncovered}, {jku}"
        ),
        (
            "card signed by python-1.3 (ES256), does not verify: "
            f"python-1.3 tried with every form, {jku}"
        ),
    ]
    (line, *_) = inspect(tmp_path / "state", "show", path, "3", "--json").splitlines()
    (signature,) = json.loads(line)["card_signatures"]
    assert (signature["verdict"], signature["forms"]) == (
        "verified",
        ["SDKs of today", "Python SDK 1.1.2"],
    )
    checked = inspect(
        tmp_path / "state", "check", path, "--select", "CARD-013", "--card-keys", keys
    )
    assert f"card #1.1: signed by python-1.3 (ES256), verified, {jku}" in checked


def test_cards_that_a_command_fetches(tmp_path: Path, agent: ThreadingHTTPServer) -> None:
    """`a2a-proxy run`, with the keys from the environment as well."""
    fetch = (
        "import sys, urllib.request; [urllib.request.urlopen(url).read() for url in sys.argv[1:]]"
    )
    base = f"http://127.0.0.1:{agent.server_port}"
    urls = [
        f"{base}/{name}/.well-known/agent-card.json"
        for name in ("python-1.3/ascii", "altered/card")
    ]
    command = ("--", sys.executable, "-c", fetch, *urls)
    for words, environ in ((("--card-keys", KEYS), {}), ((), {"A2A_PROXY_CARD_KEYS": str(KEYS)})):
        recording = tmp_path / f"{len(words)}.a2a.db"
        ran = run(
            tmp_path / "state",
            "a2a-proxy",
            "run",
            "--record",
            recording,
            *words,
            *command,
            **environ,
        )
        assert (ran.code, verdicts(recording)) == (0, [["VERIFIED"], ["FAILED"]])


_AGENT = """
import sys

sys.stdin.buffer.read({length})
sys.stdout.buffer.write({answer!r})
"""


def test_the_card_of_a_stdio_agent(tmp_path: Path) -> None:
    """Nothing is printed, also not about private keys; the verdict is in the recording."""
    keys, recording = tmp_path / "keys.json", tmp_path / "r.a2a.db"
    other = private_jwk(Ed25519PrivateKey.generate(), kid="other")
    keys.write_text(json.dumps({"keys": [*json.loads(KEYS.read_bytes())["keys"], other]}))
    script = tmp_path / "agent.py"
    card = json.loads((FOLDER / "python-1.3" / "umlauts.json").read_bytes())
    answer = frame({"jsonrpc": "2.0", "id": 1, "result": card})
    script.write_text(_AGENT.format(length=len(CARD), answer=answer))
    command = wrapped((sys.executable, str(script)), "--record", recording, "--card-keys", keys)
    env = environment(tmp_path / "state")
    ran = subprocess.run(
        command, input=CARD, capture_output=True, timeout=SECONDS, env=env, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, answer, b"")
    until(lambda: recording.exists() and verdicts(recording) == [["VERIFIED"]])


def test_stdio_refuses_a_file_without_keys(tmp_path: Path) -> None:
    """Before the agent runs."""
    gone, made = tmp_path / "gone", tmp_path / "made"
    command = (sys.executable, "-c", f"open({str(made)!r}, 'w')")
    ran = run(tmp_path / "state", "a2a-proxy", "stdio", "--card-keys", gone, "--", *command)
    assert (ran.code, ran.out, made.exists()) == (2, "", False)
    assert ran.err.startswith(
        f"a2a-proxy: error: cannot read --card-keys {gone}: no such file or directory\n"
    )
