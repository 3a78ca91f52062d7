"""What pytest loads at its start: options, the marker, the fixtures, the hooks. Imports pytest and nothing else.

All that the fixtures do is in modules that are imported when the first test uses one.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from a2a_proxy.testing.agent import Agent
    from a2a_proxy.testing.agent_session import AgentSession
    from a2a_proxy.testing.live_recording import LiveRecording

MARKER = "a2a_cassette"
RECORD_MODES = ("none", "once", "new_episodes", "rewrite", "verify", "spy")
_AGENT_FIXTURES = ("a2a_agent", "a2a_live")

SESSIONS_KEY: pytest.StashKey[list[AgentSession]] = pytest.StashKey()
"""The agents of a test."""
PHASE_KEY: pytest.StashKey[str] = pytest.StashKey()
"""How the call of a test ended: `passed`, `failed`, `skipped`."""
SUMMARY_KEY: pytest.StashKey[list[tuple[str, str]]] = pytest.StashKey()
"""What is said of a test at the end of the run: a title of the summary, and a line under it."""
SUMMARY_ATTRIBUTE = "a2a_summed"
"""Attribute of a report: what is SAID of its test. pytest-xdist carries it to the process that tells it."""
UNUSED_TITLE = "recorded calls that no test asks for"
FORWARDED_TITLE = "calls that the live agent answered, of which no cassette was made (mode spy)"
ORPHANS_TITLE = "cassettes that no test has"
_RUN_SUMMARY_KEY: pytest.StashKey[RunSummary] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and settings."""
    group = parser.getgroup("a2a", "A2A agents, recorded and replayed (a2a-proxy)")
    group.addoption(
        "--a2a-record-mode",
        choices=RECORD_MODES,
        help="none: replay only (default). once: record what has no cassette. new_episodes: record also calls that the "
        "cassette does not have. rewrite: record anew. verify: ask the live agent and compare. "
        "spy: ask it for what the cassette does not have, and leave the cassette as it is.",
    )
    group.addoption("--a2a-upstream", metavar="URL", help="The live agent of these modes and of the fixture a2a_live.")
    group.addoption(
        "--a2a-block-network", action="store_true", help="Tests connect to nobody but agents of the fixtures."
    )
    group.addoption(
        "--a2a-allowed-hosts", metavar="HOST[:PORT],...", help="With --a2a-block-network: and to these hosts."
    )
    group.addoption(
        "--a2a-fail-unused",
        action="store_true",
        help="Recorded calls that a test does not use fail it; cassettes that no test has fail the run.",
    )
    parser.addini("a2a_upstream", "The live agent: as --a2a-upstream.")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(*paths, **settings): the cassettes of a test, beside its file, and how they are used "
        "(manual of a2a-proxy: pytest)",
    )
    config.stash[_RUN_SUMMARY_KEY] = RunSummary(config)
    config.pluginmanager.register(config.stash[_RUN_SUMMARY_KEY], "a2a-summary")


def typed_hosts(config: pytest.Config) -> list[str]:
    """Those of `--a2a-allowed-hosts`."""
    return [each for each in (config.option.a2a_allowed_hosts or "").split(",") if each]


@pytest.fixture
def a2a_config() -> Mapping[str, Any]:
    """Settings of the cassettes of all tests that see this fixture: override it; markers say more."""
    return {}


@pytest.fixture
def a2a_upstream(pytestconfig: pytest.Config) -> str | None:
    """URL of the live agent: the option, else the ini file. Override it with one that starts the agent."""
    return pytestconfig.option.a2a_upstream or pytestconfig.getini("a2a_upstream") or None


@pytest.fixture
def a2a_agent(request: pytest.FixtureRequest) -> Iterator[Agent]:
    """An agent that answers as it was recorded: `.url`, `.grpc_target`, `.card`."""
    from a2a_proxy.testing.fixtures import open_agent

    yield from open_agent(request)


@pytest.fixture
def a2a_live(request: pytest.FixtureRequest) -> Iterator[Agent]:
    """The live agent through a recording proxy; the test fails where what passed breaks a rule of the protocol."""
    from a2a_proxy.testing.fixtures import open_live_agent

    yield from open_live_agent(request)


@pytest.fixture
def a2a_recording(request: pytest.FixtureRequest) -> Iterator[LiveRecording]:
    """What has passed between the test and its agents: an `a2a_proxy.Recording`."""
    for name in _AGENT_FIXTURES:
        if name in request.fixturenames:
            request.getfixturevalue(name)  # first: what is set up later ends earlier
    from a2a_proxy.testing.fixtures import open_recording

    yield from open_recording(request)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Before any are deselected: which cassettes does no test have?"""
    if any("a2a_agent" in getattr(item, "fixturenames", ()) or item.get_closest_marker(MARKER) for item in items):
        from a2a_proxy.testing.cassette_usage import find_orphans, warn_idle_markers

        warn_idle_markers(items)
        config.stash[_RUN_SUMMARY_KEY].orphans = set(map(str, find_orphans(config.args, items)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """The network is closed before the first fixture is set up."""
    if SESSIONS_KEY in item.stash:  # the test runs again
        del item.stash[SESSIONS_KEY]
        item.stash[SUMMARY_KEY] = []
    item.stash[PHASE_KEY] = ""
    if item.config.option.a2a_block_network:
        from a2a_proxy.testing.network_guard import GUARD

        GUARD.start(typed_hosts(item.config))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """And opened when the last one is torn down. Whoever swallowed the error fails now."""
    guard = None
    try:
        result = yield
    finally:
        module = sys.modules.get("a2a_proxy.testing.network_guard")
        if module is not None and module.GUARD.is_active:
            guard = module.GUARD
            guard.stop()
    if guard is not None and guard.blocked_attempts and item.stash.get(PHASE_KEY, "") == "passed":
        tried = ", ".join(dict.fromkeys(guard.blocked_attempts))
        pytest.fail(f"the network is blocked, and the test tried {tried}", pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember how the call ended, and tell in the report of a failed test what passed."""
    report = yield
    if report.when == "call":
        item.stash[PHASE_KEY] = report.outcome
    if SESSIONS_KEY in item.stash:
        from a2a_proxy.testing.report import complete_report

        complete_report(item, report)
    return report


class RunSummary:
    """What is told at the end of a run: by the one process that reports, of all that ran tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.lines: list[tuple[str, str]] = []
        """Titles and lines, of all tests."""
        self.orphans: set[str] = set()
        """Cassettes that no test has."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """What is said of a test comes with its report, also from another process."""
        self.lines += getattr(report, SUMMARY_ATTRIBUTE, ())

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker of pytest-xdist has ended: it has collected all tests."""
        self.orphans |= set(getattr(node, "workeroutput", {}).get("a2a_orphans", ()))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A worker hands over what it has found; cassettes that no test has fail the run where that is wanted."""
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput["a2a_orphans"] = sorted(self.orphans)
        elif self.orphans and self._config.option.a2a_fail_unused and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Name what is not used, and what was not kept."""
        said = [*self.lines, *((ORPHANS_TITLE, each) for each in sorted(self.orphans))]
        if not said:
            return
        terminalreporter.section("A2A cassettes")
        for title in (UNUSED_TITLE, FORWARDED_TITLE, ORPHANS_TITLE):
            lines = [line for of, line in said if of == title]
            for line in [f"{title}:", *(f"  {line}" for line in lines)] if lines else ():
                terminalreporter.line(line)
