"""The recorder's use of the recording: opens or takes it over, writes with retries, summarizes it
at the end."""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from a2a_proxy import __version__
from a2a_proxy.capture.file_layout import SessionFile
from a2a_proxy.model.values import Severity
from a2a_proxy.protocol.finding_totals import follows_ending, rule_totals
from a2a_proxy.recorder.status import (
    RecorderDone,
    RuleSummary,
    Status,
    TroubleEnded,
    TroubleStarted,
)
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.endings import Failures, endings_of, report_failures
from a2a_proxy.recording.read.outcome_sql import OUTCOME
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionFacts, SessionRow, key_bounds
from a2a_proxy.recording.store.file_header import file_identity
from a2a_proxy.recording.write.writer import Writer, resume_writer
from a2a_proxy.redaction import Redactor
from a2a_proxy.rules.define.other_findings import finding_title
from a2a_proxy.rules.endings.ending import Ending

_OUTCOMES = (
    f"SELECT {OUTCOME} AS outcome, count(*) FROM exchange e WHERE e.id >= ? AND e.id < ? GROUP BY "
    f"outcome"
)
"""Number of exchanges by outcome."""
_RETRY_SECONDS = 1.0
"""Seconds between attempts while the recording cannot be written."""


def open_writer(session: SessionFile, redactor: Redactor) -> Writer:
    """Return the writer of this session: that of a recorder that died, resumed, or a new one.

    `redactor` learns the secrets of the command line in both cases, because the agent may print
    them.

    Raises:
        RecordingError: the file cannot be used.
    """
    command = redactor.redact_command(session.command)
    if _has_begun(session):
        return resume_writer(session.recording, session.uuid)
    facts = SessionFacts(
        uuid=session.uuid,
        tool=f"a2a-proxy {__version__}",
        started=session.started,
        command=command,
        listens=session.listens,
        upstreams=tuple(redactor.redact_text(upstream) for upstream in session.upstreams),
        names=tuple(redactor.redact_text(name) for name in session.names),
        faults=session.options.faults,
        clock="monotonic from the start of the session",
        pid=session.pid,
        redaction=session.options.redact,
    )
    writer = Writer(session.recording, facts)
    writer.open()
    return writer


def _has_begun(session: SessionFile) -> bool:
    """Whether an earlier recorder of this session has opened the recording."""
    if not Path(session.recording).exists():
        return False
    with Recording(session.recording) as stored:
        return any(row.facts.uuid == session.uuid for row in stored.read_sessions())


class RecordingDisplaced(Exception):
    """The recording's path leads to no file or to another one."""


class RetriesExhausted(RecordingError):
    """The recording could not be written for too long."""


class OutputFile:
    """The file that a writer has open, as found by its path."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = file_identity(path)

    def check_in_place(self) -> None:
        """Raise RecordingDisplaced if the path now leads elsewhere, because no reader would see
        further rows."""
        if file_identity(self._path) != self._file:
            raise RecordingDisplaced

    @property
    def is_gone(self) -> bool:
        """Whether the path leads to no file now."""
        return file_identity(self._path) is None


def write_with_retries(
    write: Callable[[], None], send_status: Callable[[Status], None], sleep: Callable[[float], bool]
) -> None:
    """Call `write` until it succeeds. Report the first failure, and the success after it, with
    `send_status`.

    `sleep` sleeps for a number of seconds and returns whether to try again.

    Raises:
        PositionConflict: another recorder has continued the session.
        RetriesExhausted: `sleep` returned False.
    """
    is_reported = False
    while True:
        try:
            write()
        except RecordingError as trouble:
            if not is_reported:
                send_status(
                    TroubleStarted(
                        f"{trouble.message}; the journal keeps everything, trying again",
                        trouble.hint,
                    )
                )
            is_reported = True
            if not sleep(_RETRY_SECONDS):
                raise RetriesExhausted(trouble.message, trouble.hint) from trouble
        else:
            break
    if is_reported:
        send_status(TroubleEnded("the recording is written again, nothing is missing"))


def find_failures(writer: Writer, ended: int, doubtful: Iterable[int] | None = None) -> Failures:
    """Return the failures of the writer's session, which ends now, `ended` in ns, among the
    `doubtful` calls; None for all.

    Raises:
        RecordingError: the file cannot be read.
    """
    return report_failures(*_stored_session(writer), ended, doubtful)


def find_endings(writer: Writer, now: int, numbers: Sequence[int]) -> dict[int, Ending]:
    """Return why these calls of the writer's session did not end well, as far as it is known
    `now` (ns). Raises RecordingError."""
    return endings_of(*_stored_session(writer), now, numbers)


def _stored_session(writer: Writer) -> tuple[Recording, SessionRow]:
    stored = Recording.from_connection(writer.connection, "the recording")
    row = stored.read_session(writer.session)
    assert row is not None
    return stored, row


def summarize_session(path: str | Path, session: int) -> RecorderDone:
    """Return the counts of a finished session. Counted in the recording, because recorders may have
    died since its start.

    Raises:
        RecordingError: the file cannot be read.
    """
    with Recording(path) as stored:
        counts = stored.count_rows(session)
        outcomes: dict[str, int] = dict(stored.db.execute(_OUTCOMES, key_bounds(session)))
        found = (row.finding for row in stored.read_findings(session))
        totals = rule_totals(each for each in found if not follows_ending(each))
        row = stored.read_session(session)
    assert row is not None
    return RecorderDone(
        connections=counts.connections,
        frames=counts.frames,
        exchanges=counts.exchanges,
        ok=outcomes.get("ok", 0),
        error=outcomes.get("error", 0),
        cut=outcomes.get("cut", 0) + outcomes.get("live", 0),
        refused=outcomes.get("refused", 0),
        tasks=counts.tasks,
        findings=sum(each.count for each in totals),
        error_findings=sum(each.count for each in totals if each.severity is Severity.ERROR),
        warning_findings=sum(each.count for each in totals if each.severity is Severity.WARNING),
        lost=row.lost,
        missing=row.missing_text,
        chosen=row.choice_text,
        rules=tuple(RuleSummary(each, finding_title(each.rule)) for each in totals),
    )


def delete_single_session_file(path: str) -> None:
    """Delete a recording that holds only one session; a file that cannot be read or deleted
    stays."""
    with contextlib.suppress(RecordingError, OSError):
        with Recording(path) as stored:
            if len(stored.read_sessions()) > 1:
                return
        for end in ("", "-wal", "-shm"):
            Path(path + end).unlink(missing_ok=True)
