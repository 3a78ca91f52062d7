"""Webhooks are sent in their place on the timeline to the URL of the current client."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from a2a_proxy.model.event import TaskState
from a2a_proxy.replay.core.script import LineKind, RecordedPush
from support_replay import MS, START, TASK, Stage, call, message, said, script, status, task

S = TaskState
THEN = {"url": "http://127.0.0.1:9000/hook", "token": "redacted-0123456789ab"}
NOW = {"url": "http://127.0.0.1:4711/mine", "token": "of-now"}
PUSH = RecordedPush(
    place="#5", at=START + 25 * MS, value=status(S.WORKING), url="127.0.0.1:9000/hook", task=TASK
)


def sent(config: dict[str, Any] | None) -> dict[str, Any]:
    asked = message("plan")
    return (
        asked
        if config is None
        else asked | {"configuration": {"taskPushNotificationConfig": config}}
    )


STREAM = call(
    1,
    "SendStreamingMessage",
    sent(THEN),
    ("s", 10, task(S.SUBMITTED)),
    ("s", 20, status(S.WORKING)),
    ("s", 30, status(S.COMPLETED)),
    ("s", 31, "end"),
)


def test_a_webhook_is_posted_in_its_place_to_the_current_url() -> None:
    stage = Stage(script(STREAM, pushes=(PUSH,)))
    sends = stage.run(stage.ask("SendStreamingMessage", sent(NOW)))
    assert said(sends) == ["task submitted", "working", "push", "completed", "end"]
    assert sends[2].url == "http://127.0.0.1:4711/mine"
    assert sends[2].config == NOW
    assert sends[2].value == PUSH.value
    assert stage.player.wake_time is None


def test_a_webhook_keeps_the_recorded_pause() -> None:
    stage = Stage(script(STREAM, pushes=(PUSH,)), speed=1.0)
    play = stage.ask("SendStreamingMessage", sent(NOW))
    assert said(stage.run(play, 20)) == ["task submitted", "working"]
    assert stage.player.wake_time == stage.now + 5 * MS
    assert stage.player.take_pushes(stage.now + 4 * MS) == []
    assert [send.what for send in stage.player.take_pushes(stage.now + 5 * MS)] == [LineKind.PUSH]


def test_a_webhook_after_the_end_of_the_call_is_scheduled() -> None:
    answer = call(1, "SendMessage", sent(THEN), ("s", 10, task(S.SUBMITTED)), ("s", 10, "end"))
    late = RecordedPush(
        place="#5",
        at=START + 500 * MS,
        value=status(S.COMPLETED),
        url="127.0.0.1:9000/hook",
        task=TASK,
    )
    stage = Stage(script(answer, pushes=(late,)), speed=1.0)
    stage.run(stage.ask("SendMessage", sent(NOW)), 10)
    assert stage.player.wake_time == stage.now + 490 * MS
    assert [send.url for send in stage.player.take_pushes(stage.now + 490 * MS)] == [NOW["url"]]


def test_without_a_registration_nothing_is_posted() -> None:
    made = replace(STREAM, request=sent(None))
    stage = Stage(script(made, pushes=(PUSH,)))
    assert "push" not in said(stage.run(stage.ask("SendStreamingMessage", sent(None))))
    assert stage.player.wake_time is None


def registration(number: int, config: dict[str, Any]) -> Any:
    return call(
        number,
        "CreateTaskPushNotificationConfig",
        {"taskId": TASK, **config},
        ("s", 1, "end"),
        began=11,
    )


@pytest.mark.parametrize("deleted", [False, True])
def test_a_deleted_registration_gets_no_webhook(deleted: bool) -> None:
    stream = call(
        1,
        "SendStreamingMessage",
        message("plan"),
        ("s", 10, task()),
        ("s", 900, status(S.COMPLETED)),
        ("s", 901, "end"),
    )
    delete = call(
        3,
        "DeleteTaskPushNotificationConfig",
        {"taskId": TASK, "id": "c1"},
        ("s", 1, "end"),
        began=12,
    )
    late = RecordedPush(
        place="#5",
        at=START + 905 * MS,
        value=status(S.COMPLETED),
        url="127.0.0.1:9000/hook",
        task=TASK,
    )
    stage = Stage(
        script(stream, registration(2, THEN | {"id": "c1"}), delete, pushes=(late,)), gap=1
    )
    play = stage.ask("SendStreamingMessage", message("plan"))
    stage.now += 1
    assert said(play.take_due(stage.now)) == ["task working"]
    stage.run(stage.ask("CreateTaskPushNotificationConfig", {"taskId": TASK, "id": "c9", **NOW}))
    if deleted:
        stage.run(stage.ask("DeleteTaskPushNotificationConfig", {"taskId": TASK, "id": "c9"}))
    stage.run(play, 10)
    posted = stage.player.take_pushes(stage.now + 10)
    assert [send.url for send in posted] == ([] if deleted else [NOW["url"]])


def test_each_webhook_goes_to_its_own_current_url() -> None:
    one, two = (
        THEN | {"id": "c1", "url": "http://127.0.0.1:9000/one"},
        THEN | {"id": "c2", "url": "http://127.0.0.1:9000/two"},
    )
    pushes = tuple(
        RecordedPush(
            place=f"#{n}",
            at=START + 950 * MS,
            value=status(S.COMPLETED),
            url=f"127.0.0.1:9000/{way}",
            task=TASK,
        )
        for n, way in ((6, "one"), (7, "two"))
    )
    stream = call(1, "SendStreamingMessage", message("plan"), ("s", 10, task()), ("s", 11, "end"))
    stage = Stage(script(stream, registration(2, one), registration(3, two), pushes=pushes))
    stage.run(stage.ask("SendStreamingMessage", message("plan")))
    for number, way in ((1, "one"), (2, "two")):
        config = {
            "taskId": TASK,
            "id": f"c{number}",
            "url": f"http://127.0.0.1:1/now/{way}",
            "token": "t",
        }
        stage.run(stage.ask("CreateTaskPushNotificationConfig", config))
    assert [send.url for send in stage.player.take_pushes(stage.now)] == [
        "http://127.0.0.1:1/now/one",
        "http://127.0.0.1:1/now/two",
    ]
