"""Texts of peers, paths and words of the command line, in everything that `a2a-proxy` prints.

Of `a2a-inspect`: `tests/inspect/commands/test_hostile_recordings.py`.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from a2a_proxy.cli.main import cli
from support_cli import SECONDS, Agent, Proxy, environment, program, until
from support_hostile import WORD, assert_harmless, commands_of

Start = Callable[..., Proxy]
TESTED = {"", "replay", "drive", "send"}
"""Commands that print peers' texts."""
OTHERS = {
    "demo",
    "ca",
    "ca export",
    "ca env",
    "ca renew",
    "completion",
    "stdio",
    "run",
    "wrap-card",
}
"""Commands that print no peers' texts (`run` has the console of the proxy), or bytes that they must
not change."""


def printed(state: Path, *words: object) -> str:
    line = [program("a2a-proxy"), *map(str, words)]
    done = subprocess.run(
        line, capture_output=True, env=environment(state), timeout=SECONDS, check=False
    )
    return (done.stdout + done.stderr).decode()


def post(address: str, method: str) -> None:
    """Send a call in which all texts are hostile."""
    part = {"text": WORD, "filename": WORD, "mediaType": WORD}
    message = {
        "messageId": WORD,
        "taskId": WORD,
        "contextId": WORD,
        "role": "ROLE_USER",
        "parts": [part],
    }
    params = {"message": message, "id": WORD}
    body = json.dumps({"jsonrpc": "2.0", "id": WORD, "method": method, "params": params})
    fields = {"Content-Type": "application/json", "A2A-Version": "1.0\x1b[31m", "X-Odd": "\x9b31m"}
    connection = http.client.HTTPConnection(address, timeout=SECONDS)
    connection.request("POST", "/", body, fields)
    connection.getresponse().read()
    connection.close()


class HostileAgent(Agent):
    """An agent whose texts are all hostile."""

    def answer(self, to: Any, call: dict[str, Any]) -> None:
        task = {
            "id": WORD,
            "contextId": WORD,
            "status": {"state": WORD, "timestamp": WORD},
            WORD: WORD,
        }
        reply = {"jsonrpc": "2.0", "id": WORD}
        error = {"code": -32001, "message": WORD, "data": [{"@type": WORD, "reason": WORD}]}
        reply |= {"error": error} if call["method"] == "GetTask" else {"result": {"task": task}}
        data = json.dumps(reply).encode()
        to.send_response(200, "\x1b[31mOK")
        to.send_header("Content-Type", "application/json\x1b[31m")
        to.send_header("Content-Length", str(len(data)))
        to.end_headers()
        to.wfile.write(data)


def test_every_command_is_known() -> None:
    assert {*commands_of(cli)} == TESTED | OTHERS


@pytest.mark.parametrize("command", [*commands_of(cli)])
def test_every_command_makes_its_words_visible(command: str, tmp_path: Path) -> None:
    outputs = [
        printed(tmp_path, *command.split(), *words) for words in ([WORD, WORD], [f"--{WORD}"])
    ]
    assert_harmless("".join(outputs), command)
    assert all("forged" in each for each in outputs)


@pytest.mark.parametrize("form", ["text", "json"])
def test_peers_texts_are_visible(form: str, proxy: Start, tmp_path: Path) -> None:
    """On the consoles of the proxy and of the mock, in the reports of a drive and of a call that is
    sent again."""
    agent, file = HostileAgent(), tmp_path / f"{WORD}.db"
    relay = proxy(
        "-l", "127.0.0.1:0", "-u", agent.upstream, "--record", file, "--log-format", form, "-v"
    )
    methods = ("SendMessage", "GetTask", WORD)
    for method in methods:
        post(relay.addresses()[0], method)
    assert relay.stop() == 0
    assert_harmless(console_text(relay), "the relay")
    assert relay.out.count("forged") >= len(methods)

    mock = proxy("replay", file, "--listen", "127.0.0.1:0", "--log-format", form)
    address = until(lambda: re.search(r"127\.0\.0\.1:[1-9]\d*", console_text(mock)))[0]
    for method in ("GetTask", "GetTask", f"{WORD}{WORD}"):
        post(address, method)
    mock.stop()
    assert_harmless(console_text(mock), "the mock")
    assert "not requested: #1 " in mock.err or form == "json"

    other = HostileAgent()
    state = tmp_path / "state"
    drive = printed(
        state, "drive", file, "-u", other.upstream, "--format", form, "--header", f"X: {WORD}"
    )
    assert_harmless(drive, "drive")
    for place in range(1, len(methods) + 1):
        assert_harmless(printed(state, "send", file, place, "-u", other.upstream, "--diff"), "send")
    agent.close()
    other.close()


def console_text(running: Proxy) -> str:
    """Return what it has printed, with each carriage return."""
    return os.fsdecode(running.out_file.read_bytes() + running.err_file.read_bytes())
