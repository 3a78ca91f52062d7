"""Redacted copy of a recording. The recording itself is only read.

Everything is read twice: first to collect the secrets, then to replace them, so that a secret
recognized late is also removed from earlier frames.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from itertools import islice
from typing import Any, TypeVar

import msgspec

from a2a_proxy.model.values import Changes, Finding, Frame
from a2a_proxy.recording.read.conversations import rebuild_segments
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import FrameRow, SessionFacts, SessionRow, make_key, split_key
from a2a_proxy.recording.store.database import open_private
from a2a_proxy.recording.store.notes import store_notes
from a2a_proxy.recording.tools.recheck import RULE_PREFIX, recheck_session
from a2a_proxy.recording.write.writer import Writer
from a2a_proxy.redaction import RedactionPolicy, Redactor, create_redactor

_BATCH_VALUES = 500
"""Rows of a transaction."""
_BATCH_EXCHANGES = 1000
"""Number of exchanges that are cached for their frames."""

_Value = TypeVar("_Value")


@contextlib.contextmanager
def open_redacted(
    recording: Recording, policy: RedactionPolicy, label_key: bytes
) -> Iterator[Redaction]:
    """Yield a private copy of the recording, redacted by the policy. Raises RecordingError if it is
    damaged."""
    db = open_private()
    try:
        redacted = Recording.from_connection(db, recording.path)
        yield Redaction(redacted, _fill_copy(db, redacted, recording, policy, label_key))
    finally:
        db.close()


class Redaction(msgspec.Struct, frozen=True):
    """The copy, and the numbers of its sessions."""

    recording: Recording
    sessions: dict[int, int]
    """Number of a session in the copy, by its number in the original."""

    def map_keys(self, original: set[int]) -> set[int]:
        """Return the keys in the copy of exchanges of the original."""
        return {
            make_key(self.sessions[session], number) for session, number in map(split_key, original)
        }


def _fill_copy(
    db: sqlite3.Connection,
    redacted: Recording,
    recording: Recording,
    policy: RedactionPolicy,
    label_key: bytes,
) -> dict[int, int]:
    sessions: dict[int, int] = {}
    for row in recording.read_sessions():
        scrubber = create_redactor(label_key, policy)
        session = _CleanSession(recording, row, scrubber)
        for _ in session.redact_frames():  # to collect the secrets
            pass
        for _ in session.redact_changes():
            pass
        writer = Writer.on_connection(db, _clean_facts(row.facts, policy, scrubber))
        sessions[row.id] = writer.session
        for frames in _split_batches(session.redact_frames()):
            writer.write(frames)
        for changes in session.redact_changes():
            writer.write([], [], changes)
        for findings in _split_batches(
            _clean_findings(recording, row, redacted, writer.session, scrubber, policy)
        ):
            writer.write([], findings)
        notes = (
            msgspec.structs.replace(each.note, text=scrubber.redact_text(each.note.text))
            for each in recording.read_notes(row.id)
        )
        store_notes(db, writer.session, row.facts.started, notes)
        for changes in rebuild_segments(redacted, msgspec.structs.replace(row, id=writer.session)):
            writer.write([], [], changes)
        if row.how or row.complete or row.ended:
            writer.finish(
                row.ended,
                how=row.how,
                complete=scrubber.redact_text(row.complete),
                lost=row.lost,
                edits=row.edits,
            )
    return sessions


def _clean_findings(
    recording: Recording,
    row: SessionRow,
    redacted: Recording,
    session: int,
    scrubber: Redactor,
    policy: RedactionPolicy,
) -> Iterator[Finding]:
    """Yield the redacted findings of a session.

    If payloads are removed, the rules run again on the copy, because a finding may quote a payload;
    of the results, only findings that the original has are kept.
    """
    stored = (scrubber.redact_finding(each.finding) for each in recording.read_findings(row.id))
    if not policy.metadata_only:
        yield from stored
        return
    reported: set[tuple[str, int, int]] = set()
    for each in stored:
        if each.rule.startswith(RULE_PREFIX):
            reported.add((each.rule, each.exchange, each.seq))
        else:
            yield each
    copy = msgspec.structs.replace(row, id=session)
    for each in recheck_session(redacted, copy):
        if (each.rule, each.exchange, each.seq) in reported:
            yield each


def _clean_facts(facts: SessionFacts, policy: RedactionPolicy, scrubber: Redactor) -> SessionFacts:
    """Return the redacted facts of a session, with the applied policy."""
    return msgspec.structs.replace(
        facts,
        command=scrubber.redact_command(facts.command),
        listens=tuple(map(scrubber.redact_text, facts.listens)),
        upstreams=tuple(map(scrubber.redact_text, facts.upstreams)),
        names=tuple(map(scrubber.redact_text, facts.names)),
        redaction=tuple(dict.fromkeys((*facts.redaction, *policy.words))),
    )


class _CleanSession:
    """The redacted rows of a session."""

    def __init__(self, recording: Recording, row: SessionRow, scrubber: Redactor) -> None:
        self._recording = recording
        self._row = row
        self._scrubber = scrubber
        self._heads: dict[int, Any] = {}

    def redact_frames(self) -> Iterator[Frame]:
        """Yield the frames in the order of storing."""
        for row in self._recording.frames_after(0, session=self._row.id):
            yield self._scrubber.redact_frame(row.frame, self._clean_head(row))

    def redact_changes(self) -> Iterator[Changes]:
        """Yield connections, exchanges and tasks, in batches."""
        recording, clean, session = self._recording, self._scrubber, self._row.id
        for connections in _split_batches(
            clean.redact_connection(each.connection) for each in recording.read_connections(session)
        ):
            yield Changes(connections, [], [])
        for exchanges in _split_batches(
            clean.redact_exchange(each.exchange) for each in recording.read_exchanges(session)
        ):
            yield Changes([], exchanges, [])
        for tasks in _split_batches(
            clean.redact_task(each.task) for each in recording.read_tasks(session)
        ):
            yield Changes([], [], tasks)

    def _clean_head(self, row: FrameRow) -> Any:
        number = row.exchange_key
        if not number:
            return None
        if number not in self._heads:
            found = self._recording.read_exchange(number)
            self._heads[number] = found.exchange if found is not None else None
            if len(self._heads) > _BATCH_EXCHANGES:
                del self._heads[next(iter(self._heads))]
        return self._heads[number]


def _split_batches(values: Iterator[_Value]) -> Iterator[list[_Value]]:
    while batch := list(islice(values, _BATCH_VALUES)):
        yield batch
