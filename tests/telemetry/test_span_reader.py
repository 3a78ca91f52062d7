"""Attributes of spans that need the payloads of the call, or other calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from a2a_proxy.model.values import (
    Binding,
    Changes,
    Connection,
    EventKind,
    Exchange,
    Frame,
    FrameKind,
    Task,
)
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.decoded import readable_payload
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.write.writer import Writer
from a2a_proxy.telemetry.offline import RecordingExport
from a2a_proxy.telemetry.segments import MAX_SEGMENTS, finished_call_windows, open_call_windows
from a2a_proxy.telemetry.span_options import DEFAULT_SPAN_OPTIONS, SpanOptions
from a2a_proxy.telemetry.values import SpanValue
from support_inspect import MS, TASK, exchange, frame, request, status, writer
from support_otlp import Kept
from support_recording import STARTED, facts

MINUTE = 60_000_000_000
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
CONNECTION = Connection(1, "127.0.0.1:5000", "127.0.0.1:9000", "agent:8000", STARTED)
RECEIVER = Connection(2, "127.0.0.1:5001", "127.0.0.1:9001", "client:9000", STARTED)


def recorded(
    path: Path, exchanges: list[Exchange], frames: list[Frame], tasks: Sequence[Task] = ()
) -> Path:
    made = writer(path)
    made.write(frames, changes=Changes([CONNECTION, RECEIVER], exchanges, list(tasks)))
    made.finish(STARTED + 10**12)
    return path


def exported(path: Path, shape: SpanOptions = DEFAULT_SPAN_OPTIONS) -> list[SpanValue]:
    kept = Kept()
    with Recording(path) as recording:
        RecordingExport(recording, kept, shape=shape).run(None)
    return kept.got


def long_call(path: Path) -> Path:
    """A call of two and a half minutes, with an event each minute."""
    call = exchange(
        1, closed=exchange(1).started + 150_000 * MS, traceparent=TRACEPARENT, states=("working",)
    )
    frames = [request(1), *(status(1, number * 600, f"{number}") for number in (1, 2))]
    return recorded(path, [call], frames)


def test_a_long_call_is_split_and_the_first_segment_keeps_its_ids(tmp_path: Path) -> None:
    path = long_call(tmp_path / "r.a2a.db")
    [whole] = exported(path)
    first, second, last = exported(path, SpanOptions(segment=MINUTE))
    assert [each.attributes["a2a_proxy.segment"] for each in (first, second, last)] == [1, 2, 3]
    assert "a2a_proxy.segment" not in whole.attributes
    assert (first.context, first.parent) == (whole.context, whole.parent)
    assert second.parent == last.parent == first.context
    assert len({each.context.span for each in (first, second, last)}) == 3
    assert [(each.started, each.ended) for each in (first, second)] == [
        (whole.started, whole.started + MINUTE),
        (whole.started + MINUTE, whole.started + 2 * MINUTE),
    ]
    assert (last.started, last.ended) == (whole.started + 2 * MINUTE, whole.ended)
    assert [each.part for each in (first, second, last)] == [True, True, False]
    assert "a2a_proxy.stream.close_reason" not in first.attributes
    assert "a2a.task.state" not in first.attributes
    assert (second.attributes["a2a_proxy.stream.events"], second.attributes["a2a.task.state"]) == (
        1,
        "working",
    )
    assert last.attributes == whole.attributes | {"a2a_proxy.segment": 3}
    events = whole.events
    assert (first.events, second.events, last.events) == ((), events[:2], events[2:])
    assert [each.name for each in whole.events] == [
        "a2a_proxy.first_event",
        "a2a.task.state_change",
        "a2a_proxy.ending",
    ]
    assert last.attributes["a2a_proxy.stream.max_gap_ms"] == 60_000
    assert exported(path, SpanOptions(segment=3 * MINUTE)) == [whole]
    spoken = exported(path, SpanOptions(segment=MINUTE, content=True))
    assert ["gen_ai.output.messages" in each.attributes for each in spoken] == [False, False, True]


def test_content_is_exported_only_on_request(tmp_path: Path) -> None:
    path = recorded(
        tmp_path / "r.a2a.db", [exchange(1)], [request(1, "Plan a day"), status(1, 1, "Thinking")]
    )
    [plain] = exported(path)
    assert "Plan a day" not in str(plain)
    [span] = exported(path, SpanOptions(content=True))
    names = [
        json.loads(str(span.attributes[f"gen_ai.{name}.messages"])) for name in ("input", "output")
    ]
    assert [each[0]["parts"][0]["content"] for each in names] == ["Plan a day", "Thinking"]
    assert "Plan a day" not in span.name + span.error + str(span.events)
    foreign = exchange(1, operation="", method="tools/list")
    path = recorded(tmp_path / "f.a2a.db", [foreign], [request(1, "Plan a day")])
    assert "Plan a day" not in str(exported(path, SpanOptions(content=True)))


@pytest.mark.parametrize("asks", [True, False])
def test_steps_are_exported_if_the_client_activated_the_extension(
    tmp_path: Path, asks: bool
) -> None:
    uri = "https://example.org/extensions/traceability/v1"
    report = {"trace_id": "t", "steps": [{"step_id": "1", "call_type": "TOOL"}]}
    attributes = {
        "messageId": "m",
        "role": "ROLE_AGENT",
        "parts": [{"text": "x"}],
        "metadata": {f"{uri}/traceability": report},
    }
    payload = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"message": attributes}}).encode()
    call = exchange(1, extensions=uri if asks else "")
    made = exported(recorded(tmp_path / "r.a2a.db", [call], [request(1), frame(1, 1, payload)]))
    assert [each.name for each in made] == ["SendStreamingMessage", "tool"][: 1 + asks]
    if asks:
        assert (made[1].parent, made[1].started) == (made[0].context, frame(1, 1, b"").at)


def subscription(number: int, **more: Any) -> Exchange:
    return exchange(number, operation="SubscribeToTask", **more)


@pytest.mark.parametrize(
    ("first", "second", "resumed"),
    [
        ({"how": "agent gone"}, {}, 1),
        ({"how": "complete"}, {}, None),
        ({"how": "complete"}, {"request_headers": ((b"Last-Event-ID", b"7"),)}, 1),
        ({"how": "agent gone", "streaming": False}, {}, None),
        ({"how": "agent gone", "closed": exchange(9).closed}, {}, None),
    ],
)
def test_a_resubscription_links_to_the_stream_it_continues(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any], resumed: int | None
) -> None:
    calls = [exchange(1, **first), subscription(2, **second)]
    task = Task("agent:8000", TASK, exchanges=(1, 2))
    made = exported(recorded(tmp_path / "r.a2a.db", calls, [], [task]))
    assert [each.attributes.get("a2a_proxy.stream.resumed_from") for each in made] == [
        None,
        resumed,
    ]


def push(number: int, body: bytes, token: bytes = b"", **more: Any) -> tuple[Exchange, Frame]:
    """A delivery of an event to the client's receiver."""
    headers = ((b"X-A2A-Notification-Token", token),) if token else ()
    facts: dict[str, Any] = {
        "connection": 2,
        "agent": "client:9000",
        "binding": Binding.WEBHOOK,
        "operation": "",
        "method": "POST",
    }
    facts |= {
        "target": "/hook?a=1",
        "authority": "client:9000",
        "streaming": False,
        "request_headers": headers,
    }
    event = frame(
        number,
        0,
        body,
        event=EventKind.TASK,
        direction=Direction.TO_AGENT,
        task_id=TASK,
        connection=2,
    )
    return exchange(number, **{**facts, **more}), event


def configured(token: str) -> Frame:
    config = {"url": "http://client:9000/hook?a=1"} | ({"token": token} if token else {})
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
    params = {"message": message, "configuration": {"taskPushNotificationConfig": config}}
    payload = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": params}
    ).encode()
    return frame(1, 0, payload, kind=FrameKind.REQUEST, direction=Direction.TO_AGENT)


def test_a_push_has_its_attempt_number_and_links_to_its_task(tmp_path: Path) -> None:
    pushes = [
        push(2, b'{"a":1}', status=503),
        push(3, b'{"b":1}'),
        push(4, b'{"a":1}', status=503),
        push(5, b'{"a":1}'),
        push(6, b'{"a":1}'),
        push(7, b'{"a":1}', target="/other"),
    ]
    tasks = [
        Task("client:9000", TASK, exchanges=(2,)),
        Task("agent:8000", TASK, exchanges=(1, *range(3, 8))),
    ]
    frames = [configured("redacted-0123456789ab"), *(delivery for _, delivery in pushes)]
    first, *made = exported(
        recorded(tmp_path / "r.a2a.db", [exchange(1), *(call for call, _ in pushes)], frames, tasks)
    )
    assert [each.attributes["a2a_proxy.push.attempt"] for each in made] == [1, 1, 2, 3, 1, 1]
    assert [[link.context for link in each.links] for each in made] == [[first.context]] * 6
    assert {each.name for each in made} == {"push_notification"}


@pytest.mark.parametrize(
    ("given", "sent", "match"),
    [
        ("redacted-1", b"redacted-1", True),
        ("redacted-1", b"redacted-2", False),
        ("x", b"", False),
        ("", b"", None),
    ],
)
def test_only_the_validity_of_a_push_token_is_exported(
    tmp_path: Path, given: str, sent: bytes, match: bool | None
) -> None:
    call, delivery = push(2, b'{"a":1}', sent)
    task = Task("agent:8000", TASK, exchanges=(1, 2))
    path = recorded(
        tmp_path / "r.a2a.db", [exchange(1), call], [configured(given), delivery], [task]
    )
    made = exported(path)[1]
    assert made.attributes.get("a2a_proxy.push.token_match") is match
    assert "redacted" not in str(made)


def card(number: int, **more: Any) -> tuple[Exchange, Frame]:
    """A fetch of the agent's card."""
    content = {"name": "Desk", "version": "1", **more}
    call = exchange(
        number,
        binding=Binding.CARD,
        operation="GetAgentCard",
        method="GET",
        streaming=False,
        task_id="",
    )
    return call, frame(
        number, 0, json.dumps(content).encode(), kind=FrameKind.RESPONSE, event=EventKind.CARD
    )


def test_a_card_span_has_signed_and_changed_attributes(tmp_path: Path) -> None:
    signed = [{"protected": "e30", "signature": "AA"}]
    fetched = [
        card(1),
        card(2, signatures=signed),
        card(3, description="New"),
        card(4, description="New"),
    ]
    made = exported(
        recorded(
            tmp_path / "r.a2a.db", [call for call, _ in fetched], [answer for _, answer in fetched]
        )
    )
    answer = [
        tuple(
            each.attributes.get(f"a2a_proxy.card.{name}")
            for name in ("version", "signature", "changed")
        )
        for each in made
    ]
    assert answer == [
        ("1", "unsigned", None),
        ("1", "signed", False),
        ("1", "unsigned", True),
        ("1", "unsigned", False),
    ]


def test_the_url_of_a_card_is_that_of_its_last_fetch_at_the_agent(tmp_path: Path) -> None:
    call, answer = card(1)
    fetch = msgspec.structs.replace(call, target="/.well-known/agent-card.json?key=secret")
    extended = msgspec.structs.replace(
        card(2, description="More")[0], binding=Binding.JSONRPC, operation="GetExtendedAgentCard"
    )
    calls = [fetch, extended, exchange(3)]
    path = recorded(
        tmp_path / "r.a2a.db", calls, [answer, card(2, description="More")[1], request(3)]
    )
    made = exported(path, SpanOptions(compat=("semconv",)))
    where = "http://agent:8000/.well-known/agent-card.json"
    assert [each.attributes.get("a2a.agent.card.url") for each in made] == [where, where, where]
    assert "secret" not in str([each.attributes for each in made])


def test_the_card_names_the_service_of_the_calls_after_it(tmp_path: Path) -> None:
    """The call before it has the address, and the receiver of a push, whose card nobody fetched,
    its own."""
    call, answer = card(2)
    pushed = exchange(4, connection=2, binding=Binding.WEBHOOK, operation="")
    path = recorded(
        tmp_path / "r.a2a.db",
        [exchange(1), call, exchange(3), pushed],
        [request(1), answer, request(3)],
    )
    names = ["agent:8000", "Desk", "Desk", "client:9000"]
    made = exported(path)
    assert [each.service for each in made] == names
    assert [each.attributes["peer.service"] for each in made] == names


def test_agents_behind_one_forward_proxy_have_their_own_cards(tmp_path: Path) -> None:
    other = msgspec.structs.replace(RECEIVER, listen=CONNECTION.listen, upstream="clerk:8000")
    made = writer(tmp_path / "r.a2a.db")
    call, answer = card(1)
    calls = [call, exchange(2, connection=2, agent="clerk:8000"), exchange(3)]
    made.write([answer], changes=Changes([CONNECTION, other], calls, []))
    made.finish(STARTED + 10**12)
    assert [each.service for each in exported(tmp_path / "r.a2a.db")] == [
        "Desk",
        "clerk:8000",
        "Desk",
    ]


def test_a_variable_names_the_service_of_all_spans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "everything")
    path = recorded(tmp_path / "r.a2a.db", [exchange(1)], [request(1)])
    (made,) = exported(path)
    assert (made.service, made.attributes["peer.service"]) == ("", "agent:8000")


def test_the_users_name_is_kept_with_the_recording(tmp_path: Path) -> None:
    facts_of_two = facts(
        listens=("127.0.0.1:9000", "127.0.0.1:9001"), upstreams=("a", "b"), names=("desk", "")
    )
    made = Writer(tmp_path / "r.a2a.db", facts_of_two)
    call, answer = card(1)
    calls = [call, exchange(2, connection=2, agent="client:9000")]
    made.write([answer], changes=Changes([CONNECTION, RECEIVER], calls, []))
    made.finish(STARTED + 10**12)
    steps = exported(tmp_path / "r.a2a.db")
    assert [each.service for each in steps] == ["desk", "client:9000"]


def test_the_number_of_segments_is_bounded() -> None:
    """One that lasts for centuries, by clocks that were wrong; the last segment has all that is
    left."""
    call = exchange(1, started=-(1 << 62), closed=1 << 62)

    found = list(finished_call_windows(call, MINUTE))

    assert len(found) == MAX_SEGMENTS
    assert (found[-1].last, found[-1].end) == (True, call.closed)
    assert list(open_call_windows(call, MINUTE, call.closed)) == found[:-1]


def test_a_card_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To know it before its call is exported, for that of its call, and for those of calls after
    it."""
    read: list[int] = []

    def counted(of: Frame, call: Exchange) -> object:
        read.append(call.id)
        return readable_payload(of, call)

    monkeypatch.setattr("a2a_proxy.telemetry.cards.readable_payload", counted)
    fetched = [card(1), card(2, description="New")]
    exported(
        recorded(
            tmp_path / "r.a2a.db", [call for call, _ in fetched], [answer for _, answer in fetched]
        )
    )
    assert read == [1, 2]
