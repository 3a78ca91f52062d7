"""A finding of a rule, and its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_proxy.api.stored import OfSession
from a2a_proxy.model.finding import Finding as FindingFacts
from a2a_proxy.model.finding import Severity
from a2a_proxy.recording.read.rows import FindingRow, make_key

if TYPE_CHECKING:
    from a2a_proxy.api.exchange import Exchange
    from a2a_proxy.api.file import RecordingFile


class Finding(OfSession[FindingRow]):
    """A finding of a rule or a decoder about a call, a frame of it, or a connection."""

    def __init__(self, file: RecordingFile, row: FindingRow) -> None:
        super().__init__(file, row)
        self.facts: FindingFacts = row.finding
        """All recorded facts."""

    def __repr__(self) -> str:
        return f"<Finding {self.file} {self.session}:{self.facts.exchange} {self.rule}>"

    @property
    def exchange(self) -> Exchange | None:
        """The call that it is about; None if it is about a connection, or the call is not recorded yet."""
        number = self.facts.exchange
        row = self._file.reader.exchange(make_key(self.session, number)) if number else None
        return self._file.exchange(row) if row is not None else None

    @property
    def seq(self) -> int:
        """The frame of the call that it is about; -1 if it is about the whole call."""
        return self.facts.seq

    @property
    def rule(self) -> str:
        """`A2A-GEN-001`, or `UNDECODABLE` for a finding of the decoders."""
        return self.facts.rule

    @property
    def severity(self) -> Severity:
        """The severity."""
        return self.facts.severity

    @property
    def at(self) -> int:
        """Time of the finding on the clock of the traffic: ns since the Unix epoch."""
        return self.facts.at

    @property
    def summary(self) -> str:
        """The finding in one sentence."""
        return self.facts.summary

    @property
    def task_id(self) -> str:
        """The task that it is about; empty if there is none."""
        return self.facts.task_id

    @property
    def evidence(self) -> dict[str, str]:
        """The evidence: values by name."""
        return self.facts.evidence
