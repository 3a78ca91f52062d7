"""The JSON-RPC envelope: variants, near misses, old dialects; the examples of the rules are judged
elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.model.values import Finding
from a2a_proxy.rules.examples.conversation import (
    RawBytes,
    fetch_card,
    http,
    json_text,
    rest,
    rpc,
    rpc_error,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import (
    agent_reply,
    card,
    chunk,
    reply,
    send,
    snapshot,
    status,
    task,
)
from a2a_proxy.rules.examples.script import Script
from support_rules import endings, findings

GET = {"id": "t1"}
OK = {"jsonrpc": "2.0", "id": 1, "result": task()}
OLD_TASK = {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "completed"}}
OLD_SEND = {
    "message": {
        "kind": "message",
        "messageId": "m1",
        "role": "user",
        "parts": [{"kind": "text", "text": "hello"}],
    }
}


def of(script: Script, ident: str) -> list[Finding]:
    """What one rule says."""
    return [each for each in findings(script) if each.rule == f"A2A-{ident}"]


def told(script: Script, ident: str) -> list[str]:
    """How grave each of its findings is."""
    return [each.severity.name.lower() for each in of(script, ident)]


def post(body: str | bytes, answer: Any = None, **options: Any) -> Script:
    """A POST of bytes; the answer is a parse error unless told otherwise."""
    refused = {"jsonrpc": "2.0", "id": None, "error": rpc_error(-32700, text="parse error")}
    text = answer if isinstance(answer, str) else json_text(refused if answer is None else answer)
    return http("POST", "/", body, answer=text, **options)


def get(answer: Any, **options: Any) -> Script:
    """A GetTask with this response."""
    return rpc("GetTask", GET, answer=answer, **options)


def stream(*events: Any, **options: Any) -> Script:
    return rpc_stream("SendStreamingMessage", send(), *events, **options)


def event(data: str) -> RawBytes:
    return RawBytes(f"data: {data}\n\n".encode())


# --- 001: JSON


@pytest.mark.parametrize(
    "script",
    [
        post('{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t1"}} x'),
        post(b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"\xff"}}'),
        post('{"jsonrpc":"2.0","id":NaN,"method":"GetTask"}'),
        post("{'jsonrpc': '2.0'}", headers={"Content-Type": "text/plain"}),
        post("", headers={"Content-Length": "0"}),
        get('{"jsonrpc":"2.0","id":1,"result":{"id":"t1"}'),
    ],
    ids=["rest", "utf-8", "nan", "text/plain", "empty", "response"],
)
def test_invalid_json_is_flagged(script: Script) -> None:
    assert told(script, "RPC-001") == ["error"]


def test_the_member_that_is_not_utf8_is_named() -> None:
    script = post(b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"\xff"}}')
    assert [each.summary for each in of(script, "RPC-001")] == [
        "the request is not valid UTF-8 at byte 59, in `params.id`"
    ]


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ('{"jsonrpc":"2.0","id":NaN,"method":"GetTask"}', 22),
        ('{"jsonrpc":"2.0","method":"a \\"NaN","id":-Infinity}', 41),
        ('{"a":"é","id":Infinity', 14),
        ('{"a":}', 5),
    ],
)
def test_the_position_of_the_first_error_is_named(body: str, place: int) -> None:
    (found,) = of(post(body), "RPC-001")
    assert found.summary.endswith(f"from character {place} on")


@pytest.mark.parametrize(
    "script",
    [
        post(
            '{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t1","metadata":{"big":'
            + "9" * 5000
            + "}}}",
            OK,
        ),
        post('{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"\\ud800"}}', OK),
        post(
            '{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t1",'
            '"metadata":{"big":1e999}}}',
            OK,
        ),
        get("<html>bad gateway</html>", status=502, reply_headers={"Content-Type": "text/html"}),
        get("<html>hello</html>", reply_headers={"Content-Type": "text/html"}),
        get("upstream down", status=503),
        stream(snapshot(), RawBytes(b'data: {"jsonrpc":"2.0","id":1,"res'), finish="cut"),
    ],
    ids=[
        "endless number",
        "surrogate",
        "huge number",
        "gateway",
        "html",
        "gateway as json",
        "cut event",
    ],
)
def test_valid_and_incomplete_json_is_not_flagged(script: Script) -> None:
    assert not told(script, "RPC-001")


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("\ufeff{}", []),
        ("\ufeffnull", []),
        ("\ufeff", []),
        ("\r\n", []),
        ("\ufeff{", ["error"]),
        ("OK", ["error"]),
    ],
)
def test_the_answer_to_a_rest_delete_may_be_empty(body: str, found: list[str]) -> None:
    """Also behind a byte order mark, which no client reads; over JSON-RPC an envelope is due."""
    call = rest("DELETE", "/tasks/t1/pushNotificationConfigs/p1", None, body)
    assert told(call, "RPC-001") == found
    assert found or not endings(call)
    params = {"taskId": "t1", "id": "p1"}
    envelope = rpc("DeleteTaskPushNotificationConfig", params, answer=body)
    assert told(envelope, "RPC-001") or endings(envelope)


@pytest.mark.parametrize("data", ["[DONE]", "", '{"jsonrpc":"2.0","id":1,"result":'])
def test_an_invalid_json_event_is_reported_once(data: str) -> None:
    script = stream(snapshot(), event(data), status("COMPLETED", second=1))
    assert [each.rule for each in findings(script)] == ["A2A-SSE-002"]


# --- 002, 008, 016: members


@pytest.mark.parametrize(
    ("ident", "script", "expected"),
    [
        ("RPC-002", get({"id": 1, "result": task()}), ["error"]),
        ("RPC-002", get({"jsonrpc": 2.0, "id": 1, "result": task()}), ["error"]),
        ("RPC-002", get(task()), ["error"]),
        ("RPC-002", stream(snapshot(), event(json_text(status("COMPLETED", second=1)))), []),
        ("RPC-002", get({"detail": "no key"}, status=401), []),
        ("RPC-002", get({"message": "upstream"}, status=503), []),
        (
            "RPC-002",
            get({"error": "Invalid request body", "issues": []}, status=400),
            ["error"],
        ),
        (
            "RPC-002",
            get({"error": "Internal Server Error"}, status=500),
            ["error"],
        ),
        (
            "RPC-002",
            get({"jsonrpc": "1.0", "id": 1, "error": rpc_error(-32603)}, status=500),
            ["error"],
        ),
        ("RPC-008", get(OK | {"error": rpc_error(-32603)}), ["error"]),
        ("RPC-008", get(OK | {"error": None}), ["warning"]),
        (
            "RPC-008",
            get({"jsonrpc": "2.0", "id": 1, "result": None, "error": rpc_error(-32603)}),
            ["warning"],
        ),
        ("RPC-008", get({"jsonrpc": "2.0", "id": 1, "error": None}), ["error"]),
        (
            "RPC-008",
            rpc("DeleteTaskPushNotificationConfig", {"taskId": "t1", "id": "p1"}, None),
            [],
        ),
        ("RPC-008", stream(snapshot(), event('{"jsonrpc":"2.0","id":1}')), ["error"]),
    ],
)
def test_members_of_the_envelope(ident: str, script: Script, expected: list[str]) -> None:
    assert told(script, ident) == expected


# --- 003: batches


def test_a_batch_is_reported_once_without_id_findings() -> None:
    calls = [
        {"jsonrpc": "2.0", "id": number, "method": "GetTask", "params": GET} for number in (1, 2, 3)
    ]
    answers = [OK | {"id": number} for number in (3, 1, 2)]
    script = post(json_text(calls), answers)
    assert told(script, "RPC-003") == ["warning"]
    assert not told(script, "RPC-007")


def test_an_array_in_response_to_one_call_is_flagged() -> None:
    assert told(get([OK]), "RPC-003") == ["warning"]


# --- 004, 005, 006, 012: requests


@pytest.mark.parametrize(
    ("ident", "script", "expected"),
    [
        ("RPC-004", post('{"jsonrpc":"2.0","id":1,"method":7}'), ["error"]),
        ("RPC-004", post(json_text({"message": {}})), ["error"]),
        ("RPC-004", post(json_text({"jsonrpc": "2.0", "id": 1, "method": "odd"})), []),
        (
            "RPC-005",
            post(
                json_text({"jsonrpc": "2.0", "method": "notifications/initialized"}), "", status=202
            ),
            [],
        ),
        (
            "RPC-006",
            post(json_text({"jsonrpc": "2.0", "id": None, "method": "GetTask", "params": GET})),
            ["warning"],
        ),
        ("RPC-006", rpc("GetTask", GET, task(), id=1.5), ["error"]),
        ("RPC-006", rpc("GetTask", GET, task(), id=True), ["error"]),
        ("RPC-006", rpc("GetTask", GET, task(), id=2.0), []),
        ("RPC-006", rpc("GetTask", GET, task(), id=""), []),
        ("RPC-012", rpc("GetTask", None, error=rpc_error(-32602)), ["error"]),
        ("RPC-012", rpc("message/send", "hello", error=rpc_error(-32602)), ["error"]),
        (
            "RPC-012",
            rpc(
                "ListTasks",
                None,
                {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0},
            ),
            [],
        ),
        ("RPC-012", rpc("agent/getAuthenticatedExtendedCard", None, error=rpc_error(-32007)), []),
        ("RPC-012", rpc("tools/list", [1], {}), []),
    ],
)
def test_requests(ident: str, script: Script, expected: list[str]) -> None:
    assert told(script, ident) == expected


# --- 007, 013, 017: ids


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (
            stream(
                snapshot(),
                event(json_text(OK | {"id": 2, "result": status("COMPLETED", second=1)})),
            ),
            ["error"],
        ),
        (stream(snapshot(), {"error": rpc_error(-32603)}), []),
        (get({"jsonrpc": "2.0", "result": task()}), ["error"]),
        (get(OK | {"id": 1.0}), []),
        (
            rpc(
                "GetTask",
                GET,
                id="\u00e9",
                answer='{"jsonrpc":"2.0","id":"\\u00e9","result":' + json_text(task()) + "}",
            ),
            [],
        ),
        (get({"jsonrpc": "2.0", "id": None, "error": rpc_error(-32600)}), []),
        (get({"jsonrpc": "2.0", "id": None, "error": rpc_error(-32601)}), ["error"]),
        (get({"jsonrpc": "2.0", "id": None, "error": rpc_error(-32000)}, status=429), []),
        (get({"error": {"code": 401, "message": "no"}}, status=401), []),
        (post("{"), []),
    ],
    ids=[
        "event",
        "error",
        "none",
        "1.0",
        "escaped",
        "invalid request",
        "null",
        "gateway",
        "401",
        "unreadable",
    ],
)
def test_ids_of_responses(script: Script, expected: list[str]) -> None:
    assert told(script, "RPC-007") == expected


def test_the_finding_is_at_the_frame_with_the_wrong_id() -> None:
    wrong = event(json_text(OK | {"id": "x", "result": status("COMPLETED", second=1)}))
    (found,) = of(stream(snapshot(), status("WORKING", second=1), wrong), "RPC-007")
    assert found.seq == 3
    assert found.evidence["path"] == "id"


def test_an_error_may_answer_a_request_without_id_only_as_information() -> None:
    script = post(json_text({"jsonrpc": "2.0", "method": "GetTask", "params": GET}))
    assert told(script, "RPC-017") == ["info"]
    assert not told(script, "RPC-007")
    assert not told(script, "RPC-013")


# --- 009, 010, 011, 015: errors


@pytest.mark.parametrize(
    ("ident", "script", "expected"),
    [
        ("RPC-009", get({"jsonrpc": "2.0", "id": 1, "error": {"message": "x"}}), ["error"]),
        (
            "RPC-009",
            get({"jsonrpc": "2.0", "id": 1, "error": {"code": "-32603", "message": None}}),
            ["error", "error"],
        ),
        (
            "RPC-009",
            stream(snapshot(), event('{"jsonrpc":"2.0","id":1,"error":{"code":-32603}}')),
            ["error"],
        ),
        ("RPC-009", get({"error": "Unauthorized", "message": "no"}, status=401), []),
        (
            "RPC-010",
            rpc("GetTask", GET, error=rpc_error(-32603) | {"data": [{"reason": "X"}]}),
            ["error"],
        ),
        ("RPC-010", rpc("GetTask", GET, error=rpc_error(-32603) | {"data": None}), []),
        (
            "RPC-010",
            rpc("tasks/get", GET, error=rpc_error(-32001) | {"data": {"taskId": "t1"}}, version=""),
            [],
        ),
        ("RPC-015", rpc("GetTask", GET, error=rpc_error(-32000)), ["info"]),
        ("RPC-015", rpc("GetTask", GET, error=rpc_error(-32010, "TASK_GENERATION_MISMATCH")), []),
        ("RPC-015", rpc("tasks/sendSubscribe", GET, error=rpc_error(-32011), version=""), []),
        ("RPC-015", get({"detail": "later"}, status=503), []),
    ],
)
def test_errors(ident: str, script: Script, expected: list[str]) -> None:
    assert told(script, ident) == expected


SPOKEN = rpc("SendMessage", send(), snapshot("COMPLETED"))


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (SPOKEN + rpc("tasks/foo", GET, error=rpc_error(-32602), id=2), ["warning"]),
        (SPOKEN + rpc("tasks/foo", GET, error=rpc_error(-32001), id=2), []),
        (rpc("tools/list", {}, {"tools": []}), []),
        (SPOKEN + rpc("tools/list", {}, {"tools": []}, id=2, target="/mcp"), []),
        (
            SPOKEN + rpc("x/y", {}, {}, id=2, headers={"A2A-Extensions": "https://example.org/x"}),
            [],
        ),
        (
            fetch_card(card(capabilities={"extensions": [{"uri": "https://example.org/x"}]}))
            + SPOKEN
            + rpc("x/y", {}, {}, id=2),
            [],
        ),
    ],
    ids=["params", "task", "other service", "other path", "activated", "declared"],
)
def test_unknown_methods(script: Script, expected: list[str]) -> None:
    assert told(script, "RPC-011") == expected


def test_an_unknown_method_is_reported_once() -> None:
    """Per method and kind of answer, however many calls there are."""
    script = SPOKEN
    for number in range(200):
        script = script + rpc("x/y", {}, {}, id=number)
    script = script + rpc("x/y", {}, error=rpc_error(-32603), id=900) + rpc("x/z", {}, {}, id=901)
    assert told(script, "RPC-011") == ["error", "warning", "error"]


# --- 014: results

PUSH = {"taskId": "t1", "id": "p1", "url": "https://example.org/hook"}
OLD_PUSH = {"taskId": "t1", "pushNotificationConfig": {"url": "https://example.org/hook"}}
LIST = "ListTaskPushNotificationConfigs"


@pytest.mark.parametrize(
    ("method", "params", "result", "fits"),
    [
        ("SendMessage", send(), agent_reply(), True),
        ("SendMessage", send(), None, False),
        ("GetTask", GET, snapshot("COMPLETED"), False),
        ("CancelTask", GET, [task("CANCELED")], False),
        ("ListTasks", {}, [task()], False),
        ("ListTasks", {}, {}, True),
        (LIST, {"taskId": "t1"}, [PUSH], False),
        (LIST, {"taskId": "t1"}, {"configs": [PUSH]}, True),
        ("CreateTaskPushNotificationConfig", PUSH, PUSH, True),
        ("CreateTaskPushNotificationConfig", PUSH, OLD_PUSH, False),
        ("DeleteTaskPushNotificationConfig", {"taskId": "t1", "id": "p1"}, {}, True),
        ("DeleteTaskPushNotificationConfig", {"taskId": "t1", "id": "p1"}, True, False),
        ("GetExtendedAgentCard", None, card(), True),
        ("GetExtendedAgentCard", None, {"card": card()}, False),
        ("message/send", OLD_SEND, OLD_TASK, True),
        ("message/send", OLD_SEND, {"ok": True}, False),
        ("tasks/get", GET, OLD_TASK, True),
        ("tasks/get", GET, None, False),
        ("tasks/pushNotificationConfig/set", OLD_PUSH, OLD_PUSH, True),
        ("tasks/pushNotificationConfig/set", OLD_PUSH, PUSH, False),
        ("tasks/pushNotificationConfig/list", GET, [OLD_PUSH], True),
        ("tasks/pushNotificationConfig/list", GET, [], True),
        ("tasks/pushNotificationConfig/list", GET, None, False),
        ("tasks/pushNotificationConfig/list", GET, {"configs": []}, False),
        ("tasks/pushNotificationConfig/delete", GET, None, True),
        (
            "tasks/send",
            {"id": "t1", "message": {}},
            {"id": "t1", "status": {"state": "completed"}},
            True,
        ),
    ],
)
def test_results(method: str, params: Any, result: Any, fits: bool) -> None:
    version = "" if "/" in method else "1.0"
    assert told(rpc(method, params, result, version=version), "RPC-014") == (
        [] if fits else ["error"]
    )


def test_events_have_wrappers_since_1_0() -> None:
    assert not told(stream(snapshot(), chunk(), {"error": rpc_error(-32603)}), "RPC-014")
    assert not told(stream(snapshot(), {"futureUpdate": {"taskId": "t1"}}), "RPC-014")


# --- 018: names twice


def test_duplicate_names_are_reported_with_their_path() -> None:
    inner = json_text(task()).replace('"contextId":"c1"', '"contextId":"c1","contextId":"c1"')
    (found,) = of(get(f'{{"jsonrpc":"2.0","id":1,"result":{inner}}}'), "RPC-018")
    assert found.evidence["path"] == "result.contextId"


def test_equal_names_in_different_objects_are_not_flagged() -> None:
    assert not told(stream(snapshot(), status("COMPLETED", second=1, message=reply())), "RPC-018")


@pytest.mark.parametrize(
    "script",
    [
        http(
            "POST", "/tasks/t1:cancel", '{"id":"t1","id":"t1"}', answer=json_text(task("CANCELED"))
        ),
        fetch_card(json_text(card()).replace('"version":', '"version":"0.9","version":')),
        post(
            '{"jsonrpc":"2.0","id":1,"method":"GetTask",'
            '"params":{"id":"t1","metadata":{"a":1,"a":1}}}',
            OK,
        ),
    ],
    ids=["rest", "card", "metadata"],
)
def test_duplicate_names_are_flagged_in_all_json(script: Script) -> None:
    assert told(script, "RPC-018") == ["warning"]


# --- secrets

SECRET = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.mark.parametrize(
    ("ident", "script"),
    [
        ("RPC-014", rpc("GetTask", GET, snapshot("COMPLETED", metadata={"password": SECRET}))),
        ("RPC-010", rpc("GetTask", GET, error=rpc_error(-32602) | {"data": {"password": SECRET}})),
        ("RPC-001", post(f'{{"jsonrpc":"2.0","id":1,"params":{{"password":"{SECRET}"')),
    ],
)
def test_payloads_with_secrets_are_judged_without_showing_them(ident: str, script: Script) -> None:
    (found,) = of(script, ident)
    assert "abcdefghij" not in found.summary + str(found.evidence)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (get(""), ["error"]),
        (get("", status=204), []),
        (get("", status=502), []),
        (http("POST", "/", json_text({"jsonrpc": "2.0", "method": "GetTask", "params": GET})), []),
        (http("GET", "/tasks/t1", answer='{"id":'), ["error"]),
        (
            http("GET", "/tasks/t1", answer="<html>", reply_headers={"Content-Type": "text/html"}),
            [],
        ),
        (http("GET", "/tasks/t1", answer="gone", status=404), []),
        (http("POST", "/message:send", '{"message":', answer="{}"), ["error"]),
        (http("DELETE", "/tasks/t1/pushNotificationConfigs/p1", status=204), []),
    ],
)
def test_bodies_that_are_empty_or_of_rest(script: Script, expected: list[str]) -> None:
    assert told(script, "RPC-001") == expected


@pytest.mark.parametrize("answer", ["7", '"ok"', "true", "1.5"])
def test_a_scalar_response_is_flagged(answer: str) -> None:
    assert told(get(answer), "RPC-008") == ["error"]
    assert not told(get(answer, status=500), "RPC-008")


@pytest.mark.parametrize("result", [{"bogus": 1}, {}, status("WORKING")["statusUpdate"]])
def test_a_result_without_its_wrapper_is_reported_once(result: Any) -> None:
    for script in (
        rpc("SendMessage", send(), result),
        stream(snapshot(), result, status("COMPLETED", second=1)),
    ):
        assert [each.rule for each in findings(script)] == ["A2A-SCH-004"]


TASK_SHAPE = snapshot("COMPLETED")
READ = rpc("tasks/get", {"id": "t1"}, error=rpc_error(-32001), version="")
UNKNOWN = rpc("Foo", {}, {"x": 1}, version="")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (UNKNOWN, []),
        (UNKNOWN + READ, ["#1/1 high"]),
        (UNKNOWN + UNKNOWN + READ, ["#1/1 high"]),
        (READ + UNKNOWN, ["#2/1 high"]),
        (fetch_card() + UNKNOWN, ["#2/1 high"]),
        (rpc("message/Send", send(), TASK_SHAPE, version=""), ["#1/1 low"]),
        (rpc("orders/get", {}, {"id": "7", "status": {"state": "open"}}, version=""), []),
        (rpc("Foo", {}, {"x": 1}, target="/rpc", version="") + READ, []),
        (rpc("Foo", {}, error=rpc_error(-32602), version="") + READ, []),
    ],
)
def test_an_unknown_method_is_reported_once_the_path_is_known(
    script: Script, expected: list[str]
) -> None:
    found = [each for each in findings(script) if each.rule == "A2A-RPC-011"]
    assert [f"#{each.exchange}/{each.seq} {each.confidence}" for each in found] == expected
