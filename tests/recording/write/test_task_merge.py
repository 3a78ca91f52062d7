"""A task that the decoders forgot and saw again keeps what the recording had of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from sqlite3 import Connection

import msgspec
import pytest

from a2a_proxy.model.values import ArtifactState, Changes, MissedGenerations, Support, Task
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.store.database import open_private
from a2a_proxy.recording.write.task_merge import merge_tasks
from a2a_proxy.recording.write.writer import Writer
from support_recording import STARTED, facts

REPORT = ArtifactState("report", "Report", 5, 7, 900, True, STARTED + 3, STARTED + 8)
RICH = Task(
    "agent:8000",
    "t1",
    "c1",
    "",
    3,
    ((STARTED + 1, 1), (STARTED + 2, 2), (STARTED + 9, 3)),
    STARTED + 1,
    STARTED + 9,
    4,
    ((1, 1), (3, 4)),
    (MissedGenerations(2, 2, STARTED + 4, 1),),
    Support.YES,
    (REPORT,),
    12,
    (1, 2),
)
LATER = Task(
    "agent:8000",
    "t1",
    "",
    "",
    3,
    ((STARTED + 50, 3),),
    STARTED + 50,
    STARTED + 50,
    exchanges=(9,),
    messages=1,
)


@pytest.fixture
def db() -> Iterator[Connection]:
    with closing(open_private()) as connection:
        yield connection


def stored(db: Connection, *snapshots: Task) -> Task:
    """What the recording has after these snapshots, each in a transaction of its own."""
    writer = Writer.on_connection(db, facts())
    for snapshot in snapshots:
        writer.write((), (), Changes([], [], [snapshot]))
    (row,) = Recording.from_connection(db, "test").read_tasks()
    return row.task


def test_a_late_call_is_added_to_the_task(db: Connection) -> None:
    made = stored(db, RICH, LATER)
    assert made == msgspec.structs.replace(RICH, last=STARTED + 50, exchanges=(1, 2, 9))


def test_repeated_snapshots_are_added_once(db: Connection) -> None:
    """A commit may repeat it."""
    more = msgspec.structs.replace(
        LATER, states=(*LATER.states, (STARTED + 60, 2)), state=2, last=STARTED + 60
    )
    made = stored(db, RICH, LATER, LATER, more, more)
    assert made.states == (*RICH.states, (STARTED + 60, 2))
    assert (made.state, made.messages, made.artifacts) == (2, 12, (REPORT,))


def test_a_task_forgotten_by_the_writer_is_looked_up(db: Connection) -> None:
    others = [msgspec.structs.replace(RICH, task_id=f"other {n}") for n in range(4097)]
    writer = Writer.on_connection(db, facts())
    for tasks in ([RICH], others, [LATER], [LATER]):
        writer.write((), (), Changes([], [], tasks))
    made = Recording.from_connection(db, "test").read_task("t1")[0].task
    assert (made.states, made.artifacts, made.exchanges) == (RICH.states, RICH.artifacts, (1, 2, 9))


def test_a_task_followed_throughout_is_replaced(db: Connection) -> None:
    """It was followed all the time: what it says is all there is to say."""
    fewer = msgspec.structs.replace(RICH, artifacts=(), missed=())
    assert stored(db, RICH, fewer) == fewer


def test_generations_are_joined() -> None:
    """A gap that was made good after the task had been forgotten is told once."""
    healed = MissedGenerations(2, 2, STARTED + 4, 1, STARTED + 50, 9, 6)
    again = msgspec.structs.replace(
        LATER, generation=6, seen=((5, 6),), missed=(healed,), support=Support.YES
    )
    made = merge_tasks(RICH, again)
    assert (made.generation, made.seen, made.missed) == (6, ((1, 1), (3, 6)), (healed,))


def test_artifacts_are_joined_by_their_ids() -> None:
    again = ArtifactState("report", "", 1, 9, 100, False, STARTED + 50, STARTED + 51)
    fresh = ArtifactState("log", "Log", 1, 1, 5, True, STARTED + 52, STARTED + 52)
    made = merge_tasks(RICH, msgspec.structs.replace(LATER, artifacts=(again, fresh)))
    assert made.artifacts == (
        ArtifactState("report", "Report", 5, 9, 900, True, STARTED + 3, STARTED + 51),
        fresh,
    )


def test_lists_stay_bounded() -> None:
    many = msgspec.structs.replace(
        LATER,
        states=tuple((STARTED + 50 + n, 1 + n % 2) for n in range(64)),
        exchanges=tuple(range(100, 356)),
        seen=tuple((number, number) for number in range(10, 138, 2)),
        missed=tuple(
            MissedGenerations(number, number, STARTED + 60, 9) for number in range(11, 139, 2)
        ),
    )
    made = merge_tasks(RICH, many)
    assert (len(made.states), len(made.exchanges), len(made.seen), len(made.missed)) == (
        64,
        256,
        64,
        64,
    )
    assert made.exchanges[-1] == 355
