"""What the fixtures do: from a test and its settings to an agent, and from its end to a verdict."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.testing.agent import Agent
from a2a_proxy.testing.agent_session import AgentSession, LiveAgentSession
from a2a_proxy.testing.cassette_age import too_old
from a2a_proxy.testing.cassette_paths import shown
from a2a_proxy.testing.cassette_usage import cassettes_of
from a2a_proxy.testing.child_process import ChildProcess, CommandRefused
from a2a_proxy.testing.network_guard import GUARD
from a2a_proxy.testing.plan import CannotPlay, RecordPlan, Write, plan
from a2a_proxy.testing.plugin import MARKER, PHASE, SAID, SCENES, SPIED, UNUSED, hosts_typed
from a2a_proxy.testing.settings import PluginSettings, WrongSetting, merged

if TYPE_CHECKING:
    from a2a_proxy.testing.live_recording import LiveRecording

_PROCESS: pytest.StashKey[ChildProcess] = pytest.StashKey()
_TARGETS: pytest.StashKey[dict[Path, list[str]]] = pytest.StashKey()
_Request = pytest.FixtureRequest
_RECORD = RecordPlan(replay=False, live=True)


def agent(request: _Request) -> Iterator[Agent]:
    """`a2a_agent`."""
    settings, cassettes = _settings(request), cassettes_of(request.node)
    try:
        chosen = _plan(request, settings, cassettes)
    except CannotPlay as wrong:
        _fail(str(wrong))
    if chosen.warning:
        request.node.warn(pytest.PytestWarning(chosen.warning))
    yield from _play(request, AgentSession, chosen, settings, cassettes)


def live(request: _Request) -> Iterator[Agent]:
    """`a2a_live`."""
    yield from _play(request, LiveAgentSession, _RECORD, _settings(request), [])


def recording(request: _Request) -> Iterator[LiveRecording]:
    """`a2a_recording`."""
    scenes = request.node.stash.get(SCENES, [])
    if not scenes:
        _fail("a2a_recording is of an agent: the test also needs a2a_agent or a2a_live")

    from a2a_proxy.testing.live_recording import LiveRecording  # and with it SQLite and the decoders

    def settle() -> None:
        for scene in scenes:
            scene.settle()

    found = LiveRecording(settle, *(scene.recording for scene in scenes))
    try:
        yield found
    finally:
        found.close()


def _play(
    request: _Request, kind: type[AgentSession], chosen: RecordPlan, settings: PluginSettings, cassettes: list[Path]
) -> Iterator[Agent]:
    node = request.node
    upstream = _upstream(request, settings) if chosen.live else ""
    folder = request.getfixturevalue("tmp_path_factory").mktemp("a2a")
    scene = kind(_process(node.config), folder, chosen, settings, cassettes, node.nodeid)
    if settings.block_network:
        GUARD.start(settings.allowed_hosts)
    try:
        given = scene.open(upstream)
    except CommandRefused as refused:
        _fail(str(refused))
    node.stash.setdefault(SCENES, []).append(scene)
    yield given
    phase = node.stash.get(PHASE, "")
    try:
        wrong = scene.close(passed=phase == "passed", failed=phase == "failed")
    except CommandRefused as refused:
        _fail(str(refused))
    except RecordingError as trouble:
        _fail(str(CommandRefused(trouble.message, trouble.hint)))
    if scene.empty:
        node.warn(pytest.PytestWarning("the test has asked its agent nothing: there is no cassette to write"))
    if scene.lost:
        lost = "; ".join(scene.lost)
        node.warn(pytest.PytestWarning(f"notes whose place did not come again when the cassette was recorded: {lost}"))
    if scene.unused and phase == "passed":
        node.stash.setdefault(SAID, []).append((UNUSED, f"{node.nodeid}: {', '.join(scene.unused)}"))
    if scene.aside:
        node.stash.setdefault(SAID, []).append((SPIED, f"{node.nodeid}: {scene.aside}"))
    if wrong:
        _fail("\n\n".join(wrong))


def _plan(request: _Request, settings: PluginSettings, cassettes: list[Path]) -> RecordPlan:
    """Raises CannotPlay."""
    first = cassettes[0]
    missing = next((path for path in cassettes[1:] if not path.exists()), None)
    if missing is not None:
        hint = "only the first one that a test names is recorded"
        raise CannotPlay(f"there is no cassette {shown(missing)}\nhint: {hint}")
    exists = first.exists()
    old = too_old(first, settings.max_age, time.time()) if exists and settings.max_age is not None else ""
    chosen = plan(settings, shown(first), exists=exists, too_old=old)
    sharing = _targets(request.session).get(first, [])
    if exists and chosen.write in (Write.REPLACE, Write.APPEND) and len(sharing) > 1:
        raise CannotPlay(
            f"{len(sharing)} tests share {shown(first)}, and one would record over what the others need: "
            f"{', '.join(sharing[:3])}\nhint: record it with one of them alone: "
            f"pytest --a2a-record-mode={settings.record_mode} TEST_ID"
        )
    return chosen


def _targets(session: pytest.Session) -> dict[Path, list[str]]:
    """The cassettes that the tests of this run would record, each with the tests that would."""
    if _TARGETS not in session.stash:
        found: dict[Path, list[str]] = {}
        for item in session.items:
            if "a2a_agent" in getattr(item, "fixturenames", ()):
                found.setdefault(cassettes_of(item)[0], []).append(item.nodeid)
        session.stash[_TARGETS] = found
    return session.stash[_TARGETS]


def _settings(request: _Request) -> PluginSettings:
    node, config = request.node, request.config
    markers = [(f"@pytest.mark.{MARKER} of {where.name}", each.kwargs) for where, each in _marked(node)]
    layers: list[tuple[str, Mapping[str, Any]]] = [("a2a_config", request.getfixturevalue("a2a_config")), *markers]
    try:
        settings = merged(layers)
        return merged([*layers, ("the command line", command_line(config, settings.allowed_hosts))])
    except WrongSetting as wrong:
        _fail(str(wrong))


def _marked(node: pytest.Item) -> list[tuple[pytest.Item, pytest.Mark]]:
    """The markers of a test with what they stand at, the widest first."""
    return list(reversed(list(node.iter_markers_with_node(MARKER))))  # type: ignore[arg-type]


def command_line(config: pytest.Config, hosts: tuple[str, ...] = ()) -> dict[str, Any]:
    """What was typed; hosts come to those that are allowed already."""
    typed: dict[str, Any] = {"allowed_hosts": (*hosts, *hosts_typed(config))}
    if config.option.a2a_record_mode is not None:
        typed["record_mode"] = config.option.a2a_record_mode
    for name in ("block_network", "fail_unused"):
        if getattr(config.option, f"a2a_{name}"):
            typed[name] = True
    return typed


def _upstream(request: _Request, settings: PluginSettings) -> str:
    found = request.getfixturevalue("a2a_upstream")
    if not found:
        _fail(
            f"there is no live agent to {'record' if settings.record_mode != 'verify' else 'compare with'}\n"
            "hint: name it: --a2a-upstream=http://HOST:PORT, a2a_upstream in the ini file, or a fixture a2a_upstream"
        )
    return str(found)


def _fail(message: str) -> NoReturn:
    """The test fails for this, without the frames that led here."""
    raise pytest.fail.Exception(message, pytrace=False) from None


def _process(config: pytest.Config) -> ChildProcess:
    if _PROCESS not in config.stash:
        process = config.stash[_PROCESS] = ChildProcess()
        config.add_cleanup(process.stop)
    return config.stash[_PROCESS]
