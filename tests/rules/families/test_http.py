"""The HTTP layer: variants, near misses, both bindings; the examples of the rules are judged
elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.model.wire import ChunkKind, Direction
from a2a_proxy.rules.examples.conversation import (
    EventPause,
    Fields,
    RawBytes,
    fetch_card,
    grpc,
    http,
    json_text,
    rest,
    rest_error,
    rest_stream,
    rpc,
    rpc_error,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import card, chunk, send, snapshot, status, task
from a2a_proxy.rules.examples.script import MS, PeerStep, Script, ScriptConnection
from support_rules import findings

GET = {"id": "t1"}
A2A = "application/a2a+json"
REFUSED = json_text({"jsonrpc": "2.0", "id": None, "error": rpc_error(-32700)})
CALL = json_text({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": GET})
DONE = status("COMPLETED", second=1)
LISTED = {"tasks": [task()], "nextPageToken": "", "pageSize": 50, "totalSize": 1}
CONFIGS = "/tasks/t1/pushNotificationConfigs"
CONFIG = f"{CONFIGS}/p1"


def told(script: Script, number: str) -> list[str]:
    """How grave each finding of one rule is, with a question mark where it is not sure."""
    found = [each for each in findings(script) if each.rule == f"A2A-HTTP-{number}"]
    return [
        each.severity.name.lower() + ("" if each.confidence == "high" else "?") for each in found
    ]


def stream(*events: Any, **options: Any) -> Script:
    return rpc_stream("SendStreamingMessage", send(), *events, **options)


def kind(value: str | None) -> Fields:
    return {"Content-Type": value}


@pytest.mark.parametrize(
    ("number", "script", "expected"),
    [
        ("001", rpc("GetTask", GET, task(), headers=kind(None)), ["error"]),
        ("001", rpc("GetTask", GET, task(), headers=kind(A2A)), ["error"]),
        ("001", rpc("GetTask", GET, task(), headers=kind("Application/JSON;charset=utf-8")), []),
        ("001", rest("POST", "/message:send", send(), snapshot("COMPLETED")), []),
        ("001", grpc("GetTask", GET, task()), []),
        ("002", rpc("GetTask", GET, task(), reply_headers=kind("text/plain")), ["error"]),
        (
            "002",
            rpc("GetTask", GET, error=rpc_error(-32603), reply_headers=kind(None), status=500),
            ["error"],
        ),
        (
            "002",
            rpc("GetTask", GET, answer="<html>", reply_headers=kind("text/html"), status=502),
            [],
        ),
        (
            "002",
            rpc(
                "tasks/get",
                GET,
                task(),
                reply_headers=kind("application/json; charset=utf-8"),
                version="",
            ),
            [],
        ),
        (
            "008",
            rest("POST", "/message:send", send(), snapshot("COMPLETED"), media="application/json"),
            ["info"] * 2,
        ),
        (
            "008",
            rest("GET", "/tasks/t1", result=task(), reply_headers=kind("text/plain")),
            ["warning"],
        ),
        ("008", rest("GET", "/tasks/t1", result=task(), reply_headers=kind(None)), ["warning"]),
        (
            "008",
            rest("GET", "/tasks/t1", status=502, result="<html>", reply_headers=kind("text/html")),
            [],
        ),
        ("008", rest("DELETE", CONFIG, status=204), []),
        ("008", rest("GET", "/v1/tasks/t1", result=task(), media="text/json", version=""), []),
        ("008", rest_stream("POST", "/message:stream", send(), snapshot("COMPLETED")), []),
        ("009", rpc("GetTask", GET, answer={"detail": "no key"}, status=401), []),
        (
            "009",
            rpc("GetTask", GET, error=rpc_error(-32001, "TASK_NOT_FOUND"), status=404),
            ["info"],
        ),
    ],
)
def test_content_types_and_statuses(number: str, script: Script, expected: list[str]) -> None:
    assert told(script, number) == expected


def test_application_json_of_1_0_0_is_reported_once_per_peer() -> None:
    call = rest("POST", "/message:send", send(), snapshot("COMPLETED"), media="application/json")
    assert told(call + call, "008") == ["info", "info"]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (
            http("POST", "/", b'{"jsonrpc":"2.0","id":1,"method":"x\xff"}', answer=REFUSED),
            ["warning"],
        ),
        (rpc("GetTask", {"id": "\u00e9"}, task(id="\u00e9")), []),
        (
            rest("GET", "/tasks/t1", result=task(), reply_headers=kind(f"{A2A};charset=UTF-16")),
            ["warning"],
        ),
        (
            rest("GET", "/tasks/t1", result=task(), reply_headers=kind(f'{A2A}; charset="utf-8"')),
            [],
        ),
        (fetch_card(reply_headers=kind("application/json; charset=iso-8859-1")), ["warning"]),
        (
            rest(
                "GET",
                "/tasks/t1",
                status=404,
                result="nichts da",
                reply_headers=kind("text/html; charset=latin1"),
            ),
            [],
        ),
    ],
    ids=["latin1", "utf-8", "utf-16", "quoted", "card", "html"],
)
def test_character_sets(script: Script, expected: list[str]) -> None:
    assert told(script, "015") == expected


def test_bytes_that_are_no_utf_8() -> None:
    body = json_text(send("caf_")).encode().replace(b"caf_", b"caf\xe9")
    answer = json_text(snapshot("COMPLETED"))
    assert told(http("POST", "/message:send", body, answer=answer, media=A2A), "015") == ["warning"]
    (found,) = (
        each
        for each in findings(http("POST", "/message:send", body, answer=answer, media=A2A))
        if each.rule == "A2A-HTTP-015"
    )
    assert found.summary.endswith(
        " of the JSON text is not valid UTF-8, in `message.parts[0].text`"
    )
    said = json_text({"jsonrpc": "2.0", "id": 1, "result": status("WORKING")}).encode("utf-16-le")
    assert told(stream(snapshot(), RawBytes(b"data: \xff\xfe" + said + b"\n\n"), DONE), "015") == [
        "warning"
    ]


NDJSON = http(
    "POST",
    "/message:stream",
    json_text(send()),
    answer=json_text(snapshot()) + "\n" + json_text(DONE) + "\n",
    reply_headers=kind("application/x-ndjson"),
    headers={"Accept": "text/event-stream"},
    media=A2A,
)
PLAIN = fetch_card(card(capabilities={"streaming": False}))


@pytest.mark.parametrize(
    ("number", "script", "expected"),
    [
        ("003", NDJSON, ["error"]),
        ("003", stream(snapshot(), DONE, reply_headers=kind(None)), ["error"]),
        ("003", rpc("SendStreamingMessage", send(), error=rpc_error(-32004)), []),
        (
            "003",
            rpc(
                "SendStreamingMessage",
                send(),
                answer="<html>",
                status=502,
                reply_headers=kind("text/html"),
            ),
            [],
        ),
        (
            "003",
            stream(snapshot(), DONE, reply_headers=kind("text/event-stream; charset=utf-8")),
            [],
        ),
        ("004", rpc("SendStreamingMessage", send(), snapshot("COMPLETED")), ["warning?"]),
        ("004", PLAIN + rpc("SendStreamingMessage", send(), snapshot("COMPLETED")), []),
        (
            "004",
            fetch_card() + rest("POST", "/message:stream", send(), snapshot("COMPLETED")),
            ["warning"],
        ),
        ("004", fetch_card() + rpc("SendStreamingMessage", send(), error=rpc_error(-32004)), []),
        ("004", fetch_card() + rest("POST", "/message:stream", send(), {"error": {}}), []),
        ("005", rest_stream("GET", "/tasks/t1", None, snapshot("COMPLETED")), ["error"]),
        ("005", rest_stream("GET", "/tasks/t1:subscribe", None, snapshot("COMPLETED")), []),
        ("005", rpc_stream("message/send", send(), task(), version=""), ["error"]),
        ("006", stream(snapshot("COMPLETED"), headers={"Accept": None}), ["info"]),
        (
            "006",
            stream(snapshot("COMPLETED"), headers={"Accept": "text/event-stream;q=0, text/plain"}),
            ["warning"],
        ),
        (
            "006",
            stream(
                snapshot("COMPLETED"),
                headers={"Accept": "application/json, text/event-stream;q=0.5"},
            ),
            [],
        ),
        ("006", rest_stream("POST", "/message:stream", send(), headers={"Accept": "text/*"}), []),
        ("006", rpc("GetTask", GET, task(), headers={"Accept": "application/json"}), []),
    ],
)
def test_streams(number: str, script: Script, expected: list[str]) -> None:
    assert told(script, number) == expected


def test_the_vendor_dialect_needs_accept() -> None:
    params = {
        "message": {"role": "user", "parts": [{"type": "text", "text": "x"}], "messageId": "m1"}
    }
    said = {"id": "t1", "status": {"state": "completed"}, "final": True}
    script = rpc_stream("message/stream", params, said, version="", headers={"Accept": None})
    assert told(script, "006") == ["error"]


FAST = (status("WORKING", second=1), status("WORKING", second=3), status("COMPLETED", second=5))


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (stream(snapshot(), *FAST, seconds=5), ["warning?"]),
        (stream(snapshot(), EventPause(5), *FAST), ["warning?"]),
        (stream(snapshot(), *FAST), []),
        (
            stream(snapshot(), FAST[0], EventPause(2), FAST[1], EventPause(2), FAST[2], seconds=1),
            [],
        ),
        (rpc_stream("SubscribeToTask", GET, snapshot(), *FAST, seconds=5), []),
        (
            rest_stream("POST", "/message:stream", send(), snapshot(), *FAST, seconds=5),
            ["warning?"],
        ),
        (stream(snapshot(), chunk(), DONE, reply_headers={"Content-Encoding": "identity"}), []),
        (rpc("GetTask", GET, task(), reply_headers={"Content-Encoding": "identity"}), []),
    ],
    ids=["burst", "after the task", "at once", "slow", "subscriber", "rest", "identity", "unary"],
)
def test_buffered_streams_are_flagged(script: Script, expected: list[str]) -> None:
    assert told(script, "019") == expected


def test_compressed_streams_are_flagged() -> None:
    script = stream(
        RawBytes(b"\x1f\x8b\x08\x00"), finish="cut", reply_headers={"Content-Encoding": "gzip"}
    )
    assert told(script, "019") == ["warning"]


@pytest.mark.parametrize(
    ("method", "target", "expected"),
    [
        ("GET", "/message:stream", ["error"]),
        ("PUT", "/v1/message:send", ["error"]),
        ("GET", "/tasks/t1:cancel", ["error"]),
        ("GET", "/tasks/t1:cancelled", []),
        ("DELETE", "/tasks/t1:subscribe", ["error"]),
        ("POST", CONFIG, ["error"]),
        ("POST", "/acme/extendedAgentCard", ["error"]),
        ("OPTIONS", "/message:send", []),
        ("HEAD", "/tasks/t1/pushNotificationConfigs", []),
        ("POST", "/tasks", []),
        ("DELETE", "/tasks/t1", []),
        ("GET", "/", []),
        ("GET", "/orders:cancel", []),
    ],
)
def test_methods(method: str, target: str, expected: list[str]) -> None:
    assert told(http(method, target, status=405), "007") == expected


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_subscriptions_may_be_got_or_posted(method: str) -> None:
    assert not told(
        rest_stream(method, "/tasks/t1:subscribe", None, snapshot("WORKING"), DONE), "007"
    )


NO_TASK = rest_error(404, "NOT_FOUND", "TASK_NOT_FOUND")


@pytest.mark.parametrize(
    ("number", "script", "expected"),
    [
        (
            "010",
            rest("POST", "/message:send", send(), snapshot("COMPLETED"), status=500),
            ["error"],
        ),
        ("010", rest("GET", "/tasks/t1", result=task(), status=404), ["error"]),
        ("010", rest("GET", "/tasks", result=LISTED, status=400), ["error"]),
        ("010", rest("GET", "/tasks/t1", result={"message": "no", "status": 404}, status=404), []),
        ("010", rest("GET", "/tasks/t1", result={"detail": "no"}, status=401), []),
        ("010", rest_stream("POST", "/message:stream", send(), snapshot(), NO_TASK), []),
        ("010", rest("GET", "/v1/tasks/t1", result={"error": "x"}, version=""), []),
        ("013", rest("DELETE", CONFIG, {"id": "p1"}, {}), ["warning"]),
        ("013", rest("GET", "/v1/tasks/t1", {}, task(), version=""), ["warning"]),
        ("013", rest("POST", "/tasks/t1:cancel", {}, task("CANCELED")), []),
        ("014", rest("POST", "/tasks/t1:cancel", {"id": ""}, task("CANCELED")), []),
        ("014", rest("POST", "/tasks/t1:cancel", {}, task("CANCELED")), []),
        ("014", rest("POST", "/tasks/a%20b:cancel", {"id": "a b"}, task("CANCELED", id="a b")), []),
        (
            "014",
            rest("POST", CONFIGS, {"taskId": "t2", "url": "https://h/"}, {}),
            ["warning"],
        ),
        ("014", rest("POST", CONFIGS, {"id": "p1", "url": "https://h/"}, {}), []),
        (
            "014",
            fetch_card() + rest("POST", "/acme/message:send", send() | {"tenant": "other"}),
            ["warning"],
        ),
        ("014", fetch_card() + rest("POST", "/acme/message:send", send() | {"tenant": "acme"}), []),
        (
            "014",
            rest("POST", "/v1/tasks/t1:cancel", {"id": "t2"}, task("CANCELED"), version=""),
            [],
        ),
        (
            "020",
            rest("POST", "/message:send/message:send", send(), NO_TASK, status=404),
            ["warning"],
        ),
        ("020", rest("GET", "/message:send/tasks/t1", result=NO_TASK, status=404), ["warning"]),
        (
            "020",
            rest("POST", "/v1/message:stream", CALL, NO_TASK, status=404, version=""),
            ["warning"],
        ),
        ("020", rest("POST", "/v1/message:send", send(), snapshot("COMPLETED")), []),
        (
            "020",
            rest("POST", "/message:send", send(metadata={"jsonrpc": 1}), snapshot("COMPLETED")),
            [],
        ),
    ],
)
def test_rest(number: str, script: Script, expected: list[str]) -> None:
    assert told(script, number) == expected


@pytest.mark.parametrize(
    ("number", "query", "expected"),
    [
        ("011", "context_id=c1&history_length=3", ["error", "error"]),
        ("011", "contextId=c1&trace_id=7", []),
        ("012", "status=working", ["warning"]),
        (
            "012",
            "status=TASK_STATE_AUTH_REQUIRED&pageSize=7&includeArtifacts=false&pageToken=a%7Bb",
            [],
        ),
        ("012", "status=&pageSize=", []),
        ("012", "pageSize=ten", ["warning"]),
        ("012", "includeArtifacts=True", ["warning"]),
        ("012", "statusTimestampAfter=1767225600", ["warning"]),
        ("012", "statusTimestampAfter=2026-01-01T00:00:00%2B02:00", ["warning"]),
        ("012", "statusTimestampAfter=2026-01-01T00:00:00%2B00:00", []),
        ("012", "filter[state]=x", ["warning"]),
        ("012", "filter=%7B%22state%22%3A1%7D", ["warning"]),
    ],
)
def test_queries(number: str, query: str, expected: list[str]) -> None:
    assert told(rest("GET", f"/tasks?{query}", result=LISTED), number) == expected


def test_queries_of_0_3_are_judged_by_0_3() -> None:
    assert not told(rest("GET", "/v1/tasks?page_size=5", result=LISTED, version=""), "011")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (
            stream(
                snapshot(),
                DONE,
                finish="cut",
                reply_headers={"Transfer-Encoding": None, "Content-Length": "900"},
            ),
            ["warning"],
        ),
        (stream(snapshot(), finish="cut"), []),
        (stream(snapshot(), finish="leave"), []),
        (
            stream(
                snapshot(), DONE, reply_headers={"Transfer-Encoding": None, "Connection": "close"}
            ),
            [],
        ),
        (http("POST", "/message:send", json_text(send()), answer=None, media=A2A), []),
    ],
    ids=[
        "length",
        "stream cut off before the end of its task",
        "client leaves",
        "by the end of the connection",
        "never answered",
    ],
)
def test_truncated_bodies_are_flagged(script: Script, expected: list[str]) -> None:
    assert told(script, "016") == expected


BEARER: Fields = {"Authorization": "Bearer abcdefghijklmnop"}


@pytest.mark.parametrize(
    ("place", "asked", "expected"),
    [
        ("/a2a/", BEARER, ["warning"]),
        ("http://localhost:8000/a2a/", {"X-API-Key": "abcdefghijklmnop"}, ["warning"]),
        ("https://login.example.org/", BEARER, ["error"]),
        ("//other.example.org/", BEARER, ["error"]),
        ("/a2a/", {}, []),
    ],
)
def test_redirects(place: str, asked: Fields, expected: list[str]) -> None:
    call = rpc(
        "GetTask", GET, answer="", status=307, headers=asked, reply_headers={"Location": place}
    )
    assert told(call, "017") == expected


def test_a_redirect_to_plain_text_is_an_error() -> None:
    place: Fields = {"Location": "http://agent.example.org/"}
    options: dict[str, Any] = {"upstream": "https://agent.example.org", "host": "agent.example.org"}
    call = rest("GET", "/tasks/t1", status=308, headers=BEARER, reply_headers=place, **options)
    assert told(call, "017") == ["error"]


def test_the_query_of_a_redirect_is_not_shown() -> None:
    place: Fields = {"Location": "https://login.example.org/in?code=abcdefghijklmnop"}
    call = rpc("GetTask", GET, answer="", status=302, headers=BEARER, reply_headers=place)
    (found,) = [each for each in findings(call) if each.rule == "A2A-HTTP-017"]
    assert "login.example.org/in" in found.summary
    assert "abcdefghij" not in found.summary + str(found.evidence)


def test_a_truncated_request_body_is_flagged() -> None:
    head = (
        b"POST /message:send HTTP/1.1\r\nHost: localhost:8000\r\n"
        b"Content-Length: 500\r\nA2A-Version: 1.0\r\n\r\n"
    )
    steps = (
        PeerStep(MS, Direction.TO_AGENT, head + b'{"message":'),
        PeerStep(2 * MS, Direction.TO_AGENT, kind=ChunkKind.EOF),
        PeerStep(3 * MS, Direction.TO_CLIENT, kind=ChunkKind.EOF),
    )
    assert told(Script.of(lambda: ScriptConnection(steps, 4 * MS)), "016") == ["warning"]


def test_an_unexpected_stream_is_reported_once() -> None:
    """Its first event is no answer that came too early."""
    script = rpc_stream(
        "SendMessage", send(), snapshot(), DONE, headers={"Accept": "application/json"}
    )
    assert {each.rule for each in findings(script)} == {"A2A-HTTP-005"}


PAGE: dict[str, Any] = {"answer": "<html><body>Hello</body></html>", "media": "text/html"}
JSON_HEADERS: Fields = {"Content-Type": "application/json"}


def not_a2a(script: Script) -> list[str]:
    """All findings with their severity, except those about the challenge of a 401."""
    found = [each for each in findings(script) if each.rule != "A2A-AUTH-003"]
    return [f"{each.rule.removeprefix('A2A-')} {each.severity.name.lower()}" for each in found]


def rpc_page(method: str = "GetTask", params: Any = None, **options: Any) -> Script:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or GET}
    headers = JSON_HEADERS | options.pop("headers", {"Accept": "text/event-stream"})
    return http("POST", "/", json_text(request), headers=headers, **PAGE | options)


def rest_page(line: str = "POST /tasks/t1:cancel", body: str = "", **options: Any) -> Script:
    method, _, target = line.partition(" ")
    return http(
        method, target, body, **PAGE | {"headers": {"Accept": "text/event-stream, */*"}} | options
    )


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (rpc_page(), ["HTTP-002 error"]),
        (rpc_page("tasks/get", version=""), ["HTTP-002 error"]),
        (rpc_page(status=500), ["HTTP-002 warning"]),
        (
            rpc_page(status=500, answer="Internal Server Error", media="text/plain"),
            ["HTTP-002 warning"],
        ),
        (rpc_page(status=404), []),
        (rpc_page(status=401), []),
        (rpc_page(status=307), []),
        (rpc_page("SendStreamingMessage", send()), ["HTTP-003 error"]),
        (rpc_page("SendStreamingMessage", send(), status=500), ["HTTP-002 warning"]),
        (rpc_page(reply_headers=JSON_HEADERS), ["RPC-001 error"]),
        (rpc_page("tools/list"), []),
        (rpc_page("tasks/get", version="", headers={"MCP-Protocol-Version": "2025-11-25"}), []),
        (rest_page(), ["HTTP-008 error"]),
        (rest_page(status=500), ["HTTP-008 warning"]),
        (rest_page("POST /v1/tasks/t1:cancel", version=""), ["HTTP-008 error"]),
        (rest_page(status=403), []),
        (rest_page(status=503), []),
        (rest_page("GET /tasks"), ["HTTP-008 error"]),
        (rest_page("GET /tasks", version=""), []),
        (fetch_card() + rest_page("GET /tasks/t1", version=""), ["HTTP-008 error"]),
        (rest_page("GET /about", version=""), []),
        (rest_page(f"DELETE {CONFIG}", answer="", status=204), []),
        (
            grpc("GetTask", GET, status=None, reply_headers={"content-type": "text/html"}),
            ["GRPC-001 error"],
        ),
    ],
)
def test_an_answer_that_is_not_a2a_is_one_finding(script: Script, expected: list[str]) -> None:
    found = [each for each in not_a2a(script) if not each.endswith("info")]
    assert [each for each in found if not each.startswith(("VER", "CARD"))] == expected
