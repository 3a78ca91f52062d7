"""Follows a session for a backend: a span for each call when it is over, word of those that go on for long, metrics."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from a2a_proxy.follower.consumer import RowKind
from a2a_proxy.follower.task_counts import task_states
from a2a_proxy.model.exchange import Exchange
from a2a_proxy.model.finding import Finding
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, SessionRow, make_key
from a2a_proxy.telemetry.attributes import session_resource
from a2a_proxy.telemetry.logs import alive_log, finding_log, frame_log, started_log
from a2a_proxy.telemetry.metrics import MetricsSnapshot, SessionMetrics
from a2a_proxy.telemetry.retry_sender import RetrySender
from a2a_proxy.telemetry.settings import OtlpSettings
from a2a_proxy.telemetry.span_reader import SpanReader, is_late_finding
from a2a_proxy.telemetry.values import Attributes, LogValue, SpanValue

LONG_CALL_NS = 10_000_000_000
"""ns after which a call that goes on is told."""
ALIVE_INTERVAL_NS = 60_000_000_000
"""ns after which it is told again, and again."""
SEGMENT_GRACE_NS = 5_000_000_000
"""ns that a segment's end is past before it is sent: its last frames are on their way into the recording until then."""
_POLL_INTERVAL_NS = 5_000_000_000
"""ns between two looks at calls that go on."""
_MAX_OPEN_CALLS = 4096
"""Calls that one look tells at most."""


class FollowerMemory(Protocol):
    """What outlives the process: `Follower`."""

    @property
    def notes(self) -> dict[int, int]:
        """Segments that were sent, by the key of their call."""

    def save_notes(self) -> None:
        """From now on it is so."""

    @property
    def done(self) -> int:
        """Spans of the batch that are settled: another process may have brought them."""

    def save_done(self, count: int) -> None:
        """From now on so many are."""


class OtlpConsumer:
    """Takes the rows of one session. A batch is done when the backend has its spans, or they are given up."""

    def __init__(
        self,
        settings: OtlpSettings,
        sender: RetrySender,
        memory: FollowerMemory,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._settings = settings
        self._memory = memory
        self._sender = sender
        self._clock = clock
        self._began = clock()
        self._last_poll = 0
        self._last_logged: dict[int, int] = {}
        """Calls that were told as going on, and when last."""
        self._path = ""
        self._file_identity = (0, 0)
        self._recording: Recording
        self._session: SessionRow
        self._spans: SpanReader
        self._resource: Attributes = {}
        self._metrics: SessionMetrics | None = None
        self._batch: list[SpanValue] = []
        self._finished_calls: list[int] = []
        """Keys of the calls of the batch."""
        self._logs: list[LogValue] = []

    @property
    def row_kinds(self) -> frozenset[RowKind]:
        """What spans and metrics are made of; frames are read with their call."""
        return frozenset({RowKind.EXCHANGE, RowKind.HANDOFF, RowKind.FINDING})

    @property
    def takes_batches(self) -> bool:
        """One request has many spans."""
        return True

    def start(self, recording: str, session: SessionRow) -> None:
        """The session, before anything else."""
        self._path = recording
        self._open_recording(session)
        self._resource = session_resource(session, os.environ)
        if self._settings.metrics:
            self._metrics = SessionMetrics(self._settings.target, self._resource)

    def add_row(self, kind: RowKind, value: Any) -> None:
        """One value of the model."""
        if self._file_identity != _file_identity_of(self._path):
            self._reopen_recording()
        if kind is RowKind.HANDOFF:
            self._spans.add_handoff(value)
        elif kind is RowKind.EXCHANGE:
            self._add_call(value)
        else:
            self._add_finding(value)

    def finish_batch(self) -> bool:
        """Send what the batch has; False where it is time to stop and spans are left. Log records go once or never."""
        spans, self._batch = self._batch, []
        logs, self._logs = self._logs, []
        over, self._finished_calls = self._finished_calls, []
        before = self._memory.done
        if not self._sender.send_spans(
            self._resource, spans[before:], lambda more: self._memory.save_done(before + more)
        ):
            return False
        for each in over:
            self._memory.notes.pop(each, None)  # kept with the batch
        self._sender.send_logs(self._resource, logs)
        return True

    def poll(self, unfinished: list[int]) -> None:
        """Tell of calls that go on for long."""
        now = self._clock()
        if now - self._last_poll < _POLL_INTERVAL_NS:
            return
        self._last_poll = now
        rows = [row for row in map(self._recording.exchange, unfinished[:_MAX_OPEN_CALLS]) if row is not None]
        calls = [row.exchange for row in rows]
        self._record_snapshot(calls)
        self._send_segments(rows, now)
        known = set(unfinished)
        self._last_logged = {
            number: at for number, at in self._last_logged.items() if make_key(self._session.id, number) in known
        }
        if not self._settings.logs:
            return
        self._sender.send_logs(self._resource, [log for each in calls for log in self._open_call_logs(each, now)])

    def close(self) -> None:
        """There is no more."""
        self._record_snapshot([])
        if self._metrics is not None:
            self._metrics.close()
        self._recording.close()

    def _record_snapshot(self, calls: list[Exchange]) -> None:
        """For the metrics: calls that go on, tasks, and what was not recorded."""
        if self._metrics is None:
            return
        upstreams = Counter(self._spans.upstream_address(each) for each in calls)
        tasks = task_states(self._recording, self._session.id)
        row = self._recording.session(self._session.id)
        self._metrics.record_snapshot(MetricsSnapshot(upstreams, tasks, row.lost if row is not None else 0))

    def _open_recording(self, session: SessionRow) -> None:
        self._file_identity = _file_identity_of(self._path)
        self._recording = open_recording_or_cassette(self._path)
        self._session = session
        self._spans = SpanReader(self._recording, session, self._settings.shape, late_apart=self._settings.logs)

    def _reopen_recording(self) -> None:
        """The recording was deleted, and its recorder has begun it anew."""
        self._recording.close()
        uuid = self._session.facts.uuid
        with open_recording_or_cassette(self._path) as fresh:
            session = next((row for row in fresh.sessions() if row.facts.uuid == uuid), self._session)
        self._open_recording(session)

    def _add_call(self, exchange: Exchange) -> None:
        number = make_key(self._session.id, exchange.id)
        made = self._spans.call_spans(exchange, self._memory.notes.get(number, 0))
        if made is None:
            return
        self._batch += made.spans
        self._finished_calls.append(number)
        if self._settings.frames and self._settings.logs:
            rows = self._recording.frames(number, payloads=False)
            self._logs += [frame_log(row.frame, made.context) for row in rows]
        if self._metrics is not None:
            self._metrics.record_call(exchange, made.events, self._spans.upstream_address(exchange), made.task)

    def _send_segments(self, rows: list[ExchangeRow], now: int) -> None:
        """Those that are over of calls that go on, each once: what was sent is noted at once."""
        notes = self._memory.notes
        for row in rows if self._settings.shape.segment else ():
            if row.exchange.closed:
                continue
            spans = self._spans.open_call_segments(row, now - SEGMENT_GRACE_NS, notes.get(row.key, 0))
            if spans and self._sender.send_spans(self._resource, spans):
                notes[row.key] = notes.get(row.key, 0) + len(spans)
                self._memory.save_notes()

    def _add_finding(self, finding: Finding) -> None:
        """It is an event of its call's span where it was made before that was over: `SpanReader` does that."""
        if self._metrics is not None:
            self._metrics.record_finding(finding)
        row = self._recording.exchange(make_key(self._session.id, finding.exchange)) if finding.exchange else None
        if self._settings.logs and row is not None and is_late_finding(finding, row.exchange):
            self._logs.append(finding_log(finding, self._spans.span_context(row.exchange)))

    def _open_call_logs(self, exchange: Exchange, now: int) -> list[LogValue]:
        """What is to be told of it now. What was due before this process began, another one has told."""
        due = exchange.started + LONG_CALL_NS
        last = self._last_logged.get(exchange.id)
        if exchange.closed or now < due:
            return []
        if last is None and due >= self._began:
            self._last_logged[exchange.id] = now
            return [started_log(exchange, self._spans.span_context(exchange))]
        if now - (last if last is not None else self._began) < ALIVE_INTERVAL_NS:
            return []
        self._last_logged[exchange.id] = now
        return [alive_log(exchange, self._spans.span_context(exchange), now)]


def _file_identity_of(path: str) -> tuple[int, int]:
    """Which file has this name now."""
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino
