from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.model.values import Dialect, EventKind, FrameKind
from a2a_proxy.protocol.session_facts import SessionContext
from support_conversation import TO_CLIENT, Http, play
from support_messages import artifact, ask, status, task

_CARD = {
    "name": "a",
    "skills": [],
    "supportedInterfaces": [
        {
            "url": "http://agent:8000/rest/v1",
            "protocolBinding": "HTTP+JSON",
            "protocolVersion": "1.0",
        }
    ],
}


def test_stream() -> None:
    """A streaming call of 1.0 by path; events are bare StreamResponses."""
    script = Http().request("POST /message:stream", ask(), a2a_version="1.0").stream()
    script.event({"task": task()}).event(status("WORKING", "on it")).event(
        artifact("one", append=True)
    ).done()
    played = play(script)
    request, *events, end = played.frames

    assert (request.kind, request.event, request.message_id) == (
        FrameKind.REQUEST,
        EventKind.MESSAGE,
        "m1",
    )
    assert [each.event.name for each in events] == ["TASK", "STATUS", "ARTIFACT"]
    assert (end.kind, end.direction) == (FrameKind.END, TO_CLIENT)
    assert (played.exchange.binding, played.exchange.dialect, played.exchange.operation) == (
        "rest",
        "1.0",
        "SendStreamingMessage",
    )


def test_json_rpc_at_the_path_of_an_operation_is_json_rpc() -> None:
    """As Agno speaks it: each method at a path of its own, with calls and responses of JSON-RPC."""
    asked = {
        "message": {
            "kind": "message",
            "messageId": "m1",
            "role": "user",
            "parts": [{"kind": "text", "text": "x"}],
        }
    }
    old_task = {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "completed"}}
    script = (
        Http().call("message/send", asked, path="/a2a/agents/one/v1/message:send").result(old_task)
    )
    played = play(script)
    request, answer = played.frames

    exchange = played.exchange
    assert (exchange.binding, exchange.dialect, exchange.operation) == (
        "jsonrpc",
        "0.3",
        "SendMessage",
    )
    assert (exchange.method, exchange.rpc_id, exchange.task_id) == ("message/send", "1", "t1")
    assert (request.event, request.message_id, request.task_id, request.rpc_id) == (
        EventKind.MESSAGE,
        "m1",
        "",
        "1",
    )
    assert (answer.event, answer.task_id, answer.rpc_id) == (EventKind.TASK, "t1", "1")


def test_a_json_rpc_stream_at_the_path_of_an_operation() -> None:
    script = Http().call("message/stream", ask(), path="/v1/message:stream").stream()
    for state in ("working", "completed"):
        update = {
            "kind": "status-update",
            "taskId": "t1",
            "contextId": "c1",
            "status": {"state": state},
        }
        script.event({"jsonrpc": "2.0", "id": 1, "result": update})
    played = play(script.done())

    assert [each.event.name for each in played.frames] == ["MESSAGE", "STATUS", "STATUS", "NONE"]
    assert (played.exchange.binding, played.exchange.states) == (
        "jsonrpc",
        ("working", "completed"),
    )


def test_a_json_rpc_call_that_a_rest_agent_refuses_is_rest() -> None:
    """The client has the URL of an operation in place of the agent's (A2A-HTTP-020)."""
    script = Http().call("SendMessage", ask(), path="/message:send", a2a_version="1.0")
    played = play(
        script.answer({"error": {"code": 400, "status": "INVALID_ARGUMENT"}}, "400 Bad Request")
    )
    request, _ = played.frames

    assert (played.exchange.binding, played.exchange.method, played.exchange.task_id) == (
        "rest",
        "POST",
        "",
    )
    assert (request.event, request.message_id) == (EventKind.MESSAGE, "m1")


@pytest.mark.parametrize(
    ("line", "body", "answer", "operation", "event", "task_id"),
    [
        ("POST /message:send", ask(), {"task": task()}, "SendMessage", "TASK", ""),
        ("GET /tasks/t1?historyLength=2", b"", task(), "GetTask", "TASK", "t1"),
        ("GET /tasks", b"", {"tasks": [task()], "nextPageToken": ""}, "ListTasks", "TASKS", ""),
        ("POST /tasks/t1:cancel", {}, task("CANCELED"), "CancelTask", "TASK", "t1"),
        (
            "POST /tasks/t1/pushNotificationConfigs",
            {"id": "p", "url": "http://h/"},
            {"taskId": "t1", "id": "p"},
            "CreateTaskPushNotificationConfig",
            "PUSH_CONFIG",
            "t1",
        ),
        (
            "GET /tasks/t1/pushNotificationConfigs",
            b"",
            {"configs": []},
            "ListTaskPushNotificationConfigs",
            "PUSH_CONFIGS",
            "t1",
        ),
        (
            "DELETE /tasks/t1/pushNotificationConfigs/p",
            b"",
            {},
            "DeleteTaskPushNotificationConfig",
            "NONE",
            "t1",
        ),
        (
            "GET /extendedAgentCard",
            b"",
            {"name": "a", "skills": []},
            "GetExtendedAgentCard",
            "CARD",
            "",
        ),
    ],
)
def test_unary(line: str, body: Any, answer: Any, operation: str, event: str, task_id: str) -> None:
    """Every operation by its line; a request without a body is a frame too, with the ids of the
    path."""
    played = play(Http().request(line, body).answer(answer))
    request, response = played.frames

    assert (request.kind, request.task_id, played.exchange.operation) == (
        FrameKind.REQUEST,
        task_id,
        operation,
    )
    assert (response.kind, response.event.name) == (FrameKind.RESPONSE, event)
    if line.startswith(("GET", "DELETE")):
        assert (request.payload, request.start, request.end > 0) == (b"", 0, True)


def test_query_parameters() -> None:
    """Version, tenant, context and generation may stand in the query (manual/protocol.md "REST
    paths")."""
    line = "GET /tasks/t1?A2A-Version=1.0&tenant=acme&currentGeneration=5&contextId=c7"
    played = play(Http().request(line).answer(task(generation="6")))

    assert (played.frames[0].generation, played.frames[0].context_id) == (5, "c7")
    assert (played.exchange.version_header, played.exchange.dialect) == ("1.0", "1.1")


def test_dialect_by_path() -> None:
    """`/v1` is the 0.3 form, unless the card has a 1.0 interface there, or the version header says
    so."""
    old = play(
        Http()
        .request("GET /v1/tasks/t1")
        .answer({"id": "t1", "status": {"state": "TASK_STATE_WORKING"}})
    )
    new = play(Http().request("GET /v1/tasks/t1", a2a_version="1.0").answer(task()))
    shared = SessionContext()
    shared.learn_card("agent:8000", _CARD)
    card = play(Http().request("GET /rest/v1/tasks/t1").answer(task()), shared)

    assert [each.exchange.dialect for each in (old, new, card)] == ["0.3", "1.0", "1.0"]


def test_a_card_of_0_3_outweighs_the_version() -> None:
    """A client that says 1.0 at a path of 0.3, to an agent that has nothing but 0.3, is wrong about
    itself."""
    shared = SessionContext()
    old = {
        "name": "a",
        "url": "http://agent:8000",
        "protocolVersion": "0.3.0",
        "preferredTransport": "HTTP+JSON",
    }
    shared.learn_card("agent:8000", old)
    played = play(
        Http().request("GET /v1/tasks/t1", a2a_version="1.0").answer({"id": "t1"}), shared
    )
    assert played.exchange.dialect == "0.3"


def test_tenant_in_the_path() -> None:
    """The segment between a card's interface path and the suffix is the tenant (Q-33)."""
    shared = SessionContext()
    shared.learn_card("agent:8000", _CARD)
    tenants = [
        shared.tenant_of("agent:8000", prefix)
        for prefix in ("/rest/v1/acme", "/rest/v1", "/elsewhere", "/rest/v1/a/b")
    ]

    assert tenants == ["acme", "", "", ""]
    assert SessionContext().tenant_of("agent:8000", "/acme") == ""


def test_old_bodies() -> None:
    """0.3 in protobuf JSON with `content` and `final`, in snake_case, and in the form of its prose
    (Q-27)."""
    camel = {
        "message": {
            "messageId": "m1",
            "role": "ROLE_USER",
            "content": [{"text": "x"}],
            "taskId": "t1",
        }
    }
    snake = {
        "request": {
            "message_id": "m2",
            "role": "ROLE_USER",
            "content": [{"text": "x"}],
            "task_id": "t2",
            "context_id": "c2",
        }
    }
    script = Http().request("POST /v1/message:stream", camel).stream()
    update = {
        "taskId": "t1",
        "contextId": "c1",
        "status": {"state": "TASK_STATE_CANCELLED"},
        "final": True,
    }
    script.event({"statusUpdate": update}).event(
        {"kind": "status-update", "taskId": "t1", "status": {"state": "canceled"}}
    ).done()
    script.request("POST /v1/message:send", snake).answer({"task": task()})
    played = play(script)
    first, second = played.frames[1:3]

    assert [
        (each.message_id, each.task_id, each.context_id)
        for each in played.frames
        if each.kind is FrameKind.REQUEST
    ] == [
        ("m1", "t1", ""),
        ("m2", "t2", "c2"),
    ]
    assert (first.state, first.final, second.state) == (5, True, 5)
    assert played.exchanges[0].dialect is Dialect.V0_3


@pytest.mark.parametrize(
    ("body", "content_type", "status_line", "error", "dialect"),
    [
        (
            {
                "error": {
                    "code": 404,
                    "status": "NOT_FOUND",
                    "message": "no",
                    "details": [{"reason": "TASK_NOT_FOUND"}],
                }
            },
            "application/json",
            "404 Not Found",
            "TASK_NOT_FOUND 404: no",
            "1.0",
        ),
        (
            {
                "type": "https://a2a-protocol.org/errors/task-not-found",
                "title": "T",
                "status": 404,
                "detail": "gone",
            },
            "application/problem+json",
            "404 Not Found",
            "TASK_NOT_FOUND 404: gone",
            "1.0",
        ),
        (
            {"message": "Task not found"},
            "application/json",
            "404 Not Found",
            "404: Task not found",
            "1.0",
        ),
        (b"<html>", "text/html", "502 Bad Gateway", "HTTP 502: Bad Gateway", "1.0"),
        (b"", "text/plain", "401 Unauthorized", "HTTP 401: Unauthorized", "1.0"),
    ],
)
def test_errors(body: Any, content_type: str, status_line: str, error: str, dialect: str) -> None:
    """Every form of error body."""
    played = play(
        Http().request("GET /tasks/t1").answer(body, status_line, content_type=content_type)
    )
    frame = played.frames[1]

    assert (frame.kind, frame.error_code, played.exchange.error) == (
        FrameKind.ERROR,
        int(status_line[:3]),
        error,
    )
    assert played.exchange.dialect == dialect


def test_error_in_mid_stream() -> None:
    """An `error` object in a stream is an error frame, tagged or not."""
    script = Http().request("POST /message:stream", ask()).stream().event(status())
    script.event(
        {"error": {"code": 500, "status": "INTERNAL", "message": "broke"}}, "event: error\r\n"
    ).chunk(b"data: nonsense\n\n").done()
    played = play(script)

    assert [each.kind.name for each in played.frames] == [
        "REQUEST",
        "EVENT",
        "ERROR",
        "UNDECODABLE",
        "END",
    ]
    assert (played.frames[2].error_code, played.frames[2].note, played.exchange.error) == (
        500,
        "event: error",
        "INTERNAL 500: broke",
    )


def test_subscribe_forms() -> None:
    """Subscribe is GET or POST without a body (Q-03)."""
    for line in ("GET /tasks/t%201:subscribe", "POST /tasks/t%201:subscribe"):
        played = play(Http().request(line).stream().event({"task": task()}).done())

        assert (played.exchange.operation, played.frames[0].task_id) == ("SubscribeToTask", "t 1")


def test_no_content() -> None:
    """204 is an answer without a body (Q-18)."""
    script = Http().request("DELETE /tasks/t1/pushNotificationConfigs/p")
    script.agent(b"HTTP/1.1 204 No Content\r\n\r\n")
    played = play(script)

    assert (played.frames[1].kind, played.frames[1].note, played.exchange.error) == (
        FrameKind.RESPONSE,
        "status 204",
        "",
    )


@pytest.mark.parametrize(
    ("query", "dialect"), [("", Dialect.V0_3), ("?A2A-Version=1.0", Dialect.V1_0)]
)
def test_an_answer_of_0_3_corrects_a_dialect_that_no_version_names(
    query: str, dialect: Dialect
) -> None:
    answer = {"task": {"id": "t1", "contextId": "c1", "status": {"state": "TASK_STATE_CANCELLED"}}}
    played = play(Http().request(f"POST /message:send{query}", ask("hello")).answer(answer))
    assert played.exchange.dialect is dialect
