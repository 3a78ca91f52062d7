from __future__ import annotations

import base64
import gzip
import json

import pytest

from a2a_proto import message_class
from a2a_proxy.model.values import Binding, EventKind, FrameKind
from a2a_proxy.protocol.session_facts import SessionContext
from support_conversation import TO_AGENT, TO_CLIENT, Grpc, frame, play, prefixed
from support_messages import artifact, ask, message, status, task, v1

_STREAM = "/lf.a2a.v1.A2AService/SendStreamingMessage"


def kinds(script: Grpc) -> list[tuple[str, str]]:
    return [(each.kind.name, each.event.name) for each in play(script).frames]


def test_stream() -> None:
    """A streaming call gives the request, one frame per event, and both ends; the index members are
    filled."""
    script = Grpc().open(_STREAM, a2a_version="1.0").send(v1("SendMessageRequest", ask())).respond()
    script.give(v1("StreamResponse", {"task": task()}))
    script.give(v1("StreamResponse", status("WORKING", "on it")))
    script.give(v1("StreamResponse", artifact("one", append=True, lastChunk=True)))
    script.give(
        v1("StreamResponse", {"message": {"messageId": "m9", "taskId": "t1", "role": "ROLE_AGENT"}})
    ).trailers()
    played = play(script)
    request, _, first, second, third, fourth, end = played.frames

    assert (request.event, request.message_id, request.schema) == (
        EventKind.MESSAGE,
        "m1",
        "lf.a2a.v1.SendMessageRequest",
    )
    assert (first.event, first.task_id, first.context_id, first.state) == (
        EventKind.TASK,
        "t1",
        "c1",
        1,
    )
    assert (second.event, second.state, second.message_id) == (EventKind.STATUS, 2, "m-on it")
    assert (third.event, third.artifact_id, third.append, third.last_chunk) == (
        EventKind.ARTIFACT,
        "a1",
        True,
        True,
    )
    assert (fourth.event, fourth.message_id) == (EventKind.MESSAGE, "m9")
    assert (end.kind, json.loads(end.payload)) == (FrameKind.END, [["grpc-status", "0"]])
    exchange = played.exchange
    assert (exchange.binding, exchange.dialect, exchange.operation) == (
        "grpc",
        "1.0",
        "SendStreamingMessage",
    )
    assert (exchange.states, exchange.how, exchange.half_close) == (
        ("submitted", "working"),
        "complete",
        "client",
    )
    assert (exchange.requests, exchange.events, exchange.grpc_status, exchange.task_id) == (
        1,
        4,
        0,
        "t1",
    )


@pytest.mark.parametrize(
    ("method", "request_name", "request_value", "response_name", "response_value", "event"),
    [
        (
            "SendMessage",
            "SendMessageRequest",
            ask(),
            "SendMessageResponse",
            {"task": task("COMPLETED")},
            "TASK",
        ),
        ("GetTask", "GetTaskRequest", {"id": "t1"}, "Task", task("WORKING"), "TASK"),
        (
            "ListTasks",
            "ListTasksRequest",
            {"contextId": "c1"},
            "ListTasksResponse",
            {"tasks": [task()]},
            "TASKS",
        ),
        ("CancelTask", "CancelTaskRequest", {"id": "t1"}, "Task", task("CANCELED"), "TASK"),
        (
            "GetExtendedAgentCard",
            "GetExtendedAgentCardRequest",
            {},
            "AgentCard",
            {"name": "a"},
            "CARD",
        ),
        (
            "CreateTaskPushNotificationConfig",
            "TaskPushNotificationConfig",
            {"taskId": "t1", "url": "http://hook/x"},
            "TaskPushNotificationConfig",
            {"taskId": "t1", "id": "p"},
            "PUSH_CONFIG",
        ),
        (
            "ListTaskPushNotificationConfigs",
            "ListTaskPushNotificationConfigsRequest",
            {"taskId": "t1"},
            "ListTaskPushNotificationConfigsResponse",
            {"configs": []},
            "PUSH_CONFIGS",
        ),
    ],
)
def test_unary(
    method: str,
    request_name: str,
    request_value: dict,
    response_name: str,
    response_value: dict,
    event: str,
) -> None:
    """Every unary operation is named, its request and its answer are read."""
    script = (
        Grpc()
        .open(f"/lf.a2a.v1.A2AService/{method}")
        .send(v1(request_name, request_value))
        .respond()
    )
    script.give(v1(response_name, response_value)).trailers()
    played = play(script)
    request, _, response, _ = played.frames

    assert (response.kind, response.event.name) == (FrameKind.RESPONSE, event)
    assert played.exchange.operation == method
    assert request.task_id == request_value.get("taskId", request_value.get("id", ""))


def test_old_packages() -> None:
    """The package `a2a.v1` is 0.3, which has `final` and resource names."""
    script = Grpc().open("/a2a.v1.A2AService/SendStreamingMessage")
    part = {"file": {"fileWithUri": "http://x/y"}}
    said = {"messageId": "m1", "role": "ROLE_USER", "content": [part]}
    script.send(message("0.3", "SendMessageRequest", {"message": said})).respond()
    update = {
        "taskId": "t1",
        "contextId": "c1",
        "status": {"state": "TASK_STATE_CANCELLED"},
        "final": True,
    }
    script.give(message("0.3", "StreamResponse", {"statusUpdate": update})).trailers()
    script.open("/a2a.v1.A2AService/TaskSubscription", 3).send(
        message("0.3", "TaskSubscriptionRequest", {"name": "tasks/t1"}), 3
    )
    script.trailers_only(5, 3)
    played = play(script)
    first, second = played.exchanges

    assert [first.dialect, second.dialect] == ["0.3", "0.3"]
    (event,) = [
        each for each in played.frames if each.exchange == first.id and each.kind is FrameKind.EVENT
    ]
    assert (event.state, event.final, event.schema) == (5, True, "a2a.v1.StreamResponse")
    assert second.task_id == "t1"


def test_generations_imply_the_draft_dialect() -> None:
    """`generation` on an event, or If-Generation-Match on a request, is the 1.1 draft."""
    script = Grpc().open(_STREAM).send(v1("SendMessageRequest", ask())).respond()
    script.give(v1("StreamResponse", status(generation="7"))).trailers()
    played = play(script)

    assert played.frames[2].generation == 7
    assert played.exchange.dialect == "1.1"
    asked = {**ask(), "configuration": {"ifGenerationMatch": "3"}}
    only_asked = play(Grpc().open(_STREAM).send(v1("SendMessageRequest", asked)))
    assert (only_asked.frames[0].generation, only_asked.exchange.dialect) == (3, "1.1")


@pytest.mark.parametrize("raw", [False, True])
def test_errors(raw: bool) -> None:
    """A trailers-only answer is the end with its error, message unescaped, the reason from either
    form of details."""
    info = message_class("rpc", "ErrorInfo")(reason="TASK_NOT_FOUND")
    details = message_class("rpc", "Status")()
    details.details.add(
        type_url="type.googleapis.com/google.rpc.ErrorInfo", value=info.SerializeToString()
    )  # type: ignore[attr-defined]
    data = details.SerializeToString()
    value = b"\0" + data if raw else base64.b64encode(data)
    script = Grpc().open("/lf.a2a.v1.A2AService/GetTask").send(v1("GetTaskRequest", {"id": "t9"}))
    script.trailers_only(5, grpc_message="no%20such", grpc_status_details_bin=value)
    played = play(script)
    end = played.frames[-1]

    assert (end.kind, end.error_code, end.note) == (FrameKind.END, 5, "trailers-only")
    assert played.exchange.error == "TASK_NOT_FOUND NOT_FOUND: no such"
    assert (played.exchange.error_code, played.exchange.grpc_status, played.exchange.how) == (
        5,
        5,
        "complete",
    )
    pairs = [(name, said) for name, said in json.loads(end.payload) if name.endswith("-bin")]
    assert pairs[0][1].encode("latin-1") == value


def test_compressed_message() -> None:
    """A compressed message is stored as what it says, its encoding in `framing`."""
    data = v1("StreamResponse", status())
    script = (
        Grpc().open(_STREAM).send(v1("SendMessageRequest", ask())).respond(grpc_encoding="gzip")
    )
    script.agent(frame(0, 0, 1, prefixed(gzip.compress(data, mtime=0), 1))).trailers()
    event = play(script).frames[2]

    assert (event.payload, event.framing, event.state) == (data, "gzip", 2)


def test_bidi_and_half_close_order() -> None:
    """Requests and events interleave; an agent that ends first is seen to; a late half-close is
    still recorded."""
    script = (
        Grpc()
        .open("/lf.a2a.v1.A2AService/SendLiveMessage")
        .send(v1("SendMessageRequest", ask()), end=False)
        .respond()
    )
    script.give(v1("StreamResponse", {"task": task("WORKING")})).send(
        v1("SendMessageRequest", ask("more")), end=False
    )
    script.give(v1("StreamResponse", status("COMPLETED"))).trailers().half_close()
    played = play(script)

    assert [each.direction for each in played.frames] == [0, 1, 0, 1, 1, 0]
    assert (played.exchange.half_close, played.exchange.how, played.exchange.requests) == (
        "agent",
        "complete",
        2,
    )


def test_live_payloads() -> None:
    """The three payloads of SendLiveMessage are recognised by their bytes."""
    path = "/lf.a2a.v1.A2AService/SendLiveMessage"
    media = message(
        "live-1975",
        "LiveRequest",
        {"message": {"message": {"messageId": "m", "role": "ROLE_USER"}}},
    )
    answer = message("live-1975", "LiveResponse", {"event": {"task": {"id": "t1"}}})
    played = play(Grpc().open(path).send(media, end=False).respond().give(answer))
    chunk = {"artifactUpdate": {"taskId": "t", "contextId": "c", "artifact": {"artifactId": "a"}}}
    other = play(Grpc().open(path).send(message("live-2153", "StreamRequest", chunk), end=False))

    assert [each.schema for each in played.frames] == [
        "lf.a2a.v1.LiveRequest@live-1975",
        "lf.a2a.v1.LiveResponse@live-1975",
    ]
    assert [each.event for each in played.frames] == [EventKind.MESSAGE, EventKind.TASK]
    assert [(each.event, each.artifact_id) for each in other.frames] == [(EventKind.ARTIFACT, "a")]


LIVE = "/lf.a2a.v1.A2AService/SendLiveMessage"


def test_a_live_payload_is_recognised_late() -> None:
    """A plain message is read as BIDI until the agent proves another proposal; what was given
    stays."""
    update = {
        "messageUpdate": {
            "taskId": "t1",
            "contextId": "c1",
            "message": {"messageId": "m3"},
            "generation": "2",
        }
    }
    script = Grpc().open(LIVE).send(v1("SendMessageRequest", ask()), end=False).respond()
    script.give(v1("StreamResponse", {"task": task()})).give(
        message("live-2153", "StreamResponse", update)
    )
    script.send(v1("SendMessageRequest", ask("more")), end=False).give(
        v1("StreamResponse", status("COMPLETED"))
    )
    played = play(script)

    assert [each.schema.removeprefix("lf.a2a.v1.") for each in played.frames] == [
        "SendMessageRequest",
        "StreamResponse",
        "StreamResponse@live-2153",
        "StreamRequest@live-2153",
        "StreamResponse@live-2153",
    ]
    assert [each.event.name for each in played.frames] == [
        "MESSAGE",
        "TASK",
        "MESSAGE",
        "MESSAGE",
        "STATUS",
    ]
    assert (played.exchange.live_payload, played.exchange.dialect.value) == ("2153", "1.1")


def test_a_forced_live_payload() -> None:
    """The user's word goes before the bytes; where these are something else, that is said."""
    script = Grpc().open(LIVE).send(v1("SendMessageRequest", ask()), end=False).respond()
    played = play(script.give(v1("StreamResponse", status("WORKING"))), SessionContext(live="1975"))

    assert played.exchange.live_payload == "1975"
    assert [each.kind for each in played.frames] == [FrameKind.UNDECODABLE, FrameKind.EVENT]
    told = "looks like `bidi`, read as `--live 1975`"
    assert [each.summary.partition(": ")[2] for each in played.findings] == [told]
    assert (played.frames[1].event, played.frames[1].note) == (EventKind.UNKNOWN, told)
    played = play(script, SessionContext(live="2153"))
    assert played.frames[0].schema == "lf.a2a.v1.StreamRequest@live-2153"
    assert play(script).exchange.live_payload == "bidi"


def test_unknown_member_of_the_wrapper() -> None:
    """An event of a later line keeps its bytes and is called unknown (Q-32)."""
    script = (
        Grpc()
        .open(_STREAM)
        .send(v1("SendMessageRequest", ask()))
        .respond()
        .give(b"\x32\x03abc")
        .trailers()
    )
    event = play(script).frames[2]

    assert (event.kind, event.event, event.payload) == (
        FrameKind.EVENT,
        EventKind.UNKNOWN,
        b"\x32\x03abc",
    )


@pytest.mark.parametrize(
    ("direction", "code", "how", "note"),
    [
        (TO_AGENT, 8, "client cancel", "rst_stream cancel"),
        (TO_CLIENT, 2, "agent reset", "rst_stream internal_error"),
    ],
)
def test_cancels(direction: int, code: int, how: str, note: str) -> None:
    """Who broke off first, and how, is said once."""
    script = (
        Grpc()
        .open(_STREAM)
        .send(v1("SendMessageRequest", ask()))
        .respond()
        .give(v1("StreamResponse", status()))
    )
    script.rst(TO_AGENT if direction == 0 else TO_CLIENT, code)
    played = play(script)

    assert (played.frames[-1].kind, played.frames[-1].note) == (FrameKind.CUT, note)
    assert (played.exchange.how, played.exchange.closed) == (how, 1006)


def test_connection_dies() -> None:
    """An agent that exits in mid-stream leaves a cut, with the partial message."""
    script = Grpc().open(_STREAM).send(v1("SendMessageRequest", ask())).respond()
    script.agent(frame(0, 0, 1, prefixed(v1("StreamResponse", status()))[:9])).end(
        "reset", TO_CLIENT
    )
    played = play(script)

    assert [each.kind for each in played.frames[-2:]] == [FrameKind.UNDECODABLE, FrameKind.CUT]
    assert played.exchange.how == "agent gone"


def test_wrong_bytes() -> None:
    """An unparsable message is kept and marked; the stream continues."""
    script = Grpc().open(_STREAM).send(v1("SendMessageRequest", ask())).respond().give(b"\x0a\xff")
    script.give(v1("StreamResponse", status())).trailers()
    played = play(script)

    assert (played.frames[2].kind, played.frames[2].note) == (
        FrameKind.UNDECODABLE,
        "not a StreamResponse",
    )
    assert played.frames[3].state == 2


def test_bytes_that_are_not_utf8() -> None:
    """The finding and the frame name the field."""
    script = Grpc().open(_STREAM).send(v1("SendMessageRequest", ask())).respond()
    played = play(script.give(b"\x0a\x04\x0a\x02\xc3\x28").trailers())
    assert played.frames[2].note == "not a StreamResponse: field task.id is not valid UTF-8"
    (found,) = played.findings
    why = "field task.id is not valid UTF-8"
    assert (
        found.summary == f"expected a StreamResponse, got 6 bytes that do not parse as one: {why}"
    )
    assert found.evidence["actor"] == "agent"


def test_wrong_bytes_are_found_once_a_direction() -> None:
    """Messages that no class reads, and framing that is none, are one finding per direction, which
    names the place."""
    script = Grpc().open(_STREAM).send(b"\xff\xff", end=False).send(b"\xff\xff").respond()
    script.give(b"\x0a\xff").give(b"\x0a\xff").agent(frame(0, 0, 1, b"\x09\0\0\0\0")).trailers()
    played = play(script)
    unread = [each for each in played.frames if each.kind is FrameKind.UNDECODABLE]
    asked, answered = played.findings

    assert len(unread) == 5
    assert {asked.rule, answered.rule} == {"UNDECODABLE"}
    assert asked.summary == "expected a SendMessageRequest, got 2 bytes that do not parse as one"
    assert answered.summary == "expected a StreamResponse, got 2 bytes that do not parse as one"
    assert [(each.seq, each.evidence["offset"]) for each in (asked, answered)] == [
        (each.seq, str(each.start)) for each in (unread[0], unread[2])
    ]


def test_an_incomplete_message_is_a_finding() -> None:
    """A stream that ends properly in mid-message is a finding; one that is cut there is not: the
    cut says it."""
    whole = prefixed(v1("StreamResponse", status()))
    ends, cut = (
        Grpc().open(_STREAM).send(v1("SendMessageRequest", ask())).respond() for _ in range(2)
    )
    ends.agent(frame(0, 0, 1, whole[:9])).trailers()
    cut.agent(frame(0, 0, 1, whole[:9])).end("reset", TO_CLIENT)

    assert [each.rule for each in play(ends).findings] == ["UNDECODABLE"]
    assert play(cut).findings == []


def test_plain_http_answer() -> None:
    """A gateway's HTML error instead of gRPC is kept as it is."""
    script = Grpc().open(_STREAM).send(v1("SendMessageRequest", ask()))
    script.agent(
        script._headers(TO_CLIENT, [(":status", "502"), ("content-type", "text/html")], 1, 4)
    )
    script.agent(frame(0, 1, 1, b"<h1>Bad</h1>"))
    played = play(script)

    assert [(each.kind, each.payload) for each in played.frames[2:]] == [
        (FrameKind.OTHER, b"<h1>Bad</h1>"),
        (FrameKind.END, b""),
    ]
    assert played.exchange.error == "HTTP 502 instead of gRPC"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"<title>Bad gateway</title>", "HTTP 502 instead of gRPC: Bad gateway"),
        (b"no healthy upstream", "HTTP 502 instead of gRPC: no healthy upstream"),
        (b'{"error": "bad"}', "HTTP 502 instead of gRPC: bad"),
        (bytes(9), "HTTP 502 instead of gRPC"),
    ],
)
def test_plain_http_answer_is_in_the_line(body: bytes, error: str) -> None:
    script = Grpc().open(_STREAM).send(v1("SendMessageRequest", ask()))
    script.agent(script._headers(TO_CLIENT, [(":status", "502")], 1, 4))
    assert play(script.agent(frame(0, 1, 1, body))).exchange.error == error


@pytest.mark.parametrize("body", [b'{"task": {}}', b"no healthy upstream", b"\xff\xff\xff"])
def test_text_in_place_of_messages_is_kept(body: bytes) -> None:
    """Under the content type of gRPC; bytes that are no text are a broken message."""
    script = Grpc().open(_STREAM).send(v1("SendMessageRequest", ask())).respond()
    played = play(script.agent(frame(0, 0, 1, body)).trailers())
    kept = [each.payload for each in played.frames if each.kind is FrameKind.OTHER]
    assert kept == ([body] if body[0] < 128 else [])
    assert [each.rule for each in played.findings] == ["UNDECODABLE"]
    assert played.exchange.error


def test_other_services_are_kept_as_bytes() -> None:
    """A gRPC service that is not A2A is carried as bytes; an unknown method of A2A's service stays
    A2A."""
    other = play(
        Grpc().open("/grpc.health.v1.Health/Check").send(b"x").respond().give(b"y").trailers()
    )
    unknown = play(Grpc().open("/lf.a2a.v1.A2AService/Dance").send(b"x").trailers_only(12))

    assert [each.kind.name for each in other.frames] == ["OTHER", "END", "OTHER", "END"]
    assert other.exchange.binding is Binding.OTHER
    assert (unknown.exchange.binding, unknown.exchange.operation, unknown.exchange.method) == (
        "grpc",
        "",
        "Dance",
    )
    assert (unknown.frames[0].kind, unknown.frames[0].schema) == (FrameKind.REQUEST, "bytes")
