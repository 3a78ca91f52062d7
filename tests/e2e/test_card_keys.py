"""`--card-keys` through a real proxy: cards signed by real SDKs keep their bytes, and their verdicts are recorded."""

from __future__ import annotations

import json
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from support_proxy import finished, inspect, proxy
from support_signed_cards import FOLDER, KEYS, private_jwk

NAMES = ("python-1.3/ascii", "python-0.3/umlauts", "javascript-1.3/security")
ALTERED = (FOLDER / "python-1.3" / "ascii.json").read_bytes().replace(b"Plans trips", b"Plans traps")


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


def test_cards_of_sdks_through_the_proxy(tmp_path: Path) -> None:
    """The verdict of each on the console, in `show` and in JSON; the file has a private key, which is said."""
    keys = tmp_path / "keys.json"
    other = private_jwk(Ed25519PrivateKey.generate(), kid="other")
    keys.write_text(json.dumps({"keys": [*json.loads(KEYS.read_bytes())["keys"], other]}))
    agent = ThreadingHTTPServer(("127.0.0.1", 0), Cards)
    threading.Thread(target=agent.serve_forever, daemon=True).start()
    try:
        with proxy(tmp_path, f"127.0.0.1:{agent.server_port}", "", "--card-keys", str(keys)) as running:
            for name in (*NAMES, "altered/card"):
                url = f"{running.base_url}/{name}/.well-known/agent-card.json"
                with urllib.request.urlopen(url, timeout=60) as answer:
                    got = answer.read()
                assert got == (ALTERED if name == "altered/card" else (FOLDER / f"{name}.json").read_bytes())
            recording = finished(running)
            assert f"--card-keys {keys} has private keys (other)" in running.text
    finally:
        agent.shutdown()
        agent.server_close()
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
    assert [line.strip() for line in shown.splitlines() if line.strip().startswith("card signed")] == [
        f"card signed by python-1.3 (ES256), verified, {jku}",
        f"card signed by python-0.3 (ES256), verified, only in the form: Python SDK 0.3, {jku}",
        f"card signed by javascript-1.3 (ES256), verified, only in the form: SDKs of today, {uncovered}, {jku}",
        f"card signed by python-1.3 (ES256), does not verify: python-1.3 tried with every form, {jku}",
    ]
    (line, *_) = inspect(tmp_path / "state", "show", path, "3", "--json").splitlines()
    (signature,) = json.loads(line)["card_signatures"]
    assert (signature["verdict"], signature["forms"]) == ("verified", ["SDKs of today", "Python SDK 1.1.2"])
    checked = inspect(tmp_path / "state", "check", path, "--select", "CARD-013", "--card-keys", keys)
    assert f"card #1.1: signed by python-1.3 (ES256), verified, {jku}" in checked
