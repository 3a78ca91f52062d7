"""Concurrent calls: streams of one task, effects of one call on another, and races."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from a2a_proxy.model.event import TaskState
from a2a_proxy.replay.core.script import RecordedCall
from support_replay import MS, TASK, Stage, artifact, call, message, one, said, script, status, task

S = TaskState


def stream(
    *events: tuple[int, Any], number: int = 1, operation: str = "SendStreamingMessage", **facts: Any
) -> RecordedCall:
    request = facts.pop("request", message("plan"))
    lines = [("s", at, event) for at, event in events]
    return call(number, operation, request, *lines, ("s", events[-1][0] + 1, "end"), **facts)


def subscription(*events: tuple[int, Any], began: int, number: int = 2) -> RecordedCall:
    return stream(
        *events, number=number, operation="SubscribeToTask", request={"id": TASK}, began=began
    )


FIRST = stream(
    (10, task(S.SUBMITTED)),
    (20, status(S.WORKING)),
    (500, artifact("text")),
    (900, status(S.COMPLETED)),
)
JOINED = subscription(
    (5, task(S.WORKING)), (400, artifact("text")), (800, status(S.COMPLETED)), began=100
)


def test_a_stream_waits_briefly_for_a_recorded_subscription() -> None:
    stage = Stage(script(FIRST, JOINED))
    first = stage.ask("SendStreamingMessage", message("plan"))
    assert said(first.take_due(stage.now)) == ["task submitted", "working"]
    stage.now += 200 * MS
    joined = stage.ask("SubscribeToTask", {"id": TASK})
    assert joined.call is JOINED
    rest = ["text", "completed", "end"]
    assert stage.together(first, joined, ms=20) == [rest, ["task working", *rest]]


def test_a_stream_does_not_wait_for_a_missing_subscription() -> None:
    stage = Stage(script(FIRST, JOINED))
    first = stage.ask("SendStreamingMessage", message("plan"))
    assert said(stage.run(first, 999)) == ["task submitted", "working"]
    assert said(stage.run(first, 20)) == ["text", "completed", "end"]
    assert not stage.player.misses


def test_a_late_subscriber_gets_the_current_task_and_the_rest() -> None:
    stage = Stage(script(FIRST, JOINED), speed=1.0)
    first = stage.ask("SendStreamingMessage", message("plan"))
    stage.run(first, 1600)
    assert not first.is_over
    joined = stage.ask("SubscribeToTask", {"id": TASK})
    sends = stage.run(joined)
    assert said(sends) == ["task working"]
    assert sends[0].value["task"]["artifacts"][0]["parts"] == [{"text": "text"}]
    assert stage.together(first, joined, ms=390) == [["completed", "end"], []]
    assert stage.together(first, joined, ms=20) == [[], ["completed", "end"]]


def test_a_subscriber_after_the_end_gets_the_final_task() -> None:
    stage = Stage(script(FIRST, JOINED))
    stage.run(stage.ask("SendStreamingMessage", message("plan")), 2000)
    assert said(stage.run(stage.ask("SubscribeToTask", {"id": TASK}))) == ["task completed", "end"]


def test_an_aborted_subscription_may_be_aborted_again() -> None:
    """Recorded lines are not repeated, and the client may disconnect as the recorded one did."""
    left = call(
        2, "SubscribeToTask", {"id": TASK}, ("s", 5, task(S.WORKING)), ("c", 50, "cut"), began=100
    )
    stage = Stage(script(FIRST, left))
    stage.run(stage.ask("SendStreamingMessage", message("plan")), 2000)
    joined = stage.ask("SubscribeToTask", {"id": TASK})
    assert said(stage.run(joined, 1000)) == ["task completed"]
    joined.on_client_gone()
    assert not stage.player.misses


def test_an_unrecorded_resubscription_gets_the_rest() -> None:
    stage = Stage(script(FIRST), speed=1.0)
    first = stage.ask("SendStreamingMessage", message("plan"))
    stage.run(first, 30)
    first.on_client_gone()
    joined = stage.ask("SubscribeToTask", {"id": TASK})
    assert said(stage.run(joined, 1000)) == ["task working", "text", "completed", "end"]
    assert not stage.player.misses


def test_a_resumed_event_stream_continues_after_the_last_event_id() -> None:
    *lines, end = FIRST.lines
    numbered = replace(
        FIRST, lines=(*(replace(line, event_id=f"e{line.number}") for line in lines), end)
    )
    for known, rest in (
        ("e2", ["text", "completed", "end"]),
        ("e4", ["end"]),
        ("e9", ["task completed", "end"]),
    ):
        stage = Stage(script(numbered))
        stage.run(stage.ask("SendStreamingMessage", message("plan")))
        headers = ((b"Last-Event-ID", known.encode()),)
        assert said(stage.run(stage.ask("SubscribeToTask", {"id": TASK}, headers))) == rest


def test_subscribing_to_an_unknown_task_is_a_miss() -> None:
    assert Stage(script(FIRST)).miss("SubscribeToTask", {"id": TASK}).kind == "unknown-operation"


def test_a_stream_does_not_overtake_a_gate_of_another_stream() -> None:
    """Two streams of one task agree: the subscription does not overtake the approval."""
    asks = call(
        1,
        "SendLiveMessage",
        message("deploy"),
        ("s", 10, task(S.SUBMITTED)),
        ("s", 200, status(S.INPUT_REQUIRED)),
        ("c", 500, message("yes", "m-2")),
        ("s", 510, status(S.COMPLETED)),
        ("s", 511, "end"),
    )
    hears = subscription(
        (5, task(S.SUBMITTED)),
        (101, status(S.INPUT_REQUIRED)),
        (411, status(S.COMPLETED)),
        began=100,
    )
    stage = Stage(script(asks, hears))
    asked = stage.ask("SendLiveMessage", message("deploy"))
    assert said(stage.run(asked)) == ["task submitted"]
    heard = stage.ask("SubscribeToTask", {"id": TASK})
    assert stage.together(asked, heard, ms=3000) == [
        ["input_required"],
        ["task submitted", "input_required"],
    ]
    assert "#1, which waits for its client" in heard.wait_reason
    asked.on_client_message(message("yes"), stage.now)
    assert stage.together(asked, heard, ms=20) == [["completed", "end"]] * 2


def test_a_task_is_canceled_when_the_client_cancels_it() -> None:
    works = stream((10, task(S.SUBMITTED)), (20, status(S.WORKING)), (300, status(S.CANCELED)))
    cancels = call(
        2, "CancelTask", {"id": TASK}, ("s", 8, task(S.CANCELED)), ("s", 8, "end"), began=295
    )
    stage = Stage(script(works, cancels))
    play = stage.ask("SendStreamingMessage", message("plan"))
    assert said(stage.run(play, 20_000)) == ["task submitted", "working"]
    assert play.wait_reason == "#1.3 waits for the call #2, CancelTask"
    canceled = stage.ask("CancelTask", {"id": TASK})
    assert said(stage.run(play, 20)) == ["canceled", "end"]
    assert one(stage.run(canceled))["task"]["status"] == {"state": "TASK_STATE_CANCELED"}


def test_the_recorded_winner_of_a_race_wins_again() -> None:
    other = "33333333-cccc-4ccc-8ccc-333333333333"
    slow = stream((300, task(S.WORKING)), (900, status(S.COMPLETED)))
    quick = stream(
        (50, task(S.WORKING, other)), (80, status(S.COMPLETED, other)), number=2, began=100
    )
    stage = Stage(script(slow, quick))
    one_ = stage.ask("SendStreamingMessage", message("plan"))
    assert stage.run(one_, 400) == []
    two = stage.ask("SendStreamingMessage", message("plan", "m-2"))
    assert stage.run(one_) == []
    assert said(stage.run(two)) == ["task working", "completed", "end"]
    one_.on_client_gone()
    assert not stage.player.misses


def test_the_recorded_loser_of_a_race_comes_second() -> None:
    other = "33333333-cccc-4ccc-8ccc-333333333333"
    slow = stream((300, task(S.WORKING)), (900, status(S.COMPLETED)))
    quick = stream(
        (50, task(S.WORKING, other)), (80, status(S.COMPLETED, other)), number=2, began=100
    )
    stage = Stage(script(slow, quick))
    one_ = stage.ask("SendStreamingMessage", message("plan"))
    two = stage.ask("SendStreamingMessage", message("plan", "m-2"))
    stage.run(two)
    assert said(stage.run(one_, 20)) == ["task working", "completed", "end"]
