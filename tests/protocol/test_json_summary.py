"""Index columns of unary answers in JSON."""

from __future__ import annotations

from a2a_proxy.model.values import EventKind
from a2a_proxy.protocol.json_summary import summarise_answer
from a2a_proxy.protocol.operations import ResponseKind
from a2a_proxy.protocol.summary import make_summary


def test_an_answer_with_a_push_configuration_names_its_task() -> None:
    answer = {
        "taskId": "t1",
        "contextId": "c1",
        "pushNotificationConfig": {"url": "http://localhost"},
    }
    assert summarise_answer(ResponseKind.PUSH_CONFIG, answer) == make_summary(
        EventKind.PUSH_CONFIG, "t1"
    )
