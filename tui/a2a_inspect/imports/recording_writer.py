"""Writes the records of an imported file as a recording, as the recorder writes a journal."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec

from a2a_inspect.imports.source import ImportSource
from a2a_proxy import __version__
from a2a_proxy.capture import file_layout
from a2a_proxy.cli.errors import state_directory_errors
from a2a_proxy.model.errors import UserError
from a2a_proxy.model.values import Binding, Finding, Frame, Observation, Severity
from a2a_proxy.model.wire import Chunk, ChunkKind, Direction
from a2a_proxy.observer import Observer
from a2a_proxy.recorder.recording_output import find_failures, summarize_session
from a2a_proxy.recorder.status import RecorderDone
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionFacts
from a2a_proxy.recording.store.database import check_recording_target
from a2a_proxy.recording.write.writer import Writer
from a2a_proxy.redaction import Redactor, create_redactor
from a2a_proxy.redaction.policy import policy_of

_BATCH_BYTES = 4 << 20
_BATCH_OBSERVATIONS = 10_000


class ImportOptions(msgspec.Struct, frozen=True):
    """Options of an import."""

    words: tuple[str, ...] = ()
    """Words of the redaction policy."""
    command: tuple[str, ...] = ()
    """The command line."""


def write_import(source: ImportSource, target: Path, options: ImportOptions) -> RecorderDone:
    """Decode, redact and judge the records of `source`, write them to the new recording `target`,
    and return its counts. The recording exists completely or not at all.

    Raises:
        UserError: the source cannot be read, or has no A2A call.
        RecordingError: the target exists or cannot be written.
    """
    check_recording_target(target)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        done = _write_draft(source, draft, options)
        check_recording_target(target)
        os.replace(draft, target)
    finally:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{draft}{suffix}").unlink(missing_ok=True)
    return done


def _write_draft(source: ImportSource, draft: Path, options: ImportOptions) -> RecorderDone:
    with state_directory_errors():
        redactor = create_redactor(file_layout.redaction_key(), policy_of(options.words))
    upstreams = tuple(redactor.redact_text(each) for each in source.upstreams)
    facts = SessionFacts(
        uuid=str(uuid.uuid4()),
        tool=f"a2a-inspect {__version__}",
        started=source.started,
        command=redactor.redact_command(options.command),
        listens=tuple(each.rpartition("//")[2] for each in upstreams),
        upstreams=upstreams,
        clock="times of the imported file",
        redaction=options.words,
    )
    writer = Writer(draft, facts)
    try:
        session = _write_records(source, writer, redactor)
    finally:
        writer.close()
    _check_has_calls(draft)
    return summarize_session(draft, session)


def _write_records(source: ImportSource, writer: Writer, redactor: Redactor) -> int:
    """Write all records; return the number of the session."""
    observer = Observer(redactor)
    observations: list[Observation] = []
    session, at = writer.session, source.started
    for batch in _split_chunks(source.read_chunks()):
        observer.hold_rules()
        for chunk in batch:
            observer.feed(chunk, observations)
            at = chunk.at
        observer.judge_held(observations)
        _write_batch(writer, observer, observations)
    lacks = source.lacks
    summary = f"imported from a {source.label}" + (
        f", which lacks: {'; '.join(lacks)}" if lacks else ""
    )
    observations.append(Finding("IMPORT", Severity.INFO, at, summary))
    observer.feed(Chunk(0, ChunkKind.END, Direction.TO_AGENT, at), observations)
    _write_batch(writer, observer, observations)
    lost = observer.lost
    reasons = [f"{lost} bytes are not in the imported file"] if lost else []
    failures = find_failures(writer, at)
    writer.finish(
        at,
        complete=observer.gaps.describe(*reasons),
        lost=lost,
        endings=failures.findings,
        explained=failures.explained,
    )
    return session


def _write_batch(writer: Writer, observer: Observer, observations: list[Observation]) -> None:
    frames = [each for each in observations if type(each) is Frame]
    findings = [each for each in observations if type(each) is Finding]
    writer.write(frames, findings, observer.pop_changes())
    observations.clear()


def _split_chunks(chunks: Iterator[Chunk]) -> Iterator[list[Chunk]]:
    batch: list[Chunk] = []
    size = 0
    for chunk in chunks:
        batch.append(chunk)
        size += len(chunk.data)
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_OBSERVATIONS:
            yield batch
            batch, size = [], 0
    yield batch


def _check_has_calls(draft: Path) -> None:
    with Recording(draft) as recording:
        if all(row.exchange.binding is Binding.OTHER for row in recording.read_exchanges()):
            raise UserError(
                "there is no A2A call in this file",
                "for another selection of traffic, capture at the client or at the agent, without "
                "TLS",
            )
