"""Counts the tasks of a session by state."""

from a2a_proxy.model.event import TaskState
from a2a_proxy.recording.read.reader import Recording

OTHER = "other"
_COUNT = "SELECT state, count(*) FROM task WHERE session = ? GROUP BY state"


def task_states(recording: Recording, session: int) -> dict[str, int]:
    """Return the number of tasks by state.

    Each state of the protocol is present. All other states count as `other`, because peers may
    invent any number of them.
    """
    known = {int(state): state.label for state in TaskState}
    counts = dict.fromkeys(known.values(), 0)
    for state, count in recording.db.execute(_COUNT, (session,)):
        word = known.get(state, OTHER)
        counts[word] = counts.get(word, 0) + count
    return counts
