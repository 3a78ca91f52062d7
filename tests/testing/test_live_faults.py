"""A client's resilience as a test: two clients of a real agent, told apart by one pytest run
each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support_peers import agent, require_peers

pytest_plugins = ["pytester"]
_INI = (
    "[pytest]\naddopts = --strict-markers -p no:cacheprovider "
    "-p no:hypothesispytest -p no:anyio -p no:xdist\n"
)
CLIENTS = '''
"""Two clients of one streaming call: one subscribes again or reads the task, the other one trusts
the stream."""
import json, urllib.error, urllib.request

DONE = ("TASK_STATE_COMPLETED", "TASK_STATE_FAILED")


class Fragile:
    def __init__(self, url):
        self.url, self.task, self.state, self.seen = url, "", "", []

    def run(self, text):
        message = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": text}]}
        self.read(self.call("SendStreamingMessage", message=message))
        return self.state

    def call(self, method, **params):
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        head = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        head["A2A-Version"] = "1.0"
        interfaces = self.card["supportedInterfaces"]
        path = next(each["url"] for each in interfaces if each["protocolBinding"] == "JSONRPC")
        request = urllib.request.Request(path, json.dumps(body).encode(), head)
        return urllib.request.urlopen(request, timeout=30)

    @property
    def card(self):
        return json.load(urllib.request.urlopen(self.url + "/.well-known/agent-card.json"))

    def read(self, answer):
        for line in answer:
            if line.startswith(b"data:"):
                self.apply(json.loads(line[5:]).get("result", {}))

    def apply(self, result):
        for kind, event in result.items():
            self.task = self.task or event.get("taskId") or event.get("id", "")
            self.state = event.get("status", {}).get("state", self.state)
            if kind == "artifactUpdate":
                self.seen += [part["text"] for part in event["artifact"]["parts"]]


class Survivor(Fragile):
    def run(self, text):
        try:
            super().run(text)
        except (
            OSError, ValueError, urllib.error.HTTPError, __import__("http").client.HTTPException
        ):
            if not self.task:
                super().run(text)
        while self.task and self.state not in DONE:
            try:
                self.read(self.call("SubscribeToTask", id=self.task))
            except (OSError, ValueError, __import__("http").client.HTTPException):
                pass
            self.state = json.load(self.call("GetTask", id=self.task))["result"]["status"]["state"]
        return self.state
'''
TESTS = """
import pytest
from clients import CLIENT as Client

@pytest.mark.a2a_cassette(faults=["cut artifact 2 of SendStreamingMessage call 1 @ 50%"])
def test_a_stream_that_breaks_off(a2a_live):
    assert Client(a2a_live.url).run("slow-stream") == "TASK_STATE_COMPLETED"

@pytest.mark.a2a_cassette(faults=["drop completed of SendStreamingMessage"])
def test_a_lost_end(a2a_live):
    assert Client(a2a_live.url).run("slow-stream") == "TASK_STATE_COMPLETED"

@pytest.mark.a2a_cassette(faults="fail 503 at SendStreamingMessage call 1")
def test_a_refused_call(a2a_live):
    assert Client(a2a_live.url).run("stream") == "TASK_STATE_COMPLETED"
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeini(_INI)
    return pytester


def run(project: pytest.Pytester, client: str, upstream: str) -> pytest.RunResult:
    project.makepyfile(clients=f"{CLIENTS}\n\nCLIENT = {client}\n", test_resilience=TESTS)
    return project.runpytest_subprocess("-rA", f"--a2a-upstream={upstream}")


@pytest.mark.peers
@pytest.mark.parametrize(("client", "passed"), [("Survivor", 3), ("Fragile", 0)])
def test_a_client_that_survives_passes_and_another_one_fails(
    client: str, passed: int, project: pytest.Pytester
) -> None:
    require_peers("sdk1")
    with agent("sdk1") as far:
        result = run(project, client, far.base_url)
    result.assert_outcomes(passed=passed, failed=3 - passed)
    assert ("of the protocol" in "\n".join(result.outlines)) is False


def test_a_fault_that_never_happens_fails_the_test(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import urllib.request
        import pytest

        @pytest.mark.a2a_cassette(faults=["drop 2 of SendStreamingMessage"])
        def test_never(a2a_live):
            with pytest.raises(LookupError):
                a2a_live.card

        @pytest.mark.a2a_cassette(faults=["drop statsu of SendStreamingMessage"])
        def test_wrong(a2a_live):
            pass

        @pytest.mark.a2a_cassette(faults=["drop #3.4"])
        def test_place(a2a_live):
            pass
        """
    )
    result = project.runpytest_subprocess("-rA", "--a2a-upstream=http://127.0.0.1:9")
    output = "\n".join(result.outlines)
    assert "faults that never happened" in output
    assert "  drop 2 of SendStreamingMessage (no call of SendStreamingMessage came)" in output
    assert "    drop statsu of SendStreamingMessage\n         ^^^^^^" in output
    assert "did you mean status?" in output
    assert "live traffic has no recorded places" in output
    result.assert_outcomes(passed=1, errors=3)


def test_nothing_of_faults_is_loaded_without_them() -> None:

    code = (
        "import sys, a2a_proxy.cli.run, a2a_proxy.cli.config\n"
        "print(*[name for name in sys.modules if 'fault' in name])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.cwd()
    )
    assert done.stdout.split() == ["a2a_proxy.cli.faults"]
