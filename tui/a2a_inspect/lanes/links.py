"""Links from a task to the rest of its conversation: its exchanges, its segments and its hand-offs.

`TaskLinks` queries the recording for one conversation. `SessionLinks` reads a session once, for
callers that process all its conversations, because each query of `TaskLinks` examines every
exchange of the session.
"""

import json
from collections import defaultdict
from collections.abc import Iterable

from a2a_inspect.data.agent_names import AgentNames
from a2a_proxy.model.values import Handoff
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import split_key
from a2a_proxy.recording.store.schema import SESSION_SHIFT

_MAX_HANDOFFS = 10_000
"""Maximum hand-offs of a session; later ones are not followed."""
_EXCHANGES_OF_TASK = (
    "SELECT id FROM exchange WHERE id >= ? AND id < ? AND task = (SELECT ident FROM task WHERE id "
    "= ?)"
)
_ROWS_OF_TASKS = "task IN (SELECT ident FROM task WHERE id IN (SELECT value FROM json_each(?)))"
_SEGMENT_TABLES = ("segment", "interruption")


class TaskLinks:
    """Links of one conversation, queried on demand."""

    def __init__(self, recording: Recording, session: int) -> None:
        self._db = recording.db
        self.agent_names = AgentNames(recording, session)
        self._key_range = (session << SESSION_SHIFT, (session + 1) << SESSION_SHIFT)
        self.handoffs: list[Handoff] = [
            row.handoff for row in recording.read_handoffs(session, limit=_MAX_HANDOFFS)
        ]

    def exchanges_of(self, task: int) -> Iterable[int]:
        """Return numbers of the exchanges that name the task of this row."""
        return [
            split_key(row[0])[1]
            for row in self._db.execute(_EXCHANGES_OF_TASK, (*self._key_range, task))
        ]

    def row_keys(self, table: str, tasks: list[int]) -> list[int]:
        """Return keys of the rows in a segment table that name one of these tasks, in order."""
        query = f"SELECT id FROM {table} WHERE id >= ? AND id < ? AND {_ROWS_OF_TASKS} ORDER BY id"
        return [row[0] for row in self._db.execute(query, (*self._key_range, json.dumps(tasks)))]


class SessionLinks(TaskLinks):
    """Links of a whole session. Holds two integers for each exchange and each segment."""

    def __init__(self, recording: Recording, session: int) -> None:
        super().__init__(recording, session)
        rows = self._db.execute("SELECT id, ident FROM task WHERE session = ?", (session,))
        self._idents: dict[int, int] = dict(rows.fetchall())
        self._exchanges_by_task = self._rows_by_task("exchange")
        self._segments_by_task = {table: self._rows_by_task(table) for table in _SEGMENT_TABLES}

    def exchanges_of(self, task: int) -> Iterable[int]:
        """Return as `TaskLinks.exchanges_of`."""
        return [split_key(each)[1] for each in self._exchanges_by_task.get(self._idents[task], ())]

    def row_keys(self, table: str, tasks: list[int]) -> list[int]:
        """Return as `TaskLinks.row_keys`."""
        of = self._segments_by_task.get(table, {})
        return sorted(
            each for ident in {self._idents[task] for task in tasks} for each in of.get(ident, ())
        )

    def _rows_by_task(self, table: str) -> dict[int, list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for row, task in self._db.execute(
            f"SELECT id, task FROM {table} WHERE id >= ? AND id < ?", self._key_range
        ):
            if task:
                found[task].append(row)
        return found
