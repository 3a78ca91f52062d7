"""What is handed on of a recording, and to whom."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Protocol

from a2a_proxy.recording.read.rows import SessionRow


class RowKind(IntEnum):
    """What a row is. Of rows with one time, those with the lower number come first."""

    FRAME = 0
    FINDING = 1
    SEGMENT = 2
    """A segment that has ended; the same goes for the next three."""
    INTERRUPTION = 3
    HANDOFF = 4
    EXCHANGE = 5


class Consumer(Protocol):
    """Takes the rows of one session. What it raises ends the process."""

    @property
    def row_kinds(self) -> frozenset[RowKind]:
        """What it is to be given."""

    @property
    def takes_batches(self) -> bool:
        """Values count as handed over when `settle` has returned, all of a batch at once; else each by itself."""

    def start(self, recording: str, session: SessionRow) -> None:
        """The session, before anything else."""

    def add_row(self, kind: RowKind, value: Any) -> None:
        """One value of the model: a Frame with its payload, a Finding, a Segment, an Exchange ..."""

    def finish_batch(self) -> bool:
        """All values of a batch have been given; False where they have to be given again, for it was told to stop."""

    def poll(self, unfinished: list[int]) -> None:
        """Now and then, also where nothing comes: keys of the exchanges that are known and not over."""

    def close(self) -> None:
        """There is no more."""
