"""Recordings to a backend in this process and to a file: names, attributes, links, times, the same
ids each time."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import grpc
import msgspec
import pytest
from google.protobuf import json_format
from opentelemetry.exporter.otlp.proto.grpc import exporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from a2a_proxy.model.values import (
    Changes,
    Connection,
    EventKind,
    Finding,
    FrameKind,
    Handoff,
    Severity,
    Task,
)
from a2a_proxy.model.wire import Direction
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.rules.examples import objects
from a2a_proxy.rules.examples.conversation import CLEAN_SEND, rpc, rpc_error
from a2a_proxy.telemetry.errors import TelemetryError
from a2a_proxy.telemetry.offline import BackendSink, JsonLinesSink, RecordingExport
from a2a_proxy.telemetry.request_outcome import RequestOutcome, RequestResult
from a2a_proxy.telemetry.sdk import SdkBackend
from a2a_proxy.telemetry.span_options import DEFAULT_SPAN_OPTIONS, SpanOptions
from a2a_proxy.telemetry.span_reader import SpanReader
from a2a_proxy.telemetry.target import otlp_target
from a2a_proxy.telemetry.values import MAX_TEXT, SCHEMA_URL, SpanContextIds, SpanKind, SpanValue
from support_inspect import MS, TASK, exchange, frame, request, status, writer
from support_otlp import Received, attributes, grpc_backend, http_backend
from support_recording import STARTED
from support_rules import record

RECORDINGS = Path(__file__).parents[2] / "recordings"
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SPAN_VALUE = SpanValue(
    name="x",
    kind=SpanKind.INTERNAL,
    context=SpanContextIds(TRACE, SPAN),
    parent=None,
    started=1,
    ended=2,
    attributes={},
)
TRACEPARENT = f"00-{TRACE}-{SPAN}-01"

ALL = SpanOptions(
    "server",
    content=True,
    compat=("kong", "openinference", "langfuse", "semconv"),
    segment=500 * MS,
)

Open = Callable[[], AbstractContextManager[Received]]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend in this process answers when the machine lets it."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "60")


@pytest.fixture
def hasty(patient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """For so many seconds a request is tried that may be tried again."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")


def send(
    recording: Recording,
    received: Received,
    *,
    frames: bool = False,
    shape: SpanOptions = DEFAULT_SPAN_OPTIONS,
) -> RecordingExport:
    backend = SdkBackend(otlp_target(received.endpoint, received.protocol, {}))
    try:
        export = RecordingExport(recording, BackendSink(backend), frames=frames, shape=shape)
        export.run(None)
        return export
    finally:
        backend.close()


@pytest.fixture(params=[grpc_backend, http_backend], ids=["grpc", "http"])
def received(request: Any) -> Iterator[Received]:
    with request.param() as made:
        yield made


def by_name(received: Received, name: str) -> list[Any]:
    return [span for span in received.spans() if span.name == name]


def test_a_stream_is_exported_with_its_gap_and_times(received: Received) -> None:
    with open_recording_or_cassette(RECORDINGS / "lossy.a2a.jsonl") as recording:
        export = send(recording, received, frames=True)
        calls = [row.exchange for row in recording.read_exchanges()]
        frames = sum(
            1 for row in recording.read_exchanges() for _ in recording.read_frames(row.key)
        )
    spans = received.spans()
    assert export.done.spans == len(spans) == len(calls)
    assert [span.name for span in spans] == [call.operation for call in calls]
    assert [span.start_time_unix_nano for span in spans] == [call.started for call in calls]
    assert [span.end_time_unix_nano for span in spans] == [call.closed for call in calls]
    gap = next(
        event for span in spans for event in span.events if event.name == "a2a_proxy.generation_gap"
    )
    assert {"expected": 4, "got": 5}.items() <= attributes(gap).items()
    assert received.resource()["service.name"] == "Demo travel agent"
    assert received.resource()["telemetry.distro.name"] == "a2a-proxy"
    assert {span["peer.service"] for span in map(attributes, spans)} == {"Demo travel agent"}
    assert received.resource()["a2a_proxy.capture.complete"] is True
    logs = received.logs()
    assert len(logs) == export.done.logs == frames
    assert {log.span_id for log in logs} == {span.span_id for span in spans}
    assert {log.event_name for log in logs} == {"a2a.frame"}


def test_a_second_export_has_the_same_spans(received: Received) -> None:
    for _ in range(2):
        with open_recording_or_cassette(RECORDINGS / "demo.a2a.jsonl") as recording:
            send(recording, received)
    spans = received.spans()
    half = len(spans) // 2
    assert spans[:half] == spans[half:]
    assert len({span.span_id for span in spans}) == half


def test_polls_link_to_the_span_that_began_the_task(received: Received) -> None:
    with open_recording_or_cassette(RECORDINGS / "sdk-1.x-grpc.a2a.jsonl") as recording:
        send(recording, received)
    for poll in by_name(received, "GetTask"):
        task = attributes(poll).get("a2a.task.id")
        began = [span for span in received.spans() if attributes(span).get("a2a.task.id") == task]
        if attributes(poll).get("error.type"):
            continue
        assert [link.span_id for link in poll.links] == [began[0].span_id]
        assert poll.trace_id == began[0].trace_id
        assert not poll.parent_span_id


def test_the_trace_of_the_client_is_continued(received: Received) -> None:
    with open_recording_or_cassette(RECORDINGS / "stdio.a2a.jsonl") as recording:
        send(recording, received)
        parents = [
            row.exchange.traceparent.split("-")[1:3]
            for row in recording.read_exchanges()
            if row.exchange.traceparent
        ]
    sent = [
        [span.trace_id.hex(), span.parent_span_id.hex()]
        for span in received.spans()
        if span.parent_span_id
    ]
    assert sent == parents != []
    assert {attributes(span)["network.transport"] for span in received.spans()} == {"pipe"}


def test_message_metadata_and_hand_offs_link_calls_without_trace_headers(tmp_path: Path) -> None:
    path = three_agents(tmp_path / "three.a2a.db")
    lines = io.BytesIO()
    with Recording(path) as recording:
        RecordingExport(recording, JsonLinesSink(lines)).run(None)
    groups = [
        group
        for line in lines.getvalue().splitlines()
        for group in json.loads(line)["resourceSpans"]
    ]
    services = [group["resource"]["attributes"][0]["value"]["stringValue"] for group in groups]
    assert services == ["agent1:80", "agent2:80", "agent3:80"]
    spans = [span for group in groups for span in group["scopeSpans"][0]["spans"]]
    front, desk, clerk = spans
    assert (front["traceId"], front["parentSpanId"]) == (TRACE, SPAN)
    assert "parentSpanId" not in desk
    assert desk["traceId"] not in (front["traceId"], clerk["traceId"])
    assert [link["spanId"] for link in desk["links"]] == [front["spanId"]]
    assert [link["spanId"] for link in clerk["links"]] == [desk["spanId"]]
    attributes = {
        pair["key"]: pair["value"]["stringValue"] for pair in clerk["links"][0]["attributes"]
    }
    assert attributes["a2a_proxy.handoff.evidence"] == "context"


def test_the_span_says_why_a_call_did_not_end_well(tmp_path: Path) -> None:
    """The cause is `error.type` where the call has no code; while a session is recorded, later
    calls may explain its end."""
    failed = rpc("SendMessage", objects.send(id="m5"), finish="cut")
    refused = rpc("SendMessage", objects.send(), error=rpc_error(-32602, text="no parts"))
    record(tmp_path / "r.db", (failed + refused + CLEAN_SEND).make_chunks())
    with Recording(tmp_path / "r.db") as recording:
        (session,) = recording.read_sessions()
        calls = [row.exchange for row in recording.read_exchanges(session.id)]
        _set_how(recording.path, "")
        (running,) = recording.read_sessions()
        reader = SpanReader(recording, running)
        live = [made.spans[0] for each in calls if (made := reader.call_spans(each))]
        _set_how(recording.path, session.how)  # the session ends while the reader sends
        found = [made.spans[0] for each in calls if (made := reader.call_spans(each))]
    causes = [
        [e.attributes["a2a_proxy.ending.cause"] for e in span.events if "ending" in e.name]
        for span in found
    ]
    assert causes == [["no-answer"], ["agent-error"], []]
    assert [each.attributes.get("error.type") for each in found] == [
        "no-answer",
        "INVALID_PARAMS",
        None,
    ]
    assert [each.attributes.get("error.type") for each in live] == [
        "stream_cut",
        "INVALID_PARAMS",
        None,
    ]
    assert not [e for span in live for e in span.events if "ending" in e.name]


def _set_how(path: str, how: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE session SET how = ?", (how,))


def test_a_repeated_hand_off_is_one_link(tmp_path: Path) -> None:
    """A follower gets existing rows at its start as well."""
    with Recording(three_agents(tmp_path / "three.a2a.db")) as recording:
        (session,) = recording.read_sessions()
        spans = SpanReader(recording, session)
        for row in recording.read_handoffs():
            spans.add_handoff(row.handoff)
        made = [spans.call_spans(row.exchange) for row in recording.read_exchanges(session.id)]
    assert [len(each.spans[0].links) for each in made if each] == [0, 1, 1]


@pytest.mark.parametrize(
    ("others", "linked"), [({}, True), ({"context_id": ""}, False), ({"context_id": "d"}, True)]
)
def test_a_hand_off_without_a_task_links_to_the_only_open_call(
    tmp_path: Path, others: dict[str, Any], linked: bool
) -> None:
    """If two calls of the agent are open, neither is linked."""
    made = writer(tmp_path / "r.a2a.db")
    connections = [
        Connection(n, f"127.0.0.1:500{n}", f":900{n}", f"agent{n}:80", STARTED) for n in (1, 2)
    ]
    asking = exchange(
        2, closed=0, how="", operation="SendMessage", task_id="", context_id="c", agent="agent1:80"
    )
    other = (
        [exchange(1, closed=0, how="", task_id="", agent="agent1:80", **others)] if others else []
    )
    asked = exchange(3, connection=2)
    handed = Handoff(
        1, "delegation", "context", "agent1:80", "", "c", 0, "agent2:80", "", 3, 3, 0, asked.started
    )
    made.write([], changes=Changes(connections, [*other, asking, asked], [], handoffs=[handed]))
    made.finish(STARTED + 10_000 * MS)
    with Recording(tmp_path / "r.a2a.db") as recording:
        (session,) = recording.read_sessions()
        spans = SpanReader(recording, session)
        found = spans.call_spans(asked)
        context = spans.span_context(asking)
    assert found is not None
    assert [link.context for link in found.spans[0].links] == ([context] if linked else [])


def three_agents(path: Path) -> Path:
    """A front desk with its caller's trace in the message, which asks a second agent, which asks a
    third: untraced."""
    made = writer(path)
    tasks, exchanges, handoffs = [], [], []
    connections = [
        Connection(n, f"127.0.0.1:500{n}", f":900{n}", f"agent{n}:80", STARTED) for n in (1, 2, 3)
    ]
    for number in (1, 2, 3):
        exchanges.append(
            exchange(number, connection=number, task_id=f"task-{number}", agent=f"agent{number}:80")
        )
        tasks.append(Task(f"agent{number}:80", f"task-{number}", exchanges=(number,)))
        metadata = {"traceparent": TRACEPARENT} if number == 1 else {}
        params = {
            "message": {
                "messageId": "m",
                "role": "ROLE_USER",
                "parts": [{"text": "hi"}],
                "metadata": metadata,
            }
        }
        payload = json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": params}
        ).encode()
        asked = frame(
            number,
            0,
            payload,
            kind=FrameKind.REQUEST,
            direction=Direction.TO_AGENT,
            connection=number,
        )
        made.write([asked], changes=Changes([], [], []))
    for number in (1, 2):
        handoffs.append(
            Handoff(
                id=number,
                kind="delegation",
                evidence="context",
                agent=f"agent{number}:80",
                task_id=f"task-{number}",
                context_id="c",
                segment=1,
                to_agent=f"agent{number + 1}:80",
                to_task=f"task-{number + 1}",
                to_exchange=number + 1,
                exchange=number + 1,
                seq=0,
                at=STARTED + number * 1000 * MS,
            )
        )
    made.write([], changes=Changes(connections, exchanges, tasks, handoffs=handoffs))
    made.finish(STARTED + 10_000 * MS)
    return path


@pytest.mark.parametrize("name", ["lossy", "stdio", "live-bidi"])
def test_the_file_has_the_same_spans_as_the_exporters(name: str) -> None:
    with open_recording_or_cassette(RECORDINGS / f"{name}.a2a.jsonl") as recording:
        assert_alike(recording, ALL)


def test_the_file_has_the_same_parents_as_the_exporters(tmp_path: Path) -> None:
    calls = [
        exchange(
            1, traceparent=TRACEPARENT, request_headers=((b"tracestate", b"rojo=1, fw@acme=x y"),)
        ),
        exchange(2, operation="GetTask"),
    ]
    made = writer(tmp_path / "r.a2a.db")
    task = Task("agent:8000", TASK, exchanges=(1, 2))
    line = Connection(1, "127.0.0.1:5000", "127.0.0.1:9000", "agent:8000", STARTED)
    made.write([request(1)], changes=Changes([line], calls, [task]))
    made.finish(STARTED + 10_000 * MS)
    with Recording(tmp_path / "r.a2a.db") as recording:
        first, poll = assert_alike(recording, DEFAULT_SPAN_OPTIONS)
    assert first.trace_state == "rojo=1,fw@acme=x y"
    assert poll.trace_state == ""


def assert_alike(recording: Recording, shape: SpanOptions) -> list[Any]:
    """The file and the exporters say the same; the spans."""
    lines = io.BytesIO()
    with http_backend() as received:
        RecordingExport(recording, JsonLinesSink(lines), shape=shape).run(None)
        send(recording, received, shape=shape)
    [document] = [json.loads(line) for line in lines.getvalue().splitlines()]
    [sent] = received.requests
    request = json_format.ParseDict(_base64_ids(document), ExportTraceServiceRequest())
    groups = list(zip(sent.resource_spans, request.resource_spans, strict=True))
    for sent_group, file_group in groups:
        for each in (*sent_group.scope_spans[0].spans, *file_group.scope_spans[0].spans):
            each.flags = 0  # the SDK says whether the parent is remote, also where there is none
            for link in each.links:
                link.flags = 0
        assert file_group.resource.attributes == sent_group.resource.attributes
        assert file_group.scope_spans[0] == sent_group.scope_spans[0]
        assert sent_group.scope_spans[0].schema_url == SCHEMA_URL
    return [span for group, _ in groups for span in group.scope_spans[0].spans]


def _base64_ids(value: Any) -> Any:
    """Protobuf's own JSON has bytes in base64, where OTLP's has hexadecimal digits."""
    if isinstance(value, list):
        return [_base64_ids(each) for each in value]
    if not isinstance(value, dict):
        return value
    ids = ("traceId", "spanId", "parentSpanId")
    return {
        name: base64.b64encode(bytes.fromhex(each)).decode() if name in ids else _base64_ids(each)
        for name, each in value.items()
    }


def test_lone_surrogates_and_large_numbers_are_sent(tmp_path: Path, received: Received) -> None:
    path = tmp_path / "odd.a2a.db"
    made = writer(path)
    odd = exchange(1, task_id="\ud800", rpc_id="\udfff", error="no \ud800", error_code=10**30)
    event = status(1, 1, "x")
    huge = frame(1, 2, b"{}", state=3, generation=10**30)
    made.write([request(1), event, huge], changes=Changes([], [odd], []))
    made.finish(STARTED + 10_000 * MS)
    with Recording(path) as recording:
        assert send(recording, received).done.spans == 1
    [span] = received.spans()
    changes = [each for each in span.events if each.name == "a2a.task.state_change"]
    assert attributes(changes[-1])["generation"] == str(10**30)
    assert attributes(span)["a2a.task.id"] == "?"


def test_early_times_and_large_texts_are_sent(tmp_path: Path, received: Received) -> None:
    """As far as OTLP can carry them, and a backend would take them."""
    path, big = tmp_path / "odd.a2a.db", "x" * 1_000_000
    odd = exchange(
        1,
        started=1,
        closed=3,
        task_id=big,
        context_id=big,
        method=big,
        error=big,
        version_header=big,
    )
    finding = Finding("A2A-RPC-001", Severity.ERROR, 2, big, connection=1, exchange=1, seq=1)
    event = frame(1, 1, b"{}", at=2, state=2, event=EventKind.STATUS, task_id=big, message_id=big)
    made = writer(path)
    made.write([request(1), event], [finding], changes=Changes([], [odd], []))
    made.finish(STARTED + 10_000 * MS)
    lines = io.BytesIO()
    with Recording(path) as recording:
        assert send(recording, received, frames=True).done.logs == 2
        RecordingExport(recording, JsonLinesSink(lines), frames=True).run(None)
    [span] = received.spans()
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (1, 3)
    assert attributes(span)["a2a.task.id"] == f"{'x' * (MAX_TEXT - 1)}\u2026"
    assert span.ByteSize() < 100_000
    assert len(lines.getvalue()) < 100_000
    assert b'TimeUnixNano":"-' not in lines.getvalue()


def test_an_invalid_header_is_refused_without_printing_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The SDK leaves it out, and writes it to the log: a token, mostly, after a colon."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization: s3cret")
    for protocol in ("grpc", "http/protobuf"):
        with pytest.raises(
            TelemetryError, match="OTEL_EXPORTER_OTLP_HEADERS contains an invalid header"
        ) as error:
            SdkBackend(otlp_target("http://127.0.0.1:1", protocol, {}))
        assert "s3cret" not in f"{error.value.message}{error.value.hint}{capsys.readouterr()}"


def test_an_open_call_has_no_span(tmp_path: Path) -> None:
    made = writer(tmp_path / "live.a2a.db")
    made.write([request(1)], changes=Changes([], [exchange(1, closed=0, how=""), exchange(2)], []))
    made.finish(STARTED + 10_000 * MS)
    lines = io.BytesIO()
    with Recording(tmp_path / "live.a2a.db") as recording:
        export = RecordingExport(recording, JsonLinesSink(lines))
        export.run(None)
    assert (export.done.spans, export.done.open) == (1, 1)
    assert TASK in lines.getvalue().decode()


@pytest.mark.parametrize(
    ("backend", "answer", "judged"),
    [
        (grpc_backend, grpc.StatusCode.UNAUTHENTICATED, RequestResult.REFUSED),
        (grpc_backend, grpc.StatusCode.INTERNAL, RequestResult.FAILED),
        (grpc_backend, grpc.StatusCode.UNAVAILABLE, RequestResult.LATER),
        (grpc_backend, grpc.StatusCode.RESOURCE_EXHAUSTED, RequestResult.LATER),
        (http_backend, 413, RequestResult.LARGE),
        (http_backend, 429, RequestResult.LATER),
        (http_backend, 500, RequestResult.FAILED),
        (http_backend, 401, RequestResult.REFUSED),
        (http_backend, 503, RequestResult.LATER),
    ],
)
def test_refusals_of_a_backend_are_classified(
    backend: Open, answer: Any, judged: RequestResult, request: pytest.FixtureRequest
) -> None:
    if judged is RequestResult.LATER:
        request.getfixturevalue("hasty")
    with backend() as received:
        received.answers = [answer] * 9
        made = SdkBackend(otlp_target(received.endpoint, received.protocol, {}))
        outcome = made.send_spans({}, [])
        made.close()
    assert outcome.result is judged
    assert outcome.why


@pytest.mark.usefixtures("hasty")
def test_a_backend_timeout_is_retried_later(received: Received) -> None:
    well = threading.Event()
    received.before = lambda: well.wait(30)
    backend = SdkBackend(otlp_target(received.endpoint, received.protocol, {}))
    try:
        outcome = backend.send_spans({}, [SPAN_VALUE])
    finally:
        well.set()
        backend.close()
    assert outcome.result is RequestResult.LATER
    assert outcome.why


def test_partial_success_is_reported(received: Received) -> None:
    received.rejects = 1
    backend = SdkBackend(otlp_target(received.endpoint, received.protocol, {}))
    try:
        outcomes = [backend.send_spans({}, [SPAN_VALUE] * 3)]
        received.rejects = 0
        outcomes.append(backend.send_spans({}, [SPAN_VALUE]))
    finally:
        backend.close()
    assert outcomes == [
        RequestOutcome(RequestResult.SENT, "too old", rejected=1),
        RequestOutcome(RequestResult.SENT),
    ]


def test_an_oversized_grpc_request_is_reported_as_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        exporter, "_MAX_RETRYS", 1, raising=False
    )  # the SDK tries it again, for as long as it may
    large = msgspec.structs.replace(SPAN_VALUE, attributes={"a2a_proxy.text": "x" * (5 << 20)})
    with grpc_backend() as received:
        backend = SdkBackend(otlp_target(received.endpoint, "grpc", {}))
        outcome = backend.send_spans({}, [large])
        backend.close()
    assert outcome.result is RequestResult.LARGE


def test_an_oversized_request_is_recognised_when_the_deadline_passes() -> None:
    backend = SdkBackend(otlp_target("localhost:4317", "", {}))
    backend._log_handler.begin_request()
    message = "Received message larger than max (5242880 vs. 4194304)"
    log = logging.getLogger(exporter.__name__)
    log.warning("Transient error %s, %s %s", grpc.StatusCode.RESOURCE_EXHAUSTED, "traces", message)
    log.error(
        "Failed to export %s, %s: %s",
        "traces",
        grpc.StatusCode.DEADLINE_EXCEEDED,
        "Deadline Exceeded",
    )
    outcome = backend._log_handler.get_outcome()
    backend.close()
    assert outcome == RequestOutcome(RequestResult.LARGE, f"RESOURCE_EXHAUSTED: {message}")


def test_an_offline_export_splits_oversized_batches_and_stops_at_a_partial_refusal() -> None:
    with (
        http_backend() as received,
        open_recording_or_cassette(RECORDINGS / "demo.a2a.jsonl") as recording,
    ):
        received.answers = [413, None, 413]
        export = send(recording, received)
        assert (
            len({span.span_id for span in received.spans()})
            == len(received.spans())
            == export.done.spans
        )
        assert received.asked == 5
        received.rejects = 1
        with pytest.raises(TelemetryError, match="refused the request: too old"):
            send(recording, received)


def test_an_offline_export_stops_when_refused() -> None:
    with (
        http_backend() as received,
        open_recording_or_cassette(RECORDINGS / "demo.a2a.jsonl") as recording,
    ):
        received.answers = [403]
        with pytest.raises(TelemetryError) as error:
            send(recording, received)
    assert "403" in error.value.message
    assert "OTEL_EXPORTER_OTLP_HEADERS" in error.value.hint
