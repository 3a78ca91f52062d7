"""Writes the report: conversation by conversation, so that memory does not grow with the recording.

What grows is a few integers for each exchange of a session (`AllLinks`) and one for each block of a table (`Tables`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import BinaryIO

from a2a_inspect.commands.session import connection_findings
from a2a_inspect.lanes.links import AllLinks
from a2a_inspect.lanes.read import Conversation
from a2a_inspect.notes import Notes
from a2a_inspect.report import records
from a2a_inspect.report.page import begin, end
from a2a_inspect.report.tables import Tables, shown
from a2a_inspect.report.talk import Talk
from a2a_proxy import __version__
from a2a_proxy.model.finding import Finding
from a2a_proxy.recording.reader import Recording
from a2a_proxy.recording.rows import SessionRow, split


def write_report(recording: Recording, stream: BinaryIO, only: Set[int] | None = None, what: str = "") -> None:
    """Write the exchanges of these keys, each whole, or with None everything, as one HTML page.

    `what` says which they are, in words. Raises RecordingError where the recording is damaged.
    """
    _Report(recording, stream, only, what).run()


class _Report:
    """One run."""

    def __init__(self, recording: Recording, stream: BinaryIO, only: Set[int] | None, what: str) -> None:
        self._recording = recording
        self._stream = stream
        self._only = only
        self._what = what
        self._tables = Tables(stream)
        self._rules: Counter[str] = Counter()
        self._grave: Counter[str] = Counter()
        self._tasks = 0
        self._frames = 0

    def run(self) -> None:
        name = Path(self._recording.path).name
        begin(self._stream, f"{name} - A2A report")
        sessions = [row for row in self._recording.sessions() if self._wanted(row)]
        for session in sessions:
            self._session(session)
        self._tables.element("index", json.dumps(shown(self._index(name, sessions))))
        end(self._stream)

    def _wanted(self, session: SessionRow) -> bool:
        return self._only is None or any(split(each)[0] == session.id for each in self._only)

    def _index(self, name: str, sessions: Sequence[SessionRow]) -> dict[str, object]:
        """What the page reads first."""
        tables = self._tables.finish()
        return {
            "name": name,
            "tool": f"a2a-inspect {__version__}",
            "what": self._what,
            "sessions": [records.session_record(each) for each in sessions],
            "counts": {
                "conversations": self._tables.count("talk"),
                "exchanges": self._tables.count("exchange"),
                "frames": self._frames,
                "tasks": self._tasks,
                "findings": self._tables.count("finding"),
            },
            "grave": self._grave,
            "rules": [{**records.rule_record(rule), "count": count} for rule, count in self._rules.most_common()],
            "tables": tables,
        }

    def _session(self, session: SessionRow) -> None:
        links = AllLinks(self._recording, session.id)
        notes = Notes(self._recording, session.id)
        seen: set[int] = set()
        for number in self._keys(session.id):
            if split(number)[1] in seen:
                continue
            talk = Conversation(self._recording, number, only=self._only, links=links)
            seen |= talk.exchanges
            Talk(self._recording, talk, notes, self._tables, self._found).write()
            self._tasks += len(talk.tasks)
            self._frames += talk.order.frames
        if self._only is None:
            for found in connection_findings(self._recording, session):
                self._found(session.id, found.finding, -1)

    def _keys(self, session: int) -> Iterator[int]:
        if self._only is None:
            yield from (row.key for row in self._recording.exchanges(session))
        else:
            yield from (each for each in sorted(self._only) if split(each)[0] == session)

    def _found(self, session: int, finding: Finding, row: int) -> None:
        self._rules[finding.rule] += 1
        self._grave[finding.severity.name.lower()] += 1
        self._tables.add("finding", records.finding_record(session, finding, row))
