"""The tasks that a filter selects."""

from collections.abc import Iterable

from a2a_proxy.recording.query.sql import Rows
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import TaskRow, make_key


def matching_tasks(recording: Recording, rows: Iterable[TaskRow], where: str) -> list[TaskRow]:
    """Return the tasks that a matching exchange touched."""
    keys = set(recording.get_queryable().select_ids(where, Rows.EXCHANGES))
    return [
        row
        for row in rows
        if any(make_key(row.session, number) in keys for number in row.task.exchanges)
    ]
