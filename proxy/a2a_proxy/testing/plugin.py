"""The module that pytest loads at its start: options, the marker, the fixtures, the hooks. Imports
only pytest and `plugin_state`.

The implementation of the fixtures is in modules that are imported when the first test uses one.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from a2a_proxy.testing.plugin_state import (
    FORWARDED_TITLE,
    MARKER,
    MASKED_TITLE,
    ORPHANS_TITLE,
    PHASE_KEY,
    SESSIONS_KEY,
    SUMMARY_ATTRIBUTE,
    SUMMARY_KEY,
    UNUSED_TITLE,
    WRITTEN_TITLE,
    typed_hosts,
)

if TYPE_CHECKING:
    from a2a_proxy.testing.agent import Agent
    from a2a_proxy.testing.live_recording import LiveRecording

RECORD_MODES = ("none", "once", "new_episodes", "rewrite", "verify", "spy")
_AGENT_FIXTURES = ("a2a_agent", "a2a_live")

_RUN_SUMMARY_KEY: pytest.StashKey[RunSummary] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and settings."""
    group = parser.getgroup("a2a", "A2A agents, recorded and replayed (a2a-proxy)")
    group.addoption(
        "--a2a-record-mode",
        choices=RECORD_MODES,
        help="none: replay only (default). once: record missing cassettes. new_episodes: record "
        "also calls that the "
        "cassette does not have. rewrite: record again. verify: call the live agent and compare. "
        "spy: forward calls that the cassette does not have, and leave the cassette unchanged.",
    )
    group.addoption(
        "--a2a-upstream",
        metavar="URL",
        help="URL of the live agent for these modes and for the fixture a2a_live.",
    )
    group.addoption(
        "--a2a-block-network",
        action="store_true",
        help="Block connections of the tests, except to the agents of the fixtures.",
    )
    group.addoption(
        "--a2a-allowed-hosts",
        metavar="HOST[:PORT],...",
        help="With --a2a-block-network: hosts to allow as well.",
    )
    group.addoption(
        "--a2a-fail-unused",
        action="store_true",
        help="Fail a test that does not make all recorded calls, and a run with cassettes that no "
        "test uses.",
    )
    parser.addini("a2a_upstream", "URL of the live agent, as for --a2a-upstream.")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(*paths, **settings): the cassettes of a test, relative to its file, and their "
        "settings (manual of a2a-proxy: pytest)",
    )
    config.stash[_RUN_SUMMARY_KEY] = RunSummary(config)
    config.pluginmanager.register(config.stash[_RUN_SUMMARY_KEY], "a2a-summary")


@pytest.fixture
def a2a_config() -> Mapping[str, Any]:
    """Settings of the cassettes of all tests that see this fixture. Override it; markers take
    precedence."""
    return {}


@pytest.fixture
def a2a_upstream(pytestconfig: pytest.Config) -> str | None:
    """URL of the live agent: the option, else the ini file. Override it with a fixture that starts
    the agent."""
    return pytestconfig.option.a2a_upstream or pytestconfig.getini("a2a_upstream") or None


@pytest.fixture
def a2a_agent(request: pytest.FixtureRequest) -> Iterator[Agent]:
    """An agent that answers as recorded: `.url`, `.grpc_target`, `.card`."""
    from a2a_proxy.testing.fixtures import open_agent

    yield from open_agent(request)


@pytest.fixture
def a2a_live(request: pytest.FixtureRequest) -> Iterator[Agent]:
    """The live agent behind a recording proxy; the test fails if the traffic violates a rule of the
    protocol."""
    from a2a_proxy.testing.fixtures import open_live_agent

    yield from open_live_agent(request)


@pytest.fixture
def a2a_recording(request: pytest.FixtureRequest) -> Iterator[LiveRecording]:
    """The traffic between the test and its agents: an `a2a_proxy.Recording`."""
    for name in _AGENT_FIXTURES:
        if name in request.fixturenames:
            request.getfixturevalue(
                name
            )  # set up first, because fixtures are torn down in reverse order
    from a2a_proxy.testing.fixtures import open_recording

    yield from open_recording(request)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Find the cassettes that no test uses, before any test is deselected."""
    if any(
        "a2a_agent" in getattr(item, "fixturenames", ()) or item.get_closest_marker(MARKER)
        for item in items
    ):
        from a2a_proxy.testing.cassette_usage import find_orphans, warn_idle_markers

        warn_idle_markers(items)
        config.stash[_RUN_SUMMARY_KEY].orphans = set(map(str, find_orphans(config.args, items)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Block the network before the first fixture is set up."""
    if SESSIONS_KEY in item.stash:  # the test runs again
        del item.stash[SESSIONS_KEY]
        item.stash[SUMMARY_KEY] = []
    item.stash[PHASE_KEY] = ""
    if item.config.option.a2a_block_network:
        from a2a_proxy.testing.network_guard import GUARD

        GUARD.start(typed_hosts(item.config))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Unblock the network after the last fixture is torn down, and fail a test that suppressed the
    error."""
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
        pytest.fail(f"the network is blocked, and the test tried to open {tried}", pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember how the call phase ended, and add the agents to the report of a failed test."""
    report = yield
    if report.when == "call":
        item.stash[PHASE_KEY] = report.outcome
    if SESSIONS_KEY in item.stash:
        from a2a_proxy.testing.report import complete_report

        complete_report(item, report)
    return report


class RunSummary:
    """The summary at the end of a run, written by the main process for all workers."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.lines: list[tuple[str, str]] = []
        """Titles and lines of all tests."""
        self.orphans: set[str] = set()
        """Cassettes that no test uses."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the summary lines of a test from its report, also from another process."""
        self.lines += getattr(report, SUMMARY_ATTRIBUTE, ())

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Collect the results of a pytest-xdist worker, which has collected all tests."""
        self.orphans |= set(getattr(node, "workeroutput", {}).get("a2a_orphans", ()))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """In a worker, pass on the unused cassettes; otherwise fail the run for them if
        requested."""
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput["a2a_orphans"] = sorted(self.orphans)
        elif (
            self.orphans
            and self._config.option.a2a_fail_unused
            and session.exitstatus == pytest.ExitCode.OK
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """List masked matches, cassettes recorded, unused calls and cassettes, and calls that are
        in no cassette."""
        notes = [*self.lines, *((ORPHANS_TITLE, each) for each in sorted(self.orphans))]
        if not notes:
            return
        terminalreporter.section("A2A cassettes")
        for title in (WRITTEN_TITLE, MASKED_TITLE, UNUSED_TITLE, FORWARDED_TITLE, ORPHANS_TITLE):
            lines = [line for of, line in notes if of == title]
            for line in [f"{title}:", *(f"  {line}" for line in lines)] if lines else ():
                terminalreporter.line(line)
