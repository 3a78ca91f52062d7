"""The plug-in in use: pytest run over small projects of tests, with the sample agent system as the
agent."""

from __future__ import annotations

import shlex
import shutil
import sys
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
addopts = --strict-markers -p no:cacheprovider -p no:hypothesispytest -p no:anyio -p no:xdist
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


def sections(result: pytest.RunResult) -> dict[str, str]:
    """What is told of each test that did not pass, by the title of its section."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in result.outlines:
        if line.startswith("___"):
            title = line.strip("_ ").removeprefix("ERROR at ")
        elif line.startswith("==="):
            title = ""
        found.setdefault(title, []).append(line)
    return {name: "\n".join(lines) for name, lines in found.items()}


_REPLAYED = """
import json, urllib.request
import pytest
from concierge import Concierge

def ask(agent, method, **params):
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    head = {"Content-Type": "application/json", "A2A-Version": "1.0"}
    request = urllib.request.Request(agent.url + "/rpc", json.dumps(body).encode(), head)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)

pytestmark = pytest.mark.a2a_cassette("table.a2a.jsonl")

def test_swallowed(a2a_agent):
    ask(a2a_agent, "GetTask", id="nobody")

async def test_differs(a2a_agent):
    await Concierge(a2a_agent.url).book_table(5)

def test_unused(a2a_agent, a2a_recording):
    assert a2a_agent.card["name"]
    assert [each.operation for each in a2a_recording.exchanges()] == ["GetAgentCard"]

@pytest.mark.a2a_cassette(fail_unused=True)
def test_fails_unused(a2a_agent):
    assert a2a_agent.card["name"]

@pytest.mark.a2a_cassette(block_network=True)
def test_guarded(a2a_agent):
    assert a2a_agent.card["name"]
    try:
        urllib.request.urlopen("http://10.255.0.1/")
    except RuntimeError:
        pass

@pytest.mark.a2a_cassette(max_age="1s", on_expiry="fail")
def test_old(a2a_agent): pass

@pytest.mark.a2a_cassette(max_age="1s")
def test_warned(a2a_agent): pass

@pytest.mark.a2a_cassette("day.a2a.jsonl", faults="drop #2:2.3")
async def test_fault(a2a_agent):
    plan = [line async for line in Concierge(a2a_agent.url).plan_day("Lisbon")]
    assert plan[0].startswith("Afternoon:")

@pytest.mark.a2a_cassette(faults=["break #3.4"])
def test_no_fault(a2a_agent): pass

@pytest.mark.a2a_cassette(redact="regex:(")
def test_no_policy(a2a_agent): pass

@pytest.mark.a2a_cassette(record_modus="once")
def test_wrong(a2a_agent): pass

def test_alone(a2a_recording): pass

@pytest.mark.a2a_cassette("day.a2a.jsonl")
async def test_two_cassettes(a2a_agent):
    assert await Concierge(a2a_agent.url).book_table(4)
    assert [line async for line in Concierge(a2a_agent.url).plan_day("Lisbon")]

@pytest.mark.a2a_cassette("table.a2a.jsonl")
def test_no_agent(): pass
"""
_BROKEN = """
import pytest

def test_none(a2a_agent): pass

@pytest.mark.a2a_cassette("cut.a2a.jsonl")
def test_cut(a2a_agent): pass

@pytest.mark.a2a_cassette("conftest.py")
def test_foreign(a2a_agent): pass

@pytest.mark.a2a_cassette("changed.a2a.jsonl")
def test_changed(a2a_agent): pass
"""


def test_replayed(project: pytest.Pytester) -> None:
    """A test fails for unanswered requests and forbidden actions, and the message says what to
    type."""
    cassettes = _SAMPLE / "cassettes" / "test_concierge"
    shutil.copy(cassettes / "test_books_a_table.a2a.jsonl", project.path / "table.a2a.jsonl")
    shutil.copy(cassettes / "test_plans_a_day.a2a.jsonl", project.path / "day.a2a.jsonl")
    whole = (project.path / "table.a2a.jsonl").read_text()
    (project.path / "cut.a2a.jsonl").write_text(whole[:3000])
    (project.path / "changed.a2a.jsonl").write_text(whole.replace("for 4", "for 5"))
    orphan = project.path / "cassettes" / "test_broken" / "test_of_old.a2a.jsonl"
    orphan.parent.mkdir(parents=True)
    orphan.write_text(whole)
    project.makepyfile(test_replayed=_REPLAYED, test_broken=_BROKEN)

    result = run(project)

    summary = sections(result)
    failed = {
        "teardown of test_swallowed": [
            "replay miss (unknown-operation): GetTask",
            "  recorded: SendMessage x2",
            (
                "hint: if the test should make this call, record it: pytest "
                "test_replayed.py::test_swallowed --a2a-"
            ),
            "replayed: table.a2a.jsonl",
            "inspect it: a2a-inspect ",
        ],
        "test_differs": [
            "replay miss (arguments-differ): SendMessage",
            '$.message.parts[0].text: recorded "for 4", requested "for 5"',
            (
                'hint: leave out a part that differs in every run: normalize=["REGEX"] (in '
                "@pytest.mark.a2a_cassette)"
            ),
            "inspect it: a2a-inspect ",
        ],
        "teardown of test_fails_unused": [
            "recorded calls that the test did not make:\n  #2 SendMessage\n  #3 SendMessage"
        ],
        "teardown of test_guarded": [
            "the network is blocked, and the test tried to open a connection to 10.255.0.1:80"
        ],
        "setup of test_old": [
            "table.a2a.jsonl was recorded ",
            "hint: record it again: pytest --a2a-record-mode=rewrite",
        ],
        "setup of test_no_fault": [
            "a fault cannot be injected: ",
            "hint: a fault begins with drop, dup, ",
        ],
        "setup of test_no_policy": ["redact: ", "hint: "],
        "setup of test_wrong": ["has no setting 'record_modus': did you mean record_mode?"],
        "setup of test_alone": ["request a2a_agent or a2a_live in the test as well"],
        "setup of test_none": [
            "the cassette cassettes/test_broken/test_none.a2a.jsonl does not exist",
            "--a2a-record-mode=once",
            (
                "make it from a recording: a2a-inspect export RECORDING -o "
                "cassettes/test_broken/test_none.a2a.jsonl"
            ),
        ],
        "setup of test_cut": ["cut.a2a.jsonl, line ", "truncated in the middle of a line\nhint: "],
        "setup of test_foreign": ["conftest.py is not a recording\nhint: "],
        "setup of test_changed": ["changed.a2a.jsonl", "hint: "],
    }
    for title, lines in failed.items():
        for line in lines:
            assert line in summary[title], f"{title}: {line!r} is not in {summary[title]}"
        assert "Traceback" not in summary[title]
        assert "During handling" not in summary[title]
    result.assert_outcomes(passed=8, failed=1, errors=12, warnings=2)
    result.stdout.fnmatch_lines(
        [
            "*test_warned*",
            "*table.a2a.jsonl was recorded * ago, more than 1 s: record it again*",
            "*A2A cassettes*",
            "recorded calls that no test makes:",
            "  test_replayed.py::test_unused: #2 SendMessage, #3 SendMessage",
            "cassettes that no test uses:",
            f"  *{orphan.name}",
        ]
    )
    result.stdout.fnmatch_lines(
        ["*a2a_cassette has no effect here: the test does not use the fixture a2a_agent"]
    )


_LIVE = """
import pytest
from concierge import Concierge

async def test_clean(a2a_live, a2a_recording):
    await Concierge(a2a_live.url).book_table(4)
    calls = [each.operation for each in a2a_recording.exchanges()]
    assert calls == ["GetAgentCard", "SendMessage", "SendMessage"]
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


_MODES = """
import shutil
from pathlib import Path
import pytest
from concierge import Concierge

HERE = Path(__file__).parent
ONE, TWO, THREE, FOUR, FIVE = (
    HERE / f"{name}.a2a.jsonl" for name in ("one", "two", "three", "four", "five")
)

def cassette(path, mode, **settings):
    return pytest.mark.a2a_cassette(path.name, record_mode=mode, **settings)

async def day(agent):
    return [line async for line in Concierge(agent.url).plan_day("Lisbon")]

@cassette(ONE, "once")
async def test_fails_and_leaves_nothing(a2a_agent):
    await Concierge(a2a_agent.url).book_table(4)
    assert not ONE.exists(), "it is recorded when the test has passed"
    raise LookupError

@cassette(ONE, "once")
async def test_records(a2a_agent):
    assert not ONE.exists()
    await Concierge(a2a_agent.url).book_table(4)

@cassette(ONE, "once", fail_unused=True)
async def test_replays_what_was_recorded(a2a_agent):
    kept = ONE.read_bytes()
    shutil.copy(ONE, TWO)
    shutil.copy(ONE, THREE)
    await Concierge(a2a_agent.url).book_table(4)
    assert ONE.read_bytes() == kept

@cassette(HERE / "none.a2a.jsonl", "once")
def test_asks_nothing(a2a_agent): pass

@cassette(ONE, "rewrite")
def test_others_use_it(a2a_agent): pass

@cassette(ONE, "verify")
async def test_the_agent_is_as_it_was(a2a_agent):
    await Concierge(a2a_agent.url).book_table(4)

@cassette(ONE, "verify")
async def test_the_agent_is_another(a2a_agent):
    await Concierge(a2a_agent.url).book_table(5)

@cassette(ONE, "spy")
async def test_asks_for_more(a2a_agent, a2a_recording):
    assert await Concierge(a2a_agent.url).book_table(4) == "Table booked, 19:30, for 4"
    assert (await day(a2a_agent))[-1].startswith("Evening")
    assert {each.outcome for each in a2a_recording.exchanges()} == {"ok"}

@cassette(
    HERE / "part.a2a.jsonl", "once", before_record=lambda call: call.operation == "SendMessage"
)
async def test_records_a_part(a2a_agent):
    await Concierge(a2a_agent.url).book_table(4)

@cassette(HERE / "nowhere.a2a.jsonl", "spy")
async def test_asks_without_a_cassette(a2a_agent):
    await day(a2a_agent)

@cassette(TWO, "new_episodes")
async def test_records_more(a2a_agent):
    before = TWO.read_bytes()
    await Concierge(a2a_agent.url).book_table(4)
    await day(a2a_agent)
    assert TWO.read_bytes() == before

@cassette(HERE / "part.a2a.jsonl", "none")
async def test_has_no_card(a2a_agent):
    await Concierge(a2a_agent.url).book_table(4)

def test_what_was_kept():
    from a2a_proxy import Recording
    part = HERE / "part.a2a.jsonl"
    for path, sessions in ((ONE, [3]), (TWO, [3, 1]), (part, [2])):
        with Recording(path) as recording:
            assert [len(list(each.exchanges())) for each in recording.sessions()] == sessions
    shutil.copy(TWO, FOUR)

@cassette(FOUR, "none", fail_unused=True)
async def test_replays_more(a2a_agent):
    await Concierge(a2a_agent.url).book_table(4)
    await day(a2a_agent)

async def plan(agent, words):
    return [line async for line in Concierge(agent.url).plan_day(words)]

@cassette(FIVE, "once")
async def test_records_a_request_id(a2a_agent):
    await plan(a2a_agent, "Lisbon, request id: abc-1234")

@cassette(FIVE, "none", match="default")
async def test_replays_another_request_id(a2a_agent):
    await plan(a2a_agent, "Lisbon, request id: xyz-9876")

@cassette(THREE, "rewrite")
async def test_records_anew(a2a_agent):
    await day(a2a_agent)

def test_what_was_recorded_anew():
    from a2a_proxy import Recording
    with Recording(THREE) as recording:
        calls = [each.operation for each in recording.exchanges()]
        assert calls == ["GetAgentCard", "SendStreamingMessage"]
    assert [path.name for path in HERE.glob(".*a2a*")] == []
"""


_DOWN = """
import urllib.request
import pytest

@pytest.fixture
def a2a_upstream(): return "http://127.0.0.1:9"

def test_down(a2a_live):
    urllib.request.urlopen(a2a_live.url + "/.well-known/agent-card.json")
"""


def test_live_agents_and_every_mode(project: pytest.Pytester) -> None:
    """One run for both: they need the same agent."""
    project.makepyfile(test_live=_LIVE, test_modes=_MODES, test_down=_DOWN)
    result = run(project, "--junitxml=report.xml")
    result.assert_outcomes(passed=17, failed=4, errors=3)
    _check_live(project, result)
    summary = sections(result)
    _check_modes(summary)
    assert (
        "the proxy could not reach the agent 127.0.0.1:9: connection refused\nrecording of"
        in summary["test_down"]
    )
    result.stdout.fnmatch_lines(["*the test made no call to its agent: no cassette was written"])
    _check_spied(project, result)
    result.stdout.fnmatch_lines(
        [
            "cassettes recorded:",
            "  test_modes.py::test_records: one.a2a.jsonl",
            "  test_modes.py::test_records_more: two.a2a.jsonl, new calls appended",
            "requests that equal a recorded one only after masking:",
            (
                "  test_modes.py::test_replays_another_request_id: "
                "SendStreamingMessage *xyz-9876* except for: request id"
            ),
        ]
    )
    assert not (project.path / "none.a2a.jsonl").exists()


def _check_live(project: pytest.Pytester, result: pytest.RunResult) -> None:
    """Of each test that failed the recording is there, whole, and named in both reports."""
    result.stdout.fnmatch_lines(
        ["a violation of the protocol:", "*error A2A-RPC-002*", "see: a2a-inspect check *"]
    )
    report = ElementTree.parse(project.path / "report.xml")
    cases = [case for case in report.iter("testcase") if case.attrib["classname"] == "test_live"]
    properties = [
        each
        for case in cases
        for each in case.iter("property")
        if each.attrib["name"] == "a2a_recording"
    ]
    assert len(properties) == 2
    for path, operation in zip(
        (each.attrib["value"] for each in properties), ("GetTask", "GetAgentCard"), strict=True
    ):
        with Recording(path) as recording:
            assert [each.operation for each in recording.exchanges()] == [operation]
            assert recording.sessions()[0].complete
        assert f"inspect it: a2a-inspect {path}" in result.outlines


def _check_spied(project: pytest.Pytester, result: pytest.RunResult) -> None:
    """What the live agent answered is told, and the command that is told makes a cassette of it."""
    title = "calls that the live agent answered and that are in no cassette (mode spy):"
    at = result.outlines.index(title)
    spied, alone = result.outlines[at + 1 : at + 3]
    assert spied.startswith(
        "  test_modes.py::test_asks_for_more: 1; to keep them: a2a-inspect merge new."
    )
    assert alone.startswith(
        "  test_modes.py::test_asks_without_a_cassette: 2; to keep them: a2a-inspect export "
    )
    commands = [shlex.split(line.partition("to keep them: ")[2])[1:] for line in (spied, alone)]
    code = (
        "from a2a_inspect.cli.main import cli; "
        f"[cli.main(each, standalone_mode=False) for each in {commands}]"
    )
    assert (
        project.run(sys.executable, "-c", code).ret == 0
    )  # what is imported here would be forgotten with the project
    for name, sessions in (("new", [3, 1]), ("nowhere", [2])):
        with Recording(project.path / f"{name}.a2a.jsonl") as recording:
            assert [len(list(each.exchanges())) for each in recording.sessions()] == sessions


def _check_modes(summary: dict[str, str]) -> None:
    assert (
        "7 tests share one.a2a.jsonl, and each would overwrite"
        in summary["setup of test_others_use_it"]
    )
    no_card = (
        "the agent card was requested, but the cassette has none: "
        "GET /.well-known/agent-card.json was answered"
    )
    assert (
        f"{no_card} with 404\nhint: export the cassette again, with the card: -f '("
        in summary["test_has_no_card"]
    )
    another = summary["teardown of test_the_agent_is_another"]
    assert "the agent's answers differ from one.a2a.jsonl:" in another
    assert "recorded 'for 4', now 'for 5'" in another
    assert "see: a2a-inspect diff one.a2a.jsonl " in another
