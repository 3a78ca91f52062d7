"""Writer of the report. It works conversation by conversation, so that memory does not grow with
the recording.

Only a few integers for each exchange of a session (`SessionLinks`, `CallTallies`) and one for each
block of a table (`RecordTables`) accumulate.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from a2a_inspect.data.notes import SessionNotes
from a2a_inspect.data.session_lines import connection_findings
from a2a_inspect.formats.chosen import ExportSelection
from a2a_inspect.formats.report import records
from a2a_inspect.formats.report.page import split_page
from a2a_inspect.formats.report.tables import RecordTables, encode_visible
from a2a_inspect.formats.report.talk import ReportConversation
from a2a_inspect.formats.report.tallies import CallTallies
from a2a_inspect.lanes.links import SessionLinks
from a2a_inspect.lanes.read import LaneConversation
from a2a_proxy import __version__
from a2a_proxy.model.values import Finding, Severity
from a2a_proxy.protocol.finding_totals import count_occurrences, follows_ending
from a2a_proxy.recording.read.endings import EndingReader
from a2a_proxy.recording.read.rows import SessionRow


def write_report(selection: ExportSelection, stream: BinaryIO) -> None:
    """Write the selection as one HTML page. Raises RecordingError if the recording is damaged."""
    _ReportWriter(selection, stream).write_report()


class _ReportWriter:
    """Writes one report."""

    def __init__(self, selection: ExportSelection, stream: BinaryIO) -> None:
        self._selection = selection
        self._stream = stream
        self._tables = RecordTables(stream)
        self._endings = EndingReader(selection.recording)
        self._rule_counts: Counter[str] = Counter()
        self._rule_severities: dict[str, Severity] = {}
        """Rule -> severity."""
        self._severity_counts: Counter[str] = Counter()
        self._tallies = CallTallies()
        self._task_count = 0
        self._frame_count = 0
        self._failed_count = 0

    def write_report(self) -> None:
        name = Path(self._selection.recording.path).name
        before, after = split_page(f"{name} - A2A report")
        self._stream.write(before)
        sessions = self._selection.read_sessions()
        for session in sessions:
            self._write_session(session)
        self._tables.write_block("index", encode_visible(self._index_object(name, sessions)))
        self._stream.write(after)

    def _index_object(self, name: str, sessions: Sequence[SessionRow]) -> dict[str, object]:
        """Return the record that the page reads first."""
        tables = self._tables.finish()
        return {
            "name": name,
            "tool": f"a2a-inspect {__version__}",
            "what": self._selection.description,
            "sessions": [records.session_record(each) for each in sessions],
            "counts": {
                "conversations": self._tables.count_records("talk"),
                "exchanges": self._tables.count_records("exchange"),
                "frames": self._frame_count,
                "tasks": self._task_count,
                "findings": sum(self._severity_counts.values()),
                "failed": self._failed_count,
            },
            "grave": self._severity_counts,
            "rules": [
                self._rule_object(name)
                for name in sorted(self._rule_counts, key=self._severity_sort_key)
            ],
            "latencies": self._tallies.latency_records(),
            "failures": self._tallies.failure_records(),
            "omitted": self._tallies.omitted_counts(),
            "tables": tables,
        }

    def _severity_sort_key(self, rule: str) -> tuple[int, int, str]:
        return -self._rule_severities[rule], -self._rule_counts[rule], rule

    def _rule_object(self, name: str) -> dict[str, object]:
        grave = self._rule_severities[name].name.lower()
        return {**records.rule_record(name), "count": self._rule_counts[name], "severity": grave}

    def _write_session(self, session: SessionRow) -> None:
        recording, only = self._selection.recording, self._selection.keys
        links, notes = SessionLinks(recording, session.id), SessionNotes(recording, session.id)
        exchanges: set[int] = set()
        for row in self._selection.read_exchanges(session.id):
            if row.exchange.id in exchanges:
                continue
            talk = LaneConversation(recording, row.key, only_keys=only, links=links)
            exchanges |= talk.exchanges
            conversation = ReportConversation(
                recording,
                talk,
                notes,
                self._tables,
                self._tallies,
                self._add_finding,
                self._endings,
            )
            conversation.write()
            self._failed_count += conversation.failed_exchanges
            self._task_count += len(talk.tasks)
            self._frame_count += talk.order.frames
        if only is None:
            for found in connection_findings(recording, session):
                self._add_finding(session.id, found.finding, -1)

    def _add_finding(self, session: int, finding: Finding, row: int) -> None:
        if not follows_ending(finding):
            count = count_occurrences(finding)
            self._rule_counts[finding.rule] += count
            self._rule_severities[finding.rule] = max(
                finding.severity, self._rule_severities.get(finding.rule, finding.severity)
            )
            self._severity_counts[finding.severity.name.lower()] += count
        self._tables.add("finding", records.finding_record(session, finding, row))
