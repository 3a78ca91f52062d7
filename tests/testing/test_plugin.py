"""The plug-in as a user has it: pytest run over small projects of tests, with the sample agent system as the agent."""

from __future__ import annotations

import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from a2a_proxy import Recording

pytest_plugins = ["pytester"]

_SAMPLE = Path(__file__).parents[1] / "sample"
_INI = """
[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
addopts = --strict-markers -p no:cacheprovider
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """An empty project beside the live agent of the sample."""
    pytester.makeini(_INI)
    for name in ("conftest.py", "concierge.py", "innkeeper.py"):
        shutil.copy(_SAMPLE / name, pytester.path / name)
    return pytester


def run(project: pytest.Pytester, *words: str) -> pytest.RunResult:
    """In a process of its own: the plug-in keeps what Python keeps until its end."""
    return project.runpytest_subprocess("-rA", *words)


_LIVE = """
import pytest
from concierge import Concierge

async def test_clean(a2a_live, a2a_recording):
    await Concierge(a2a_live.url).book_table(4)
    assert [each.operation for each in a2a_recording.exchanges()] == ["GetAgentCard", "SendMessage", "SendMessage"]
    assert next(a2a_recording.tasks()).state == "completed"

def ask(agent):
    import json, urllib.error, urllib.request
    body = {"jsonrpc": "1.0", "id": 1, "method": "GetTask", "params": {"id": "none"}}
    head = {"Content-Type": "application/json", "A2A-Version": "1.0"}
    request = urllib.request.Request(agent.url + "/rpc", json.dumps(body).encode(), head)
    with urllib.request.urlopen(request) as answer:
        answer.read()

def test_faulty(a2a_live):
    ask(a2a_live)

@pytest.mark.a2a_cassette(ignore=["A2A-VER"], fail_on="info")
def test_fails_by_itself(a2a_live):
    assert a2a_live.card["name"] == "another"
"""


def test_a_live_agent_is_recorded_and_judged(project: pytest.Pytester) -> None:
    project.makepyfile(test_live=_LIVE)
    result = run(project, "--junitxml=report.xml")
    result.assert_outcomes(passed=2, errors=1, failed=1)
    result.stdout.fnmatch_lines(["a violation of the protocol:", "*error A2A-RPC-002*", "see: a2a-inspect check *"])
    report = ElementTree.parse(project.path / "report.xml")
    paths = [each.attrib["value"] for each in report.iter("property") if each.attrib["name"] == "a2a_recording"]
    assert len(paths) == 2
    for path, operation in zip(paths, ("GetTask", "GetAgentCard"), strict=True):
        with Recording(path) as recording:
            assert [each.operation for each in recording.exchanges()] == [operation]
            assert recording.sessions()[0].complete
        result.stdout.fnmatch_lines([f"look at it with: a2a-inspect {path}"])
