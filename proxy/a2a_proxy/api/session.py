"""One run of a proxy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from a2a_proxy.api.finding import Finding
from a2a_proxy.api.stored import StoredRow
from a2a_proxy.api.task import Task
from a2a_proxy.model.note import Note
from a2a_proxy.recording.read.conversations import Conversations, read_conversations
from a2a_proxy.recording.read.multi_reader import TaskSighting
from a2a_proxy.recording.read.rows import SessionFacts, SessionRow, make_key

if TYPE_CHECKING:
    from a2a_proxy.api.exchange import Exchange
    from a2a_proxy.api.file import RecordingFile


class Session(StoredRow[SessionRow]):
    """One run of a proxy. As it was when it was read: one that goes on can be read again."""

    def __init__(self, file: RecordingFile, row: SessionRow) -> None:
        super().__init__(file, row)
        self.facts: SessionFacts = row.facts
        """The command line, tool and clock of the run."""

    def __repr__(self) -> str:
        return f"<Session {self.file} {self.number}>"

    @property
    def number(self) -> int:
        """Within the file, from 1."""
        return self._row.id

    @property
    def uuid(self) -> str:
        """Its own, wherever it is copied to."""
        return self.facts.uuid

    @property
    def started(self) -> int:
        """Ns since the Unix epoch."""
        return self.facts.started

    @property
    def ended(self) -> int:
        """Ns since the Unix epoch; 0 while it goes on."""
        return self._row.ended

    @property
    def agents(self) -> tuple[str, ...]:
        """Addresses of the agents, as the command line names them."""
        return self.facts.upstreams

    @property
    def complete(self) -> bool | None:
        """Whether all that passed was captured; None while it goes on."""
        return self._row.complete == "complete" if self._row.complete else None

    @property
    def missing(self) -> str:
        """What was not captured, in words; empty where nothing is missing."""
        return "" if self.complete else self._row.complete

    def exchange(self, number: int) -> Exchange | None:
        """The exchange of this number."""
        row = self._file.reader.exchange(make_key(self.number, number))
        return self._file.exchange(row) if row is not None else None

    def exchanges(self, where: str = "") -> Iterator[Exchange]:
        """Its exchanges in order, or those for which an expression of the filter language holds.

        Raises QueryError where the expression is wrong.
        """
        reader = self._file.reader
        rows = reader.find_exchanges(where, self.number) if where else reader.exchanges(self.number)
        return map(self._file.exchange, rows)

    def tasks(self) -> Iterator[Task]:
        """Its tasks in order of first sight."""
        rows = self._file.reader.tasks(self.number)
        return (Task([(self._file, TaskSighting(self._file.member, row))]) for row in rows)

    def findings(self) -> Iterator[Finding]:
        """What the rules found, in order."""
        return (Finding(self._file, row) for row in self._file.reader.findings(self.number))

    def notes(self) -> list[Note]:
        """What people wrote down about it, its calls and frames."""
        return [row.note for row in self._file.reader.notes(self.number)]

    def conversations(self) -> Conversations:
        """Who spoke when: `segments`, `interruptions` and `handoffs`, each a list, and what every segment says.

        Cut anew from all of its frames, so it takes about as long as reading them.
        """
        return read_conversations(self._file.reader, self._row)
