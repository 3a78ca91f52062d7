"""A session followed for a backend: each call once, over crashes; long calls are reported while
open."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from a2a_proxy.follower.checkpoint import CheckpointFile
from a2a_proxy.follower.hook_consumer import CallTally
from a2a_proxy.follower.process import Follower, FollowTarget
from a2a_proxy.model.values import Finding, Severity
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.telemetry import retry_sender
from a2a_proxy.telemetry.consumer import (
    ALIVE_INTERVAL_NS,
    LONG_CALL_NS,
    SEGMENT_GRACE_NS,
    FollowerMemory,
    OtlpConsumer,
)
from a2a_proxy.telemetry.request_outcome import SENT, RequestOutcome
from a2a_proxy.telemetry.retry_sender import RetrySender, SenderClock
from a2a_proxy.telemetry.settings import OtlpSettings, decode_settings, encode
from a2a_proxy.telemetry.span_options import SpanOptions
from a2a_proxy.telemetry.span_reader import SpanReader
from a2a_proxy.telemetry.target import otlp_target
from a2a_proxy.telemetry.values import Attributes, LogLevel
from support_inspect import changes, exchange, live, request, sample, writer
from support_recording import STARTED

SEGMENT = 60_000_000_000
SETTINGS = OtlpSettings(otlp_target("localhost:4317", "", {}), metrics=False, frames=True)


class Died(Exception):
    """The process is gone."""


class Run:
    """Processes that follow one recording after another; their ledger and what they sent outlive
    them."""

    def __init__(self, path: Path, ledger: int) -> None:
        self.path, self.ledger = path, CheckpointFile(ledger)
        self.settings = SETTINGS
        self.spans: list[Any] = []
        self.logs: list[Any] = []
        self.count = CallTally()
        self.fatal = False
        """The next request kills the process."""
        self.sent: Callable[[], None] = lambda: None
        """Called when the backend has taken spans."""
        self.now = STARTED
        self.notes: dict[int, int] = {}

    def send_spans(self, resource: Attributes, spans: Sequence[Any]) -> RequestOutcome:
        if self.fatal:
            raise Died
        self.spans += spans
        self.sent()
        return SENT

    def send_logs(self, resource: Attributes, logs: Sequence[Any]) -> RequestOutcome:
        self.logs += logs
        return SENT

    def process(self, *, follow: bool = False) -> Follower:
        self.count = CallTally()
        courier = RetrySender(
            self, "c", self.count, lambda _: None, SenderClock(lambda: 0.0, lambda _: None)
        )
        aim = FollowTarget(str(self.path), follow=follow)
        made = Follower(
            aim, lambda: self.consumer(courier, made), self.ledger, self.count, lambda _: None
        )
        return made

    def look(self) -> None:
        """A process that begins, looks once and dies."""
        self.count = CallTally()
        follower = self.process(follow=True)
        follower._follow_round()
        follower._poll_consumers()

    def save_notes(self) -> None:
        """Notes of a consumer that nobody feeds are kept as they are."""

    done = 0

    def save_done(self, count: int) -> None:
        """Nor is what it brings."""

    def consumer(
        self, courier: RetrySender | None = None, memory: FollowerMemory | None = None
    ) -> OtlpConsumer:
        courier = courier or RetrySender(self, "c", self.count, lambda _: None)
        return OtlpConsumer(self.settings, courier, memory or self, lambda: self.now)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with tempfile.TemporaryFile(buffering=0) as file:
        yield Run(tmp_path / "r.a2a.db", file.fileno())


def test_each_call_is_sent_once_after_a_crash(run: Run) -> None:
    sample(run.path)
    run.fatal = True
    with pytest.raises(Died):
        run.process().run()
    assert run.spans == []
    run.fatal = False
    run.process().run()
    run.process().run()
    assert [span.attributes["a2a_proxy.exchange"] for span in run.spans] == [1, 2, 3]
    assert len(run.logs) == 9
    assert run.ledger.read_mark().calls == 3


def test_a_recreated_recording_is_read_from_its_start(run: Run) -> None:
    made = writer(run.path)
    made.write([request(1)], changes=changes(exchange(1)))
    follower = run.process()
    consumer = run.consumer()
    with Recording(run.path) as recording:
        consumer.start(str(run.path), recording.read_sessions()[0])
    follower.stopping = True
    made.finish(STARTED + 10**10)
    for end in ("", "-wal", "-shm"):
        Path(f"{run.path}{end}").unlink(missing_ok=True)
    again = writer(run.path)
    again.write([request(2)], changes=changes(exchange(2)))
    again.finish(STARTED + 10**10)
    for kind in (kind for kind in consumer.row_kinds if kind.name == "EXCHANGE"):
        consumer.add_row(kind, exchange(2))
    consumer.finish_batch()
    consumer.close()
    assert [span.attributes["a2a_proxy.exchange"] for span in run.spans] == [2]


def test_a_long_call_is_reported_before_its_end(run: Run) -> None:
    made = writer(run.path)
    made.write([request(1)], changes=changes(live(1)))
    consumer = run.consumer()
    began = live(1).started
    with Recording(run.path) as recording:
        consumer.start(str(run.path), recording.read_sessions()[0])
        key = next(recording.read_exchanges()).key
    names: list[list[str]] = []
    for after in (
        LONG_CALL_NS - 1,
        2 * LONG_CALL_NS,
        2 * LONG_CALL_NS + 1,
        3 * LONG_CALL_NS,
        2 * LONG_CALL_NS + ALIVE_INTERVAL_NS,
        2 * LONG_CALL_NS + 2 * ALIVE_INTERVAL_NS,
    ):
        run.now = began + after
        consumer.poll([key])
        names.append([log.name for log in run.logs])
        assert {log.service for log in run.logs} <= {"agent:8000"}
        run.logs.clear()
    assert names == [
        [],
        ["a2a.operation.started"],
        [],
        [],
        ["a2a.operation.alive"],
        ["a2a.operation.alive"],
    ]
    consumer.close()
    made.finish(STARTED + 10**10)
    run.now = began + 3 * LONG_CALL_NS
    later = run.consumer()  # in the place of one that died: that one has told it
    with Recording(run.path) as recording:
        later.start(str(run.path), recording.read_sessions()[0])
    for after in (3 * LONG_CALL_NS + 6 * 10**9, 4 * LONG_CALL_NS + ALIVE_INTERVAL_NS):
        run.now = began + after
        later.poll([key])
    assert [log.name for log in run.logs] == ["a2a.operation.alive"]
    later.close()


def test_a_late_finding_is_one_log_record_and_no_span_event(run: Run) -> None:
    over = exchange(1)
    early, late = (
        Finding("A2A-X-001", Severity.WARNING, over.closed + more, summary, exchange=1)
        for more, summary in ((0, "early"), (1, "late"))
    )
    made = writer(run.path)
    made.write([request(1)], findings=[early], changes=changes(over))
    made.write([request(2)], findings=[late], changes=changes(exchange(2)))
    made.finish(STARTED + 10**10)
    run.fatal = True
    with pytest.raises(Died):
        run.process().run()
    run.fatal = False
    run.process().run()
    found = [log for log in run.logs if log.name == "a2a_proxy.finding"]
    assert [(log.body, log.context, log.level) for log in found] == [
        ("late", run.spans[0].context, LogLevel.WARN)
    ]
    records = [
        event.attributes["a2a_proxy.finding.summary"]
        for event in run.spans[0].events
        if "finding" in event.name
    ]
    assert records == ["early"]


def test_a_batch_resumes_with_the_request_that_was_interrupted(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry_sender, "MAX_BATCH", 1)
    sample(run.path)
    for count in (1, 2):
        run.sent = lambda: setattr(run, "fatal", True)
        with pytest.raises(Died):
            run.process().run()
        run.fatal = False
        assert (len(run.spans), run.ledger.read_mark().calls) == (count, count)
    run.sent = lambda: None
    run.process().run()
    assert [span.attributes["a2a_proxy.exchange"] for span in run.spans] == [1, 2, 3]
    assert run.ledger.read_mark().calls == 3


def test_a_stop_after_sending_repeats_nothing(run: Run) -> None:
    sample(run.path)
    follower = run.process()
    run.sent = lambda: setattr(follower, "stopping", True)
    follower.run()
    run.sent = lambda: None
    run.process().run()
    assert [span.attributes["a2a_proxy.exchange"] for span in run.spans] == [1, 2, 3]


def test_settings_survive_the_command_line() -> None:
    assert decode_settings(encode(SETTINGS).decode()) == SETTINGS


def test_segments_of_an_open_call_are_sent_once_over_crashes(run: Run) -> None:
    run.settings = msgspec.structs.replace(
        SETTINGS, shape=SpanOptions(segment=SEGMENT), frames=False
    )
    made = writer(run.path)
    made.write([request(1)], changes=changes(live(1)))
    began = live(1).started
    for after, expected in (
        (SEGMENT + SEGMENT_GRACE_NS - 1, 0),
        (SEGMENT + SEGMENT_GRACE_NS, 1),
        (2 * SEGMENT, 1),
        (3 * SEGMENT, 2),
    ):
        run.now = began + after
        run.look()
        assert len(run.spans) == expected, after
    run.fatal = True
    run.now = began + 4 * SEGMENT
    with pytest.raises(Died):
        run.look()
    run.fatal = False
    run.look()
    assert [span.attributes["a2a_proxy.segment"] for span in run.spans] == [1, 2, 3]
    over = exchange(1, closed=began + 4 * SEGMENT + 1, states=())
    made.write([], changes=changes(over))
    made.finish(over.closed)
    run.process().run()
    assert [span.attributes["a2a_proxy.segment"] for span in run.spans] == [1, 2, 3, 4, 5]
    assert run.ledger.read_mark().calls == 1
    assert run.ledger.load().notes == {}
    with Recording(run.path) as recording:
        long_after = SpanReader(
            recording, recording.read_sessions()[0], run.settings.shape
        ).call_spans(over)
    assert long_after is not None
    assert list(long_after.spans) == run.spans


def test_polling_an_open_call_records_no_call_in_progress(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("a2a_proxy.follower.process.POLL_SECONDS", 0.001)
    made = writer(run.path)
    made.write([request(1)], changes=changes(live(1)))
    run.now = live(1).started
    since: list[int] = []

    class Looks(OtlpConsumer):
        def poll(self, unfinished: list[int]) -> None:
            since.append(run.ledger.read_mark().since)
            follower.save_notes()
            follower.stopping = len(since) >= 3

    courier = RetrySender(run, "c", run.count, lambda _: None)
    aim = FollowTarget(str(run.path), follow=True)
    make = lambda: Looks(SETTINGS, courier, follower, lambda: run.now)  # noqa: E731
    follower = Follower(aim, make, run.ledger, run.count, lambda _: None)
    follower.run()
    assert since[1:3] == [0, 0]
