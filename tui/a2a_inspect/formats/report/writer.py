"""Writes the report: conversation by conversation, so that memory does not grow with the recording.

What grows is a few integers for each exchange of a session (`AllLinks`) and one for each block of a table (`Tables`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from a2a_inspect.commands.session import connection_findings
from a2a_inspect.data.notes import Notes
from a2a_inspect.formats.chosen import ExportSelection
from a2a_inspect.formats.report import records
from a2a_inspect.formats.report.page import halves
from a2a_inspect.formats.report.tables import Tables, plain
from a2a_inspect.formats.report.talk import ReportConversation
from a2a_inspect.lanes.links import AllLinks
from a2a_inspect.lanes.read import LaneConversation
from a2a_proxy import __version__
from a2a_proxy.model.finding import Finding, Severity
from a2a_proxy.recording.read.rows import SessionRow


def write(chosen: ExportSelection, stream: BinaryIO) -> None:
    """Write what was chosen as one HTML page. Raises RecordingError where the recording is damaged."""
    _ReportWriter(chosen, stream).run()


class _ReportWriter:
    """One run."""

    def __init__(self, chosen: ExportSelection, stream: BinaryIO) -> None:
        self._chosen = chosen
        self._stream = stream
        self._tables = Tables(stream)
        self._rules: Counter[str] = Counter()
        self._gravest: dict[str, Severity] = {}
        """By rule."""
        self._grave: Counter[str] = Counter()
        self._tasks = 0
        self._frames = 0
        self._failed = 0

    def run(self) -> None:
        name = Path(self._chosen.recording.path).name
        before, after = halves(f"{name} - A2A report")
        self._stream.write(before)
        sessions = self._chosen.sessions()
        for session in sessions:
            self._session(session)
        self._tables.element("index", plain(self._index(name, sessions)))
        self._stream.write(after)

    def _index(self, name: str, sessions: Sequence[SessionRow]) -> dict[str, object]:
        """What the page reads first."""
        tables = self._tables.finish()
        return {
            "name": name,
            "tool": f"a2a-inspect {__version__}",
            "what": self._chosen.what,
            "sessions": [records.session_record(each) for each in sessions],
            "counts": {
                "conversations": self._tables.count("talk"),
                "exchanges": self._tables.count("exchange"),
                "frames": self._frames,
                "tasks": self._tasks,
                "findings": self._tables.count("finding"),
                "failed": self._failed,
            },
            "grave": self._grave,
            "rules": [self._rule(name) for name in sorted(self._rules, key=self._gravest_first)],
            "tables": tables,
        }

    def _gravest_first(self, rule: str) -> tuple[int, int, str]:
        return -self._gravest[rule], -self._rules[rule], rule

    def _rule(self, name: str) -> dict[str, object]:
        grave = self._gravest[name].name.lower()
        return {**records.rule_record(name), "count": self._rules[name], "severity": grave}

    def _session(self, session: SessionRow) -> None:
        recording, only = self._chosen.recording, self._chosen.keys
        links, notes = AllLinks(recording, session.id), Notes(recording, session.id)
        seen: set[int] = set()
        for row in self._chosen.exchanges(session.id):
            if row.exchange.id in seen:
                continue
            talk = LaneConversation(recording, row.key, only=only, links=links)
            seen |= talk.exchanges
            made = ReportConversation(recording, talk, notes, self._tables, self._found)
            made.write()
            self._failed += made.failed
            self._tasks += len(talk.tasks)
            self._frames += talk.order.frames
        if only is None:
            for found in connection_findings(recording, session):
                self._found(session.id, found.finding, -1)

    def _found(self, session: int, finding: Finding, row: int) -> None:
        self._rules[finding.rule] += 1
        self._gravest[finding.rule] = max(finding.severity, self._gravest.get(finding.rule, finding.severity))
        self._grave[finding.severity.name.lower()] += 1
        self._tables.add("finding", records.finding_record(session, finding, row))
