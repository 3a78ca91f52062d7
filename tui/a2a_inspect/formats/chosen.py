"""The exported part of a recording: all of it, or some exchanges, each complete."""

from collections.abc import Iterator

import msgspec

from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import (
    ExchangeRow,
    FindingRow,
    SessionRow,
    TaskRow,
    make_key,
    split_key,
)


class ExportSelection(msgspec.Struct, frozen=True):
    """The exported part, as read by the writer of a format."""

    recording: Recording
    keys: frozenset[int] | None = None
    """Keys of the exchanges; None: the whole recording, including connections without exchanges."""
    description: str = ""
    """Description of the exchanges; empty for the whole recording."""

    def is_selected(self, exchange_key: int) -> bool:
        """Return whether this exchange is exported."""
        return self.keys is None or exchange_key in self.keys

    def count_exchanges(self) -> int:
        """Return the number of exported exchanges."""
        return self.recording.count_rows().exchanges if self.keys is None else len(self.keys)

    def read_sessions(self) -> list[SessionRow]:
        """Return the sessions that have exported exchanges; all without a selection."""
        numbers = None if self.keys is None else {split_key(each)[0] for each in self.keys}
        return [
            row for row in self.recording.read_sessions() if numbers is None or row.id in numbers
        ]

    def read_exchanges(self, session: int) -> Iterator[ExchangeRow]:
        """Yield the exported exchanges of a session, by number."""
        if self.keys is None:
            yield from self.recording.read_exchanges(session)
            return
        for number in sorted(each for each in self.keys if split_key(each)[0] == session):
            row = self.recording.read_exchange(number)
            if row is not None:
                yield row

    def read_tasks(self, session: int) -> Iterator[TaskRow]:
        """Yield the tasks of a session that an exported exchange touched, in order of first
        appearance."""
        for row in self.recording.read_tasks(session):
            if self.keys is None or any(
                make_key(session, number) in self.keys for number in row.task.exchanges
            ):
                yield row

    def read_findings(self, session: int) -> Iterator[FindingRow]:
        """Yield the recorded findings about exported exchanges; without a selection also those
        about connections."""
        return (
            row
            for row in self.recording.read_findings(session)
            if self.is_selected(make_key(session, row.finding.exchange))
        )
