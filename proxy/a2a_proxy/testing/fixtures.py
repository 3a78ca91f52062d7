"""Implementation of the fixtures: opens the agent of a test by its settings, and checks it when the
test ends."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.testing.agent import Agent
from a2a_proxy.testing.agent_session import AgentSession, LiveAgentSession
from a2a_proxy.testing.cassette_age import excess_age
from a2a_proxy.testing.cassette_paths import display_path
from a2a_proxy.testing.cassette_usage import cassettes_of
from a2a_proxy.testing.child_process import ChildProcess, CommandRefused
from a2a_proxy.testing.network_guard import GUARD
from a2a_proxy.testing.plan import CannotPlay, CassetteWrite, RecordPlan, make_plan
from a2a_proxy.testing.plugin_state import (
    FORWARDED_TITLE,
    MARKER,
    MASKED_TITLE,
    PHASE_KEY,
    SESSIONS_KEY,
    SUMMARY_KEY,
    UNUSED_TITLE,
    WRITTEN_TITLE,
    typed_hosts,
)
from a2a_proxy.testing.settings import PluginSettings, WrongSetting, merge_settings

if TYPE_CHECKING:
    from a2a_proxy.testing.live_recording import LiveRecording

_PROCESS_KEY: pytest.StashKey[ChildProcess] = pytest.StashKey()
_TARGETS_KEY: pytest.StashKey[dict[Path, list[str]]] = pytest.StashKey()
_Request = pytest.FixtureRequest
_RECORD_PLAN = RecordPlan(replay=False, live=True)


def open_agent(request: _Request) -> Iterator[Agent]:
    """Implement `a2a_agent`."""
    settings, cassettes = _settings_of(request), cassettes_of(request.node)
    try:
        chosen = _make_plan(request, settings, cassettes)
    except CannotPlay as wrong:
        _fail_test(str(wrong))
    if chosen.warning:
        request.node.warn(pytest.PytestWarning(chosen.warning))
    yield from _open_session(request, AgentSession, chosen, settings, cassettes)


def open_live_agent(request: _Request) -> Iterator[Agent]:
    """Implement `a2a_live`."""
    yield from _open_session(request, LiveAgentSession, _RECORD_PLAN, _settings_of(request), [])


def open_recording(request: _Request) -> Iterator[LiveRecording]:
    """Implement `a2a_recording`."""
    sessions = request.node.stash.get(SESSIONS_KEY, [])
    if not sessions:
        _fail_test(
            "a2a_recording needs an agent: request a2a_agent or a2a_live in the test as well"
        )

    from a2a_proxy.testing.live_recording import (
        LiveRecording,
    )  # and with it SQLite and the decoders

    def settle() -> None:
        for session in sessions:
            session.store_traffic()

    found = LiveRecording(settle, *(session.recording for session in sessions))
    try:
        yield found
    finally:
        found.close()


def _open_session(
    request: _Request,
    kind: type[AgentSession],
    record_plan: RecordPlan,
    settings: PluginSettings,
    cassettes: list[Path],
) -> Iterator[Agent]:
    node = request.node
    upstream = _upstream_of(request, settings) if record_plan.live else ""
    folder = request.getfixturevalue("tmp_path_factory").mktemp("a2a")
    if _PROCESS_KEY not in node.config.stash:
        process = node.config.stash[_PROCESS_KEY] = ChildProcess()
        node.config.add_cleanup(process.stop)
    session = kind(
        node.config.stash[_PROCESS_KEY], folder, record_plan, settings, cassettes, node.nodeid
    )
    if settings.block_network:
        GUARD.start(settings.allowed_hosts)
    try:
        given = session.open_agent(upstream)
    except CommandRefused as refused:
        _fail_test(str(refused))
    node.stash.setdefault(SESSIONS_KEY, []).append(session)
    yield given
    phase = node.stash.get(PHASE_KEY, "")
    try:
        wrong = session.close(passed=phase == "passed", failed=phase == "failed")
    except CommandRefused as refused:
        _fail_test(str(refused))
    except RecordingError as trouble:
        _fail_test(str(CommandRefused(trouble.message, trouble.hint)))
    if session.is_empty:
        node.warn(
            pytest.PytestWarning("the test made no call to its agent: no cassette was written")
        )
    if session.lost_notes:
        lost = "; ".join(session.lost_notes)
        node.warn(
            pytest.PytestWarning(f"notes whose place does not exist in the new cassette: {lost}")
        )
    notes: list[tuple[str, str]] = []
    if phase == "passed":
        notes += [(MASKED_TITLE, each) for each in session.masked_matches]
        notes += [(UNUSED_TITLE, ", ".join(session.unused_calls))] if session.unused_calls else []
    notes += [(WRITTEN_TITLE, session.written_note)] if session.written_note else []
    notes += [(FORWARDED_TITLE, session.aside_note)] if session.aside_note else []
    node.stash.setdefault(SUMMARY_KEY, []).extend(
        (title, f"{node.nodeid}: {line}") for title, line in notes
    )
    if wrong:
        _fail_test("\n\n".join(wrong))


def _make_plan(request: _Request, settings: PluginSettings, cassettes: list[Path]) -> RecordPlan:
    """Return the plan of a test. Raises CannotPlay."""
    first = cassettes[0]
    missing = next((path for path in cassettes[1:] if not path.exists()), None)
    if missing is not None:
        hint = "only the first cassette that a test names is recorded"
        raise CannotPlay(f"the cassette {display_path(missing)} does not exist\nhint: {hint}")
    exists = first.exists()
    old = (
        excess_age(first, settings.max_age, time.time())
        if exists and settings.max_age is not None
        else ""
    )
    chosen = make_plan(settings, display_path(first), exists=exists, too_old=old)
    sharing = _recording_targets(request.session).get(first, [])
    if (
        exists
        and chosen.write in (CassetteWrite.REPLACE, CassetteWrite.APPEND)
        and len(sharing) > 1
    ):
        raise CannotPlay(
            f"{len(sharing)} tests share {display_path(first)}, and each would overwrite the "
            f"recording of the others: "
            f"{', '.join(sharing[:3])}\nhint: record it with only one of them: "
            f"pytest --a2a-record-mode={settings.record_mode} TEST_ID"
        )
    return chosen


def _recording_targets(session: pytest.Session) -> dict[Path, list[str]]:
    """Return the cassettes that the tests of this run would record, each with its tests."""
    if _TARGETS_KEY not in session.stash:
        found: dict[Path, list[str]] = {}
        for item in session.items:
            if "a2a_agent" in getattr(item, "fixturenames", ()):
                found.setdefault(cassettes_of(item)[0], []).append(item.nodeid)
        session.stash[_TARGETS_KEY] = found
    return session.stash[_TARGETS_KEY]


def _settings_of(request: _Request) -> PluginSettings:
    node, config = request.node, request.config
    # The markers of a test with their nodes, the widest first.
    markers = [
        (f"@pytest.mark.{MARKER} of {where.name}", each.kwargs)
        for where, each in reversed(list(node.iter_markers_with_node(MARKER)))
    ]
    layers: list[tuple[str, Mapping[str, Any]]] = [
        ("a2a_config", request.getfixturevalue("a2a_config")),
        *markers,
    ]
    try:
        settings = merge_settings(layers)
        # The settings of the command line; its hosts are added to `hosts`.
        typed: dict[str, Any] = {"allowed_hosts": (*settings.allowed_hosts, *typed_hosts(config))}
        if config.option.a2a_record_mode is not None:
            typed["record_mode"] = config.option.a2a_record_mode
        for name in ("block_network", "fail_unused"):
            if getattr(config.option, f"a2a_{name}"):
                typed[name] = True
        return merge_settings([*layers, ("the command line", typed)])
    except WrongSetting as wrong:
        _fail_test(str(wrong))


def _upstream_of(request: _Request, settings: PluginSettings) -> str:
    found = request.getfixturevalue("a2a_upstream")
    if not found:
        _fail_test(
            f"no live agent is configured to "
            f"{'record' if settings.record_mode != 'verify' else 'compare with'}\n"
            "hint: configure it: --a2a-upstream=http://HOST:PORT, a2a_upstream in the ini file, or "
            "fixture a2a_upstream"
        )
    return str(found)


def _fail_test(message: str) -> NoReturn:
    """Fail the test with a message, without a traceback."""
    raise pytest.fail.Exception(message, pytrace=False) from None
