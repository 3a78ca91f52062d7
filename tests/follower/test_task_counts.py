"""Tasks by state, as both kinds of metrics count them."""

from __future__ import annotations

from pathlib import Path

from a2a_proxy.follower.task_counts import task_states
from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Changes, Task
from a2a_proxy.recording.read.reader import Recording
from support_inspect import writer
from support_recording import STARTED


def test_tasks_are_counted_by_current_state(tmp_path: Path) -> None:
    made = writer(tmp_path / "r.a2a.db")
    working, done = int(TaskState.WORKING), int(TaskState.COMPLETED)
    odd = [Task("agent:8000", f"odd {state}", state=state) for state in (99, 12345)]
    made.write(
        [], changes=Changes([], [], [Task("agent:8000", name, state=working) for name in "ab"])
    )
    made.write(
        [], changes=Changes([], [], [Task("agent:8000", name, state=done) for name in "bc"] + odd)
    )
    made.finish(STARTED + 10**9)
    with Recording(tmp_path / "r.a2a.db") as recording:
        found = task_states(recording, recording.read_sessions()[0].id)
    assert {state: count for state, count in found.items() if count} == {
        "working": 1,
        "completed": 2,
        "other": 2,
    }
    assert {state.label for state in TaskState} <= set(found)
