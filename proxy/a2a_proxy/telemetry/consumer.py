"""Export a session to a backend while it is recorded: spans of finished calls, log records of long
calls, metrics."""

import os
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from a2a_proxy.follower.consumer import RowKind
from a2a_proxy.follower.task_counts import task_states
from a2a_proxy.model.values import Exchange, Finding
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, SessionRow, make_key
from a2a_proxy.recording.store.file_header import FileIdentity, file_identity
from a2a_proxy.telemetry.logs import alive_log, finding_log, frame_log, started_log
from a2a_proxy.telemetry.metrics import MetricsSnapshot, SessionMetrics
from a2a_proxy.telemetry.retry_sender import RetrySender
from a2a_proxy.telemetry.services import is_service_named, session_resource
from a2a_proxy.telemetry.settings import OtlpSettings
from a2a_proxy.telemetry.span_reader import SpanReader, is_late_finding
from a2a_proxy.telemetry.values import Attributes, LogValue, SpanContextIds, SpanValue

LONG_CALL_NS = 10_000_000_000
"""Duration in ns after which an open call is logged."""
ALIVE_INTERVAL_NS = 60_000_000_000
"""Interval in ns between further log records of an open call."""
SEGMENT_GRACE_NS = 5_000_000_000
"""ns after the end of a segment before it is sent, because its last frames may not be in the
recording yet."""
_POLL_INTERVAL_NS = 5_000_000_000
"""ns between two polls of open calls."""
_MAX_OPEN_CALLS = 4096
"""Maximum number of open calls processed in one poll."""


class FollowerMemory(Protocol):
    """State that outlives the process: `Follower`."""

    @property
    def notes(self) -> dict[int, int]:
        """Number of segments that were sent, by the key of their call."""

    def save_notes(self) -> None:
        """Store the notes durably."""

    @property
    def done(self) -> int:
        """Number of spans of the batch that are settled; an earlier process may have sent them."""

    def save_done(self, count: int) -> None:
        """Store durably that `count` spans of the batch are settled."""


class OtlpConsumer:
    """Consumes the rows of one session. A batch is finished when its spans have been accepted or
    given up."""

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
        """Open calls that were logged, and the time of the last log record, ns."""
        self._path = ""
        self._file: FileIdentity | None = None
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
        """Kinds of rows that spans and metrics are built from; frames are read with their call."""
        return frozenset({RowKind.EXCHANGE, RowKind.HANDOFF, RowKind.FINDING})

    @property
    def takes_batches(self) -> bool:
        """Whether rows are consumed in batches: always, because one request has many spans."""
        return True

    def start(self, recording: str, session: SessionRow) -> None:
        """Open the recording of the session; called before any other method."""
        self._path = recording
        self._open_recording(session)
        self._resource = session_resource(session, os.environ)
        if self._settings.metrics:
            self._metrics = SessionMetrics(self._settings.target, self._resource)

    def add_row(self, kind: RowKind, value: Any) -> None:
        """Add one row of the recording."""
        if self._file != file_identity(self._path):
            # Open the recording again, because it was deleted and its recorder has created a new
            # one.
            self._recording.close()
            uuid = self._session.facts.uuid
            with open_recording_or_cassette(self._path) as fresh:
                session = next(
                    (row for row in fresh.read_sessions() if row.facts.uuid == uuid), self._session
                )
            self._open_recording(session)
        if kind is RowKind.HANDOFF:
            self._spans.add_handoff(value)
        elif kind is RowKind.EXCHANGE:
            self._add_call(value)
        else:
            self._add_finding(value)

    def finish_batch(self) -> bool:
        """Send the batch; return False if the process must stop before all spans are sent. Log
        records are sent once."""
        spans, self._batch = self._batch, []
        logs, self._logs = self._logs, []
        over, self._finished_calls = self._finished_calls, []
        before = self._memory.done
        if not self._sender.send_spans(
            self._resource, spans[before:], lambda more: self._memory.save_done(before + more)
        ):
            return False
        for each in over:
            self._memory.notes.pop(each, None)  # stored with the batch
        self._sender.send_logs(self._resource, logs)
        return True

    def poll(self, unfinished: list[int]) -> None:
        """Log and count open calls, and send their finished segments."""
        now = self._clock()
        if now - self._last_poll < _POLL_INTERVAL_NS:
            return
        self._last_poll = now
        rows = [
            row
            for row in map(self._recording.read_exchange, unfinished[:_MAX_OPEN_CALLS])
            if row is not None
        ]
        calls = [row.exchange for row in rows]
        self._record_snapshot(calls)
        self._send_segments(rows, now)
        known = set(unfinished)
        self._last_logged = {
            number: at
            for number, at in self._last_logged.items()
            if make_key(self._session.id, number) in known
        }
        if not self._settings.logs:
            return
        self._sender.send_logs(
            self._resource, [log for each in calls for log in self._open_call_logs(each, now)]
        )

    def close(self) -> None:
        """Finish the export: no rows follow."""
        self._record_snapshot([])
        if self._metrics is not None:
            self._metrics.close()
        self._recording.close()

    def _record_snapshot(self, calls: list[Exchange]) -> None:
        """Record the current numbers for the metrics: open calls, tasks, and lost bytes."""
        if self._metrics is None:
            return
        upstreams = Counter(self._spans.upstream_address(each) for each in calls)
        tasks = task_states(self._recording, self._session.id)
        row = self._recording.read_session(self._session.id)
        self._metrics.record_snapshot(
            MetricsSnapshot(upstreams, tasks, row.lost if row is not None else 0)
        )

    def _open_recording(self, session: SessionRow) -> None:
        self._file = file_identity(self._path)
        self._recording = open_recording_or_cassette(self._path)
        self._session = session
        self._spans = SpanReader(
            self._recording,
            session,
            self._settings.shape,
            late_apart=self._settings.logs,
            fixed_service=is_service_named(os.environ),
        )

    def _add_call(self, exchange: Exchange) -> None:
        number = make_key(self._session.id, exchange.id)
        made = self._spans.call_spans(exchange, self._memory.notes.get(number, 0))
        if made is None:
            return
        self._batch += made.spans
        self._finished_calls.append(number)
        if self._settings.frames and self._settings.logs:
            rows = self._recording.read_frames(number, payloads=False)
            self._logs += [frame_log(row.frame, made.context, made.service) for row in rows]
        if self._metrics is not None:
            self._metrics.record_call(
                exchange, made.events, self._spans.upstream_address(exchange), made.task
            )

    def _send_segments(self, rows: list[ExchangeRow], now: int) -> None:
        """Send the finished segments of open calls, each once: a sent segment is noted at once."""
        notes = self._memory.notes
        for row in rows if self._settings.shape.segment else ():
            if row.exchange.closed:
                continue
            spans = self._spans.open_call_segments(
                row, now - SEGMENT_GRACE_NS, notes.get(row.key, 0)
            )
            if spans and self._sender.send_spans(self._resource, spans):
                notes[row.key] = notes.get(row.key, 0) + len(spans)
                self._memory.save_notes()

    def _add_finding(self, finding: Finding) -> None:
        """Add a finding. It is an event of the call's span (`SpanReader`), unless it was found
        after the end of the call."""
        if self._metrics is not None:
            self._metrics.record_finding(finding)
        row = (
            self._recording.read_exchange(make_key(self._session.id, finding.exchange))
            if finding.exchange
            else None
        )
        if self._settings.logs and row is not None and is_late_finding(finding, row.exchange):
            self._logs.append(finding_log(finding, *self._span_identity(row.exchange)))

    def _span_identity(self, exchange: Exchange) -> tuple[SpanContextIds, str]:
        """Return the context and the service of the call's span."""
        return self._spans.span_context(exchange), self._spans.service_name(exchange)

    def _open_call_logs(self, exchange: Exchange, now: int) -> list[LogValue]:
        """Return the log records that are due now. Those due before this process started were sent
        by an earlier one."""
        due = exchange.started + LONG_CALL_NS
        last = self._last_logged.get(exchange.id)
        if exchange.closed or now < due:
            return []
        if last is None and due >= self._began:
            self._last_logged[exchange.id] = now
            return [started_log(exchange, *self._span_identity(exchange))]
        if now - (last if last is not None else self._began) < ALIVE_INTERVAL_NS:
            return []
        self._last_logged[exchange.id] = now
        return [alive_log(exchange, *self._span_identity(exchange), now)]
