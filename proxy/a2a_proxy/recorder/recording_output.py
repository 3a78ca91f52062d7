"""The recording as the recorder uses it: opened or taken over, written with patience, summed up at the end."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from a2a_proxy import __version__
from a2a_proxy.capture.file_layout import SessionFile
from a2a_proxy.model.finding import Severity
from a2a_proxy.recorder.status import RecorderDone, Status, TroubleEnded, TroubleStarted
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.outcome_sql import OUTCOME
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionFacts, make_key
from a2a_proxy.recording.write.writer import Writer, resume_writer
from a2a_proxy.redaction import Redactor

_OUTCOMES = f"SELECT {OUTCOME} AS outcome, count(*) FROM exchange e WHERE e.id >= ? AND e.id < ? GROUP BY outcome"
"""How many exchanges ended how."""
_RETRY_SECONDS = 1.0
"""Seconds between tries while the recording cannot be written."""


def open_writer(session: SessionFile, redactor: Redactor) -> Writer:
    """The writer of this session: the one a dead recorder left, or a new one.

    `redactor` learns the secrets of the command line in both cases: the agent may print them.

    Raises:
        RecordingError: the file cannot be used.
    """
    command = redactor.command(session.command)
    if _has_begun(session):
        return resume_writer(session.recording, session.uuid)
    facts = SessionFacts(
        uuid=session.uuid,
        tool=f"a2a-proxy {__version__}",
        started=session.started,
        command=command,
        listens=session.listens,
        upstreams=tuple(redactor.text(upstream) for upstream in session.upstreams),
        clock="monotonic from the start of the session",
        pid=session.pid,
        redaction=session.redact,
    )
    writer = Writer(session.recording, facts)
    writer.open()
    return writer


def _has_begun(session: SessionFile) -> bool:
    """An earlier recorder of this session has opened the recording."""
    if not Path(session.recording).exists():
        return False
    with Recording(session.recording) as stored:
        return any(row.facts.uuid == session.uuid for row in stored.sessions())


class RecordingDisplaced(Exception):
    """Under the recording's name lies no file, or another one."""


class RetriesExhausted(RecordingError):
    """The recording could not be written for too long."""


class OutputFile:
    """The file that a writer has open, as its name led to it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = _file_identity(path)

    def check_in_place(self) -> None:
        """Raises RecordingDisplaced where the name leads elsewhere now: what is written would be seen by nobody."""
        if _file_identity(self._path) != self._file:
            raise RecordingDisplaced

    @property
    def is_gone(self) -> bool:
        """No file has the name now."""
        return _file_identity(self._path) is None


def _file_identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def write_with_retries(
    write: Callable[[], None], send_status: Callable[[Status], None], sleep: Callable[[float], bool]
) -> None:
    """Call `write` until it succeeds; `send_status` is told once why it does not, and that it does again.

    `sleep` sleeps for so many seconds, and says whether there is still somebody to wait for.

    Raises:
        PositionConflict: somebody else has gone on with the session.
        GaveUp: `sleep` said no.
    """
    is_reported = False
    while True:
        try:
            write()
        except RecordingError as trouble:
            if not is_reported:
                send_status(
                    TroubleStarted(f"{trouble.message}; the journal keeps everything, trying again", trouble.hint)
                )
            is_reported = True
            if not sleep(_RETRY_SECONDS):
                raise RetriesExhausted(trouble.message, trouble.hint) from trouble
        else:
            break
    if is_reported:
        send_status(TroubleEnded("the recording is written again, nothing is missing"))


def summarize_session(path: str | Path, session: int, *, lost: int, clean: bool) -> RecorderDone:
    """What a finished session holds, counted in the recording: recorders may have died since it began.

    Raises:
        RecordingError: the file cannot be read.
    """
    with Recording(path) as stored:
        counts = stored.counts(session)
        outcomes: dict[str, int] = dict(stored.db.execute(_OUTCOMES, (make_key(session, 0), make_key(session + 1, 0))))
        severities = Counter(row.finding.severity for row in stored.findings(session))
    return RecorderDone(
        connections=counts.connections,
        frames=counts.frames,
        exchanges=counts.exchanges,
        ok=outcomes.get("ok", 0),
        error=outcomes.get("error", 0),
        cut=outcomes.get("cut", 0) + outcomes.get("live", 0),
        refused=outcomes.get("refused", 0),
        tasks=counts.tasks,
        findings=counts.findings,
        error_findings=severities[Severity.ERROR],
        warning_findings=severities[Severity.WARNING],
        lost=lost,
        clean=clean,
    )


def delete_single_session_file(path: str) -> None:
    """Delete a recording that holds one session only; a file that cannot be read or deleted stays."""
    with contextlib.suppress(RecordingError, OSError):
        with Recording(path) as stored:
            if len(stored.sessions()) > 1:
                return
        for end in ("", "-wal", "-shm"):
            Path(path + end).unlink(missing_ok=True)
