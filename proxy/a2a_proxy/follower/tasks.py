"""How many tasks of a session are in which state."""

from __future__ import annotations

from a2a_proxy.model.event import TaskState
from a2a_proxy.recording.reader import Recording

_COUNT = "SELECT state, count(*) FROM task WHERE session = ? GROUP BY state"


def task_states(recording: Recording, session: int) -> dict[int, int]:
    """Tasks by the number of their state; each state of the protocol is there."""
    return {**dict.fromkeys(map(int, TaskState), 0), **dict(recording.db.execute(_COUNT, (session,)).fetchall())}
