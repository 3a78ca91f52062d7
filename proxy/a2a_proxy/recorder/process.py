"""The recorder's loop: journal -> Observer -> recording, each journal record exactly once.

The journal position is committed in the same transaction as the rows derived from it. A restarted
recorder restores the decoders from the last snapshot, decodes up to the committed position without
storing, and continues.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from a2a_proxy.capture import file_layout
from a2a_proxy.capture.file_layout import SessionFile
from a2a_proxy.capture.record_format import Position
from a2a_proxy.model.values import Changes, Exchange, Finding, Frame
from a2a_proxy.protocol.session_facts import address_of
from a2a_proxy.protocol.text import shell_line
from a2a_proxy.recorder.crashes import CrashHistory
from a2a_proxy.recorder.open_exchanges import OpenExchanges
from a2a_proxy.recorder.priority import (
    Pace,
    has_session_priority,
    restore_priority,
    set_session_nice,
)
from a2a_proxy.recorder.pump import READ_BYTES
from a2a_proxy.recorder.recording_output import (
    OutputFile,
    RecordingDisplaced,
    RetriesExhausted,
    find_endings,
    find_failures,
    open_writer,
    summarize_session,
    write_with_retries,
)
from a2a_proxy.recorder.resume import (
    ResumePoint,
    read_beginning,
    resume_pump,
    snapshot_name,
    write_beginning,
)
from a2a_proxy.recorder.status import (
    ExchangeStatus,
    FindingStatus,
    GapClosedStatus,
    Line,
    LinesEnd,
    ReceiverStatus,
    RecorderFailed,
    RecorderProgress,
    RecorderReady,
    Status,
    TroubleEnded,
    TroubleStarted,
)
from a2a_proxy.recorder.status_writer import SendStatus
from a2a_proxy.recording.errors import PositionConflict, RecordingError
from a2a_proxy.recording.read.endings import NO_FAILURES, Failures
from a2a_proxy.redaction import Redactor, create_redactor
from a2a_proxy.redaction.policy import policy_of
from a2a_proxy.rules.define.other_findings import finding_title
from a2a_proxy.rules.endings.ending import Ending
from a2a_proxy.rules.endings.evaluate import DoubtfulCalls, may_have_failed
from a2a_proxy.system_errors import hint_for

_COMMIT_INTERVAL = 100_000_000
"""ns between commits: a viewer sees a frame at most this long after it was relayed."""
_YIELDING_READ_BYTES = 1 << 16
"""Bytes of journal decoded between two decisions on the priority while it is low: beside busy
processes a recorder gets a thirtieth of a processor then, and a decision after `READ_BYTES` would
come seconds late."""
_MAX_JUDGED = 20
"""Calls of one commit whose endings are found for their lines."""
_JUDGE_SHARE = 20
"""Time without such work after it, as a multiple of it."""
_MAX_JUDGE_PAUSE = 500_000_000
"""The longest such time, ns: the first call that is judged loads the rules."""
_SNAPSHOT_RETRY_INTERVAL = 1_000_000_000
"""ns between attempts to write a snapshot while there is no space for it."""


def record_session(
    folder: Path,
    wake_fd: int,
    send_status: SendStatus,
    patience: float = 0.0,
) -> None:
    """Record the journal in `folder` until its session ends. A failure is reported as
    `RecorderFailed`.

    Once the relay has exited, writing the recording is retried for `patience` seconds.
    """
    try:
        failed = _lock_and_record(folder, RelayWatch(wake_fd, patience), send_status)
    except OSError as wrong:
        where = f"{wrong.filename}: " if wrong.filename else ""
        reason = (wrong.strerror or str(wrong)).lower()
        hint = hint_for(wrong, "check the state directory")
        failed = RecorderFailed(
            f"the journal cannot be used: {where}{reason}", hint, permanent=False
        )
    if failed is not None:
        send_status(failed, time.time_ns())


def _lock_and_record(
    folder: Path, relay: RelayWatch, send_status: SendStatus
) -> RecorderFailed | None:
    session = file_layout.read_session(folder)
    if session is None:
        return RecorderFailed(
            f"{folder} holds no journal", "its session was finished, or the folder was deleted"
        )
    first = not (folder / file_layout.RECORDER_LOCK).exists()
    lock = file_layout.lock_recorder(folder)
    if lock is None:
        return RecorderFailed(
            "another recorder is working on this session", "wait until it has finished"
        )
    try:
        return _record_until_done(folder, session, relay, send_status, first=first)
    except PositionConflict:
        return RecorderFailed(
            "another recorder has continued this session",
            "nothing to do: it will finish the session",
        )
    except RetriesExhausted as wrong:
        return RecorderFailed(
            f"{wrong.message}; the journal is left for later", "finish with: a2a-inspect recover"
        )
    finally:
        os.close(lock)


def _record_until_done(
    folder: Path, session: SessionFile, relay: RelayWatch, send_status: SendStatus, *, first: bool
) -> RecorderFailed | None:
    """Record, again if the recording file is taken away. Raises PositionConflict,
    RetriesExhausted."""
    while True:
        try:
            recorder = _RecorderLoop(folder, session, relay, send_status, first=first)
        except (
            RecordingError
        ) as wrong:  # a recording that was opened before may become usable again
            return RecorderFailed(wrong.message, wrong.hint, permanent=first)
        first = False
        try:
            recorder.run()
            return None
        except RecordingDisplaced:
            recorder.close()
            send_status(
                _displaced_status(session.recording, gone=recorder.output_file.is_gone),
                time.time_ns(),
            )
        except RetriesExhausted:
            raise
        except RecordingError as wrong:
            return RecorderFailed(wrong.message, wrong.hint, permanent=False)


def _displaced_status(path: str, *, gone: bool) -> TroubleStarted:
    how = "deleted or moved" if gone else "replaced by another file"
    message = (
        f"the recording {path} was {how}; a new one is written there with the rest of the journal"
    )
    return TroubleStarted(message, f"inspect it: {shell_line('a2a-inspect', path)}")


class RelayWatch:
    """Tracks through the wake-up pipe whether the relay lives; `wake_fd` < 0 means that there is no
    relay."""

    def __init__(self, wake_fd: int, patience: float) -> None:
        self._wake_fd = wake_fd
        self._patience = patience
        self._gone_at = 0.0 if wake_fd >= 0 else time.monotonic()
        """Time its end was noticed (monotonic, seconds); 0 while it lives."""

    @property
    def is_alive(self) -> bool:
        """Whether the relay was alive at the last read of the pipe."""
        return not self._gone_at

    def wait_for_data(self, ns: int) -> None:
        """Sleep until the relay has written, or for `ns` nanoseconds."""
        if self.is_alive:
            ready, _, _ = select.select([self._wake_fd], [], [], max(ns, 0) / 1e9)
            if ready and not os.read(self._wake_fd, 1 << 16):
                self._gone_at = time.monotonic()
        else:
            time.sleep(max(ns, 0) / 1e9)

    def sleep_before_retry(self, seconds: float) -> bool:
        """Sleep even if the relay writes; return False if it has been gone for longer than
        `patience` seconds."""
        time.sleep(seconds)
        while self.is_alive and select.select([self._wake_fd], [], [], 0)[0]:
            self.wait_for_data(0)
        return self.is_alive or time.monotonic() - self._gone_at < self._patience


class _RecorderLoop:
    """The loop of one recorder."""

    def __init__(
        self,
        folder: Path,
        session: SessionFile,
        relay: RelayWatch,
        send_status: SendStatus,
        *,
        first: bool,
    ) -> None:
        """Open the recording. `first`: no other recorder has worked on this journal. Raises
        RecordingError."""
        self._folder = folder
        self._path = session.recording
        self._relay = relay
        self._send_status = send_status
        make_redactor = create_redactor(_redaction_key(), policy_of(session.options.redact))
        self._writer = open_writer(session, make_redactor)
        self.output_file = OutputFile(self._path)
        self._crashes = CrashHistory(folder, self._writer.position, is_successor=not first)
        self._open_exchanges = OpenExchanges()
        self._doubtful = DoubtfulCalls(is_whole=first)
        self._judge_after = 0
        """Time before which no call is judged, by the monotonic clock, ns."""
        resume_point = self._resume_decoders(make_redactor, session)
        self._observations, self._pump = resume_point.observations, resume_point.pump
        self._observer = self._pump.observer
        self._unsaved = resume_point.needs_commit
        """Whether the position in the recording has no snapshot from which it can be reached."""
        self._snapshot_segment = self._pump.reader.position[0]
        self._snapshot_after = 0
        """Time of the next attempt after a snapshot could not be written, ns."""
        self._last_at = self._pump.last_at or session.started
        self._pace = Pace()
        self._nice: int | None = None
        """The nice value that was set."""
        self._is_hurried = not relay.is_alive
        self._has_sent_lines = False
        """Whether lines were sent since the last `LinesEnd`."""
        self._reports_receivers = session.reports_receivers
        self._own_addresses = {
            address_of(one) for listen in session.listens for one in listen.split(", ")
        }
        self._is_progress_due = False
        """Whether messages wait for the reader of the status pipe."""
        send_status(RecorderReady(session.recording, self._writer.session), time.time_ns())

    def _resume_decoders(self, make_redactor: Redactor, session: SessionFile) -> ResumePoint:
        resume_point = resume_pump(
            self._folder, session, self._writer, self._crashes, make_redactor
        )
        if resume_point.begins_at:
            write_beginning(self._folder, resume_point.begins_at)
        return resume_point

    def run(self) -> None:
        """Record until END, or until the relay has exited and the journal is read to its end.

        Garbage is collected between batches only: within a batch a collection examines thousands of
        rows and observations, none of which is garbage.
        """
        gc.disable()
        try:
            self._record_batches()
        finally:
            gc.enable()
        self._finish_session()

    def _record_batches(self) -> None:
        committed_at = 0
        self._crashes.note_start()
        if self._unsaved:
            self._commit_changes(time.time_ns(), force=True)
        while True:
            is_careful = self._crashes.careful_records > 0
            self._relay.wait_for_data(0)
            relay_lived = (
                self._relay.is_alive
            )  # read first, so that the relay's last records are not missed
            before, began = self._pump.decoded_bytes, time.process_time_ns()
            size = READ_BYTES if self._pace.nice == 0 else _YIELDING_READ_BYTES
            has_more = self._pump.decode_next(
                self._observations, max_bytes=1 if is_careful else size
            )
            work = time.process_time_ns() - began
            self._pace.note_work(self._pump.decoded_bytes - before, work)
            self._last_at = self._pump.last_at or self._last_at
            ended = self._observer.ended or not (has_more or relay_lived)
            if ended and not self._observer.ended:
                self._observer.interrupt_session(self._last_at, self._observations)
            now = time.time_ns()
            if not (has_more or ended):
                self._pump.tick(self._observations)
            due = now - committed_at >= _COMMIT_INTERVAL or self._is_snapshot_due(now)
            if ended or due or (is_careful and has_more):
                self._commit_changes(now, force=is_careful and has_more)
                committed_at = now
            if ended:
                return
            collect_garbage()
            self._leave_time(work if has_more else 0, now)
            if not has_more:
                self._relay.wait_for_data(max(committed_at + _COMMIT_INTERVAL - now, 1_000_000))

    def _leave_time(self, work: int, now: int) -> None:
        """Leave processor time to the relay while it lives: by the priority, or by a pause after
        `work` ns."""
        if self._relay.is_alive:
            if self._pace.is_due(now):
                unread = self._pump.reader.unread_bytes
                lag = max(now - self._last_at, 0) if unread else 0
                self._pace.decide(now, self._pump.decoded_bytes + unread, lag, unread)
                if self._pace.nice != self._nice and set_session_nice(self._pace.nice):
                    self._nice = self._pace.nice
            if work and not has_session_priority():
                time.sleep(self._pace.pause_after(work) / 1e9)
        elif not self._is_hurried:
            self._is_hurried = True
            restore_priority()

    def close(self) -> None:
        """Close the recording without finishing the session."""
        self._writer.close()

    def _is_snapshot_due(self, now: int) -> bool:
        moved = self._unsaved or self._pump.reader.position[0] != self._snapshot_segment
        return moved and now >= self._snapshot_after

    def _commit_changes(self, now: int, *, force: bool) -> None:
        """Commit everything observed since the last commit, and the journal position, in one
        transaction.

        If nothing was observed, the position moves only with `force`: reading such records again
        costs nothing.
        """
        changes = self._observer.pop_changes()
        self._doubtful.note(changes.exchanges, changes.tasks)
        observations, self._observations = self._observations, []
        frames = [o for o in observations if type(o) is Frame]
        findings = (
            [o for o in observations if type(o) is Finding]
            if len(frames) < len(observations)
            else []
        )
        position = self._pump.reader.position
        snapshot = self._save_snapshot(position, now) if self._is_snapshot_due(now) else None
        is_changed = bool(
            force or frames or findings or changes.connections or changes.tasks or snapshot
        )
        if is_changed:
            self._write_with_retries(
                lambda: self._writer.write(frames, findings, changes, position, snapshot)
            )
            self._crashes.note_commit()
            if snapshot is not None:
                self._snapshot_segment, self._unsaved = position[0], False
                self._delete_recorded(position[0], snapshot)
            self._report_changes(changes, findings, now)
        for exchange, upstream in self._open_exchanges.take_due(now):
            self._report_exchange(exchange, upstream, live=True, now=now)
        if self._has_sent_lines:
            self._send_status(LinesEnd(), now)
            self._has_sent_lines, self._is_progress_due = False, True
        if is_changed or self._is_progress_due:
            progress = RecorderProgress(*position)
            self._is_progress_due = not self._send_status(progress, now)

    def _write_with_retries(self, write: Callable[[], None]) -> None:
        """Call `write` with retries. Raises RecordingDisplaced, RetriesExhausted,
        PositionConflict."""

        def attempt() -> None:
            self.output_file.check_in_place()
            write()

        write_with_retries(attempt, self._send_now, self._relay.sleep_before_retry)

    def _save_snapshot(self, position: Position, now: int) -> str | None:
        """Write a snapshot of the decoders at the start of a journal file, so that all older files
        can be deleted.

        Returns None if it cannot be written now: then the older files stay.
        """
        name = snapshot_name(position)
        try:
            fresh = self._folder / "new-snapshot"
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(self._pump.save())
            fresh.rename(self._folder / name)
        except OSError as wrong:
            if not self._snapshot_after:
                reason = (wrong.strerror or str(wrong)).lower()
                self._send_now(
                    TroubleStarted(
                        f"the journal {self._folder} cannot be cleaned up: {reason}",
                        "free some space there",
                    )
                )
            self._snapshot_after = now + _SNAPSHOT_RETRY_INTERVAL
            return None
        if self._snapshot_after:
            self._snapshot_after = 0
            self._send_now(TroubleEnded("the journal is cleaned up again"))
        return name

    def _delete_recorded(self, segment: int, snapshot: str) -> None:
        """Delete files that no recorder needs.

        Snapshots are deleted before journal files, so that every existing snapshot can be used.
        """
        with contextlib.suppress(OSError):
            for old in self._folder.glob("snapshot-*"):
                if old.name != snapshot:
                    old.unlink()
            self._pump.reader.delete_before(segment)

    def _report_changes(self, changes: Changes, findings: list[Finding], now: int) -> None:
        """Report findings first, the most severe ones before all, because the last of too many
        lines are dropped."""
        operations = {exchange.id: exchange.operation for exchange in changes.exchanges}
        for finding in sorted(findings, key=lambda each: each.severity, reverse=True):
            operation = operations.get(finding.exchange) or self._open_exchanges.operation_of(
                finding.exchange
            )
            self._send_line(FindingStatus(finding, operation, finding_title(finding.rule)), now)
        for task_id, missed in changes.healed:
            operation = operations.get(missed.by) or self._open_exchanges.operation_of(missed.by)
            self._send_line(GapClosedStatus(task_id, missed, operation), now)
        for receiver in self._observer.pop_new_receivers() if self._reports_receivers else ():
            if address_of(receiver) not in self._own_addresses:
                self._send_status(ReceiverStatus(receiver), now)
        # An exchange never changes without its connection.
        upstreams = {connection.id: connection.upstream for connection in changes.connections}
        ended = []
        for exchange in changes.exchanges:
            upstream = upstreams.get(exchange.connection, "")
            self._open_exchanges.update_exchange(exchange, upstream)
            if self._open_exchanges.mark_ended(exchange):
                ended.append((exchange, upstream))
        endings = self._find_endings([exchange for exchange, _ in ended])
        for exchange, upstream in ended:
            ending = endings.get(exchange.id)
            self._report_exchange(exchange, upstream, live=False, now=now, ending=ending)

    def _find_endings(self, ended: list[Exchange]) -> dict[int, Ending]:
        """Return why calls that have just ended did not end well, as far as there is time."""
        numbers = [each.id for each in ended if may_have_failed(each)][:_MAX_JUDGED]
        began = time.monotonic_ns()
        if not numbers or began < self._judge_after:
            return {}
        endings: dict[int, Ending] = {}
        with contextlib.suppress(Exception):  # a bug here must not stop the recorder
            endings = find_endings(self._writer, self._last_at, numbers)
        ready = time.monotonic_ns()
        self._judge_after = ready + min((ready - began) * _JUDGE_SHARE, _MAX_JUDGE_PAUSE)
        return endings

    def _report_exchange(
        self,
        exchange: Exchange,
        upstream: str,
        *,
        live: bool,
        now: int,
        ending: Ending | None = None,
    ) -> None:
        bare = msgspec.structs.replace(
            exchange, request_headers=(), response_headers=(), trailers=()
        )
        about = ending.to_object() if ending is not None else None
        lag = max(now - self._last_at, 0)
        self._send_line(ExchangeStatus(bare, upstream, live, lag, about), now)

    def _send_line(self, line: Line, now: int) -> None:
        self._send_status(line, now)
        self._has_sent_lines = True

    def _send_now(self, message: Status) -> None:
        self._send_status(message, time.time_ns())

    def _finish_session(self) -> None:
        observer, session = self._observer, self._writer.session
        reasons = _missing_reasons(
            is_clean=observer.ended,
            lost=observer.lost,
            last=self._last_at,
            begins_at=read_beginning(self._folder),
        )
        failures = self._find_failures()
        self._write_with_retries(
            lambda: self._writer.finish(
                self._last_at,
                endings=failures.findings,
                explained=failures.explained,
                how="clean" if observer.ended else "unclean",
                complete=observer.gaps.describe(*reasons),
                lost=observer.lost,
                edits=observer.edits,
            )
        )
        for each in failures.findings:
            operation = failures.operations.get(each.exchange, "")
            self._send_now(FindingStatus(each, operation, finding_title(each.rule)))
        if failures.findings:
            self._send_now(LinesEnd())
        self.output_file.check_in_place()
        done = summarize_session(self._path, session)
        file_layout.delete_journal(self._folder)
        self._send_now(done)

    def _find_failures(self) -> Failures:
        try:
            doubtful = self._doubtful.numbers_at(self._last_at)
            return find_failures(self._writer, self._last_at, doubtful)
        except Exception as error:  # a bug must not keep the session from its end
            self._send_now(
                TroubleStarted(
                    f"why calls failed could not be found out: {error!r}",
                    f"try {shell_line('a2a-inspect', 'why', self._path)}",
                )
            )
            return NO_FAILURES


def collect_garbage() -> None:
    """Run the collection that is due by the thresholds of `gc`, which does not run by itself while
    it is disabled."""
    due = [
        at
        for at, (count, limit) in enumerate(zip(gc.get_count(), gc.get_threshold(), strict=True))
        if count > limit
    ]
    if due and not due[0]:
        gc.collect(due[-1])


def _redaction_key() -> bytes:
    try:
        return file_layout.redaction_key()
    except (OSError, ValueError) as wrong:
        reason = wrong.strerror if isinstance(wrong, OSError) and wrong.strerror else wrong
        raise RecordingError(
            f"no key to label secrets with: {reason}", "check the state directory"
        ) from wrong


def _missing_reasons(*, is_clean: bool, lost: int, last: int, begins_at: int) -> list[str]:
    """Return what the capture lacks of the whole session, in words; `last` is the time of the last
    record, `begins_at` of the first, ns."""
    parts = [f"{lost} bytes were not captured"] if lost else []
    if begins_at:
        parts.append(
            f"begins at {_format_time(begins_at)}: the earlier recording was deleted or replaced"
        )
    if not is_clean:
        parts.append(f"the proxy was killed; complete until {_format_time(last)}")
    return parts


def _format_time(at: int) -> str:
    return f"{datetime.fromtimestamp(at // 1_000_000_000, UTC):%Y-%m-%d %H:%M:%S} UTC"
