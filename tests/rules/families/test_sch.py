"""Rules about schemas: bindings, lines, variants, and what must stay silent."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proto import message_class
from a2a_proxy.model.values import Severity
from a2a_proxy.rules.examples.conversation import (
    fetch_card,
    grpc,
    http,
    json_text,
    rest,
    rest_error,
    rpc,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import (
    agent_reply,
    card,
    chunk,
    message,
    reply,
    send,
    snapshot,
    state,
    status,
    task,
)
from a2a_proxy.rules.examples.script import Script
from support_rules import findings

GET = {"id": "t1"}
OLD_MESSAGE = {
    "kind": "message",
    "role": "user",
    "messageId": "m1",
    "parts": [{"kind": "text", "text": "hello"}],
}
OLD_TASK = {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "completed"}}


def found(script: Script) -> list[tuple[str, str]]:
    """Rule and place of what the schema rules say."""
    return [
        (each.rule.removeprefix("A2A-"), each.evidence.get("path", ""))
        for each in findings(script)
        if each.rule.startswith(("A2A-SCH", "A2A-VER-009", "A2A-VER-010"))
    ]


def severity(script: Script, rule: str) -> Severity:
    """Of the one finding of a rule."""
    (only,) = [each for each in findings(script) if each.rule == f"A2A-{rule}"]
    return only.severity


def answered(value: Any) -> Script:
    """A task as the answer to GetTask."""
    return rpc("GetTask", GET, value)


def old(result: Any, method: str = "tasks/get", params: Any = None) -> Script:
    """A call of 0.3."""
    return rpc(method, params or GET, result, version="")


def sent(**members: Any) -> Script:
    """A message with changes, sent by JSON-RPC."""
    return rpc("SendMessage", {"message": message(**members)}, agent_reply())


# --- all bindings


@pytest.mark.parametrize(
    ("script", "place"),
    [
        (
            rpc("SendMessage", {"message": message(messageId="")}, agent_reply()),
            "params.message.messageId",
        ),
        (
            rest("POST", "/message:send", {"message": message(messageId="")}, agent_reply()),
            "message.messageId",
        ),
        (
            grpc("SendMessage", {"message": message(messageId="")}, agent_reply()),
            "message.messageId",
        ),
        (rpc_stream("SendStreamingMessage", send(), {"task": {"id": "t1"}}), "result.task.status"),
        (grpc("SendStreamingMessage", send(), {"task": {"id": "t1"}}), "task.status"),
    ],
)
def test_missing_members_are_reported_with_their_path(script: Script, place: str) -> None:
    assert found(script) == [("SCH-001", place)]


@pytest.mark.parametrize(
    ("members", "value"), [({}, None), ({"id": None}, "null"), ({"id": ""}, None)]
)
def test_missing_members_have_no_value_in_the_evidence(
    members: dict[str, Any], value: str | None
) -> None:
    (missing,) = findings(answered({"contextId": "c1", "status": state("WORKING")} | members))
    assert (missing.rule, missing.evidence.get("value")) == ("A2A-SCH-001", value)


@pytest.mark.parametrize("role", ["ROLE_AGENT", "ROLE_USER"])
def test_roles_in_a_history_are_free(role: str) -> None:
    assert not found(answered(task(history=[message(role=role)])))
    assert not found(grpc("GetTask", GET, task(history=[message(role=role)])))


def test_an_agent_message_with_the_user_role_is_flagged() -> None:
    said_by_user = reply(role="ROLE_USER")
    wrong = [
        answered(task(status=state("WORKING", message=said_by_user))),
        grpc("SendMessage", send(), {"message": said_by_user}),
        rest("POST", "/message:send", send(), {"message": said_by_user}),
    ]
    assert [[rule for rule, _ in found(each)] for each in wrong] == [["SCH-009"]] * 3


def test_numbers_of_requests_in_every_binding() -> None:
    assert found(grpc("ListTasks", {"pageSize": 101}, {"pageSize": 100})) == [
        ("SCH-008", "pageSize")
    ]
    assert found(rest("GET", "/tasks?pageSize=0", None, {"tasks": [], "pageSize": 1})) == [
        ("SCH-008", "pageSize")
    ]
    assert not found(rest("GET", "/tasks/t1?historyLength=x", None, task()))  # HTTP-012
    odd = "/tasks?status=done&statusTimestampAfter=now&includeArtifacts=1"  # HTTP-012 too
    assert not found(rest("GET", odd, None, {"tasks": [], "pageSize": 50}))
    assert found(rest("GET", "/tasks/t1?historyLength=-1", None, task())) == [
        ("SCH-008", "historyLength")
    ]
    assert not found(rest("GET", "/tasks/t1?historyLength=2", None, task()))
    assert not found(rpc("GetTask", GET | {"historyLength": "2"}, task()))  # ProtoJSON takes it


def test_members_in_the_path_are_not_missing_in_the_body() -> None:
    assert not found(rest("POST", "/tasks/t1:cancel", {}, task("CANCELED")))
    assert not found(
        rest("POST", "/tasks/t1/pushNotificationConfigs", {"url": "https://e.com"}, None)
    )


def test_an_error_under_a_status_of_success_is_no_result() -> None:
    assert not found(
        rest(
            "GET",
            "/tasks/t1",
            result=rest_error(404, "NOT_FOUND", "TASK_NOT_FOUND", "no such task"),
        )
    )


def test_undecodable_bodies_are_not_judged() -> None:
    assert not found(http("POST", "/message:send", '{"message":', answer=json_text(agent_reply())))
    assert not found(rest("POST", "/tasks/t1:cancel", None, task("CANCELED")))


@pytest.mark.parametrize(
    ("seconds", "nanos", "wrong"),
    [
        (253_402_300_799, 999_999_999, False),
        (-62_135_596_800, 0, False),
        (253_402_300_800, 0, True),
        (-62_135_596_801, 0, True),
        (1_790_000_000_000, 0, True),  # ms
        (0, -1, True),
        (0, 1_000_000_000, True),
    ],
)
def test_times_of_protobuf(seconds: int, nanos: int, wrong: bool) -> None:
    """A time out of range has no JSON form; in an answer, and in an event of a stream."""
    task_made: Any = message_class("1.0", "Task")(id="t1", context_id="c1")
    event: Any = message_class("1.0", "StreamResponse")()
    event.status_update.task_id, event.status_update.context_id = "t1", "c1"
    for each in (task_made.status, event.status_update.status):
        each.state = 2
        each.timestamp.seconds, each.timestamp.nanos = seconds, nanos
    answer = grpc("GetTask", GET, task_made.SerializeToString())
    assert found(answer) == [("SCH-008", "status.timestamp")] * wrong
    stream = grpc(
        "SendStreamingMessage", send(), snapshot(), event.SerializeToString(), status("COMPLETED")
    )
    assert found(stream) == [("SCH-008", "statusUpdate.status.timestamp")] * wrong


def test_enum_numbers() -> None:
    raw = bytes.fromhex("0a0274311a02080d")  # a task in state 13
    assert found(grpc("GetTask", GET, raw)) == [("SCH-003", "status.state")]
    number = answered(task(status={"state": 2}))
    assert found(number) == [("VER-010", "result.status.state")]
    assert severity(number, "VER-010") is Severity.WARNING
    assert found(answered(task(status={"state": 77}))) == [("SCH-003", "result.status.state")]


def test_unspecified_is_missing_in_protobuf_and_wrong_in_json() -> None:
    assert found(answered(task("UNSPECIFIED"))) == [("SCH-003", "result.status.state")]
    assert found(grpc("GetTask", GET, task(status={"state": 0}))) == [("SCH-001", "status.state")]
    assert not found(
        rpc("ListTasks", {"status": "TASK_STATE_UNSPECIFIED"}, {"tasks": [], "pageSize": 50})
    )


# --- alternatives


@pytest.mark.parametrize(
    ("part", "rules"),
    [
        ({"text": ""}, []),
        ({"data": None}, []),
        ({"data": [1, {"a": None}]}, []),
        ({}, ["SCH-004"]),
        ({"text": "a", "data": 1}, ["SCH-004"]),
        ({"text": "a", "url": None}, ["SCH-015"]),
        ({"kind": "text", "text": "a"}, ["VER-009"]),
        ({"file": {"uri": "https://e.com/a"}}, ["VER-009"]),
    ],
)
def test_parts(part: dict[str, Any], rules: list[str]) -> None:
    assert [rule for rule, _ in found(sent(parts=[part]))] == rules


def test_a_task_without_its_wrapper_is_reported_once() -> None:
    (only,) = [
        each
        for each in findings(rpc("SendMessage", send(), task()))
        if each.rule.startswith("A2A-SCH")
    ]
    assert only.rule == "A2A-SCH-004"
    assert "without its wrapper" in only.summary


def test_unknown_kinds_of_events_are_not_faults() -> None:
    script = rpc_stream(
        "SendStreamingMessage", send(), snapshot(), {"laterUpdate": {"a": 1}}, status("COMPLETED")
    )
    assert found(script) == [("SCH-010", "result.laterUpdate")]
    later = bytes.fromhex("7a020801")  # field 15
    assert not found(grpc("SendStreamingMessage", send(), snapshot(), later, status("COMPLETED")))


# --- values


@pytest.mark.parametrize(
    ("stamp", "level"),
    [
        ("2026-01-01T00:00:00.123456Z", None),
        ("2026-01-01T00:00:00Z", Severity.INFO),
        ("2026-01-01T00:00:00.000+00:00", Severity.ERROR),
        ("2026-02-30T00:00:00.000Z", Severity.ERROR),
        ("yesterday", Severity.ERROR),
        (5, Severity.ERROR),
    ],
)
def test_timestamps(stamp: Any, level: Severity | None) -> None:
    script = answered(task(status=state("WORKING", timestamp=stamp)))
    if level is None:
        assert not found(script)
    else:
        assert found(script) == [("SCH-006", "result.status.timestamp")]
        assert severity(script, "SCH-006") is level


def test_timestamps_of_0_3_need_no_zone() -> None:
    def at(stamp: str) -> Script:
        return old(OLD_TASK | {"status": {"state": "working", "timestamp": stamp}})

    assert severity(at("2026-01-01T00:00:00.1"), "SCH-006") is Severity.INFO
    assert not found(at("2026-01-01T00:00:00+02:00"))
    assert severity(at("noon"), "SCH-006") is Severity.ERROR


@pytest.mark.parametrize("data", ["aGk=", "aGk", "_-__", "+/+/", ""])
def test_both_alphabets_are_base64(data: str) -> None:
    assert not found(sent(parts=[{"raw": data}]))


def test_urls_and_media_types() -> None:
    assert not found(sent(parts=[{"url": "urn:x:y", "mediaType": "text/plain; charset=utf-8"}]))
    assert found(sent(parts=[{"text": "a", "mediaType": "png"}])) == [
        ("SCH-012", "params.message.parts[0].mediaType")
    ]


def test_wrong_json_types() -> None:
    assert found(sent(messageId=5)) == [("SCH-008", "params.message.messageId")]
    assert found(answered(task(history={}))) == [("SCH-008", "result.history")]
    assert found(answered(task(status="working"))) == [("SCH-008", "result.status")]
    assert found(answered(task(metadata=1))) == [("SCH-011", "result.metadata")]


def test_hostile_nesting_does_not_break_a_rule() -> None:
    deep: Any = 1
    for _ in range(400):
        deep = {"a": [deep]}
    assert not found(sent(metadata=deep))
    assert found(answered(task(artifacts=[None, 1]))) == [
        ("SCH-008", "result.artifacts[0]"),
        ("SCH-008", "result.artifacts[1]"),
    ]


# --- members


def test_drafts_are_no_unknown_members() -> None:
    script = rpc("GetTask", GET, task(generation="4", timeline=[], elicitations=[]), version="1.1")
    assert not found(script)


def test_snake_case_members_are_read_as_camel_case() -> None:
    wrong = chunk()
    update = wrong["artifactUpdate"]
    update["last_chunk"] = True
    update["task_id"] = update.pop("taskId")
    script = rpc_stream("SendStreamingMessage", send(), snapshot(), wrong, status("COMPLETED"))
    assert {rule for rule, _ in found(script)} == {"SCH-005"}


def test_null_for_a_required_member_is_missing() -> None:
    assert found(sent(messageId=None)) == [("SCH-001", "params.message.messageId")]
    assert found(sent(taskId=None)) == [("SCH-015", "params.message.taskId")]


def test_cards_of_both_lines() -> None:
    both = card(url="http://localhost:8000/", protocolVersion="0.3.0", preferredTransport="JSONRPC")
    both["capabilities"]["stateTransitionHistory"] = True
    assert not found(fetch_card(both))
    assert not found(
        fetch_card(both | {"supportsAuthenticatedExtendedCard": True, "security": [{"key": []}]})
    )
    new = card(capabilities={"stateTransitionHistory": True})
    assert [rule for rule, _ in found(rest("GET", "/extendedAgentCard", None, new))] == ["VER-009"]
    assert found(fetch_card(card(skills=[]))) == [("SCH-002", "skills")]
    assert severity(fetch_card(card(skills=[])), "SCH-002") is Severity.INFO


def test_security_schemes_of_both_lines() -> None:
    flows = {"clientCredentials": {"tokenUrl": "https://e.com/t", "scopes": {}}}
    new = card(securitySchemes={"o": {"oauth2SecurityScheme": {"flows": flows}}})
    assert not found(fetch_card(new))
    two = flows | {"password": {"tokenUrl": "https://e.com/t"}}
    wrong = card(securitySchemes={"o": {"oauth2SecurityScheme": {"flows": two}}})
    assert found(fetch_card(wrong)) == [("SCH-004", "securitySchemes.o.oauth2SecurityScheme.flows")]


# --- older lines


def test_a_result_of_0_3_without_kind() -> None:
    bare = {name: value for name, value in OLD_TASK.items() if name != "kind"}
    assert found(old(bare)) == [("SCH-014", "result.kind")]
    assert severity(old(bare), "SCH-014") is Severity.ERROR
    said_before = OLD_TASK | {
        "history": [{name: OLD_MESSAGE[name] for name in ("role", "messageId", "parts")}]
    }
    assert severity(old(said_before), "SCH-014") is Severity.INFO


def test_members_that_0_3_requires() -> None:
    update = {
        "kind": "status-update",
        "taskId": "t1",
        "contextId": "c1",
        "status": {"state": "working"},
    }
    script = rpc_stream("message/stream", {"message": OLD_MESSAGE}, update, version="")
    assert found(script) == [("SCH-001", "result.final")]


def test_unknown_is_a_state_of_0_3() -> None:
    script = old(OLD_TASK | {"status": {"state": "unknown"}})
    assert found(script) == [("SCH-003", "result.status.state")]
    assert severity(script, "SCH-003") is Severity.INFO
    assert found(old(OLD_TASK | {"status": {"state": "TASK_STATE_WORKING"}})) == [
        ("VER-010", "result.status.state")
    ]


def test_files_of_0_3() -> None:
    for file, rules in (
        ({"uri": "https://e.com/a"}, []),
        ({"name": "a"}, ["SCH-013"]),
        ({"bytes": "***"}, ["SCH-007"]),
    ):
        parts = [{"kind": "file", "file": file}]
        script = old(OLD_TASK, "message/send", {"message": OLD_MESSAGE | {"parts": parts}})
        assert [rule for rule, _ in found(script)] == rules


def test_rest_of_0_3_may_be_in_snake_case() -> None:
    body = {"message": {"message_id": "m1", "role": "ROLE_USER", "content": [{"text": "hello"}]}}
    answer = {"task": {"id": "t1", "contextId": "c1", "status": {"state": "TASK_STATE_CANCELLED"}}}
    assert not found(rest("POST", "/v1/message:send", body, answer, version=""))


def test_a_subscription_of_0_3_by_rest_needs_no_message() -> None:
    """Its answer is a stream, as that of a message is; some clients send an empty object."""
    answer = {"code": -32004, "message": "the task has ended"}
    assert not found(rest("POST", "/v1/tasks/t1:subscribe", {}, answer, status=400, version="0.3"))


def test_0_1_is_left_in_peace() -> None:
    asked = {
        "id": "t1",
        "sessionId": "s1",
        "message": {"role": "user", "parts": [{"type": "text", "text": "x"}]},
    }
    done = {"id": "t1", "sessionId": "s1", "status": {"state": "completed"}, "strange": 1}
    assert not found(rpc("tasks/send", asked, done, version=""))
    assert found(
        rpc("tasks/send", asked, done | {"status": {"state": "finished"}}, version="")
    ) == [("SCH-003", "result.status.state")]
    assert not found(old({"id": "t1", "status": {"state": "working"}})), (
        "nothing tells that it is 0.3"
    )


# --- what is not judged


def test_errors_and_pages_of_gateways_are_no_objects() -> None:
    text = json_text({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": GET})
    assert not found(http("POST", "/", text, status=502, answer="<html>", media="text/html"))
    assert not found(http("POST", "/", text, status=401, answer='{"error":"no"}'))


def test_redacted_values_are_not_judged() -> None:
    secret = "Bearer abcdefghijklmnopqrstuvwxyz0123456789"
    assert not found(sent(parts=[{"raw": "aGk=", "filename": secret}]))


@pytest.mark.parametrize("credentials", [4711471147, {"pw": "hunter22"}, ["hunter22", 4711471147]])
def test_values_of_secret_names_are_not_judged(credentials: object) -> None:
    """It became a label, whatever it was."""
    config = {
        "url": "https://client.example.com/hook",
        "authentication": {"scheme": "Basic", "credentials": credentials},
    }
    script = rpc(
        "CreateTaskPushNotificationConfig",
        {"taskId": "t1", **config},
        {"id": "p", "taskId": "t1", **config},
    )
    assert not found(script)


def test_push_notifications_are_judged_by_their_content() -> None:
    body = status("COMPLETED", message=reply(role="ROLE_USER"))
    script = http(
        "POST", "/hook", json_text(body), answer="", headers={"X-A2A-Notification-Token": "t"}
    )
    assert found(script) == [("SCH-009", "statusUpdate.status.message.role")]


def test_a_continued_live_message_may_be_empty() -> None:
    again = {"message": {"messageId": "m2", "taskId": "t1", "role": "ROLE_USER"}}
    assert not found(grpc("SendLiveMessage", again, snapshot("WORKING"), status("COMPLETED")))
    fresh = {"message": {"messageId": "m2", "role": "ROLE_USER"}}
    assert ("SCH-002", "message.parts") in found(
        grpc("SendLiveMessage", fresh, snapshot("WORKING"))
    )


def test_a_live_client_may_send_artifacts() -> None:
    assert not found(rest("POST", "/live", chunk(), snapshot("WORKING"), version="1.1"))


def test_a_part_without_kind_is_reported_once() -> None:
    """What its members show it to be."""
    unmarked = [{"text": "hello"}]
    script = old(OLD_TASK, "message/send", {"message": OLD_MESSAGE | {"parts": unmarked}})
    assert found(script) == [("SCH-014", "params.message.parts[0].kind")]


@pytest.mark.parametrize("part", [{"kind": "image", "text": "hello"}, {"kind": "image"}])
def test_a_part_of_an_unknown_kind_is_reported_once(part: dict[str, Any]) -> None:
    """Whether its members show what it is or not."""
    script = old(OLD_TASK, "message/send", {"message": OLD_MESSAGE | {"parts": [part]}})
    assert found(script) == [("SCH-014", "params.message.parts[0].kind")]


@pytest.mark.parametrize("result", [[{"id": "t1"}], "t1", 7, True])
def test_a_result_that_is_no_object_is_reported_once(result: Any) -> None:
    """By the rule about results; on REST there is none, so by this one."""
    assert [each.rule for each in findings(answered(result))] == ["A2A-RPC-014"]
    assert [each.rule for each in findings(old(result))] == ["A2A-RPC-014"]
    assert ("SCH-008", "") in [
        (rule, path) for rule, path in found(rest("GET", "/tasks/t1", None, [{"id": "t1"}]))
    ]
