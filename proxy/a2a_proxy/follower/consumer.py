"""What is handed on of a recording, and to whom."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Protocol

from a2a_proxy.recording.rows import SessionRow


class Kind(IntEnum):
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
    def wants(self) -> frozenset[Kind]:
        """What it is to be given."""

    def start(self, recording: str, session: SessionRow) -> None:
        """The session, before anything else."""

    def take(self, kind: Kind, value: Any) -> None:
        """One value of the model: a Frame with its payload, a Finding, a Segment, an Exchange ..."""

    def close(self) -> None:
        """There is no more."""
