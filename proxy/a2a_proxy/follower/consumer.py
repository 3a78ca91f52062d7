"""The rows of a recording that followers hand over, and the interface of their consumers."""

from enum import IntEnum
from typing import Any, Protocol

from a2a_proxy.recording.read.rows import SessionRow


class RowKind(IntEnum):
    """The kind of a row. Rows with the same time are ordered by this number."""

    FRAME = 0
    FINDING = 1
    SEGMENT = 2
    """A segment that has ended; the next three are ended ones too."""
    INTERRUPTION = 3
    HANDOFF = 4
    EXCHANGE = 5


class Consumer(Protocol):
    """Takes the rows of one session. An exception from it ends the process."""

    @property
    def row_kinds(self) -> frozenset[RowKind]:
        """The kinds of rows it takes."""

    @property
    def takes_batches(self) -> bool:
        """Whether rows count as handed over once `finish_batch` has returned, a whole batch at
        once; else each by itself."""

    def start(self, recording: str, session: SessionRow) -> None:
        """Begin a session, before any other call."""

    def add_row(self, kind: RowKind, value: Any) -> None:
        """Take one value of the model: a Frame with its payload, a Finding, a Segment, an Exchange
        ..."""

    def finish_batch(self) -> bool:
        """Finish a batch. Returns False if it must be handed over again, because the follower was
        stopped."""

    def poll(self, unfinished: list[int]) -> None:
        """Called at intervals, even without new rows, with the keys of the known exchanges that
        have not ended."""

    def close(self) -> None:
        """End the session: there are no more rows."""
