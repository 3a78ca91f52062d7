"""The time of a filter over a recording: its first page, its first match, and the whole recording
if nothing matches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from a2a_proxy.recording.query.sql import Rows
from a2a_proxy.recording.read.reader import Recording

PAGE = 100
"""Rows on a screen."""
COLUMNS = (
    "task:{task}",
    "ctx:{context}",
    "op:ListTasks",
    "op:SendMessage",
    "binding:stdio",
    "err",
    "gap",
)
COLUMNS += (
    "state:failed",
    "state:working",
    "-state:failed",
    "sev:error",
    "status:>=400",
    "code:TASK_NOT_FOUND",
)
COLUMNS += ("size>1MB", "dur>1h", "t:>+0s")
"""Filters without payloads: some have early matches, some none, so that all rows are read."""
WORDS = (
    "the",
    "zyzzyva",
    "text~zyz+y",
    "$.result.statusUpdate.status.state:zyzzyva",
    "part:file",
    "header:zyzzyva",
)
"""Filters that read payloads or headers; only the first one has matches."""


class Took(msgspec.Struct, frozen=True):
    """One filter over one kind of row; seconds of processor time."""

    filter: str
    rows: str
    found: int
    page: float
    """Until the first page, or the end."""
    sign: float
    """Until the first row or the first report of progress."""


def columns(recording: Path) -> list[Took]:
    """Return every filter of COLUMNS, over frames and over exchanges; the best of three."""
    with Recording(recording) as opened:
        task = list(opened.read_tasks())[-PAGE].task
        named = [each.format(task=task.task_id, context=task.context_id) for each in COLUMNS]
        return [_best(opened, each, rows) for each in named for rows in Rows]


def words(recording: Path) -> list[Took]:
    """Return every filter of WORDS; one attempt, because some take long."""
    with Recording(recording) as opened:
        return [_took(opened, each, rows) for each in WORDS for rows in Rows]


def _best(recording: Recording, expression: str, rows: Rows) -> Took:
    return min((_took(recording, expression, rows) for _ in range(3)), key=lambda each: each.page)


def _took(recording: Recording, expression: str, rows: Rows) -> Took:
    find: Callable[..., Iterator[object]]
    find = recording.find_frames if rows is Rows.FRAMES else recording.find_exchanges
    signs: list[float] = []

    def watch(_looked: int, _total: int) -> bool:
        signs.append(time.thread_time())
        return True

    began = time.thread_time()
    found = 0
    for _ in find(expression, limit=PAGE, watch=watch):
        signs.append(time.thread_time())
        found += 1
    return Took(expression, rows.name.lower(), found, time.thread_time() - began, signs[0] - began)
