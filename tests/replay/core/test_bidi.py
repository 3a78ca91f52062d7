"""The approval loop against clients that answer fast, slow, early, wrongly or not at all: what 2.6
decides, no hang."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from a2a_proxy.model.event import TaskState
from a2a_proxy.replay.core.gates import Gates, make_steps
from a2a_proxy.replay.core.miss import MissKind
from a2a_proxy.replay.core.script import LineKind, RecordedCall
from support_replay import MS, TASK, Stage, call, message, one, said, sample, script, status, task

S = TaskState
APPROVAL = call(
    1,
    "SendLiveMessage",
    message("deploy"),
    ("s", 10, task(S.SUBMITTED)),
    ("s", 20, status(S.WORKING)),
    ("s", 40, status(S.INPUT_REQUIRED)),
    ("c", 940, message("yes", "m-2")),
    ("s", 950, status(S.WORKING)),
    ("s", 990, status(S.COMPLETED)),
    ("s", 991, "end"),
    ("c", 995, "end"),
)
BEFORE = ["task submitted", "working", "input_required"]
AFTER = ["working", "completed", "end"]
YES = message("yes", "m-now")


def begun(recorded: RecordedCall = APPROVAL, **options: object) -> Stage:
    return Stage(script(recorded), **options)


@pytest.mark.parametrize("speed", [0.0, 1.0, 10.0])
def test_a_gate_waits_for_a_slow_client(speed: float) -> None:
    stage = begun(speed=speed)
    play = stage.ask("SendLiveMessage", message("deploy"))
    assert said(stage.run(play, 29_000)) == BEFORE
    play.on_client_message(YES, stage.now)
    assert said(stage.run(play, 100)) == AFTER
    assert not stage.player.misses
    assert not stage.player.playbacks


def test_a_fast_client_is_served_at_once() -> None:
    stage = begun()
    play = stage.ask("SendLiveMessage", message("deploy"))
    assert said(play.take_due(stage.now)) == BEFORE
    play.on_client_message(YES, stage.now)
    assert said(play.take_due(stage.now)) == AFTER


def test_a_client_may_answer_early() -> None:
    """Its line is the recorded one: the agent's lines keep their order."""
    stage = begun(speed=1.0)
    play = stage.ask("SendLiveMessage", message("deploy"))
    play.on_client_message(YES, stage.now)
    assert said(stage.run(play, 1000)) == BEFORE + AFTER
    assert not stage.player.misses


def test_a_different_answer_is_a_divergence() -> None:
    stage = begun()
    play = stage.ask("SendLiveMessage", message("deploy"))
    stage.run(play)
    play.on_client_message(message("no"), stage.now)
    sends = play.take_due(stage.now)
    assert said(sends) == ["miss"]
    miss = sends[0].miss
    assert miss is not None
    assert miss.kind is MissKind.DIVERGED
    assert miss.nearest == "#1.4"
    assert [(row.before, row.after) for row in miss.rows] == [("yes", "no")]
    assert play.is_over
    assert stage.player.misses == [miss]


def test_the_client_selects_among_streams_with_equal_starts() -> None:
    """Both are recorded, the approved one first; this client says no, and what follows is about the
    task it knows."""
    other = "33333333-cccc-4ccc-8ccc-333333333333"
    refused = call(
        2,
        "SendLiveMessage",
        message("deploy", "m-3"),
        ("s", 10, task(S.SUBMITTED, other)),
        ("s", 20, status(S.WORKING, other)),
        ("s", 40, status(S.INPUT_REQUIRED, other)),
        ("c", 900, message("no", "m-4", taskId=other)),
        ("s", 910, status(S.REJECTED, other)),
        ("s", 911, "end"),
        began=5000,
    )
    look = call(
        3, "GetTask", {"id": other}, ("s", 1, task(S.REJECTED, other)), ("s", 1, "end"), began=9000
    )
    stage = Stage(script(APPROVAL, refused, look))
    play = stage.ask("SendLiveMessage", message("deploy"))
    assert said(stage.run(play)) == BEFORE
    play.on_client_message(message("no", taskId=TASK), stage.now)
    sends = stage.run(play)
    assert said(sends) == ["rejected", "end"]
    assert sends[0].value["statusUpdate"]["taskId"] == TASK
    assert not stage.player.misses
    assert one(stage.run(stage.ask("GetTask", {"id": TASK})))["task"]["id"] == TASK
    assert [each.place for each in stage.player.unused_calls()] == ["#1"]
    assert said(stage.run(stage.ask("SendLiveMessage", message("deploy")))) == BEFORE


def test_a_lenient_player_reports_a_divergence_and_continues() -> None:
    stage = begun(lenient=True)
    play = stage.ask("SendLiveMessage", message("deploy"))
    stage.run(play)
    play.on_client_message(message("no"), stage.now)
    assert said(play.take_due(stage.now)) == AFTER
    assert [miss.nearest for miss in stage.player.allowed_misses] == ["#1.4"]
    assert not stage.player.misses


def test_an_additional_message_is_a_divergence() -> None:
    stage = begun()
    play = stage.ask("SendLiveMessage", message("deploy"))
    play.on_client_message(YES, stage.now)
    play.on_client_message(message("and now"), stage.now)
    sends = play.take_due(stage.now)
    assert said(sends) == ["miss"]
    assert (
        "the client sends more than the recorded client, which half-closed here"
        in stage.player.misses[0].full_text()
    )


def test_an_early_half_close_ends_the_call_at_the_gate() -> None:
    stage = begun()
    play = stage.ask("SendLiveMessage", message("deploy"))
    play.on_half_close(stage.now)
    assert said(stage.run(play)) == [*BEFORE, "miss"]
    assert [miss.nearest for miss in stage.player.misses] == ["#1.4"]


def test_a_divergence_is_reported_once() -> None:
    """What it says or does after that, before the miss has gone out, is of no interest."""
    stage = begun()
    play = stage.ask("SendLiveMessage", message("deploy"))
    stage.run(play)
    play.on_client_message(message("no"), stage.now)
    play.on_client_message(message("never"), stage.now)
    play.on_half_close(stage.now)
    assert said(play.take_due(stage.now)) == ["miss"]
    assert [miss.nearest for miss in stage.player.misses] == ["#1.4"]


def test_an_early_half_close_of_a_cancelled_call_ends_it_at_once() -> None:
    """With the one miss that it was; there is nothing to be patient for."""
    left = call(
        1,
        "SendLiveMessage",
        message("deploy"),
        ("s", 10, task(S.WORKING)),
        ("c", 20, message("more", "m-2")),
        ("c", 30, "reset"),
    )
    stage = begun(left)
    play = stage.ask("SendLiveMessage", message("deploy"))
    play.on_half_close(stage.now)
    assert said(stage.run(play)) == ["task working", "miss"]
    assert [miss.nearest for miss in stage.player.misses] == ["#1.2"]


def test_an_early_half_close_without_a_gate_is_reported_only() -> None:
    """No remaining line waits for a client message: the agent continues to its end."""
    free = call(
        1,
        "SendLiveMessage",
        message("sing"),
        ("s", 10, task(S.WORKING)),
        ("s", 110, status(S.WORKING)),
        ("c", 111, message("louder", "m-2")),
        ("s", 112, status(S.WORKING)),
        ("s", 212, status(S.COMPLETED)),
        ("s", 213, "end"),
    )
    stage = begun(free)
    play = stage.ask("SendLiveMessage", message("sing"))
    play.on_half_close(stage.now)
    assert said(stage.run(play)) == ["task working", "working", "working", "completed", "end"]
    assert [miss.kind for miss in stage.player.misses] == [MissKind.DIVERGED]


def test_a_silent_client_gets_a_miss_after_the_patience() -> None:
    stage = begun(patience=2_000 * MS)
    play = stage.ask("SendLiveMessage", message("deploy"))
    assert said(stage.run(play, 1999)) == BEFORE
    assert play.wait_reason == "#1.5 waits for the client's message #1.4"
    assert said(stage.run(play, 2)) == ["miss"]
    assert "the client sent nothing for 2 s" in stage.player.misses[0].full_text()


def test_without_patience_a_gate_waits_indefinitely() -> None:
    stage = begun(patience=None)
    play = stage.ask("SendLiveMessage", message("deploy"))
    stage.run(play, 10**9)
    assert play.wake_time is None
    assert not play.is_over


def test_lines_after_a_disconnect_are_not_missing() -> None:
    stage = begun()
    play = stage.ask("SendLiveMessage", message("deploy"))
    stage.run(play)
    play.on_client_gone()
    assert play.is_over
    assert play.client_cancelled
    assert play.take_due(stage.now) == []
    assert not stage.player.misses
    assert not stage.player.playbacks
    assert not stage.player.unused_calls()


def test_a_client_may_stay_longer_than_the_recorded_one() -> None:
    left = call(
        1, "SendLiveMessage", message("deploy"), ("s", 10, task(S.WORKING)), ("c", 20, "reset")
    )
    stage = begun(left, patience=1_000 * MS)
    play = stage.ask("SendLiveMessage", message("deploy"))
    assert said(stage.run(play, 999)) == ["task working"]
    assert said(stage.run(play, 1)) == ["miss"]
    assert (
        "the recorded client cancelled the call here (#1.2)" in stage.player.misses[0].full_text()
    )


def test_pauses_count_from_the_last_line_sent() -> None:
    """A slow client stops the clock: nothing is dropped, nothing hurries after it."""
    stage = begun(speed=1.0)
    play = stage.ask("SendLiveMessage", message("deploy"))
    stage.now += 5_000 * MS
    assert said(play.take_due(stage.now)) == ["task submitted"]
    assert said(play.take_due(stage.now)) == []
    assert play.wake_time == stage.now + 10 * MS
    assert play.skew == 4_990 * MS


@pytest.mark.parametrize(
    ("options", "times"),
    [
        ({}, [0, 0, 0]),
        ({"speed": 1.0}, [10, 20, 40]),
        ({"speed": 2.0}, [5, 10, 20]),
        ({"speed": 1.0, "max_gap": 12 * MS}, [10, 20, 32]),
        ({"gap": 7 * MS}, [7, 14, 21]),
    ],
)
def test_the_clock_between_gates(options: dict[str, float], times: list[int]) -> None:
    stage = begun(**options)
    play = stage.ask("SendLiveMessage", message("deploy"))
    found = []
    while len(found) < len(times):
        assert play.wake_time is not None
        stage.now = max(stage.now, play.wake_time)
        found += [stage.now - play.began for _ in play.take_due(stage.now)]
    assert found == [each * MS for each in times]


def needs(*lines: tuple[str, int, object]) -> list[int]:
    return [
        step.needs for step in make_steps(call(1, "SendLiveMessage", message("x"), *lines)).agent
    ]


def test_answers_to_waiting_tasks_open_a_gate() -> None:
    lines = (
        ("s", 5, status(S.AUTH_REQUIRED)),
        ("c", 6, message("key")),
        ("s", 7, status(S.WORKING)),
        ("s", 8, "end"),
    )
    assert needs(*lines) == [0, 1, 1]


def test_the_first_line_waits_for_earlier_client_messages() -> None:
    assert needs(("c", 1, message("and")), ("s", 7, status(S.WORKING)), ("s", 8, "end")) == [1, 1]


def test_only_a_long_pause_before_the_client_message_makes_a_gate() -> None:
    usual = [("s", at, status(S.WORKING)) for at in (10, 20, 30)]
    assert (
        needs(*usual, ("c", 31, message("go on")), ("s", 40, status(S.WORKING)), ("s", 50, "end"))
        == [0] * 5
    )
    assert (
        needs(*usual, ("c", 31, message("go on")), ("s", 90, status(S.WORKING)), ("s", 100, "end"))
        == [0] * 3 + [1] * 2
    )


def recorded_twice(
    one: list[tuple[str, int, object]], two: list[tuple[str, int, object]]
) -> list[int]:
    gates = [
        call(number, "SendLiveMessage", message("x", f"m-{number}"), *lines)
        for number, lines in ((1, one), (2, two))
    ]
    return [step.needs for step in Gates(script(*gates)).steps_of(gates[0]).agent]


def test_lines_once_sent_without_the_client_message_do_not_wait() -> None:
    works = [("s", at, status(S.WORKING)) for at in (10, 20, 90)]
    sent = ("c", 31, message("go on"))
    assert needs(*works[:2], sent, works[2]) == [0, 0, 1]
    assert recorded_twice([*works[:2], sent, works[2]], [*works, sent]) == [0, 0, 0]


def test_answers_once_sent_on_another_stream_are_still_awaited() -> None:
    asks, goes, sent = (
        ("s", 5, status(S.INPUT_REQUIRED)),
        ("s", 90, status(S.WORKING)),
        ("c", 31, message("yes")),
    )
    assert recorded_twice([asks, sent, goes], [asks, goes]) == [0, 1]


def test_lines_always_sent_after_the_client_message_wait() -> None:
    works = [("s", at, status(S.WORKING)) for at in (10, 20, 30)]
    sent = ("c", 21, message("go on"))
    assert needs(*works[:2], sent, works[2]) == [0, 0, 0]
    assert recorded_twice([*works[:2], sent, works[2]], [*works[:2], sent, works[2]]) == [0, 0, 1]


def test_calls_that_took_another_course_do_not_affect_gates() -> None:
    works = [("s", at, status(S.WORKING)) for at in (10, 20, 90)]
    sent = ("c", 31, message("go on"))
    other = [works[0], ("s", 20, status(S.COMPLETED)), ("s", 90, status(S.WORKING)), sent]
    assert recorded_twice([*works[:2], sent, works[2]], other) == [0, 0, 1]


def test_only_waiting_tasks_wait_for_a_half_close() -> None:
    """A client that keeps its side open until the agent is done must not wait for itself."""
    assert needs(("c", 1, "end"), ("s", 7, status(S.WORKING)), ("s", 90, "end")) == [0, 0]
    assert needs(
        ("s", 7, status(S.INPUT_REQUIRED)), ("c", 8, "end"), ("s", 9, status(S.FAILED))
    ) == [0, 1]


def test_an_author_pins_a_gate() -> None:
    recorded = call(
        1,
        "SendLiveMessage",
        message("x"),
        ("s", 10, status(S.WORKING)),
        ("c", 11, message("y")),
        ("s", 12, status(S.WORKING)),
    )
    assert [step.needs for step in make_steps(recorded).agent] == [0, 0]
    *before, last = recorded.lines
    pinned = replace(recorded, lines=(*before, replace(last, after=2)))
    assert [step.needs for step in make_steps(pinned).agent] == [0, 1]


def test_a_message_only_stream_is_replayed() -> None:
    hello = {"message": {"messageId": "a", "role": "ROLE_AGENT", "parts": [{"text": "hello"}]}}
    stage = begun(call(1, "SendLiveMessage", message("hi"), ("s", 3, hello), ("s", 4, "end")))
    play = stage.ask("SendLiveMessage", message("hi"))
    assert said(play.take_due(stage.now)) == ["hello", "end"]


@pytest.mark.parametrize("what", [LineKind.CUT, LineKind.RESET])
def test_a_broken_stream_is_replayed_as_broken(what: LineKind) -> None:
    stage = begun(
        call(1, "SendLiveMessage", message("hi"), ("s", 3, task(S.WORKING)), ("s", 4, str(what)))
    )
    play = stage.ask("SendLiveMessage", message("hi"))
    assert said(play.take_due(stage.now)) == ["task working", str(what)]
    assert play.is_over


def test_a_line_after_the_last_state_goes_out_as_recorded() -> None:
    late = ("s", 3, status(S.COMPLETED)), ("s", 4, status(S.WORKING)), ("s", 5, "end")
    stage = begun(call(1, "SendStreamingMessage", message("hi"), *late))
    assert said(stage.ask("SendStreamingMessage", message("hi")).take_due(stage.now)) == [
        "completed",
        "working",
        "end",
    ]


def test_the_recorded_loop_replays_to_a_client_that_answers_each_question() -> None:
    """The sample's live streams, each with a client that speaks when the agent has said what it
    waited for."""
    whole = sample("live-bidi")
    alone = [
        each for each in whole.calls if each.is_live and each.place not in ("#11", "#12")
    ]  # 12 takes 11's task over
    stage = Stage(replace(whole, calls=tuple(alone)))
    for recorded in alone:
        play = stage.again(recorded)
        sends = stage.run(play)
        for line in recorded.lines:
            if line.side == "client" and line.what is LineKind.MESSAGE:
                play.on_client_message(line.value, stage.now)
            elif line.side == "client" and line.what is LineKind.END:
                play.on_half_close(stage.now)
            elif line.side == "client":
                play.on_client_gone()
            sends += stage.run(play, 1100)
        assert [send.line for send in sends] == list(recorded.agent_lines), recorded.place
    assert not stage.player.misses
