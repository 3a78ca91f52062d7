"""Reports about clients that diverge from the recording: each once, also if the call continues."""

from __future__ import annotations

from a2a_proxy.model.event import TaskState
from a2a_proxy.replay.core.options import MatchPreset, ReplayOptions
from a2a_proxy.replay.core.player import Player
from a2a_proxy.replay.core.script import PlayerRequest, RecordedCall
from a2a_proxy.replay.serve.performance import (
    AllowedCall,
    ClientCall,
    MissedCall,
    ReplayPlayer,
    ReplayReport,
)
from support_replay import START, call, message, script, status, task

LIVE = call(
    1,
    "SendLiveMessage",
    message("deploy"),
    ("s", 10, task()),
    ("s", 20, status(TaskState.COMPLETED)),
    ("s", 21, "end"),
    ("c", 30, message("thanks", "m-2")),
)
UNARY = call(2, "SendMessage", message("hi"), ("s", 1, task()), ("s", 1, "end"))


def staged(*calls: RecordedCall, **options: object) -> tuple[ReplayPlayer, list[ReplayReport]]:
    """A stage, and what it tells."""
    reports: list[ReplayReport] = []
    return ReplayPlayer(
        Player(script(*calls), ReplayOptions(**options)), lambda: START, reports.append
    ), reports


async def test_an_early_half_close_is_reported_at_once() -> None:
    """The agent says all that it has; the miss is not kept for the summary alone."""
    stage, reports = staged(LIVE)
    performance = stage.begin_call(
        PlayerRequest(operation="SendLiveMessage", value=message("deploy"))
    )
    assert isinstance(performance, ClientCall)
    performance.on_half_close()
    (missed,) = reports
    assert isinstance(missed, MissedCall)
    assert "half-closed" in missed.miss.full_text()
    assert [send.is_final async for send in performance.iter_sends()] == [False, False, True]
    assert [type(each).__name__ for each in reports] == ["MissedCall", "PlayedCall"]


async def test_loosely_matched_calls_are_reported_with_differences() -> None:
    stage, reports = staged(UNARY, match=MatchPreset.LOOSE)
    assert isinstance(
        stage.begin_call(PlayerRequest(operation="SendMessage", value=message("hello"))), ClientCall
    )
    (allowed,) = reports
    assert isinstance(allowed, AllowedCall)
    assert allowed.miss.allowed_text().splitlines() == [
        'answered nevertheless (arguments-differ): SendMessage "hello"',
        "  nearest: #2, which differs in:",
        '    $.message.parts[0].text: recorded "hi", requested "hello"',
    ]
