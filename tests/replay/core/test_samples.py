"""Every recorded request of every sample is found again, and answered as recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_proxy.recording.cassette import open_any
from a2a_proxy.replay.core.asked import Asked
from a2a_proxy.replay.core.miss import Miss
from a2a_proxy.replay.core.player import Player
from a2a_proxy.replay.core.script import Call, Script
from a2a_proxy.replay.load import load

SAMPLES = sorted(Path(__file__).parents[3].glob("recordings/*.a2a.jsonl"))


def again(call: Call) -> Asked:
    """A recorded request as it was."""
    return Asked(
        operation=call.operation,
        value=call.request,
        binding=call.binding,
        dialect=call.dialect,
        tenant=call.tenant,
        headers=call.headers,
    )


def script_of(path: Path) -> Script:
    with open_any(path) as recording:
        return load(recording)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name.partition(".a2a")[0])
def test_a_recorded_request_matches_itself(path: Path) -> None:
    script = script_of(path)
    player = Player(script)
    for call in script.calls:
        play = player.begin(again(call), call.began)
        assert not isinstance(play, Miss), play.text()
        assert play.call is call
        play.client_gone()
    assert not player.unused()
    assert not player.misses
