"""The tree of a recording: sessions, contexts, tasks, exchanges, frames. Children are read on
demand, by page.

The functions are queries for `RecordingSource.run_query`. Contexts and tasks are ordered by their
first exchange.
"""

from collections.abc import Iterator
from enum import IntEnum
from typing import Any

import msgspec

from a2a_inspect.data.first_words import first_words
from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import EventKind, Frame
from a2a_proxy.model.wire import Direction
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, key_bounds, make_key
from a2a_proxy.recording.store.codec import unpack_ident

_STATES = {state.value for state in TaskState if state}
CHILDREN_PER_PAGE = 100
"""Children per page."""


class TreeLevel(IntEnum):
    """Depth of a branch."""

    SESSION = 1
    CONTEXT = 2
    TASK = 3
    EXCHANGE = 4
    FRAME = 5


class TreeBranch(msgspec.Struct, frozen=True):
    """A branch of the tree."""

    level: TreeLevel
    label: str
    """Label without control characters, with the number of children."""
    session: int
    context: int = 0
    """Id of the context's row in `ident`."""
    context_id: str = ""
    task: int = 0
    task_id: str = ""
    exchange: int = 0
    """Key of the exchange, or of the first exchange in the branch."""
    seq: int = -1
    words: str = ""
    """The first words of a context or a task, without control characters."""

    @property
    def identity(self) -> tuple[int, ...]:
        """Identity of the branch, which does not change while the recording grows."""
        return (
            self.level,
            self.session,
            self.context,
            self.task,
            self.exchange * (self.level > TreeLevel.TASK),
            self.seq,
        )

    @property
    def is_leaf(self) -> bool:
        """Whether the branch has no children."""
        return self.level is TreeLevel.FRAME

    @property
    def page_cursor(self) -> int:
        """Key after which the next sibling page begins."""
        return {TreeLevel.SESSION: self.session, TreeLevel.FRAME: self.seq}.get(
            self.level, self.exchange
        )


class TreePage(msgspec.Struct, frozen=True):
    """A page of children."""

    branches: tuple[TreeBranch, ...] = ()
    has_more: bool = False


def read_children(
    recording: Recording, branch: TreeBranch | None, after: int | None = None
) -> TreePage:
    """Return a page of a branch's children after this cursor, or of the sessions if there is no
    branch."""
    read = {
        TreeLevel.SESSION: _context_branches,
        TreeLevel.CONTEXT: _task_branches,
        TreeLevel.TASK: _exchange_branches,
        TreeLevel.EXCHANGE: _frame_branches,
    }
    found = list(
        _session_branches(recording, after or 0)
        if branch is None
        else read[branch.level](recording, branch, after)
    )
    return TreePage(tuple(found[:CHILDREN_PER_PAGE]), len(found) > CHILDREN_PER_PAGE)


def _session_branches(recording: Recording, after: int) -> Iterator[TreeBranch]:
    query = "SELECT count(*) FROM exchange WHERE id > ? AND id < ?"
    rows = [row for row in recording.read_sessions() if row.id > after][: CHILDREN_PER_PAGE + 1]
    for row in rows:
        count = recording.db.execute(query, key_bounds(row.id)).fetchone()[0]
        label = (
            f"session {row.id}  {text.format_time(row.facts.started)}  "
            f"{text.format_count(count, 'exchange')}"
        )
        yield TreeBranch(TreeLevel.SESSION, label, row.id)


def _group_exchanges(
    recording: Recording, branch: TreeBranch, column: str, after: int | None
) -> list[tuple[int, int, int]]:
    """Return `ident` id, number of exchanges and key of the first exchange of each group."""
    inside, fixed = (
        ("AND context = ?", (branch.context,)) if branch.level is TreeLevel.CONTEXT else ("", ())
    )
    query = (
        f"SELECT {column}, count(*), min(id) AS begun FROM exchange WHERE id > ? AND id < ? "
        f"{inside} GROUP BY {column} HAVING begun > ? ORDER BY begun LIMIT {CHILDREN_PER_PAGE + 1}"
    )
    bounds = key_bounds(branch.session)
    return recording.db.execute(query, (*bounds, *fixed, after or 0)).fetchall()


def _context_branches(
    recording: Recording, branch: TreeBranch, after: int | None
) -> Iterator[TreeBranch]:
    for number, count, first in _group_exchanges(recording, branch, "context", after):
        name = _find_identifier(recording, number)
        label = f"context {_short_id(name)}" if name else "no context"
        words = first_words(recording, first) if name else ""
        yield TreeBranch(
            TreeLevel.CONTEXT,
            f"{label}  {count}",
            branch.session,
            number,
            name,
            exchange=first,
            words=words,
        )


def _task_branches(
    recording: Recording, branch: TreeBranch, after: int | None
) -> Iterator[TreeBranch]:
    for number, count, first in _group_exchanges(recording, branch, "task", after):
        name = _find_identifier(recording, number)
        label = f"task {_short_id(name)}" if name else "no task"
        words = first_words(recording, first) if name else ""
        label = f"{label}  {count}"
        yield _child_branch(
            branch, TreeLevel.TASK, label, task=number, task_id=name, exchange=first, words=words
        )


def _exchange_branches(
    recording: Recording, branch: TreeBranch, after: int | None
) -> Iterator[TreeBranch]:
    query = (
        "SELECT id FROM exchange WHERE id > ? AND id < ? AND context = ? AND task = ? ORDER BY id "
        f"LIMIT {CHILDREN_PER_PAGE + 1}"
    )
    bounds = max(make_key(branch.session, 0), after or 0), make_key(branch.session + 1, 0)
    for (number,) in recording.db.execute(query, (*bounds, branch.context, branch.task)).fetchall():
        row = recording.read_exchange(number)
        if row is not None:
            yield _child_branch(
                branch, TreeLevel.EXCHANGE, _exchange_label(recording, row), exchange=number
            )


def _exchange_label(recording: Recording, row: ExchangeRow) -> str:
    query = "SELECT count(*) FROM frame WHERE session = ? AND exchange = ?"
    frames = recording.db.execute(query, (row.session, row.exchange.id)).fetchone()[0]
    return make_visible(
        f"#{row.exchange.id} {text.exchange_title(row.exchange)} "
        f"{text.outcome_label(row.exchange)}  {frames}"
    )


def _frame_branches(
    recording: Recording, branch: TreeBranch, after: int | None
) -> Iterator[TreeBranch]:
    rows = recording.read_frames(
        branch.exchange,
        after=-1 if after is None else after,
        limit=CHILDREN_PER_PAGE + 1,
        payloads=False,
    )
    for row in rows:
        yield _child_branch(
            branch,
            TreeLevel.FRAME,
            _frame_label(row.frame),
            exchange=branch.exchange,
            seq=row.frame.seq,
        )


def _frame_label(frame: Frame) -> str:
    arrow = "→" if frame.direction is Direction.TO_AGENT else "←"
    event = (
        frame.event.name.lower() if frame.event is not EventKind.NONE else frame.kind.name.lower()
    )
    state = TaskState(frame.state).label if frame.state in _STATES else ""
    return make_visible(f"{frame.seq} {arrow} {event} {state}".rstrip())


def _child_branch(parent: TreeBranch, level: TreeLevel, label: str, **changes: Any) -> TreeBranch:
    return msgspec.structs.replace(parent, level=level, label=label, **{"words": "", **changes})


def _find_identifier(recording: Recording, number: int) -> str:
    if number < 0:
        return str(-1 - number)
    row = (
        recording.db.execute("SELECT value FROM ident WHERE id = ?", (number,)).fetchone()
        if number
        else None
    )
    return unpack_ident(row[0]) if row is not None else ""


def _short_id(name: str) -> str:
    return make_visible(text.shorten_id(name))
