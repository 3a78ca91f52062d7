"""A call forwarded with a `traceparent` of the proxy: two spans, the same at every export."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from a2a_proxy.follower.checkpoint import CheckpointFile
from a2a_proxy.follower.hook_consumer import CallTally
from a2a_proxy.follower.process import Follower, FollowTarget
from a2a_proxy.model.values import Binding, Changes, Connection, Exchange, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.telemetry.consumer import OtlpConsumer
from a2a_proxy.telemetry.offline import BackendSink, RecordingExport
from a2a_proxy.telemetry.retry_sender import RetrySender
from a2a_proxy.telemetry.sdk import SdkBackend
from a2a_proxy.telemetry.settings import OtlpSettings
from a2a_proxy.telemetry.span_options import DEFAULT_SPAN_OPTIONS, SpanOptions
from a2a_proxy.telemetry.target import otlp_target
from a2a_proxy.telemetry.values import SpanContextIds, SpanKind
from support_inspect import changes, exchange, frame, live, request, status, writer
from support_otlp import Kept, http_backend
from support_recording import STARTED

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CAME = f"00-{TRACE}-{SPAN}-01"
SENT = f"00-{TRACE}-{'c' * 16}-01"
BEGUN = f"00-{'a' * 32}-{'c' * 16}-01"


def exported(
    path: Path, call: Exchange, shape: SpanOptions = DEFAULT_SPAN_OPTIONS, **asked: Any
) -> Kept:
    """The spans of one call, which are the same when it is exported again."""
    made = writer(path)
    line = Connection(1, "127.0.0.1:5000", "127.0.0.1:9000", "agent:8000", STARTED)
    body = json.dumps(
        {"jsonrpc": "2.0", "method": "SendStreamingMessage", "id": 1, **asked}
    ).encode()
    first = (
        frame(1, 0, body, kind=FrameKind.REQUEST, direction=Direction.TO_AGENT)
        if asked
        else request(1)
    )
    made.write([first, status(1, 1, "x")], changes=Changes([line], [call], []))
    made.finish(STARTED + 10**12)
    kept, again = Kept(), Kept()
    for sink in (kept, again):
        with Recording(path) as recording:
            RecordingExport(recording, sink, shape=shape, frames=True).run(None)
    assert kept.got == again.got
    return kept


def test_the_client_span_is_a_child_of_the_server_span(tmp_path: Path) -> None:
    call = exchange(
        1, traceparent=CAME, sent_traceparent=SENT, request_headers=((b"tracestate", b"a=b"),)
    )
    kept = exported(tmp_path / "r", call, SpanOptions(content=True, compat=("openinference",)))
    server, client = kept.got
    assert (server.kind, client.kind) == (SpanKind.SERVER, SpanKind.CLIENT)
    assert server.parent == SpanContextIds(TRACE, SPAN, "a=b")
    assert client.parent == server.context
    assert client.context == SpanContextIds(TRACE, "c" * 16, "a=b")
    assert (client.name, client.started, client.ended) == (
        server.name,
        server.started,
        server.ended,
    )
    assert "peer.service" not in server.attributes
    assert client.attributes.items() < (server.attributes | {"peer.service": "agent:8000"}).items()
    assert client.attributes["peer.service"] == client.service == server.service == "agent:8000"
    assert client.attributes["server.address"] == "agent"
    assert server.events
    assert (client.events, client.links, client.part) == ((), (), True)
    assert not any("input" in name or "openinference" in name for name in client.attributes)
    assert {log.context for log in kept.told} == {server.context}


def test_a_trace_started_by_the_proxy_has_the_id_it_sent(tmp_path: Path) -> None:
    """Also if the header of the client was invalid or repeated."""
    for number, came in enumerate(("", "no", CAME)):
        server, client = exported(
            tmp_path / f"{number}", exchange(1, traceparent=came, sent_traceparent=BEGUN)
        ).got
        assert (server.parent, client.parent) == (None, server.context)
        assert (server.context.trace, client.context) == (
            "a" * 32,
            SpanContextIds("a" * 32, "c" * 16),
        )


def test_a_trace_named_only_in_the_message_is_linked(tmp_path: Path) -> None:
    asked = {"message": {"messageId": "m", "parts": [], "metadata": {"traceparent": CAME}}}
    server, _ = exported(tmp_path / "r", exchange(1, sent_traceparent=BEGUN), params=asked).got
    assert server.parent is None
    assert [(link.context, link.attributes["a2a_proxy.link"]) for link in server.links] == [
        (SpanContextIds(TRACE, SPAN), "message")
    ]


def test_a_call_that_was_not_forwarded_has_one_span(tmp_path: Path) -> None:
    """The proxy answered itself, or the recording says no id that can be read."""
    for number, more in enumerate(
        ({"ours": True, "how": "refused"}, {"sent_traceparent": "redacted-1234"})
    ):
        call = exchange(1, **{"traceparent": CAME, "sent_traceparent": SENT, **more})
        (span,) = exported(tmp_path / f"{number}", call).got
        assert (span.kind, span.parent) == (SpanKind.INTERNAL, SpanContextIds(TRACE, SPAN))


def test_a_push_notification_has_a_consumer_and_a_client_span(tmp_path: Path) -> None:
    call = exchange(1, binding=Binding.WEBHOOK, traceparent=CAME, sent_traceparent=SENT)
    assert [span.kind for span in exported(tmp_path / "r", call).got] == [
        SpanKind.CONSUMER,
        SpanKind.CLIENT,
    ]


def test_a_long_call_in_segments_has_one_client_span(tmp_path: Path) -> None:
    call = exchange(
        1, closed=exchange(1).started + 150 * 10**9, traceparent=CAME, sent_traceparent=SENT
    )
    spans = exported(tmp_path / "r", call, SpanOptions(segment=60 * 10**9)).got
    assert [span.kind for span in spans] == [SpanKind.SERVER] * 3 + [SpanKind.CLIENT]
    assert spans[-1].parent == spans[0].context
    assert spans[-1].ended == call.closed


def test_live_export_sends_both_spans_once_with_the_ids_of_a_later_export(tmp_path: Path) -> None:
    """Three processes follow the session, one after another: the call is open, closed, exported."""
    path = tmp_path / "r"
    made = writer(path)
    went = {"traceparent": CAME, "sent_traceparent": SENT}
    with http_backend() as received, tempfile.TemporaryFile(buffering=0) as ledger:
        settings = OtlpSettings(otlp_target(received.endpoint, "", {}), metrics=False, logs=False)

        def look() -> int:
            backend, count = SdkBackend(settings.target), CallTally()
            courier = RetrySender(backend, "", count, lambda _: None)
            follower = Follower(
                FollowTarget(str(path), follow=True),
                lambda: OtlpConsumer(settings, courier, follower),
                CheckpointFile(ledger.fileno()),
                count,
                lambda _: None,
            )
            follower._follow_round()
            backend.close()
            return count.calls

        line = Connection(1, "127.0.0.1:5000", "127.0.0.1:9000", "agent:8000", STARTED)
        made.write([request(1)], changes=Changes([line], [live(1, **went)], []))
        assert (look(), received.spans()) == (0, [])
        made.write([status(1, 1, "x")], changes=changes(exchange(1, **went)))
        assert (look(), look()) == (1, 1)
        made.finish(STARTED + 10**12)
        with Recording(path) as recording:
            backend = SdkBackend(settings.target)
            RecordingExport(recording, BackendSink(backend)).run(None)
            backend.close()
    server, client, *again = received.spans()
    assert again == [server, client]
    assert (server.kind, client.kind) == (server.SPAN_KIND_SERVER, client.SPAN_KIND_CLIENT)
    assert (server.trace_id.hex(), server.parent_span_id.hex()) == (TRACE, SPAN)
    assert (client.trace_id.hex(), client.parent_span_id) == (TRACE, server.span_id)
    assert f"00-{client.trace_id.hex()}-{client.span_id.hex()}-01" == SENT
