from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from a2a_proxy.model.values import Dialect, EventKind, FrameKind
from support_conversation import TO_AGENT, TO_CLIENT, Grpc, Http, frame, play, play_bytewise
from support_messages import artifact, ask, old_ask, status, task


def test_stream() -> None:
    """A streaming call of 1.0: request, events with their ids, comment, end of the stream."""
    script = Http().call("SendStreamingMessage", ask(), "r", a2a_version="1.0").stream()
    script.rpc_event({"task": task()}, "r").chunk(b": ping\r\n\r\n").rpc_event(
        status("WORKING", "on it"), "r"
    )
    script.rpc_event(artifact("one", append=True, lastChunk=True, generation="4"), "r").done()
    played = play(script)
    request, first, comment, second, third, end = played.frames

    assert (request.kind, request.event, request.rpc_id) == (
        FrameKind.REQUEST,
        EventKind.MESSAGE,
        '"r"',
    )
    assert (first.event, first.task_id, first.state, first.framing) == (
        EventKind.TASK,
        "t1",
        1,
        "data: \0\r\n\r\n",
    )
    assert (comment.kind, comment.payload) == (FrameKind.COMMENT, b"ping")
    assert (second.state, second.message_id) == (2, "m-on it")
    assert (third.artifact_id, third.append, third.last_chunk, third.generation) == (
        "a1",
        True,
        True,
        4,
    )
    assert (end.kind, end.direction) == (FrameKind.END, TO_CLIENT)
    assert (played.exchange.dialect, played.exchange.streaming, played.exchange.events) == (
        "1.1",
        True,
        3,
    )
    assert played.exchange.version_header == "1.0"


_V3_TASK = {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "completed"}}


@pytest.mark.parametrize(
    ("method", "params", "result", "operation", "event", "state"),
    [
        ("SendMessage", ask(), {"task": task("COMPLETED")}, "SendMessage", "TASK", 3),
        (
            "SendMessage",
            ask(),
            {"message": {"messageId": "x", "role": "ROLE_AGENT"}},
            "SendMessage",
            "MESSAGE",
            0,
        ),
        ("GetTask", {"id": "t1"}, task("WORKING"), "GetTask", "TASK", 2),
        ("ListTasks", {}, {"tasks": [task()], "nextPageToken": ""}, "ListTasks", "TASKS", 0),
        ("message/send", old_ask(), _V3_TASK, "SendMessage", "TASK", 3),
        ("tasks/cancel", {"id": "t1"}, _V3_TASK, "CancelTask", "TASK", 3),
        (
            "tasks/pushNotificationConfig/set",
            {"taskId": "t1", "pushNotificationConfig": {"url": "http://h/"}},
            {"taskId": "t1", "pushNotificationConfig": {"url": "http://h/"}},
            "CreateTaskPushNotificationConfig",
            "PUSH_CONFIG",
            0,
        ),
        (
            "tasks/pushNotificationConfig/list",
            {"id": "t1"},
            [{"taskId": "t1"}],
            "ListTaskPushNotificationConfigs",
            "PUSH_CONFIGS",
            0,
        ),
        (
            "tasks/pushNotificationConfig/delete",
            {"id": "t1"},
            None,
            "DeleteTaskPushNotificationConfig",
            "NONE",
            0,
        ),
        (
            "GetExtendedAgentCard",
            {},
            {"name": "a", "skills": []},
            "GetExtendedAgentCard",
            "CARD",
            0,
        ),
        (
            "tasks/get",
            {"id": "t1"},
            {"id": "t1", "sessionId": "s", "status": {"state": "unknown"}},
            "GetTask",
            "TASK",
            0,
        ),
    ],
)
def test_unary(
    method: str, params: Any, result: Any, operation: str, event: str, state: int
) -> None:
    """Unary calls of every line: operation by its 1.0 name, the answer's object and state."""
    played = play(Http().call(method, params).result(result))
    _, response = played.frames

    assert (response.kind, response.event.name, response.state) == (
        FrameKind.RESPONSE,
        event,
        state,
    )
    assert (played.exchange.operation, played.exchange.method, played.exchange.how) == (
        operation,
        method,
        "complete",
    )


def test_dialect_0_1() -> None:
    """0.1: the client names the task, chunks are counted by `index`, the flags are inside the
    artifact."""
    params = {
        "id": "t1",
        "sessionId": "s1",
        "message": {"role": "user", "parts": [{"type": "text", "text": "x"}]},
    }
    script = Http().call("tasks/sendSubscribe", params).stream()
    script.rpc_event({"id": "t1", "status": {"state": "working"}, "final": False})
    script.rpc_event(
        {"id": "t1", "artifact": {"parts": [], "index": 2, "append": True, "lastChunk": True}}
    )
    script.rpc_event({"id": "t1", "status": {"state": "completed"}, "final": True}).done()
    played = play(script)
    request, first, second, third, _ = played.frames

    assert (request.task_id, request.context_id) == ("t1", "s1")
    assert (first.event, first.task_id, first.state) == (EventKind.STATUS, "t1", 2)
    assert (second.artifact_id, second.append, second.last_chunk) == ("2", True, True)
    assert (third.final, third.state) == (True, 3)
    assert played.exchange.dialect is Dialect.V0_1


def test_dialect_0_3() -> None:
    """0.3: bare objects with `kind`; `tasks/resubscribe` without other evidence is taken for it."""
    script = Http().call("tasks/resubscribe", {"id": "t1"}).stream()
    script.rpc_event(_V3_TASK)
    script.rpc_event(
        {
            "kind": "artifact-update",
            "taskId": "t1",
            "contextId": "c1",
            "artifact": {"artifactId": "a"},
            "append": True,
        }
    )
    script.rpc_event(
        {
            "kind": "status-update",
            "taskId": "t1",
            "contextId": "c1",
            "status": {"state": "failed"},
            "final": True,
        }
    )
    script.rpc_event({"kind": "message", "messageId": "m", "role": "agent", "parts": []}).done()
    played = play(script)

    assert [each.event.name for each in played.frames[1:5]] == [
        "TASK",
        "ARTIFACT",
        "STATUS",
        "MESSAGE",
    ]
    assert (played.frames[3].final, played.exchange.dialect, played.exchange.operation) == (
        True,
        "0.3",
        "SubscribeToTask",
    )


def test_vendor_dialect() -> None:
    """The hybrid of 1.4: no `kind`, task id at `result.id`, the context only at the end, an error
    in mid-stream."""
    params = {
        "message": {"role": "user", "parts": [{"type": "text", "text": "x"}], "messageId": "m"}
    }
    script = Http().call("message/stream", params, "q", "/api/v1/a2a/7", x_api_key="k").stream()
    progress = {"current": 1, "total": 2, "message": "half"}
    script.rpc_event({"id": "t1", "status": {"state": "submitted"}, "final": False}, "q")
    script.rpc_event(
        {"id": "t1", "status": {"state": "working", "progress": progress}, "final": False}, "q"
    )
    script.event(
        {
            "jsonrpc": "2.0",
            "id": "q",
            "error": {"code": -32000, "message": "broke", "data": {"taskId": "t1", "details": "d"}},
        }
    )
    script.rpc_event(
        {"id": "t1", "status": {"state": "completed"}, "contextId": "c1", "final": True}, "q"
    ).done()
    played = play(script)
    _, first, second, error, last, _ = played.frames

    assert [each.event for each in (first, second, last)] == [EventKind.STATUS] * 3
    assert [each.task_id for each in (first, second, error, last)] == ["t1"] * 4
    assert (error.kind, error.error_code) == (FrameKind.ERROR, -32000)
    assert (last.context_id, last.final, played.exchange.context_id) == ("c1", True, "c1")
    assert (played.exchange.dialect, played.exchange.error) == (Dialect.VENDOR, "-32000: broke (d)")


def test_dialect_is_per_call_and_sticky() -> None:
    """A method that several lines share is read as what was spoken before; other calls of the
    connection are not."""
    params = {"id": "t1", "message": {"role": "user", "parts": [{"type": "text", "text": "x"}]}}
    script = (
        Http().call("tasks/send", params).result({"id": "t1", "status": {"state": "completed"}})
    )
    script.call("tasks/get", {"id": "t1"}).result({"id": "t1", "status": {"state": "completed"}})
    script.call("GetTask", {"id": "t1"}).result(task())

    assert [each.dialect for each in play(script).exchanges] == ["0.1", "0.1", "1.0"]


def test_errors() -> None:
    """An error answers; its name comes from ErrorInfo, else from the code; `null` ids and HTTP
    statuses are kept."""
    data = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND"}]
    script = (
        Http()
        .call("GetTask", {"id": "x"})
        .answer(
            {"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "no", "data": data}}
        )
    )
    script.call("GetTask", {"id": "x"}, None).answer(
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "bad"}},
        "400 Bad Request",
    )
    script.call("GetTask", {"id": "x"}).answer({"detail": "who are you"}, "401 Unauthorized")
    script.call("GetTask", {"id": "x"}).answer(
        b"<p>oops", "502 Bad Gateway", content_type="text/html"
    )
    played = play(script)
    errors = [each for each in played.frames if each.kind is FrameKind.ERROR]

    assert [(each.error_code, each.rpc_id) for each in errors] == [
        (-32001, "1"),
        (-32600, "null"),
        (401, ""),
        (502, ""),
    ]
    assert [each.error for each in played.exchanges] == [
        "TASK_NOT_FOUND -32001: no",
        "INVALID_REQUEST -32600: bad",
        "HTTP 401: who are you",
        "HTTP 502: Bad Gateway",
    ]
    assert errors[3].schema == "text"


def test_stream_answered_by_json() -> None:
    """A streaming call that fails before its first event is answered in JSON: no stream."""
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32004, "message": "done"}}
    played = play(Http().call("SendStreamingMessage", ask()).answer(error))

    assert (played.frames[1].kind, played.exchange.streaming) == (FrameKind.ERROR, False)


def test_error_event() -> None:
    """`event: error` in a stream is an error frame that says so."""
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "broke"}}
    script = (
        Http()
        .call("SendStreamingMessage", ask())
        .stream()
        .rpc_event(status())
        .event(error, "event: error\r\n")
        .done()
    )
    frame = play(script).frames[2]

    assert (frame.kind, frame.note, frame.framing) == (
        FrameKind.ERROR,
        "event: error",
        "event: error\r\ndata: \0\r\n\r\n",
    )


def test_batch() -> None:
    """One frame per call, the exchange is named after the first; answers find their operation by
    id."""
    calls = [
        {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "t1"}},
        {"jsonrpc": "2.0", "id": 2, "method": "ListTasks"},
    ]
    answers = [
        {"jsonrpc": "2.0", "id": 2, "result": {"tasks": []}},
        {"jsonrpc": "2.0", "id": 1, "result": task()},
    ]
    played = play(Http().request("POST /", calls).answer(answers))

    assert [
        (each.kind.name, each.event.name, each.rpc_id, each.note) for each in played.frames
    ] == [
        ("REQUEST", "NONE", "1", "batch"),
        ("REQUEST", "NONE", "2", "batch"),
        ("RESPONSE", "TASKS", "2", "batch"),
        ("RESPONSE", "TASK", "1", "batch"),
    ]
    assert json.loads(played.frames[1].payload)["id"] == 2
    assert played.exchange.operation == "GetTask"


@pytest.mark.parametrize(
    ("body", "code", "error", "batch"),
    [
        (b"{", -32700, "PARSE_ERROR -32700: no", False),
        (b"[]", -32600, "INVALID_REQUEST -32600: no", False),
        (b"[1]", -32600, "INVALID_REQUEST -32600: no", True),
        (b"{}", -32600, "INVALID_REQUEST -32600: no", False),
    ],
)
def test_a_json_rpc_error_settles_the_binding(
    body: bytes, code: int, error: str, batch: bool
) -> None:
    """An answer in JSON-RPC settles the binding where the request was no call; its error is the
    exchange's."""
    answer = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": "no"}}
    played = play(Http().request("POST /", body).answer([answer] if batch else answer))
    asked, answered = played.frames

    assert (played.exchange.binding, played.exchange.operation) == ("jsonrpc", "")
    assert (played.exchange.error_code, played.exchange.error) == (code, error)
    assert (asked.kind, asked.payload) == (FrameKind.OTHER, body)
    assert (answered.kind, answered.error_code, answered.rpc_id) == (FrameKind.ERROR, code, "null")


def test_refused_batch() -> None:
    """A batch that is refused as a whole keeps its calls, and the one error answers them all."""
    calls = [
        {"jsonrpc": "2.0", "id": number, "method": "GetTask", "params": {"id": "t"}}
        for number in (1, 2)
    ]
    refusal = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no batches"}}
    played = play(Http().request("POST /", calls).answer(refusal))

    assert [each.kind.name for each in played.frames] == ["REQUEST", "REQUEST", "ERROR"]
    assert (played.exchange.binding, played.exchange.operation) == ("jsonrpc", "GetTask")
    assert played.exchange.error == "INVALID_REQUEST -32600: no batches"


def test_notification_and_unknown_method() -> None:
    """A call without id has none; JSON-RPC that is not A2A keeps its method and no operation."""
    script = (
        Http()
        .request("POST /", {"jsonrpc": "2.0", "method": "GetTask", "params": {"id": "t"}})
        .answer(b"", "202 Accepted")
    )
    script.call("tools/list", {}).result({"tools": []})
    played = play(script)

    assert played.frames[0].rpc_id == ""
    assert (
        played.exchanges[1].binding,
        played.exchanges[1].method,
        played.exchanges[1].operation,
    ) == (
        "jsonrpc",
        "tools/list",
        "",
    )


def test_surprising_types() -> None:
    """What has an unexpected type is read as far as it goes, and never lost."""
    script = Http().call("SendStreamingMessage", {"message": "what"}).stream()
    script.rpc_event({"statusUpdate": {"taskId": 7, "status": {"state": 2}, "final": "yes"}})
    script.rpc_event(
        {"status_update": {"task_id": "t1", "status": {"state": "TASK_STATE_WORKING"}}}
    )
    script.rpc_event(
        {"messageUpdate": {"taskId": "t1", "message": {"messageId": "m"}, "generation": 3}}
    )
    script.rpc_event({"somethingNew": {"taskId": "t1", "generation": "9"}})
    script.rpc_event([1, 2]).chunk(b"data: not json\n\n").done()
    played = play(script)

    assert [
        (each.kind.name, each.event.name, each.task_id, each.state, each.generation)
        for each in played.frames[1:-1]
    ] == [
        ("EVENT", "STATUS", "7", 2, 0),
        ("EVENT", "STATUS", "t1", 2, 0),
        ("EVENT", "MESSAGE", "t1", 0, 3),
        ("EVENT", "UNKNOWN", "t1", 0, 9),
        ("EVENT", "NONE", "", 0, 0),
        ("UNDECODABLE", "NONE", "", 0, 0),
    ]


def test_content_coding() -> None:
    """Bodies and streams are decoded; payloads are the decoded bytes."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": task()}).encode()
    script = (
        Http()
        .call("GetTask", {"id": "t1"})
        .answer(gzip.compress(body, mtime=0), content_encoding="gzip")
    )
    events = gzip.compress(
        b"data: " + json.dumps({"jsonrpc": "2.0", "id": 2, "result": status()}).encode() + b"\n\n",
        mtime=0,
    )
    script.call("SendStreamingMessage", ask(), 2).stream(content_encoding="gzip").chunk(
        events[:20]
    ).chunk(events[20:]).done()
    script.call("GetTask", {"id": "t1"}).answer(b"not gzip", content_encoding="gzip")
    played = play(script)

    assert played.frames[1].payload == body
    assert [each.event.name for each in played.frames if each.exchange == 2] == [
        "MESSAGE",
        "STATUS",
        "NONE",
    ]
    assert played.frames[-1].kind is FrameKind.UNDECODABLE
    (found,) = played.findings
    assert found.summary.startswith("expected content coded as gzip, got ")
    assert (found.exchange, found.seq) == (3, 1)


def test_a_truncated_content_coding_is_a_finding() -> None:
    """It is the fault of the agent; earlier content is decoded. A coding unknown to the proxy is no
    fault."""
    script = (
        Http()
        .call("GetTask", {"id": "t1"})
        .answer(gzip.compress(b'{"jsonrpc": "2.0"}', mtime=0)[:-9], content_encoding="gzip")
    )
    script.call("GetTask", {"id": "t1"}, 2).answer(b"\1\2", content_encoding="exotic")
    played = play(script)

    assert [(each.exchange, each.summary) for each in played.findings] == [
        (1, "expected content coded as gzip, got encoded content ends early")
    ]


def test_broken_off_stream() -> None:
    """A stream that ends in mid-event: the rest is kept, the cut is reported."""
    script = (
        Http()
        .call("SendStreamingMessage", ask())
        .stream()
        .rpc_event(status())
        .chunk(b'data: {"jsonrpc"')
        .end("eof", TO_CLIENT)
    )
    played = play(script)

    assert [each.kind.name for each in played.frames] == ["REQUEST", "EVENT", "UNDECODABLE", "CUT"]
    assert (played.exchange.how, played.frames[-1].note) == ("agent gone", "eof")


def test_unterminated_last_event() -> None:
    """A last event without its empty line is marked: clients drop it (4.1 rule 8)."""
    data = b"data: " + json.dumps({"jsonrpc": "2.0", "id": 1, "result": status()}).encode() + b"\n"
    event = play(Http().call("SendStreamingMessage", ask()).stream().chunk(data).done()).frames[1]

    assert (event.kind, event.state, event.note) == (FrameKind.EVENT, 2, "unterminated")


def test_an_event_with_empty_data() -> None:
    """Clients see it, so it is recorded, with its bytes (4.1 rule 6)."""
    script = (
        Http()
        .call("SendStreamingMessage", ask())
        .stream()
        .chunk(b"data:\n\n")
        .rpc_event(status())
        .done()
    )
    frames = play(script).frames

    assert [(each.kind.name, each.framing) for each in frames[1:3]] == [
        ("UNDECODABLE", "data:\0\n\n"),
        ("EVENT", "data: \0\r\n\r\n"),
    ]


def test_client_leaves() -> None:
    """A client that closes in mid-stream is gone; what the agent still says is recorded."""
    script = (
        Http()
        .call("SendStreamingMessage", ask())
        .stream()
        .rpc_event(status())
        .end("eof", TO_AGENT)
        .rpc_event(status("COMPLETED"))
    )
    played = play(script)

    assert played.exchange.how == "client gone"
    assert [each.kind.name for each in played.frames] == ["REQUEST", "EVENT", "CUT", "EVENT"]


def test_answer_before_the_request_is_complete() -> None:
    """An early answer is read although the request's body is still on its way."""
    script = Http()
    script.client(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\n{")
    script.answer(
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "too big"}},
        "413 Content Too Large",
    )
    played = play(script)

    assert [(each.kind.name, each.error_code) for each in played.frames] == [("ERROR", -32700)]
    assert played.exchange.half_close == "agent"


def test_over_http2() -> None:
    """JSON-RPC with its stream over HTTP/2 is read as over HTTP/1.1."""
    script = Grpc()
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": ask()}
    ).encode()
    event = json.dumps({"jsonrpc": "2.0", "id": 1, "result": status()}).encode()
    asked = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "a"),
        ("content-type", "application/json"),
    ]
    script.client(script._headers(TO_AGENT, asked, 1, 4) + frame(0, 1, 1, body))
    script.agent(
        script._headers(
            TO_CLIENT, [(":status", "200"), ("content-type", "text/event-stream")], 1, 4
        )
    )
    script.agent(frame(0, 0, 1, b"data: " + event[:30])).agent(frame(0, 1, 1, event[30:] + b"\n\n"))
    played = play(script)

    assert [(each.kind.name, each.event.name) for each in played.frames] == [
        ("REQUEST", "MESSAGE"),
        ("EVENT", "STATUS"),
        ("END", "NONE"),
    ]
    assert (played.exchange.binding, played.exchange.http_version, played.exchange.how) == (
        "jsonrpc",
        "2",
        "complete",
    )


def test_bare_results_of_a_stream_are_events() -> None:
    """Events without their JSON-RPC envelope are decoded and noted; other JSON is not."""
    script = Http().call("message/stream", {"message": {}}).stream()
    script.event({"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "working"}})
    script.chunk(
        b'event: x\ndata: {"kind":"status-update","taskId":"t1","status":{"state":"completed"}}\n\n'
    )
    played = play_bytewise(script.event({"hello": 1}).done())

    assert [
        (each.kind.name, each.event.name, each.task_id, each.note) for each in played.frames[1:4]
    ] == [
        ("EVENT", "TASK", "t1", "without envelope"),
        ("EVENT", "STATUS", "t1", "without envelope, event: x"),
        ("UNDECODABLE", "NONE", "", "not JSON-RPC"),
    ]
    exchange = played.exchanges[0]
    assert (exchange.events, exchange.dialect, exchange.error) == (
        2,
        Dialect.V0_3,
        "events without JSON-RPC envelope",
    )
