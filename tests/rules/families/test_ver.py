"""Rules about versions: what contradicts what, and who may be lenient."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.model.values import Finding, Severity
from a2a_proxy.rules.examples.conversation import (
    fetch_card,
    grpc,
    rest,
    rest_stream,
    rpc,
    rpc_error,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import agent_reply, card, reply, send, snapshot, status, task
from a2a_proxy.rules.examples.script import Script
from support_rules import findings

GET = {"id": "t1"}
OLD_TASK = {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "completed"}}
OLD_SEND = {
    "message": {
        "kind": "message",
        "role": "user",
        "messageId": "m1",
        "parts": [{"kind": "text", "text": "hello"}],
    }
}
UPDATE: dict[str, Any] = {
    "messageUpdate": {"taskId": "t1", "contextId": "c1", "message": reply(taskId="t1")}
}


def of(script: Script) -> list[str]:
    """The version rules that say something."""
    return [
        each.rule.removeprefix("A2A-")
        for each in findings(script)
        if each.rule.startswith("A2A-VER")
    ]


def only(script: Script, rule: str) -> Finding:
    """The one finding of a rule."""
    (found,) = [each for each in findings(script) if each.rule == f"A2A-{rule}"]
    return found


def interfaces(*versions: str, binding: str = "JSONRPC") -> Script:
    """A client gets a card that declares these."""
    url = "http://localhost:8000/"
    made = [
        {"url": url, "protocolBinding": binding, "protocolVersion": version} for version in versions
    ]
    return fetch_card(card(supportedInterfaces=made))


# --- what the client sends


@pytest.mark.parametrize(
    "script",
    [
        grpc("GetTask", GET, task(), version=""),
        rest("GET", "/tasks/t1", None, task(), version=""),
        rpc("GetTask", GET, task(), version=""),
    ],
)
def test_no_version_in_any_binding(script: Script) -> None:
    assert of(script) == ["VER-001"]


def test_a_version_in_the_query_counts() -> None:
    assert not of(rest("GET", "/tasks/t1?A2A-Version=1.0", None, task(), version=""))
    assert not of(rpc("GetTask", GET, task(), target="/rpc?a2a-version=1.0", version=""))


def test_0_3_needs_no_version() -> None:
    assert not of(rpc("tasks/get", GET, OLD_TASK, version=""))
    assert not of(
        grpc("GetTask", b"\n\x08tasks/t1", task(), path="/a2a.v1.A2AService/GetTask", version="")
    )


def test_a_patch_number_is_a_warning() -> None:
    assert (
        only(rpc("GetTask", GET, task(), version="1.0.1"), "VER-002").severity is Severity.WARNING
    )
    for wrong in ("1", "v1.0", "1.0, 1.0", "1.0-rc"):
        assert (
            only(rpc("GetTask", GET, task(), version=wrong), "VER-002").severity is Severity.ERROR
        )


def test_versions_that_contradict_the_request_are_flagged() -> None:
    wrong = [
        rpc("GetTask", GET, task(), version="0.3"),
        grpc("GetTask", GET, task(), version="0.3"),
        grpc(
            "GetTask",
            b"\n\x08tasks/t1",
            b"\n\x02t1",
            path="/a2a.v1.A2AService/GetTask",
            version="1.0",
        ),
        rest("GET", "/tasks/t1", None, task(), version="0.3"),
    ]
    assert [["VER-003" in of(each)] for each in wrong] == [[True]] * 4


def test_an_interface_may_end_in_v1() -> None:
    at_v1 = {
        "url": "http://localhost:8000/v1",
        "protocolBinding": "HTTP+JSON",
        "protocolVersion": "1.0",
    }
    call = rest("GET", "/v1/tasks/t1", None, task())
    assert "VER-003" not in of(fetch_card(card(supportedInterfaces=[at_v1])) + call)
    assert "VER-003" not in of(call), "nobody knows where the interface is"
    assert "VER-003" in of(fetch_card() + call)


def test_the_dialect_is_reported_once() -> None:
    asked = {"id": "t1", "message": {"role": "user", "parts": [{"type": "text", "text": "x"}]}}
    done = {"id": "t1", "status": {"state": "completed"}}
    one = rpc("tasks/send", asked, done, version="")
    assert of(one + one) == ["VER-008"]


def test_two_clients_may_speak_two_versions() -> None:
    first = rpc("SendMessage", send(), {"task": task()})
    there = rpc("tasks/get", GET, OLD_TASK, version="", client="127.0.0.2")
    here = rpc("tasks/get", GET, OLD_TASK, version="")
    assert "VER-013" not in of(first + there)
    assert "VER-013" in of(first + here)
    assert "VER-013" in of(first + rpc("GetTask", GET, task(), version="1.1"))


# --- what the agent makes of it


def test_another_minor_version_is_information() -> None:
    call = rpc("GetTask", GET, task(generation="1"), version="1.1")
    assert only(interfaces("1.0") + call, "VER-004").severity is Severity.INFO
    assert "VER-004" not in of(interfaces("1.0", "1.1") + call)
    assert "VER-004" not in of(call), "no card, no judgement"


def test_errors_do_not_accept_a_version() -> None:
    refusal = rpc_error(-32001, "TASK_NOT_FOUND", "there is no such task")
    assert "VER-004" not in of(
        interfaces("1.0") + rpc("GetTask", GET, error=refusal, version="9.9")
    )


def test_a_refusal_is_judged_by_the_interface_of_its_binding() -> None:
    refusal = rpc(
        "GetTask", GET, error=rpc_error(-32009, "VERSION_NOT_SUPPORTED", "1.0 is not supported")
    )
    assert "VER-005" in of(interfaces("1.0") + refusal)
    assert "VER-005" not in of(interfaces("1.0", binding="GRPC") + refusal)
    assert "VER-005" not in of(interfaces("0.3") + refusal)


def test_an_agent_with_0_3_too_may_answer_without_a_version() -> None:
    call = rpc("GetTask", GET, task(), version="")
    assert of(interfaces("1.0") + call) == ["VER-001", "VER-006"]
    assert of(interfaces("1.0", "0.3") + call) == ["VER-001"]


@pytest.mark.parametrize(
    "script",
    [
        rpc("SendMessage", send(), OLD_TASK),
        rpc("message/send", OLD_SEND, agent_reply(), version=""),
        rpc_stream("message/stream", OLD_SEND, snapshot(), status("COMPLETED"), version="")
    ],
)  # fmt: skip
def test_a_response_in_another_dialect_is_the_only_schema_finding(script: Script) -> None:
    found = {each.rule for each in findings(script)}
    assert "A2A-VER-007" in found
    assert not {
        each for each in found if each.startswith(("A2A-SCH", "A2A-VER-009", "A2A-VER-010"))
    }


def test_a_response_in_the_same_dialect_is_not_flagged() -> None:
    assert not of(rpc("message/send", OLD_SEND, OLD_TASK, version=""))
    assert not of(rpc("message/send", OLD_SEND, OLD_TASK, version="0.3"))
    assert not of(rpc("tasks/get", GET, OLD_TASK, version=""))


def test_message_updates_in_bytes() -> None:
    update = bytes.fromhex("2a080a027431120263311a00")
    before = (snapshot("WORKING", generation="1"), update, status("COMPLETED", generation="3"))
    assert "VER-012" in of(grpc("SendStreamingMessage", send(), *before))
    assert "VER-012" not in of(grpc("SendStreamingMessage", send(), *before, version="1.1"))


def test_message_updates_in_json() -> None:
    script = rest("POST", "/message:stream", send(), UPDATE, version="")
    assert "VER-012" in of(script)


def test_a_client_is_not_blamed_for_the_form_of_the_answer() -> None:
    """It goes on in 0.3, also where the agent answers as in 1.0."""
    begun = interfaces("0.3") + rpc(
        "message/send", OLD_SEND, OLD_TASK | {"status": {"state": "working"}}, version=""
    )
    found = findings(begun + rpc("tasks/get", GET, {"task": task("WORKING")}, version="", id=2))
    assert "A2A-VER-007" in {each.rule for each in found}
    assert not {each.rule for each in found} & {"A2A-VER-013", "A2A-CARD-009"}


# --- one fault, one finding


def rules_of(script: Script) -> list[str]:
    """All rules that say something."""
    return [each.rule.removeprefix("A2A-") for each in findings(script)]


def test_a_result_in_another_dialect_has_no_schema_findings() -> None:
    assert rules_of(rpc("SendMessage", send(), OLD_TASK)) == ["VER-007"]


def test_a_task_of_1_0_with_a_kind_is_no_task_of_0_3() -> None:
    """As LangGraph writes it: the states and roles are those of 1.0, only the member is of 0.3."""
    hybrid = {"kind": "task", **snapshot("COMPLETED")["task"]}
    assert of(rpc("GetTask", GET, hybrid)) == ["VER-009"]
    assert "VER-007" not in of(rpc("SendMessage", send(), hybrid))


def test_an_event_in_another_dialect_has_no_missing_members() -> None:
    old = {
        "kind": "status-update",
        "taskId": "t1",
        "contextId": "c1",
        "status": {"state": "working"},
    }
    events = (snapshot(), old, status("COMPLETED", second=1))
    assert rules_of(rest_stream("POST", "/message:stream", send(), *events)) == ["VER-007"]


@pytest.mark.parametrize(("version", "said_of"), [("1.0", ["VER-012"]), ("1.1", [])])
def test_a_message_update_is_no_unknown_field(version: str, said_of: list[str]) -> None:
    update = b"\x2a\x08\x0a\x02t1\x12\x02c1"
    stream = grpc(
        "SendStreamingMessage",
        send(),
        snapshot(),
        update,
        status("COMPLETED", second=1),
        version=version,
    )
    assert [each for each in rules_of(stream) if each.startswith(("VER", "GRPC"))] == said_of


def test_a_client_of_1_0_is_owed_no_numbers() -> None:
    """The agent numbers the tasks of others."""
    numbered = rpc("GetTask", GET, task("WORKING", generation="4"), version="1.1")
    other = rpc_stream("SendStreamingMessage", send(id="m2"), snapshot(id="t2"), id=2)
    assert "GEN-006" not in rules_of(numbered + other)
