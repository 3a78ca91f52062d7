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
from a2a_proxy.telemetry.attributes import resource_of
from a2a_proxy.telemetry.logs import alive_log, finding_log, frame_log, started_log
from a2a_proxy.telemetry.metrics import MetricsSnapshot, SessionMetrics
from a2a_proxy.telemetry.retry_sender import RetrySender
from a2a_proxy.telemetry.settings import OtlpSettings
from a2a_proxy.telemetry.span_reader import SpanReader, late
from a2a_proxy.telemetry.values import Attributes, LogValue, SpanValue

LONG = 10_000_000_000
"""ns after which a call that goes on is told."""
ALIVE = 60_000_000_000
"""ns after which it is told again, and again."""
GRACE = 5_000_000_000
"""ns that a segment's end is past before it is sent: its last frames are on their way into the recording until then."""
_LOOK = 5_000_000_000
"""ns between two looks at calls that go on."""
_LOOKED_AT = 4096
"""Calls that one look tells at most."""


class FollowerMemory(Protocol):
    """What outlives the process: `Follower`."""

    @property
    def notes(self) -> dict[int, int]:
        """Segments that were sent, by the key of their call."""

    def keep(self) -> None:
        """From now on it is so."""

    @property
    def done(self) -> int:
        """Spans of the batch that are settled: another process may have brought them."""

    def settled(self, done: int) -> None:
        """From now on so many are."""


class OtlpConsumer:
    """Takes the rows of one session. A batch is done when the backend has its spans, or they are given up."""

    def __init__(
        self,
        settings: OtlpSettings,
        courier: RetrySender,
        memory: FollowerMemory,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._settings = settings
        self._memory = memory
        self._courier = courier
        self._clock = clock
        self._began = clock()
        self._looked = 0
        self._told: dict[int, int] = {}
        """Calls that were told as going on, and when last."""
        self._path = ""
        self._file = (0, 0)
        self._recording: Recording
        self._session: SessionRow
        self._spans: SpanReader
        self._resource: Attributes = {}
        self._metrics: SessionMetrics | None = None
        self._batch: list[SpanValue] = []
        self._over: list[int] = []
        """Keys of the calls of the batch."""
        self._logs: list[LogValue] = []

    @property
    def wants(self) -> frozenset[RowKind]:
        """What spans and metrics are made of; frames are read with their call."""
        return frozenset({RowKind.EXCHANGE, RowKind.HANDOFF, RowKind.FINDING})

    @property
    def whole(self) -> bool:
        """One request has many spans."""
        return True

    def start(self, recording: str, session: SessionRow) -> None:
        """The session, before anything else."""
        self._path = recording
        self._open(session)
        self._resource = resource_of(session, os.environ)
        if self._settings.metrics:
            self._metrics = SessionMetrics(self._settings.target, self._resource)

    def take(self, kind: RowKind, value: Any) -> None:
        """One value of the model."""
        if self._file != _file_of(self._path):
            self._open_anew()
        if kind is RowKind.HANDOFF:
            self._spans.learn(value)
        elif kind is RowKind.EXCHANGE:
            self._ended(value)
        else:
            self._found(value)

    def settle(self) -> bool:
        """Send what the batch has; False where it is time to stop and spans are left. Log records go once or never."""
        spans, self._batch = self._batch, []
        logs, self._logs = self._logs, []
        over, self._over = self._over, []
        before = self._memory.done
        if not self._courier.spans(self._resource, spans[before:], lambda more: self._memory.settled(before + more)):
            return False
        for each in over:
            self._memory.notes.pop(each, None)  # kept with the batch
        self._courier.logs(self._resource, logs)
        return True

    def look(self, unfinished: list[int]) -> None:
        """Tell of calls that go on for long."""
        now = self._clock()
        if now - self._looked < _LOOK:
            return
        self._looked = now
        rows = [row for row in map(self._recording.exchange, unfinished[:_LOOKED_AT]) if row is not None]
        calls = [row.exchange for row in rows]
        self._stands(calls)
        self._send_segments(rows, now)
        known = set(unfinished)
        self._told = {number: at for number, at in self._told.items() if make_key(self._session.id, number) in known}
        if not self._settings.logs:
            return
        self._courier.logs(self._resource, [log for each in calls for log in self._goes_on(each, now)])

    def close(self) -> None:
        """There is no more."""
        self._stands([])
        if self._metrics is not None:
            self._metrics.close()
        self._recording.close()

    def _stands(self, calls: list[Exchange]) -> None:
        """For the metrics: calls that go on, tasks, and what was not recorded."""
        if self._metrics is None:
            return
        upstreams = Counter(self._spans.upstream(each) for each in calls)
        tasks = task_states(self._recording, self._session.id)
        row = self._recording.session(self._session.id)
        self._metrics.stand(MetricsSnapshot(upstreams, tasks, row.lost if row is not None else 0))

    def _open(self, session: SessionRow) -> None:
        self._file = _file_of(self._path)
        self._recording = open_recording_or_cassette(self._path)
        self._session = session
        self._spans = SpanReader(self._recording, session, self._settings.shape, late_apart=self._settings.logs)

    def _open_anew(self) -> None:
        """The recording was deleted, and its recorder has begun it anew."""
        self._recording.close()
        uuid = self._session.facts.uuid
        with open_recording_or_cassette(self._path) as fresh:
            session = next((row for row in fresh.sessions() if row.facts.uuid == uuid), self._session)
        self._open(session)

    def _ended(self, exchange: Exchange) -> None:
        number = make_key(self._session.id, exchange.id)
        made = self._spans.made(exchange, self._memory.notes.get(number, 0))
        if made is None:
            return
        self._batch += made.spans
        self._over.append(number)
        if self._settings.frames and self._settings.logs:
            rows = self._recording.frames(number, payloads=False)
            self._logs += [frame_log(row.frame, made.context) for row in rows]
        if self._metrics is not None:
            self._metrics.ended(exchange, made.passage, self._spans.upstream(exchange), made.task)

    def _send_segments(self, rows: list[ExchangeRow], now: int) -> None:
        """Those that are over of calls that go on, each once: what was sent is noted at once."""
        notes = self._memory.notes
        for row in rows if self._settings.shape.segment else ():
            if row.exchange.closed:
                continue
            spans = self._spans.passed(row, now - GRACE, notes.get(row.key, 0))
            if spans and self._courier.spans(self._resource, spans):
                notes[row.key] = notes.get(row.key, 0) + len(spans)
                self._memory.keep()

    def _found(self, finding: Finding) -> None:
        """It is an event of its call's span where it was made before that was over: `Spans` does that."""
        if self._metrics is not None:
            self._metrics.found(finding)
        row = self._recording.exchange(make_key(self._session.id, finding.exchange)) if finding.exchange else None
        if self._settings.logs and row is not None and late(finding, row.exchange):
            self._logs.append(finding_log(finding, self._spans.context(row.exchange)))

    def _goes_on(self, exchange: Exchange, now: int) -> list[LogValue]:
        """What is to be told of it now. What was due before this process began, another one has told."""
        due = exchange.started + LONG
        last = self._told.get(exchange.id)
        if exchange.closed or now < due:
            return []
        if last is None and due >= self._began:
            self._told[exchange.id] = now
            return [started_log(exchange, self._spans.context(exchange))]
        if now - (last if last is not None else self._began) < ALIVE:
            return []
        self._told[exchange.id] = now
        return [alive_log(exchange, self._spans.context(exchange), now)]


def _file_of(path: str) -> tuple[int, int]:
    """Which file has this name now."""
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino
