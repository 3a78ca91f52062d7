"""One run of a proxy."""

from collections.abc import Iterator

from a2a_proxy.api.rows import Exchange, Finding, RecordingFile, StoredRow
from a2a_proxy.api.task import Task
from a2a_proxy.model.values import Note
from a2a_proxy.recording.read.conversations import Conversations, read_conversations
from a2a_proxy.recording.read.multi_reader import TaskSighting
from a2a_proxy.recording.read.rows import SessionFacts, SessionRow, make_key


class Session(StoredRow[SessionRow]):
    """One run of a proxy, as of the time it was read. A running one can be read again."""

    def __init__(self, file: RecordingFile, row: SessionRow) -> None:
        super().__init__(file, row)
        self.facts: SessionFacts = row.facts
        """The command line, tool and clock of the run."""

    def __repr__(self) -> str:
        return f"<Session {self.file} {self.number}>"

    @property
    def number(self) -> int:
        """Number within the file, from 1."""
        return self._row.id

    @property
    def uuid(self) -> str:
        """The session's UUID, which it keeps when it is copied."""
        return self.facts.uuid

    @property
    def started(self) -> int:
        """Ns since the Unix epoch."""
        return self.facts.started

    @property
    def ended(self) -> int:
        """Ns since the Unix epoch; 0 while it is running."""
        return self._row.ended

    @property
    def agents(self) -> tuple[str, ...]:
        """Addresses of the agents, as the command line names them."""
        return self.facts.upstreams

    @property
    def complete(self) -> bool | None:
        """Whether the whole traffic was captured; None while it is running."""
        return not self._row.missing_text if self._row.complete else None

    @property
    def missing(self) -> str:
        """The missing part of the capture in words; empty if nothing is missing."""
        return self._row.missing_text

    def exchange(self, number: int) -> Exchange | None:
        """Return the exchange with this number, or None."""
        row = self._file.reader.read_exchange(make_key(self.number, number))
        return self._file.exchange(row) if row is not None else None

    def exchanges(self, where: str = "") -> Iterator[Exchange]:
        """Yield its exchanges in order, all or those that match an expression of the filter
        language.

        Raises QueryError if the expression is invalid.
        """
        reader = self._file.reader
        rows = (
            reader.find_exchanges(where, self.number)
            if where
            else reader.read_exchanges(self.number)
        )
        return map(self._file.exchange, rows)

    def tasks(self) -> Iterator[Task]:
        """Yield its tasks in order of first sight."""
        rows = self._file.reader.read_tasks(self.number)
        return (Task([(self._file, TaskSighting(self._file.member, row))]) for row in rows)

    def findings(self) -> Iterator[Finding]:
        """Yield the rules' findings, in order."""
        return (Finding(self._file, row) for row in self._file.reader.read_findings(self.number))

    def notes(self) -> list[Note]:
        """Return the users' notes about it, its calls and frames."""
        return [row.note for row in self._file.reader.read_notes(self.number)]

    def conversations(self) -> Conversations:
        """Return `segments`, `interruptions` and `handoffs`, each as a list, and the text of every
        segment.

        They are derived from all of its frames again, so this takes about as long as reading them.
        """
        return read_conversations(self._file.reader, self._row)
