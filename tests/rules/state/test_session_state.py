"""What is known of tasks from lists decides how later answers are judged."""

from __future__ import annotations

import pytest

from a2a_proxy.rules.examples.conversation import rpc, rpc_stream
from a2a_proxy.rules.examples.objects import snapshot, status, task
from a2a_proxy.rules.examples.script import Script
from support_rules import findings


def listed(*states: str) -> Script:
    tasks = [task(state, id=f"t{number}") for number, state in enumerate(states, 1)]
    page = {"tasks": tasks, "totalSize": len(tasks), "pageSize": 50, "nextPageToken": ""}
    return rpc("ListTasks", {}, page)


FOLLOWED = rpc_stream(
    "SubscribeToTask", {"id": "t1"}, snapshot("WORKING"), status("COMPLETED"), id=2
)


def test_a_task_that_a_list_shows_at_work_may_end_later() -> None:
    assert findings(listed("WORKING") + FOLLOWED) == []
    assert findings(listed("SUBMITTED", "WORKING") + FOLLOWED) == []


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED", "CANCELED", "REJECTED"])
def test_a_task_that_a_list_shows_finished_does_not_work_again(state: str) -> None:
    assert findings(listed(state) + FOLLOWED)
    assert findings(listed("WORKING", state) + FOLLOWED) == []
