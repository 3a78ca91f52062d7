"""`Recording`: reads one recording, or several as one, from Python."""

from __future__ import annotations

import os
from collections.abc import Iterator

from a2a_proxy.api.handover import Handover
from a2a_proxy.api.rows import Exchange, Finding, Frame, RecordingFile
from a2a_proxy.api.session import Session
from a2a_proxy.api.task import Task
from a2a_proxy.recording.joined.joiner import join_recordings
from a2a_proxy.recording.joined.numbers import Origin
from a2a_proxy.recording.query.tree import quote_text
from a2a_proxy.recording.read.multi_reader import MultiReader, TaskSighting


class Recording:
    """Recordings and cassettes, open for reading, even while they are written. Use it from one
    thread only.

    Several files are read as one: by time, each object with the `file` that it comes from.

    Raises RecordingError if a file cannot be opened, or later if it turns out to be damaged.
    """

    def __init__(self, *paths: str | os.PathLike[str]) -> None:
        if not paths:
            raise ValueError("name a recording")
        self._reader = MultiReader(paths)
        self._files = [RecordingFile(member) for member in self._reader.members]

    def __repr__(self) -> str:
        return f"Recording({', '.join(repr(file.path) for file in self._files)})"

    def close(self) -> None:
        """Close the files."""
        self._reader.close()

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def files(self) -> dict[str, str]:
        """The path of each file by its short name."""
        return {file.member.name: file.path for file in self._files}

    def sessions(self) -> list[Session]:
        """Return the runs of proxies in order of their start."""
        return [
            Session(self._files[member.number], row) for member, row in self._reader.read_sessions()
        ]

    def exchanges(self, where: str = "") -> Iterator[Exchange]:
        """Yield calls in order of their first byte, all or those that match an expression of the
        filter language.

        Raises QueryError if the expression is invalid.
        """
        return (
            self._files[member.number].exchange(row)
            for member, row in self._reader.read_exchanges(where)
        )

    def frames(self, where: str = "", *, payloads: bool = True) -> Iterator[Frame]:
        """Yield frames by time, all or those that match an expression. Without `payloads` each is
        read on first use.

        Raises QueryError if the expression is invalid.
        """
        rows = self._reader.read_frames(where, payloads=payloads)
        return (self._files[member.number].frame(row) for member, row in rows)

    def tasks(self) -> Iterator[Task]:
        """Yield tasks in order of first sight; a task that several sessions or files recorded
        appears once."""
        return map(self._make_task, self._reader.read_tasks())

    def task(self, task_id: str) -> Task | None:
        """Return the task with this id, the first one if agents share the id, or None."""
        seen = self._reader.read_task(task_id)
        return self._make_task(seen) if seen else None

    def findings(self) -> Iterator[Finding]:
        """Yield the rules' findings, session by session."""
        return (finding for session in self.sessions() for finding in session.findings())

    def trace(self, word: str) -> Iterator[Exchange]:
        """Yield all calls of one trace or context, over all files and agents, by time: a
        conversation that was handed on.

        `word` is a trace id or a context id, or a prefix of one.
        """
        if not word:
            raise ValueError("name a trace or a context")
        return self.exchanges(f"trace:{quote_text(word)} OR ctx:{quote_text(word)}")

    def handoffs(self) -> list[Handover]:
        """Return the hand-offs between agents over all files.

        They are found by calls made by an agent at work, by trace, context, reference or content.
        They are derived from all frames again, so this takes about as long as reading them.
        """
        with join_recordings(self._reader) as (recording, numbers):
            return [
                Handover(
                    kind=row.handoff.kind,
                    evidence=row.handoff.evidence,
                    agent=row.handoff.agent,
                    to_agent=row.handoff.to_agent,
                    task_id=row.handoff.task_id,
                    to_task=row.handoff.to_task,
                    context_id=row.handoff.context_id,
                    at=row.handoff.at,
                    latency=row.handoff.latency,
                    exchange=self._find_exchange(numbers.find_origin(row.handoff.exchange)),
                    to_exchange=self._find_exchange(numbers.find_origin(row.handoff.to_exchange)),
                )
                for row in recording.read_handoffs()
            ]

    def _find_exchange(self, where: tuple[Origin, int] | None) -> Exchange | None:
        if where is None:
            return None
        (file, session), number = where
        return next(self._files[file].exchanges_numbered(session, (number,)), None)

    def _make_task(self, sightings: list[TaskSighting]) -> Task:
        return Task([(self._files[each.member.number], each) for each in sightings])
