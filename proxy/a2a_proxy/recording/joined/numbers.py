"""Numbers of what several recordings hold within the one that joins them. Pure.

A number of a session stands for another thing in each; here each gets one of its own, in the order in which it is asked
for. That of a connection also tells the file.
"""

from __future__ import annotations

from array import array
from collections import defaultdict

from msgspec.structs import replace

from a2a_proxy.model.exchange import Connection, Exchange
from a2a_proxy.model.finding import Finding
from a2a_proxy.model.frame import Frame
from a2a_proxy.model.note import Note
from a2a_proxy.model.task import Task
from a2a_proxy.recording.read.rows import split_key
from a2a_proxy.recording.store.schema import SESSION_SHIFT

Origin = tuple[int, int]
"""File, from 0, and session."""


def file_of(connection: int, files: int) -> int:
    """Which of so many files a connection of the joined recording is from."""
    return connection % files


class NumberMap:
    """What became of the numbers of `files` recordings, and values with the new ones."""

    def __init__(self, files: int) -> None:
        self._files = files
        self._exchanges: defaultdict[Origin, array[int]] = defaultdict(lambda: array("q", [0]))
        """By its old number the new one; 0 where it has none yet."""
        self._origins: list[Origin] = []
        self._places = array("q")
        """By new number, from 1, of an exchange: which of `_origins`, and the old number."""
        self._connections: dict[tuple[Origin, int], int] = {}

    def has_exchange(self, of: Origin, number: int) -> bool:
        """The exchange has its number already."""
        known = self._exchanges[of]
        return number < len(known) and known[number] > 0

    def exchange_number(self, of: Origin, number: int) -> int:
        """Of an exchange; none stays none."""
        if not number:
            return 0
        known = self._exchanges[of]
        if number >= len(known):
            known.extend([0] * (number + 1 - len(known)))
        if not known[number]:
            if of not in self._origins:
                self._origins.append(of)
            self._places.append(self._origins.index(of) << SESSION_SHIFT | number)
            known[number] = len(self._places)
        return known[number]

    def connection_number(self, of: Origin, number: int) -> int:
        """Of a connection."""
        if not number:
            return 0
        place = self._connections.setdefault((of, number), len(self._connections) + 1)
        return place * self._files + of[0]

    def origin(self, exchange: int) -> tuple[Origin, int] | None:
        """Where an exchange of this new number is from, and its number there."""
        if not 0 < exchange <= len(self._places):
            return None
        place, number = split_key(self._places[exchange - 1])
        return self._origins[place], number

    def renumber_connection(self, of: Origin, value: Connection) -> Connection:
        """A connection as the joined recording has it."""
        return replace(value, id=self.connection_number(of, value.id))

    def renumber_exchange(self, of: Origin, value: Exchange) -> Exchange:
        """An exchange."""
        return replace(
            value, id=self.exchange_number(of, value.id), connection=self.connection_number(of, value.connection)
        )

    def renumber_frame(self, of: Origin, value: Frame) -> Frame:
        """A frame."""
        return replace(
            value,
            exchange=self.exchange_number(of, value.exchange),
            connection=self.connection_number(of, value.connection),
        )

    def renumber_task(self, of: Origin, value: Task) -> Task:
        """A task."""
        missed = tuple(
            replace(gap, exchange=self.exchange_number(of, gap.exchange), by=self.exchange_number(of, gap.by))
            for gap in value.missed
        )
        return replace(
            value, missed=missed, exchanges=tuple(self.exchange_number(of, each) for each in value.exchanges)
        )

    def renumber_finding(self, of: Origin, value: Finding) -> Finding:
        """A finding."""
        return replace(
            value,
            exchange=self.exchange_number(of, value.exchange),
            connection=self.connection_number(of, value.connection),
        )

    def renumber_note(self, of: Origin, value: Note) -> Note:
        """A note about an exchange or a frame."""
        return replace(value, exchange=self.exchange_number(of, value.exchange))
