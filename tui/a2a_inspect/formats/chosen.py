"""What is exported: a recording, or some exchanges of it, each whole."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, FindingRow, SessionRow, TaskRow, make_key, split_key


class ExportSelection(msgspec.Struct, frozen=True):
    """See the module. What its writer may read of the recording."""

    recording: Recording
    keys: frozenset[int] | None = None
    """Keys of the exchanges; None: all there is, also what belongs to no exchange."""
    description: str = ""
    """Which exchanges these are, in words; empty where it is all."""

    def is_selected(self, exchange_key: int) -> bool:
        """Whether this exchange is one of them."""
        return self.keys is None or exchange_key in self.keys

    def count(self) -> int:
        """How many exchanges."""
        return self.recording.counts().exchanges if self.keys is None else len(self.keys)

    def sessions(self) -> list[SessionRow]:
        """The sessions that have any of them; without a choice all."""
        numbers = None if self.keys is None else {split_key(each)[0] for each in self.keys}
        return [row for row in self.recording.sessions() if numbers is None or row.id in numbers]

    def exchanges(self, session: int) -> Iterator[ExchangeRow]:
        """The chosen exchanges of a session, by number."""
        if self.keys is None:
            yield from self.recording.exchanges(session)
            return
        for number in sorted(each for each in self.keys if split_key(each)[0] == session):
            row = self.recording.exchange(number)
            if row is not None:
                yield row

    def tasks(self, session: int) -> Iterator[TaskRow]:
        """The tasks of a session that one of them touched, in order of first sight."""
        for row in self.recording.tasks(session):
            if self.keys is None or any(make_key(session, number) in self.keys for number in row.task.exchanges):
                yield row

    def findings(self, session: int) -> Iterator[FindingRow]:
        """What was found in them while they were recorded; without a choice also what belongs to no exchange."""
        return (
            row for row in self.recording.findings(session) if self.is_selected(make_key(session, row.finding.exchange))
        )
