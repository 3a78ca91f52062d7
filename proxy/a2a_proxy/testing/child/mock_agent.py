"""Building of a mock agent from cassettes and the settings of a test, and its misses as texts for
the user."""

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from a2a_proxy.faults.words import FaultError
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.multi_reader import MultiReader
from a2a_proxy.recording.tools.merge import merge_sessions
from a2a_proxy.replay.core.faults import inject_faults, parse_fault
from a2a_proxy.replay.core.match_rules import parse_ignored, parse_match_name
from a2a_proxy.replay.core.miss_messages import RECORD_AGAIN
from a2a_proxy.replay.core.options import MatchPreset, RepeatPolicy, ReplayOptions
from a2a_proxy.replay.core.script import ReplayScript
from a2a_proxy.replay.load import load_script
from a2a_proxy.replay.serve.mock import MockServer
from a2a_proxy.replay.serve.passthrough import Passthrough, is_forwardable
from a2a_proxy.testing.matcher_channel import RemoteMatcher

_NAMED_SPEEDS = {"instant": 0.0, "recorded": 1.0}
_SETTING_FORMS = (
    (re.compile(r"--match ([a-z-]+)"), r'match="\1"'),
    (re.compile(r"--normalize '(\w+)'"), r'normalize=["\1"]'),
    (re.compile(r"--policy (\w+)=([a-z-]+)"), r'policies={"\1": "\2"}'),
    (re.compile(r"--(lenient|allow-incomplete|allow-redacted)"), r"\1=True"),
)


def make_mock(cassettes: Sequence[str], replay: dict[str, Any], passthrough: str) -> MockServer:
    """Return a mock of the cassettes, not started. `replay` has all of `settings.REPLAY_SETTINGS`,
    and `ignore`.

    `passthrough` is the address of an agent that answers the calls that the cassettes do not, or
    empty. Raises RecordingError.
    """
    speed = replay["speed"]
    options = ReplayOptions(
        match=MatchPreset(replay["match"]),
        match_on=tuple(
            parse_match_name(each) if isinstance(each, str) else RemoteMatcher(**each)
            for each in replay["match_on"]
        ),
        ignore=parse_ignored(replay["ignore"]),
        normalize=tuple(replay["normalize"]),
        policies={operation: RepeatPolicy(name) for operation, name in replay["policies"].items()},
        speed=_NAMED_SPEEDS[speed] if isinstance(speed, str) else float(speed),
        keep_times=replay["keep_times"],
        lenient=replay["lenient"],
    )
    script, live = (
        _load_scripts(cassettes, replay),
        Passthrough(passthrough) if passthrough else None,
    )
    try:
        return MockServer(
            inject_faults(script, [parse_fault(text) for text in replay["faults"]]),
            options,
            passthrough=live,
        )
    except FaultError as wrong:
        raise RecordingError(
            f"a fault cannot be injected: {wrong}",
            wrong.hint or "list its calls and their frames: a2a-inspect show CASSETTE",
        ) from wrong


def miss_texts(mock: MockServer) -> tuple[str, ...]:
    """Return the misses as texts for the user, without calls that were forwarded to a live
    agent."""
    found = (
        miss for miss in mock.player.misses if mock.passthrough is None or not is_forwardable(miss)
    )
    return tuple(
        replace(
            miss,
            hints=tuple(translate_options(hint) for hint in miss.hints if hint != RECORD_AGAIN),
        ).full_text()
        for miss in found
    )


def _load_scripts(cassettes: Sequence[str], replay: dict[str, Any]) -> ReplayScript:
    """Load the cassettes; several are read as one, with a session each."""
    if len(cassettes) == 1:
        return _load_cassette(cassettes[0], replay)
    with tempfile.TemporaryDirectory() as folder:
        together = str(Path(folder) / "together.a2a.db")
        with MultiReader(cassettes) as several:
            merge_sessions(several, together)
        return _load_cassette(together, replay)


def _load_cassette(path: str, replay: dict[str, Any]) -> ReplayScript:
    with open_recording_or_cassette(path) as recording:
        try:
            return load_script(
                recording,
                allow_incomplete=replay["allow_incomplete"],
                allow_redacted=replay["allow_redacted"],
            )
        except RecordingError as wrong:
            raise RecordingError(wrong.message, translate_options(wrong.hint)) from wrong


def translate_options(hint: str) -> str:
    """Return a hint with settings in place of options: `--match loose` is `match="loose"` in
    `a2a_cassette`."""
    translated = hint
    for option, setting in _SETTING_FORMS:
        translated = option.sub(setting, translated)
    return (
        translated
        if translated == hint
        else f"{translated.replace('allow-', 'allow_')} (in @pytest.mark.a2a_cassette)"
    )
