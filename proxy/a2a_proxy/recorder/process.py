"""The recorder's loop: journal -> Observer -> recording, each journal record exactly once.

The journal position is committed in the same transaction as the rows that came from it. A recorder that starts over
restores the decoders from the last snapshot, decodes up to the committed position without storing, and goes on.
"""

from __future__ import annotations

import contextlib
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
from a2a_proxy.model.exchange import Exchange
from a2a_proxy.model.finding import Finding
from a2a_proxy.model.frame import Frame
from a2a_proxy.model.observation import Changes
from a2a_proxy.protocol.text import shell_line
from a2a_proxy.recorder.crashes import Crashes
from a2a_proxy.recorder.open_exchanges import OpenExchanges
from a2a_proxy.recorder.pump import READ
from a2a_proxy.recorder.recording_output import GaveUp, OutputFile, RecordingDisplaced, open_writer, persist, sum_up
from a2a_proxy.recorder.resume import ResumePoint, read_late, resume, snapshot_name, write_late
from a2a_proxy.recorder.status import (
    ExchangeStatus,
    FindingStatus,
    GapClosedStatus,
    RecorderFailed,
    RecorderProgress,
    RecorderReady,
    Status,
    TroubleEnded,
    TroubleStarted,
)
from a2a_proxy.recorder.status_writer import Say
from a2a_proxy.recording.errors import PositionConflict, RecordingError
from a2a_proxy.redaction import Redactor, redactor
from a2a_proxy.redaction.policy import policy_of

_COMMIT_EVERY = 100_000_000
"""ns between commits: a viewer sees a frame at most this long after it passed."""
_SNAPSHOT_RETRY = 1_000_000_000
"""ns between tries to write a snapshot where there is no room for it."""


def record_session(
    folder: Path, wake: int, say: Say, patience: float = 0.0, relay_gone: Callable[[], None] = lambda: None
) -> None:
    """Record the journal in `folder` until its session ends. What keeps it from that is said as `Failed`.

    Once the relay is gone, `relay_gone` is called, and a recording that cannot be written is tried again for `patience`
    seconds.
    """
    try:
        failed = _record(folder, RelayWatch(wake, patience, relay_gone), say)
    except OSError as wrong:
        where = f"{wrong.filename}: " if wrong.filename else ""
        reason = (wrong.strerror or str(wrong)).lower()
        failed = RecorderFailed(
            f"the journal cannot be used: {where}{reason}", "check the state directory", permanent=False
        )
    if failed is not None:
        say(failed, time.time_ns())


def _record(folder: Path, relay: RelayWatch, say: Say) -> RecorderFailed | None:
    session = file_layout.read_session(folder)
    if session is None:
        return RecorderFailed(f"{folder} holds no journal", "it was finished or deleted")
    first = not (folder / file_layout.RECORDER_LOCK).exists()
    lock = file_layout.lock_recorder(folder)
    if lock is None:
        return RecorderFailed("another recorder is at work on this session", "wait until it has finished")
    try:
        return _keep_recording(folder, session, relay, say, first=first)
    except PositionConflict:
        return RecorderFailed("another recorder has gone on with this session", "it will finish it")
    except GaveUp as wrong:
        return RecorderFailed(f"{wrong.message}; the journal is left for later", "finish with: a2a-inspect recover")
    finally:
        os.close(lock)


def _keep_recording(
    folder: Path, session: SessionFile, relay: RelayWatch, say: Say, *, first: bool
) -> RecorderFailed | None:
    """Record, as often as somebody takes the recording away. Raises PositionConflict, GaveUp."""
    while True:
        try:
            recorder = _RecorderLoop(folder, session, relay, say, first=first)
        except RecordingError as wrong:  # a recording that was open before may be usable again later
            return RecorderFailed(wrong.message, wrong.hint, permanent=first)
        first = False
        try:
            recorder.run()
            return None
        except RecordingDisplaced:
            recorder.close()
            say(_displaced(session.recording, gone=recorder.place.gone), time.time_ns())
        except GaveUp:
            raise
        except RecordingError as wrong:
            return RecorderFailed(wrong.message, wrong.hint, permanent=False)


def _displaced(path: str, *, gone: bool) -> TroubleStarted:
    how = "deleted or moved" if gone else "replaced by another file"
    message = f"the recording {path} was {how}; it is begun anew there with what the journal still has"
    return TroubleStarted(message, f"look at it with: {shell_line('a2a-inspect', path)}")


class RelayWatch:
    """Whether the relay lives, as the wake-up pipe tells; `wake` < 0: there is none."""

    def __init__(self, wake: int, patience: float, relay_gone: Callable[[], None]) -> None:
        self._wake = wake
        self._patience = patience
        self._relay_gone = relay_gone
        self._gone = 0.0 if wake >= 0 else time.monotonic()
        """When it was found to be gone; 0 while it lives."""

    @property
    def lives(self) -> bool:
        """It had not gone when it was last listened to."""
        return not self._gone

    def wait(self, ns: int) -> None:
        """Sleep until it has written, or `ns` have passed."""
        if self.lives:
            ready, _, _ = select.select([self._wake], [], [], max(ns, 0) / 1e9)
            if ready and not os.read(self._wake, 1 << 16):
                self._gone = time.monotonic()
                self._relay_gone()
        else:
            time.sleep(max(ns, 0) / 1e9)

    def sleep(self, seconds: float) -> bool:
        """Sleep though it writes; False once it has been gone for longer than patience lasts."""
        time.sleep(seconds)
        while self.lives and select.select([self._wake], [], [], 0)[0]:
            self.wait(0)
        return self.lives or time.monotonic() - self._gone < self._patience


class _RecorderLoop:
    """One recorder at work."""

    def __init__(self, folder: Path, session: SessionFile, relay: RelayWatch, say: Say, *, first: bool) -> None:
        """`first`: no other one has worked on this journal. Raises RecordingError."""
        self._folder = folder
        self._path = session.recording
        self._relay = relay
        self._say = say
        clean = redactor(_key(), policy_of(session.redact))
        self._writer = open_writer(session, clean)
        self.place = OutputFile(self._path)
        self._crashes = Crashes(folder, self._writer.position, careful=not first)
        self._live = OpenExchanges()
        begun = self._resume(clean, session)
        self._out, self._feed = begun.out, begun.feed
        self._observer = self._feed.observer
        self._unsaved = begun.unsaved
        """The position in the recording is not one from which a snapshot leads here."""
        self._snapshot_segment = self._feed.reader.position[0]
        self._snapshot_after = 0
        """When a snapshot that could not be written is tried again, ns."""
        self._last_at = self._feed.last_at or session.started
        say(RecorderReady(session.recording, self._writer.session), time.time_ns())

    def _resume(self, clean: Redactor, session: SessionFile) -> ResumePoint:
        place = (self._folder, self._path, self._writer, self._crashes)
        begun = resume(*place, clean, session.started, session.live)
        if begun.late:
            write_late(self._folder, begun.late)
        return begun

    def run(self) -> None:
        """Record until END, or until the relay is gone and the journal is read to its end."""
        committed_at = 0
        self._crashes.begin()
        if self._unsaved:
            self._commit(time.time_ns(), force=True)
        while True:
            careful = self._crashes.careful > 0
            relay_lived = self._relay.lives  # asked first: what it wrote before its end is read
            more = self._feed.step(self._out, octets=1 if careful else READ)
            self._last_at = self._feed.last_at or self._last_at
            ended = self._observer.ended or not (more or relay_lived)
            if ended and not self._observer.ended:
                self._observer.interrupt(self._last_at, self._out)
            now = time.time_ns()
            if not (more or ended):
                self._feed.tick(self._out)
            due = now - committed_at >= _COMMIT_EVERY or self._wants_snapshot(now)
            if ended or due or (careful and more):
                self._commit(now, force=careful and more)
                committed_at = now
            if ended:
                break
            if not more:
                self._relay.wait(max(committed_at + _COMMIT_EVERY - now, 1_000_000))
        self._finish()

    def close(self) -> None:
        """Let go of the recording as it is."""
        self._writer.close()

    def _wants_snapshot(self, now: int) -> bool:
        moved = self._unsaved or self._feed.reader.position[0] != self._snapshot_segment
        return moved and now >= self._snapshot_after

    def _commit(self, now: int, *, force: bool) -> None:
        """One transaction: everything observed since the last one, and how far the journal is recorded.

        Where nothing was observed the position moves only with `force`: reading such records again costs nothing.
        """
        changes = self._observer.changes()
        frames = [o for o in self._out if type(o) is Frame]
        findings = [o for o in self._out if type(o) is Finding]
        self._out = []
        position = self._feed.reader.position
        snapshot = self._save(position, now) if self._wants_snapshot(now) else None
        if force or frames or findings or changes.connections or changes.tasks or snapshot:
            self._persist(lambda: self._writer.write(frames, findings, changes, position, snapshot))
            self._crashes.passed()
            if snapshot is not None:
                self._snapshot_segment, self._unsaved = position[0], False
                self._forget(position[0], snapshot)
            self._tell_changes(changes, findings, now)
            self._say(RecorderProgress(*position, self._feed.reader.behind), now)
        for exchange, upstream in self._live.due(now):
            self._seen(exchange, upstream, live=True, now=now)

    def _persist(self, write: Callable[[], None]) -> None:
        """Raises Displaced, GaveUp, PositionConflict."""

        def attempt() -> None:
            self.place.check()
            write()

        persist(attempt, self._tell, self._relay.sleep)

    def _save(self, position: Position, now: int) -> str | None:
        """Snapshot the decoders at the start of a segment, so that all older segments can go. None where it cannot be
        written now: then they stay."""
        name = snapshot_name(position)
        try:
            fresh = self._folder / "new-snapshot"
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(self._feed.save())
            fresh.rename(self._folder / name)
        except OSError as wrong:
            if not self._snapshot_after:
                reason = (wrong.strerror or str(wrong)).lower()
                self._tell(
                    TroubleStarted(f"the journal {self._folder} cannot be tidied: {reason}", "free some space there")
                )
            self._snapshot_after = now + _SNAPSHOT_RETRY
            return None
        if self._snapshot_after:
            self._snapshot_after = 0
            self._tell(TroubleEnded("the journal is tidied again"))
        return name

    def _forget(self, segment: int, snapshot: str) -> None:
        """Delete what no recorder will need. Snapshots go first: one that is there can be used."""
        with contextlib.suppress(OSError):
            for old in self._folder.glob("snapshot-*"):
                if old.name != snapshot:
                    old.unlink()
            self._feed.reader.delete_before(segment)

    def _tell_changes(self, changes: Changes, findings: list[Finding], now: int) -> None:
        """Findings first, the gravest before all: should the pipe be full, it is the others that are missing."""
        operations = {exchange.id: exchange.operation for exchange in changes.exchanges}
        for finding in sorted(findings, key=lambda each: each.severity, reverse=True):
            operation = operations.get(finding.exchange) or self._live.operation(finding.exchange)
            self._say(FindingStatus(finding, operation), now)
        for task_id, missed in changes.healed:
            self._say(
                GapClosedStatus(task_id, missed, operations.get(missed.by) or self._live.operation(missed.by)), now
            )
        # An exchange never changes without its connection.
        upstreams = {connection.id: connection.upstream for connection in changes.connections}
        for exchange in changes.exchanges:
            upstream = upstreams.get(exchange.connection, "")
            self._live.update(exchange, upstream)
            if self._live.ends(exchange):
                self._seen(exchange, upstream, live=False, now=now)

    def _seen(self, exchange: Exchange, upstream: str, *, live: bool, now: int) -> None:
        bare = msgspec.structs.replace(exchange, request_headers=(), response_headers=(), trailers=())
        self._say(ExchangeStatus(bare, upstream, live, lag=max(now - self._last_at, 0)), now)

    def _tell(self, said: Status) -> None:
        self._say(said, time.time_ns())

    def _finish(self) -> None:
        clean, lost, session = self._observer.ended, self._observer.lost, self._writer.session
        missing = _missing(clean=clean, lost=lost, last=self._last_at, late=read_late(self._folder))
        self._persist(
            lambda: self._writer.finish(
                self._last_at,
                how="clean" if clean else "unclean",
                complete=missing or "complete",
                lost=lost,
                edits=self._observer.edits,
            )
        )
        self.place.check()
        done = sum_up(self._path, session, lost=lost, clean=clean)
        file_layout.delete_journal(self._folder)
        self._tell(done)


def _key() -> bytes:
    try:
        return file_layout.redaction_key()
    except (OSError, ValueError) as wrong:
        reason = wrong.strerror if isinstance(wrong, OSError) and wrong.strerror else wrong
        raise RecordingError(f"no key to label secrets with: {reason}", "check the state directory") from wrong


def _missing(*, clean: bool, lost: int, last: int, late: int) -> str:
    """What the capture lacks, in words; `last` is the time of the last record, `late` of the first, ns. Empty: none."""
    parts = [f"{lost} octets were not captured"] if lost else []
    if late:
        parts.append(f"begins at {_moment(late)}: the recording before was deleted or replaced")
    if not clean:
        parts.append(f"the proxy was killed; complete until {_moment(last)}")
    return "; ".join(parts)


def _moment(at: int) -> str:
    return f"{datetime.fromtimestamp(at // 1_000_000_000, UTC):%Y-%m-%d %H:%M:%S} UTC"
