"""Every recorded request of every sample is matched, whatever identifiers a client uses now."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from a2a_proxy.recording.difference.fields import CanonicalFields
from a2a_proxy.recording.difference.structure import compare_values
from a2a_proxy.replay.core.ids import ReplayIds
from a2a_proxy.replay.core.miss import Miss
from a2a_proxy.replay.core.options import MatchPreset, ReplayOptions
from a2a_proxy.replay.core.player import Player
from support_replay import SAMPLES, Stage, again, sample

_UUID = re.compile(r'(?<="messageId":")[^"]+')


def name(path: Path) -> str:
    return path.name.removesuffix(".a2a.jsonl")


@pytest.mark.parametrize("path", SAMPLES, ids=name)
def test_a_recorded_request_matches_itself(path: Path) -> None:
    """In recorded order each finds its own call, and all of them are found: record and match read
    alike."""
    script = sample(name(path))
    for preset in (MatchPreset.DEFAULT, MatchPreset.STRICT):
        player = Player(script, ReplayOptions(match=preset))
        for call in script.calls:
            play = player.begin_call(again(call), call.began)
            assert not isinstance(play, Miss), play.full_text()
            assert play.call.place == call.place
            play.on_client_gone()
        assert not player.unused_calls()
        assert not player.misses
        assert not player.allowed_misses


@pytest.mark.parametrize("line", ["sdk-1.x", "sdk-0.3"])
@pytest.mark.parametrize(
    ("then", "now"), [("jsonrpc", "grpc"), ("grpc", "rest"), ("rest", "jsonrpc")]
)
def test_a_request_on_another_binding_finds_the_same_call(line: str, then: str, now: str) -> None:
    """The same program on each binding: requests of one match the calls of another, with mapped
    ids."""
    asks = sample(f"{line}-{now}")
    stage = Stage(sample(f"{line}-{then}"))
    mine = ReplayIds()  # left: of the asking recording, right: of now
    for call in asks.calls:
        play = stage.player.begin_call(again(call, value=mine.rename_json(call.request)), stage.now)
        assert not isinstance(play, Miss), play.full_text()
        assert play.call.operation == call.operation
        for send, line_ in zip(stage.run(play, 1100), call.agent_lines, strict=False):
            compare_values(line_.value, send.value, mine, CanonicalFields())
        play.on_client_gone()
    assert not stage.player.unused_calls()


@pytest.mark.parametrize("path", SAMPLES, ids=name)
def test_requests_with_other_message_ids_match(path: Path) -> None:
    script = sample(name(path))
    player = Player(script)
    for number, call in enumerate(script.calls):
        text = json.dumps(call.request, separators=(",", ":"))
        value: Any = json.loads(_UUID.sub(f"new-message-{number}", text))
        play = player.begin_call(again(call, value=value), call.began)
        assert not isinstance(play, Miss), play.full_text()
        play.on_client_gone()
    assert not player.unused_calls()
