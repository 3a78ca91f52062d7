from __future__ import annotations

import pytest

from a2a_proxy.model.values import EventKind, FrameKind
from a2a_proxy.protocol.session_facts import SessionContext
from support_conversation import TO_AGENT, Http, play
from support_messages import ask, status, task

_V3_TASK = {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "working"}}
_BARE = {"id": "t1", "status": {"state": "working"}}


@pytest.mark.parametrize(
    ("body", "fields", "event", "dialect"),
    [
        (status("WORKING", generation="3"), {}, EventKind.STATUS, "1.1"),
        ({"task": task()}, {"content_type": "application/a2a+json"}, EventKind.TASK, "1.0"),
        (_V3_TASK, {}, EventKind.TASK, "0.3"),
        (_BARE, {"x_a2a_notification_token": "s"}, EventKind.TASK, ""),
    ],
)
def test_pushes(body: dict, fields: dict, event: EventKind, dialect: str) -> None:
    """A push is an event that travels towards the listener; every form of its body is known
    (Q-26)."""
    played = play(Http().request("POST /hook", body, **fields).answer(b"", "204 No Content"))
    push, answer = played.frames

    assert (push.kind, push.event, push.task_id, push.direction) == (
        FrameKind.EVENT,
        event,
        "t1",
        TO_AGENT,
    )
    assert (played.exchange.binding, played.exchange.dialect, played.exchange.events) == (
        "webhook",
        dialect,
        1,
    )
    assert (answer.kind, answer.note) == (FrameKind.OTHER, "status 204")


@pytest.mark.parametrize(
    "params",
    [
        ("CreateTaskPushNotificationConfig", {"taskId": "t1", "url": "http://agent:8000/hook"}),
        (
            "tasks/pushNotificationConfig/set",
            {"taskId": "t1", "pushNotificationConfig": {"url": "http://agent:8000/hook"}},
        ),
        (
            "message/send",
            {
                **ask(),
                "configuration": {"pushNotificationConfig": {"url": "http://agent:8000/hook"}},
            },
        ),
        (
            "tasks/send",
            {"id": "t", "pushNotification": {"url": "http://agent:8000/hook"}, "message": {}},
        ),
    ],
)
def test_known_urls(params: tuple[str, dict]) -> None:
    """A bare task without any mark is a push where a configuration named that URL, and other HTTP
    where none did."""
    shared = SessionContext()
    play(Http().call(*params).result(None), shared)

    assert play(Http().request("POST /hook", _BARE).answer(), shared).exchange.binding == "webhook"
    assert play(Http().request("POST /hook", _BARE).answer()).exchange.binding == "other"
