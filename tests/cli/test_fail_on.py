"""Findings on the console while the proxy runs, and the exit code that they lead to."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from a2a_proxy.recording.reader import Recording
from support_cli import SECONDS, Agent, Proxy, call, until

Start = Callable[..., Proxy]


def wrong_call(address: str) -> None:
    """A call without the member `jsonrpc`: the agent answers it all the same."""
    params = {"message": {"messageId": "m-0", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}
    body = json.dumps({"id": 1, "method": "SendMessage", "params": params}).encode()
    fields = {"Content-Type": "application/json", "A2A-Version": "1.0"}
    with urllib.request.urlopen(urllib.request.Request(f"http://{address}/", body, fields), timeout=SECONDS) as answer:
        answer.read()


@pytest.mark.parametrize(("fail_on", "code"), [("error", 1), ("warning", 1), ("info", 1), ("never", 0), ("", 0)])
def test_an_error_that_passed(proxy: Start, agent: Agent, tmp_path: Path, fail_on: str, code: int) -> None:
    """It is on the console at once and in the recording; whether it fails the run is for the user to say."""
    words = ("--fail-on", fail_on) if fail_on else ()
    one = proxy("--listen", "127.0.0.1:0", "--upstream", agent.upstream, "--record", tmp_path / "r.db", *words)
    wrong_call(one.addresses()[0])
    until(lambda: "error   A2A-RPC-002" in one.out)
    assert one.stop() == code
    with Recording(tmp_path / "r.db") as recording:
        assert "A2A-RPC-002" in {row.finding.rule for row in recording.findings()}


def test_faultless_traffic(proxy: Start, agent: Agent) -> None:
    """No finding, exit code 0."""
    one = proxy("--listen", "127.0.0.1:0", "--upstream", agent.upstream, "--fail-on", "info", "--log-format", "json")
    call(one.addresses()[0])
    call(one.addresses()[0], "GetTask")
    assert one.stop() == 0
    assert json.loads(one.out.splitlines()[-1])["findings"] == 0


def test_what_is_less_grave_does_not_fail_it(proxy: Start, agent: Agent) -> None:
    """An info is told, and `--fail-on error` lets it pass."""
    one = proxy("--listen", "127.0.0.1:0", "--upstream", agent.upstream, "--fail-on", "error")
    call(one.addresses()[0], "GetTask", **{"Last-Event-ID": "7", "Accept": "text/event-stream"})
    assert one.stop() == 0
