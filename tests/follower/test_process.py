"""The loop of a follower, in this process: rows handed over, checkpoints and status."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from a2a_proxy.follower import batch_reader, process
from a2a_proxy.follower.checkpoint import CheckpointFile
from a2a_proxy.follower.consumer import RowKind
from a2a_proxy.follower.hook_consumer import CallTally
from a2a_proxy.follower.process import Follower, FollowTarget
from a2a_proxy.follower.status import FollowerLag, Status
from a2a_proxy.recording.read.rows import SessionRow
from support_inspect import sample


class Died(Exception):
    """The process is gone."""


class Taker:
    """A consumer that keeps what it is given, and can be made to die."""

    row_kinds = frozenset(RowKind)
    takes_batches = False

    def __init__(self, taken: list[Any], fatal: int) -> None:
        self._taken, self._fatal = taken, fatal

    def start(self, recording: str, session: SessionRow) -> None:
        self._taken.append("start")

    def add_row(self, kind: RowKind, value: Any) -> None:
        if len([each for each in self._taken if each != "start"]) == self._fatal:
            raise Died
        self._taken.append(
            (value.exchange, value.seq) if kind is RowKind.FRAME else f"end of {value.id}"
        )

    def finish_batch(self) -> bool:
        return True

    def poll(self, unfinished: list[int]) -> None:
        pass

    def close(self) -> None:
        self._taken.append("close")


class Run:
    """Follows a recording of three exchanges with nine frames; the ledger outlives each process."""

    def __init__(self, path: Path, ledger: int) -> None:
        self.path, self.ledger = sample(path), CheckpointFile(ledger)
        self.taken: list[Any] = []
        self.messages: list[Status] = []

    def process(self, fatal: int = -1, **aim: Any) -> Follower:
        """A process that dies in the call after `fatal` others."""
        tally = CallTally()
        aim = {"path": str(self.path), **aim}
        return Follower(
            FollowTarget(**aim),
            lambda: Taker(self.taken, fatal),
            self.ledger,
            tally,
            self.messages.append,
        )


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Two frames a batch."""
    monkeypatch.setattr(batch_reader, "MAX_FRAMES", 2)
    with tempfile.TemporaryFile() as ledger:
        yield Run(tmp_path / "r.db", ledger.fileno())


STORY = [
    (1, 0),
    (1, 1),
    (1, 2),
    "end of 1",
    (2, 0),
    (2, 1),
    (2, 2),
    "end of 2",
    (3, 0),
    (3, 1),
    (3, 2),
    "end of 3",
]


def test_every_row_is_handed_over_once(run: Run) -> None:
    """Between `start` and `close`."""
    run.process().run()
    assert run.taken == ["start", *STORY, "close"]


@pytest.mark.parametrize("fatal", range(12))
def test_a_death_in_any_call_repeats_only_that_call(run: Run, fatal: int) -> None:
    """The next process begins with that call; calls that had returned are not repeated."""
    with pytest.raises(Died):
        run.process(fatal).run()
    assert run.taken == ["start", *STORY[:fatal]]
    run.taken.clear()
    run.process().run()
    assert run.taken == ["start", *STORY[fatal:], "close"]


def test_a_stop_after_any_call_repeats_none(run: Run) -> None:
    """`close` is called, and another process can continue there."""
    follower = run.process()
    taken = run.taken

    class Stops(Taker):
        def add_row(self, kind: RowKind, value: Any) -> None:
            super().add_row(kind, value)
            follower.stopping = True

    follower._make_consumer = lambda: Stops(taken, -1)
    follower.run()
    assert run.taken == ["start", STORY[0], "close"]
    run.taken.clear()
    run.process().run()
    assert run.taken == ["start", *STORY[1:], "close"]


def test_lag_is_reported(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told where it is many frames, and again where it has doubled; not for a recording that has no
    need to be kept up with."""
    monkeypatch.setattr(process, "_MIN_REPORTED_LAG", 3)
    run.process().run()
    assert run.messages == []
    with tempfile.TemporaryFile() as ledger:
        run.ledger = CheckpointFile(ledger.fileno())
        run.process(follow=True).run()
    assert run.messages == [FollowerLag(7)]


def test_the_end_of_a_session_is_signalled_before_the_rest_is_read(run: Run) -> None:
    """Before the rest of it is handed over; not where the recording was finished long ago."""
    hurried: list[int] = []
    for follow in (False, True):
        with tempfile.TemporaryFile() as ledger:
            aim, tally = FollowTarget(str(run.path), follow=follow), CallTally()
            make, hurry = (lambda: Taker(run.taken, -1)), (lambda: hurried.append(len(run.taken)))
            run.taken.clear()
            Follower(
                aim, make, CheckpointFile(ledger.fileno()), tally, run.messages.append, hurry
            ).run()
    assert hurried[0] <= 1
    assert len(run.taken) == len(STORY) + 2


def test_a_missing_session_ends_the_follower(run: Run) -> None:
    """A session that is not in the file, and is not waited for, is over; none of its calls is
    made."""
    follower = run.process(session="another")
    assert not follower._is_finished()
    follower.stopping = True
    follower.run()
    assert run.taken == []
