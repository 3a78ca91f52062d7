"""Timestamps move by the offset of the replay, and keep their form."""

from __future__ import annotations

import pytest

from a2a_proxy.replay.core.call_playback import CallPlayback
from a2a_proxy.replay.core.options import ReplayOptions
from a2a_proxy.replay.core.player import Player, shift_times
from a2a_proxy.replay.core.script import PlayerRequest
from a2a_proxy.replay.core.timeline import Timeline
from support_replay import START, call, message, script

HOUR = 3_600_000_000_000


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("2026-11-21T22:49:26.006009Z", "2026-11-21T23:49:26.006009Z"),
        ("2026-11-21T23:30:00Z", "2026-11-22T00:30:00Z"),
        ("2026-11-21T22:49:26.006009001+02:00", "2026-11-21T23:49:26.006009001+02:00"),
        ("2026-11-21T22:49:26.5", "2026-11-21T23:49:26.5"),
        ("yesterday", "yesterday"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
        ("2026-02-30T00:00:00Z", "2026-02-30T00:00:00Z"),
    ],
)
def test_timestamps_are_shifted_in_their_format(before: str, after: str) -> None:
    assert shift_times({"status": {"timestamp": before}}, HOUR) == {"status": {"timestamp": after}}


def test_timestamps_in_metadata_and_text_are_unchanged() -> None:
    value = {
        "metadata": {"timestamp": "2026-11-21T23:30:00Z"},
        "text": "2026-11-21T23:30:00Z",
        "timestamp": 5,
    }
    assert shift_times(value, HOUR) == value


@pytest.mark.parametrize("keep", [False, True])
def test_the_time_offset_is_set_by_the_first_call(keep: bool) -> None:
    answer = {"task": {"id": "t", "status": {"timestamp": "2026-11-21T22:00:00Z"}}}
    one = call(1, "SendMessage", message("a"), ("s", 1, answer), ("s", 1, "end"))
    two = call(2, "SendMessage", message("b"), ("s", 1, answer), ("s", 1, "end"), began=5000)
    player = Player(script(one, two), ReplayOptions(keep_times=keep))
    stamps = []
    for words, at in (("a", START + HOUR), ("b", START + 7 * HOUR)):
        play = player.begin_call(PlayerRequest(operation="SendMessage", value=message(words)), at)
        assert isinstance(play, CallPlayback)
        stamps.append(play.take_due(at)[0].value["task"]["status"]["timestamp"])
    assert stamps == ["2026-11-21T22:00:00Z" if keep else "2026-11-21T23:00:00Z"] * 2


def test_a_task_of_which_nothing_was_sent_has_no_last_time() -> None:
    assert Timeline(script()).last_sent_time("t1") == 0


def test_an_instant_replay_has_no_pauses() -> None:
    assert Player(script(), ReplayOptions(speed=0)).scale_pause(HOUR) == 0
