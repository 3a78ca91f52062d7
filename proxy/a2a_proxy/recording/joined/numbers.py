"""Renumbering of rows of several recordings for the joined one. Pure.

The same number means different objects in different sessions; here each object gets a new number,
in the order of the requests. The number of a connection also determines its file.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from typing import TypeVar

from msgspec.structs import replace

from a2a_proxy.model.values import Connection, Exchange, Finding, Frame, Note, Task
from a2a_proxy.recording.read.rows import split_key
from a2a_proxy.recording.store.schema import SESSION_SHIFT

_Placed = TypeVar("_Placed", Frame, Finding)
Origin = tuple[int, int]
"""Index of the file, from 0, and number of the session."""


def file_of(connection: int, files: int) -> int:
    """Return the index of the file, out of `files`, of a connection in the joined recording."""
    return connection % files


class NumberMap:
    """Mapping of the numbers of `files` recordings to new numbers, and back."""

    def __init__(self, files: int) -> None:
        self._files = files
        self._exchanges: defaultdict[Origin, array[int]] = defaultdict(lambda: array("q", [0]))
        """New number by old number; 0 if it has none yet."""
        self._origins: list[Origin] = []
        self._places = array("q")
        """Index in `_origins` and old number of each exchange, by new number from 1."""
        self._connections: dict[tuple[Origin, int], int] = {}

    def has_exchange(self, of: Origin, number: int) -> bool:
        """Whether the exchange has a new number already."""
        known = self._exchanges[of]
        return number < len(known) and known[number] > 0

    def exchange_number(self, of: Origin, number: int) -> int:
        """Return the new number of an exchange. 0 (no exchange) stays 0."""
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
        """Return the new number of a connection. 0 stays 0."""
        if not number:
            return 0
        place = self._connections.setdefault((of, number), len(self._connections) + 1)
        return place * self._files + of[0]

    def find_origin(self, exchange: int) -> tuple[Origin, int] | None:
        """Return the origin of an exchange of the joined recording, and its number there, or
        None."""
        if not 0 < exchange <= len(self._places):
            return None
        place, number = split_key(self._places[exchange - 1])
        return self._origins[place], number

    def renumber_connection(self, of: Origin, value: Connection) -> Connection:
        """Return a connection with its new number."""
        return replace(value, id=self.connection_number(of, value.id))

    def renumber_exchange(self, of: Origin, value: Exchange) -> Exchange:
        """Return an exchange with its new numbers."""
        return replace(
            value,
            id=self.exchange_number(of, value.id),
            connection=self.connection_number(of, value.connection),
        )

    def renumber_place(self, of: Origin, value: _Placed) -> _Placed:
        """Return a frame or a finding with its new numbers."""
        return replace(
            value,
            exchange=self.exchange_number(of, value.exchange),
            connection=self.connection_number(of, value.connection),
        )

    def renumber_task(self, of: Origin, value: Task) -> Task:
        """Return a task with its new numbers."""
        missed = tuple(
            replace(
                gap,
                exchange=self.exchange_number(of, gap.exchange),
                by=self.exchange_number(of, gap.by),
                message=self.exchange_number(of, gap.message),
            )
            for gap in value.missed
        )
        return replace(
            value,
            missed=missed,
            exchanges=tuple(self.exchange_number(of, each) for each in value.exchanges),
        )

    def renumber_note(self, of: Origin, value: Note) -> Note:
        """Return a note about an exchange or a frame with its new number."""
        return replace(value, exchange=self.exchange_number(of, value.exchange))
