"""From cassettes and what a test says of them to a mock agent."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from a2a_proxy.recording.cassette import open_any
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.merge import merge
from a2a_proxy.recording.several import Several
from a2a_proxy.replay.core.options import Options, Policy, Preset
from a2a_proxy.replay.core.script import Script
from a2a_proxy.replay.load import load
from a2a_proxy.replay.serve.mock import Mock

_SPEEDS = {"instant": 0.0, "recorded": 1.0}


def mock_of(cassettes: Sequence[str], replay: dict[str, Any]) -> Mock:
    """A mock of them, not started. `replay` has all of `settings.REPLAY`. Raises RecordingError."""
    speed = replay["speed"]
    options = Options(
        match=Preset(replay["match"]),
        policies={operation: Policy(name) for operation, name in replay["policies"].items()},
        speed=_SPEEDS[speed] if isinstance(speed, str) else float(speed),
        keep_times=replay["keep_times"],
        allow_redacted=replay["allow_redacted"],
    )
    return Mock(_script(cassettes, replay), options)


def _script(cassettes: Sequence[str], replay: dict[str, Any]) -> Script:
    """Several are read as one, with a session each."""
    if len(cassettes) == 1:
        return _loaded(cassettes[0], replay)
    with tempfile.TemporaryDirectory() as folder:
        together = str(Path(folder) / "together.a2a.db")
        with Several(cassettes) as several:
            merge(several, together)
        return _loaded(together, replay)


def _loaded(path: str, replay: dict[str, Any]) -> Script:
    with open_any(path) as recording:
        try:
            return load(
                recording,
                allow_incomplete=replay["allow_incomplete"],
                allow_redacted=replay["allow_redacted"],
            )
        except RecordingError as wrong:
            raise RecordingError(wrong.message, _as_setting(wrong.hint)) from wrong


def _as_setting(hint: str) -> str:
    """Options of the command are settings here: `--allow-incomplete` is `allow_incomplete=True`."""
    for option in ("allow_incomplete", "allow_redacted"):
        hint = hint.replace(f"--{option.replace('_', '-')}", f"@pytest.mark.a2a_cassette({option}=True)")
    return hint
