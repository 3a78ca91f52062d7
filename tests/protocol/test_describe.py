from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.model.values import Binding, Dialect, EventKind, Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.describe import describe_frame, make_visible
from support_conversation import TO_CLIENT, Grpc, Http, Script, play
from support_messages import artifact, ask, message, status, task, v1


def lines(script: Script) -> list[str]:
    played = play(script)
    return [
        describe_frame(frame, frame.payload, played.exchanges[frame.exchange - 1].operation)
        for frame in played.frames
    ]


def test_a_stream_is_described_frame_by_frame() -> None:
    """Requests and events in plain words."""
    script = (
        Http()
        .call("SendStreamingMessage", ask("write a report"))
        .stream()
        .rpc_event({"task": task()})
        .chunk(b": ping\n\n")
    )
    script.rpc_event(status("WORKING", "Thinking about it")).rpc_event(
        artifact("# Title", append=True, lastChunk=True, generation="3")
    )
    message = {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hello"}]}}
    script.rpc_event(message).rpc_event({"somethingNew": {"taskId": "t1"}}).done()

    assert lines(script) == [
        'message user "write a report"',
        "task t1 submitted",
        'comment "ping"',
        'status working "Thinking about it"',
        'artifact report (append, last) "# Title" [generation 3]',
        'message agent "hello"',
        "unknown event somethingNew",
        "end of agent's stream",
    ]


def test_calls_and_answers() -> None:
    """Calls name themselves, in every binding; lists are counted."""
    script = (
        Http()
        .call("GetTask", {"id": "t1"})
        .result(task("COMPLETED", artifacts=[{"artifactId": "a", "parts": []}]))
    )
    script.request("GET /tasks").answer({"tasks": []}).request("GET /extendedAgentCard").answer(
        {"name": "a", "skills": [{}]}
    )
    script.call("tasks/pushNotificationConfig/list", {"id": "t1"}).result([{"taskId": "t1"}])
    script.request("POST /tasks/t1/pushNotificationConfigs", {"url": "http://h/"}).answer(
        {"taskId": "t1", "url": "http://h/"}
    )
    script.request("GET /x").answer(b"hi", content_type="text/plain")
    grpc = (
        Grpc()
        .open("/lf.a2a.v1.A2AService/CancelTask")
        .send(v1("CancelTaskRequest", {"id": "t1"}))
        .trailers_only(5, grpc_message="no")
    )

    assert lines(script) == [
        "GetTask for task t1",
        "task t1 completed 1 artifact",
        "ListTasks",
        "0 tasks",
        "GetExtendedAgentCard",
        'agent card "a" 1 skill',
        "tasks/pushNotificationConfig/list for task t1",
        "1 push config",
        "push config http://h/ for task t1",
        "push config http://h/",
        "no body",
        '2 bytes that are not A2A "hi"',
    ]
    assert lines(grpc) == ["CancelTask for task t1", "end of client's stream", "end: NOT_FOUND: no"]


def test_errors_and_breaks() -> None:
    """Errors by name; a code that means something else in 0.1 stays a number."""
    script = Http()
    for code in (-32001, -32009):
        script.call("GetTask", {"id": "x"}).answer(
            {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no such task"}}
        )
    script.request("GET /tasks/x").answer(b"<p>", "502 Bad Gateway", content_type="text/html")
    script.call("SendStreamingMessage", ask()).stream().chunk(b"data: {").end("eof", TO_CLIENT)

    assert [line for line in lines(script) if not line.startswith(("GetTask", "message"))] == [
        "error TASK_NOT_FOUND -32001: no such task",
        "error -32009: no such task",
        "error 502: <p>",
        "undecodable: not JSON-RPC",
        "agent broke off: eof",
    ]


@pytest.mark.parametrize(
    ("body", "kind", "frame_says", "exchange_says"),
    [
        (
            {
                "type": "about:blank",
                "title": "Bad Gateway",
                "status": 401,
                "detail": "no agent at 1.2.3.4:5",
            },
            "application/problem+json",
            "error 401: no agent at 1.2.3.4:5",
            "HTTP 401: no agent at 1.2.3.4:5",
        ),
        (
            {"title": "Too late"},
            "application/problem+json",
            "error 401: Too late",
            "HTTP 401: Too late",
        ),
        (
            {"error": "Unauthorized", "message": "Invalid API key"},
            "application/json",
            "error 401: Invalid API key",
            "HTTP 401: Invalid API key",
        ),
        (
            {"error": "Unauthorized"},
            "application/json",
            "error 401: Unauthorized",
            "HTTP 401: Unauthorized",
        ),
        ({}, "application/json", "error 401", "HTTP 401: Unauthorized"),
        (b"{", "application/json", "error", "HTTP 401: Unauthorized"),
    ],
)
def test_the_message_of_an_error_body_comes_first(
    body: dict[str, Any] | bytes, kind: str, frame_says: str, exchange_says: str
) -> None:
    """RFC 9457 `detail`, then `title`; the `message` of other JSON before its `error`; then the
    usual phrase."""
    script = Http().call("GetTask", {"id": "x"}).answer(body, "401 Unauthorized", content_type=kind)

    assert lines(script)[1].startswith(frame_says)
    assert play(script).exchanges[0].error == exchange_says


def test_error_codes_are_named_by_dialect() -> None:
    """What a number means in 0.1 is said where the exchange's dialect is given."""
    script = Http().call("tasks/get", {"id": "x"})
    script.answer({"jsonrpc": "2.0", "id": 1, "error": {"code": -32009, "message": "no"}})
    frame = play(script).frames[1]

    assert describe_frame(frame, dialect=Dialect.V0_1) == "error INVALID_TASK_STATE -32009: no"
    assert describe_frame(frame, dialect=Dialect.V1_0) == "error VERSION_NOT_SUPPORTED -32009: no"
    assert describe_frame(frame) == "error -32009: no"


def test_single_items_are_singular() -> None:
    """Bytes and push configurations are counted as people count."""
    script = Http().request("GET /x").answer(b"h", content_type="text/plain")
    script.call("tasks/pushNotificationConfig/list", {"id": "t1"}).result([])

    assert lines(script)[1::2] == ['1 byte that is not A2A "h"', "0 push configs"]


def test_a_label_is_shown_whole() -> None:
    """All labels begin alike, so the beginning of one says nothing."""
    label = "redacted-1f2e3d4c5b6a"

    assert lines(Http().call("GetTask", {"id": label}))[0] == f"GetTask for task {label}"


@pytest.mark.parametrize(
    ("note", "line"),
    [
        ("proxy stopped", "the proxy stopped"),
        ("proxy killed", "the proxy was killed"),
        ("eof", "agent broke off: eof"),
    ],
)
def test_the_side_that_broke_off_is_named(note: str, line: str) -> None:
    """No peer is blamed for actions of the proxy."""
    frame = Frame(1, 1, 0, Direction.TO_CLIENT, FrameKind.CUT, 1, 1, 0, 0, note=note)

    assert describe_frame(frame) == line
    assert describe_frame(frame, binding=Binding.WEBHOOK) == line.replace("agent", "receiver")


def test_the_fault_that_an_answer_without_text_comes_from_is_named() -> None:
    """Once: the text of an error already names it."""
    note = "no grpc-status; answered by --fault: fail 503 at GetTask"
    end = Frame(1, 1, 2, TO_CLIENT, FrameKind.END, 1, 1, 0, 0, note=note, ours=True)
    error = b'{"status": 503, "detail": "--fault fail 503 at GetTask"}'
    more: dict[str, Any] = {
        "note": note,
        "ours": True,
        "payload": error,
        "schema": "json",
        "error_code": 503,
    }
    failed = Frame(1, 1, 1, TO_CLIENT, FrameKind.ERROR, 1, 1, 0, 0, **more)

    assert describe_frame(end) == f"end of agent's stream (sent by the proxy: {note})"
    assert describe_frame(failed) == "error 503: --fault fail 503 at GetTask (sent by the proxy)"


def test_vendor_progress() -> None:
    """Progress of the vendor dialect is shown."""
    progress = {"current": 1, "total": 3, "message": "reading"}
    script = Http().call("message/stream", ask()).stream()
    script.rpc_event(
        {"id": "t1", "status": {"state": "working", "progress": progress}, "final": True}
    )

    assert lines(script)[1] == 'status working 1/3 "reading" [final]'


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ({"raw": "AA==", "filename": "a.bin"}, "<file a.bin>"),
        ({"url": "http://x", "mediaType": "image/png"}, "<link image/png>"),
        ({"data": {"a": 1}}, "<data>"),
        ({}, "<part>"),
    ],
)
def test_non_text_parts_are_described(part: dict[str, Any], shown: str) -> None:
    """A part without text says what it is."""
    event = {"artifactUpdate": {"taskId": "t", "artifact": {"artifactId": "a", "parts": [part]}}}

    assert (
        lines(Http().call("SendStreamingMessage", ask()).stream().rpc_event(event))[1]
        == f"artifact a {shown}"
    )


def test_hostile_text() -> None:
    """Control characters become symbols, lines stay short."""
    line = lines(
        Http()
        .call("SendStreamingMessage", ask())
        .stream()
        .rpc_event(status("WORKING", "\x1b[2J" + "x" * 500))
    )[1]

    assert line.startswith('status working "␛[2J')
    assert len(line) <= 160
    assert make_visible("a\nb") == "a␊b"


@pytest.mark.parametrize("kind", FrameKind)
@pytest.mark.parametrize(
    "payload", [b"", b"\xff", b"[]", b'{"result":7}', b'{"error":7}', b'{"task":{"artifacts":7}}']
)
@pytest.mark.parametrize(
    "schema", ["json", "trailers", "lf.a2a.v1.Task", "lf.a2a.v1.NoSuch@live-2153", "bytes"]
)
def test_never_raises(kind: FrameKind, payload: bytes, schema: str) -> None:
    """Every kind of frame with every kind of nonsense has a line."""
    for event in EventKind:
        frame = Frame(
            1,
            1,
            0,
            Direction.TO_CLIENT,
            kind,
            1,
            1,
            0,
            0,
            payload,
            len(payload),
            schema=schema,
            event=event,
            ours=True,
        )

        assert describe_frame(frame).endswith("(sent by the proxy)")


LIVE = "/lf.a2a.v1.A2AService/SendLiveMessage"


def live_lines(script: Script) -> list[str]:
    """The frames of a live stream in words."""
    return [describe_frame(frame, operation="SendLiveMessage") for frame in play(script).frames]


def test_a_live_stream_is_described_frame_by_frame() -> None:
    """Both sides half-close, the agent by its trailers; a message without parts takes a task up
    again."""
    back = {"message": {"messageId": "m9", "taskId": "t1", "role": "ROLE_USER"}}
    script = Grpc().open(LIVE).send(v1("SendMessageRequest", back), end=False).respond()
    script.give(v1("StreamResponse", {"task": task()})).send(
        v1("SendMessageRequest", ask("more")), end=False
    )
    script.half_close().give(v1("StreamResponse", status("COMPLETED"))).trailers()
    assert live_lines(script) == [
        "reconnect for task t1",
        "task t1 submitted",
        'message user "more"',
        "client half-closed",
        "status completed",
        "agent half-closed (OK)",
    ]


def test_media_and_uplinks() -> None:
    """What the two other live proposals have beside messages."""
    sound = {
        "part": {"raw": "AAAA", "mediaType": "audio/pcm"},
        "seqNum": "7",
        "event": "EVENT_MEDIA_DELTA",
    }
    script = (
        Grpc()
        .open(LIVE)
        .send(message("live-1975", "LiveRequest", {"message": {"message": SAID}}), end=False)
    )
    script.respond().give(
        message("live-1975", "LiveResponse", {"event": status("WORKING", "on it")})
    )
    script.send(
        message("live-1975", "LiveRequest", {"frame": {"event": "EVENT_INTERRUPT"}}), end=False
    )
    script.give(message("live-1975", "LiveResponse", {"frame": sound}))
    assert live_lines(script) == [
        'message user "hello"',
        'status working "on it"',
        "media interrupt",
        "media delta #7 audio/pcm 3 bytes",
    ]
    update = {
        "messageUpdate": {"taskId": "t1", "contextId": "c1", "message": SAID, "generation": "2"}
    }
    chunk = artifact("page", lastChunk=True)
    script = (
        Grpc().open(LIVE).send(message("live-2153", "StreamRequest", chunk), end=False).respond()
    )
    assert live_lines(script.give(message("live-2153", "StreamResponse", update))) == [
        'artifact report (last) "page" for task t1',
        'message user "hello" [generation 2]',
    ]


SAID = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hello"}]}


def test_extensions_are_described_in_every_binding_and_dialect() -> None:
    """Two uses at most; a request of 0.3 has its parts in another form, gRPC its data as a
    Struct."""
    part = {"data": {"ap2.mandates.CheckoutMandateSdJwt": "abc"}}
    words = "{AP2: checkout mandate of 3 characters}"
    said = {"messageId": "m", "role": "ROLE_USER", "parts": [part]}
    assert lines(Http().call("SendMessage", {"message": said}))[0] == f"message user {words}"
    assert (
        lines(Http().request("POST /message:send", {"message": said}))[0] == f"message user {words}"
    )
    grpc = (
        Grpc()
        .open("/lf.a2a.v1.A2AService/SendMessage")
        .send(v1("SendMessageRequest", {"message": said}))
    )
    assert lines(grpc)[0] == f"message user {words}"
    old = {
        "kind": "message",
        "messageId": "m",
        "role": "user",
        "parts": [{"kind": "data", **part}] * 3,
    }
    assert lines(Http().call("message/send", {"message": old}))[0] == (
        "message user {AP2: checkout mandate of 3 characters; "
        "AP2: checkout mandate of 3 characters and 1 more}"
    )


def test_an_agent_card_names_the_known_extensions() -> None:
    declared = [{"uri": "https://a2ui.org/a2a-extension/a2ui/v0.9"}, {"uri": "urn:other"}]
    card = {"name": "cook", "skills": [], "capabilities": {"extensions": declared}}
    shown = lines(Http().request("GET /.well-known/agent-card.json").answer(card))
    assert shown[1] == 'agent card "cook" 0 skills {A2UI: 0 catalogs}'


def test_a_text_keeps_its_words_beside_extensions() -> None:
    said = {
        "messageId": "m",
        "role": "ROLE_USER",
        "parts": [{"text": "a <data> b"}, {"data": {"risk_data": "x"}}],
    }
    (line,) = lines(Http().call("SendMessage", {"message": said}))
    assert line == 'message user "a <data> b" {AP2: risk data of 1 character}'


def test_a_response_without_event_is_described_by_its_kind() -> None:
    answer = Frame(
        1,
        1,
        1,
        TO_CLIENT,
        FrameKind.RESPONSE,
        1,
        1,
        0,
        9,
        payload=b'{"x": 1}',
        schema="json",
        size=9,
    )
    assert describe_frame(answer, answer.payload, "") == "response"


def test_only_the_end_of_a_live_request_is_a_half_close() -> None:
    lost = Frame(1, 1, 1, TO_CLIENT, FrameKind.CUT, 1, 1, 0, 0)
    assert describe_frame(lost, b"", "SendLiveMessage") == describe_frame(lost, b"", "GetTask")


def test_a_protobuf_request_is_named_by_its_message() -> None:
    asked = Frame(
        1,
        1,
        1,
        Direction.TO_AGENT,
        FrameKind.REQUEST,
        1,
        1,
        0,
        0,
        schema="lf.a2a.v1.GetExtendedAgentCardRequest@1.1",
    )
    assert describe_frame(asked, b"") == "GetExtendedAgentCard"
