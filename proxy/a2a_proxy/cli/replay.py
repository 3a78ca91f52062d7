"""`a2a-proxy replay`: serve a recording as a mock agent until the user stops it."""

import asyncio
import contextlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from a2a_proxy.cli.end_signals import end_signals
from a2a_proxy.cli.errors import option_errors
from a2a_proxy.cli.match_options import parse_match_on, parse_match_rule
from a2a_proxy.cli.replay_console import ReplayConsole, make_console
from a2a_proxy.faults.words import FaultError
from a2a_proxy.model.errors import UserError
from a2a_proxy.model.values import Binding
from a2a_proxy.protocol.text import shell_line
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.relay.route import Listen
from a2a_proxy.relay.run import run_loop
from a2a_proxy.replay.core.faults import InjectedFault, inject_faults, parse_fault
from a2a_proxy.replay.core.match_rules import check_expressions, parse_ignored
from a2a_proxy.replay.core.options import MatchPreset, RepeatPolicy, ReplayOptions
from a2a_proxy.replay.core.player import Player
from a2a_proxy.replay.core.script import POLLING_OPERATION, ReplayScript
from a2a_proxy.replay.load import load_script

EXIT_INCOMPLETE = 1
"""Exit code of misses, or of recorded calls that were not requested, if the user asks for it."""
_COPIED_OPTIONS = (
    *("session", "agent", "allow_incomplete", "allow_redacted", "keep_card"),
    *("fail_on_miss", "fail_unused", "log_format", "quiet"),
)
"""Options that are copied into the config unchanged."""
_MS_IN_NS = 1_000_000
_SECOND_IN_NS = 1_000_000_000
_MAX_DURATION = 10 * 365 * 86400 * _SECOND_IN_NS
"""Ten years, in ns."""


class ReplayConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The config of one run."""

    recording: Path
    listen: tuple[Listen, ...]
    """Addresses; empty for stdin and stdout."""
    options: ReplayOptions
    session: int | None = None
    agent: str = ""
    allow_incomplete: bool = False
    allow_redacted: bool = False
    keep_card: bool = False
    add_interfaces: tuple[Binding, ...] = ()
    faults: tuple[InjectedFault, ...] = ()
    fail_on_miss: bool = False
    fail_unused: bool = False
    log_format: str = "text"
    quiet: bool = False


def replay_config(**typed: Any) -> ReplayConfig:
    """Return the config of the options, which are passed by name. Raises UserError."""
    return ReplayConfig(
        recording=typed["recording"],
        listen=_parse_listens(typed["listen"], typed["stdio"]),
        options=_replay_options(typed),
        faults=tuple(map(_parse_fault, typed["fault"])),
        add_interfaces=tuple(map(Binding, typed["add_interface"])),
        **{name: typed[name] for name in _COPIED_OPTIONS},
    )


def _replay_options(typed: dict[str, Any]) -> ReplayOptions:
    """Return the options of the playback; pauses are given in ms, patience in s."""
    return ReplayOptions(
        match=MatchPreset(typed["match"]),
        match_on=parse_match_on(typed["match_on"]),
        ignore=parse_match_rule("--ignore", parse_ignored, typed["ignore"]),
        normalize=parse_match_rule("--normalize", check_expressions, typed["normalize"]),
        policies=dict(map(_parse_repeat_policy, typed["policy"])),
        speed=_parse_speed(typed["speed"]),
        gap=_to_ns("--gap", typed["gap"], _MS_IN_NS),
        max_gap=_to_ns("--max-gap", typed["max_gap"], _MS_IN_NS),
        patience=_to_ns("--patience", typed["patience"], _SECOND_IN_NS) or None,
        keep_times=typed["keep_times"],
        lenient=typed["lenient"],
    )


def _parse_listens(words: Sequence[str], stdio: bool) -> tuple[Listen, ...]:
    """Return the addresses to listen on; none with `--stdio`. Raises UserError."""
    if stdio and words:
        raise UserError("--listen and --stdio cannot be combined", "leave one of them out")
    if stdio:
        return ()
    return tuple(Listen.parse(word) for word in words or (":9001",))


def run_replay(config: ReplayConfig) -> int:
    """Serve until SIGINT, SIGTERM or SIGHUP, or until the pipe is closed, and return the exit code.
    Raises UserError.
    """
    script = _load_script(config)
    if not script.calls:
        raise UserError(
            f"{config.recording} has no call that can be replayed",
            f"list its calls: {shell_line('a2a-inspect', 'ls', str(config.recording))}",
        )
    return run_loop(_serve_script(config, script))


def _load_script(config: ReplayConfig) -> ReplayScript:
    try:
        with contextlib.closing(open_recording_or_cassette(config.recording)) as recording:
            script = load_script(
                recording,
                session=config.session,
                agent=config.agent,
                allow_incomplete=config.allow_incomplete,
                allow_redacted=config.allow_redacted,
            )
        return inject_faults(script, list(config.faults))
    except FaultError as wrong:
        raise UserError(
            f"--fault: {wrong.message}",
            f"list its calls and their lines: "
            f"{shell_line('a2a-inspect', 'show', str(config.recording))}",
            details=wrong.details,
        ) from wrong


async def _serve_script(config: ReplayConfig, script: ReplayScript) -> int:
    console = make_console(config.log_format, quiet=config.quiet, pipe=not config.listen)
    try:
        player = await (
            _serve_network(config, script, console)
            if config.listen
            else _serve_stdio(config, script, console)
        )
        console.show_summary(player)
    finally:
        console.close()
    unused = config.fail_unused and bool(player.unused_calls())
    return EXIT_INCOMPLETE if unused or (config.fail_on_miss and player.misses) else 0


async def _serve_network(
    config: ReplayConfig, script: ReplayScript, console: ReplayConsole
) -> Player:
    from a2a_proxy.replay.serve.mock import MockServer

    mock = MockServer(
        script,
        config.options,
        listen=config.listen,
        report=console.show_event,
        keep_card=config.keep_card,
        add_interfaces=config.add_interfaces,
    )
    stop = asyncio.Event()
    _stop_on_signals(stop)
    await mock.start()
    console.show_start(script, mock.addresses, mock.cards)
    await stop.wait()
    await mock.stop()
    return mock.player


async def _serve_stdio(
    config: ReplayConfig, script: ReplayScript, console: ReplayConsole
) -> Player:
    from a2a_proxy.replay.serve.mock import PipeMock

    mock = PipeMock(script, config.options, report=console.show_event)
    stop = asyncio.Event()
    _stop_on_signals(stop)
    console.show_start(script, [], mock.cards)
    serving, stopped = asyncio.create_task(mock.run()), asyncio.create_task(stop.wait())
    await asyncio.wait((serving, stopped), return_when=asyncio.FIRST_COMPLETED)
    for task in (serving, stopped):
        task.cancel()
    await asyncio.gather(serving, stopped, return_exceptions=True)
    return mock.player


def _stop_on_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in end_signals():
        loop.add_signal_handler(number, stop.set)


def _parse_repeat_policy(word: str) -> tuple[str, RepeatPolicy]:
    operation, equals, name = word.partition("=")
    if not equals or name not in list(RepeatPolicy):
        raise UserError(
            f"cannot read --policy {word!r}",
            f"write --policy GetTask=POLICY with one of: {', '.join(RepeatPolicy)}",
        )
    from a2a_proxy.protocol.operations import OPERATION_BY_NAME

    if operation not in OPERATION_BY_NAME:
        raise UserError(
            f"--policy {word}: there is no operation {operation!r}",
            "use its 1.0 name, for example SendMessage",
        )
    if name == RepeatPolicy.BY_PROGRESS and operation != POLLING_OPERATION:
        raise UserError(
            f"--policy {word}: only {POLLING_OPERATION} can follow the progress",
            f"write --policy {POLLING_OPERATION}={name}",
        )
    return operation, RepeatPolicy(name)


def _parse_fault(word: str) -> InjectedFault:
    with option_errors("--fault"):
        return parse_fault(word)


def _parse_speed(word: str) -> float:
    named = {"instant": 0.0, "recorded": 1.0}
    try:
        speed = named[word] if word in named else float(word)
    except ValueError:
        speed = -1.0
    if speed and not 1e-6 <= speed < 1e9:
        raise UserError(
            f"cannot read --speed {word!r}",
            "write --speed instant, recorded, or a factor such as 2 or 0.5",
        )
    return speed


def _to_ns(option: str, value: float | None, unit: int) -> int | None:
    """Return a time in ns. Raises UserError for `nan` and `inf`, which click accepts as numbers,
    and for over ten years."""
    if value is None:
        return None
    if not math.isfinite(value) or value * unit > _MAX_DURATION:
        raise UserError(f"{option}: {value} is not a valid time", f"for example: {option} 30")
    return round(value * unit)
