"""Repeated calls: each once, the last one repeated, or the current state of the task."""

from __future__ import annotations

import pytest

from a2a_proxy.model.event import TaskState
from a2a_proxy.replay.core.miss import MissKind
from a2a_proxy.replay.core.options import RepeatPolicy
from support_replay import (
    CONTEXT,
    TASK,
    Stage,
    artifact,
    call,
    message,
    one,
    said,
    script,
    status,
    task,
)

S = TaskState
POLLS = tuple(
    call(number, "GetTask", {"id": TASK}, ("s", 1, task(state)), ("s", 1, "end"), began=number)
    for number, state in enumerate([S.SUBMITTED, S.WORKING, S.COMPLETED], 1)
)


def poll(stage: Stage) -> str:
    return said(stage.run(stage.ask("GetTask", {"id": TASK})))[0]


def test_the_last_poll_is_repeated() -> None:
    stage = Stage(script(*POLLS))
    assert [poll(stage) for _ in range(5)] == ["task submitted", "task working"] + [
        "task completed"
    ] * 3
    assert not stage.player.misses


def test_fewer_polls_than_recorded_are_no_miss() -> None:
    stage = Stage(script(*POLLS))
    poll(stage)
    assert [each.place for each in stage.player.unused_calls()] == ["#2", "#3"]
    assert not stage.player.misses


def test_each_call_is_played_once_and_then_exhausted() -> None:
    stage = Stage(script(*POLLS), policies={"GetTask": RepeatPolicy.SEQUENCE})
    assert [poll(stage) for _ in POLLS] == ["task submitted", "task working", "task completed"]
    miss = stage.miss("GetTask", {"id": TASK})
    assert miss.kind is MissKind.EXHAUSTED
    assert miss.nearest == "#3"
    assert not miss.rows


def test_a_send_is_played_once_unless_repeatable() -> None:
    sent = call(1, "SendMessage", message("hi"), ("s", 1, task()), ("s", 1, "end"))
    stage = Stage(script(sent))
    stage.ask("SendMessage", message("hi"))
    assert stage.miss("SendMessage", message("hi", "m-2")).kind is MissKind.EXHAUSTED
    stage = Stage(script(sent), policies={"SendMessage": RepeatPolicy.LAST_STICKY})
    assert [stage.ask("SendMessage", message("hi", f"m-{n}")).call for n in range(3)] == [sent] * 3


STREAM = call(
    1,
    "SendStreamingMessage",
    message("plan"),
    ("s", 10, task(S.SUBMITTED)),
    ("s", 20, status(S.WORKING)),
    ("s", 30, artifact("first ")),
    ("s", 40, artifact("second", append=True)),
    ("s", 50, status(S.COMPLETED)),
    ("s", 51, "end"),
)
LOOK = call(2, "GetTask", {"id": TASK}, ("s", 1, task(S.COMPLETED)), ("s", 1, "end"), began=100)


MIDDLE = call(
    2,
    "GetTask",
    {"id": TASK},
    ("s", 1, task(S.WORKING, history=["asked"])),
    ("s", 1, "end"),
    began=25,
)


def test_a_stream_waits_briefly_for_a_recorded_poll() -> None:
    """Also until it has been answered; so the client sees the task as the recorded one did."""
    stage = Stage(script(STREAM, MIDDLE))
    stream = stage.ask("SendStreamingMessage", message("plan"))
    assert said(stream.take_due(stage.now)) == ["task submitted", "working"]
    assert stream.wait_reason == "#1.3 waits for the call #2, GetTask"
    look = stage.ask("GetTask", {"id": TASK})
    assert stream.take_due(stage.now) == []
    assert said(look.take_due(stage.now)) == ["task working", "end"]
    assert said(stage.run(stream, 10)) == ["first ", "second", "completed", "end"]


def test_an_unreadable_recorded_poll_is_not_awaited() -> None:
    unread = call(2, "GetTask", None, ("s", 1, task(S.WORKING)), ("s", 1, "end"), began=25)
    stage = Stage(script(STREAM, unread))
    assert said(stage.ask("SendStreamingMessage", message("plan")).take_due(stage.now))[-1] == "end"


def test_missing_polls_are_awaited_once() -> None:
    later = [
        call(n, "GetTask", {"id": TASK}, ("s", 1, task(S.WORKING)), ("s", 1, "end"), began=35)
        for n in (3, 4)
    ]
    stage = Stage(script(STREAM, MIDDLE, *later))
    stream = stage.ask("SendStreamingMessage", message("plan"))
    assert said(stage.run(stream, 999)) == ["task submitted", "working"]
    assert said(stage.run(stream, 20)) == ["first ", "second", "completed", "end"]


def test_a_late_poll_is_not_older_than_the_stream() -> None:
    """State and artifacts are those of the stream; the rest of the answer is the recorded one."""
    stage = Stage(script(STREAM, MIDDLE))
    stage.run(stage.ask("SendStreamingMessage", message("plan")), 2000)
    for _ in range(2):
        got = one(stage.run(stage.ask("GetTask", {"id": TASK})))["task"]
        assert (got["status"], got["history"]) == ({"state": "TASK_STATE_COMPLETED"}, ["asked"])
        assert got["artifacts"][0]["parts"] == [{"text": "first "}, {"text": "second"}]
    asked = Stage(script(STREAM, MIDDLE), policies={"GetTask": RepeatPolicy.SEQUENCE})
    asked.run(asked.ask("SendStreamingMessage", message("plan")), 2000)
    assert one(asked.run(asked.ask("GetTask", {"id": TASK}))) == task(S.WORKING, history=["asked"])


@pytest.mark.parametrize(
    ("wanted", "history"),
    [({}, ["a", "b"]), ({"historyLength": 1}, ["b"]), ({"historyLength": 0}, None)],
)
def test_by_progress_answers_unrecorded_polls(
    wanted: dict[str, int], history: list[str] | None
) -> None:
    """A look at the task needs no recorded one, and shows no more of its history than was asked
    for."""
    said_first = task(S.SUBMITTED, history=["a", "b"])
    events = (("s", 10, said_first), ("s", 20, status(S.WORKING)), ("s", 21, "end"))
    planned = call(1, "SendStreamingMessage", message("plan"), *events)
    stage = Stage(script(planned), policies={"GetTask": RepeatPolicy.BY_PROGRESS})
    stage.run(stage.ask("SendStreamingMessage", message("plan")))
    got = one(stage.run(stage.ask("GetTask", {"id": TASK, **wanted})))["task"]
    assert (got["status"], got.get("history")) == ({"state": "TASK_STATE_WORKING"}, history)
    assert (got["id"], got["contextId"]) == (TASK, CONTEXT)
    assert not stage.player.misses
    other = Stage(script(planned))
    other.run(other.ask("SendStreamingMessage", message("plan")))
    assert other.miss("GetTask", {"id": TASK}).kind is MissKind.UNKNOWN


@pytest.mark.parametrize(("wanted", "numbers"), [({}, ["1", "2"]), ({"timelineLength": 1}, ["2"])])
def test_by_progress_the_timeline_is_as_long_as_the_client_allows(
    wanted: dict[str, int], numbers: list[str]
) -> None:
    first = task(S.SUBMITTED, timeline=[{"generation": "1"}, {"generation": "2"}])
    stream = call(
        1,
        "SendStreamingMessage",
        message("plan"),
        ("s", 10, first),
        ("s", 20, status(S.WORKING)),
        ("s", 21, "end"),
    )
    stage = Stage(script(stream), policies={"GetTask": RepeatPolicy.BY_PROGRESS})
    stage.run(stage.ask("SendStreamingMessage", message("plan")))
    got = one(stage.run(stage.ask("GetTask", {"id": TASK, **wanted})))["task"]
    assert [each["generation"] for each in got["timeline"]] == numbers


def test_by_progress_a_poll_shows_the_state_of_the_stream() -> None:
    stage = Stage(script(STREAM, LOOK), speed=1.0, policies={"GetTask": RepeatPolicy.BY_PROGRESS})
    stream = stage.ask("SendStreamingMessage", message("plan"))
    stage.run(stream, 25)
    poll = stage.ask("GetTask", {"id": TASK})
    got = one(stage.run(poll, 1))
    assert got == {
        "task": {"id": TASK, "contextId": CONTEXT, "status": {"state": "TASK_STATE_WORKING"}}
    }
    stage.run(stream, 15)
    got = one(stage.run(stage.ask("GetTask", {"id": TASK}), 1))["task"]
    assert got["artifacts"] == [
        {"artifactId": "a", "parts": [{"text": "first "}, {"text": "second"}]}
    ]
    stage.run(stream, 100)
    assert one(stage.run(stage.ask("GetTask", {"id": TASK}), 1))["task"]["status"] == {
        "state": "TASK_STATE_COMPLETED"
    }


def numbered(state: TaskState, number: int) -> dict[str, object]:
    return status(state, generation=str(number))


LIVE = call(
    1,
    "SendStreamingMessage",
    message("plan"),
    ("s", 10, task(S.SUBMITTED, generation="1")),
    ("s", 20, numbered(S.WORKING, 2)),
    ("s", 300, numbered(S.COMPLETED, 3)),
    ("s", 301, "end"),
)
LONG = call(
    2,
    "GetTask",
    {"id": TASK, "currentGeneration": "2"},
    ("s", 270, task(S.COMPLETED, generation="3")),
    ("s", 270, "end"),
    began=30,
)


@pytest.mark.parametrize("speed", [0.0, 1.0])
def test_a_long_poll_waits_for_the_stream(speed: float) -> None:
    stage = Stage(script(LIVE, LONG), speed=speed)
    stream = stage.ask("SendStreamingMessage", message("plan"))
    first = stream.take_due(stage.now)
    stage.now += 20_000_000
    if speed:
        first += stage.run(stream, 15)
        assert said(first) == ["task submitted", "working"]
    poll = stage.ask("GetTask", {"id": TASK, "currentGeneration": "2"})
    if speed:
        stage.now += 275_000_000
        assert poll.take_due(stage.now) == []
        assert poll.wait_reason == "#2.1 waits for a later generation than 2"
        stage.run(stream, 300)
    assert one(stage.run(poll, 300))["task"]["generation"] == "3"


def test_a_long_poll_without_a_stream_gets_the_recorded_answer() -> None:
    stage = Stage(script(LIVE, LONG))
    stream = stage.ask("SendStreamingMessage", message("plan"))
    stream.on_client_gone()
    poll = stage.ask("GetTask", {"id": TASK, "currentGeneration": "2"})
    assert one(stage.run(poll))["task"]["generation"] == "3"
