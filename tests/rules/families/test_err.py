"""Errors: hostile ones and ones that must not be flagged; examples of the rules are tested
elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.rules.examples.conversation import http, json_text, rest, rpc, rpc_error
from a2a_proxy.rules.examples.objects import send, task
from a2a_proxy.rules.examples.script import Script
from a2a_proxy.rules.run.engine import BROKEN_RULE_ID
from support_rules import findings

HOSTILE: list[Any] = [None, True, 7, 1.5, "", "x", [], ["x"], {}, {"a": 1}, [[]]]


def info(**members: Any) -> dict[str, Any]:
    made = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND"}
    return made | {"domain": "a2a-protocol.org", "metadata": {}} | members


def of(script: Script, rule: str) -> int:
    return sum(each.rule == rule for each in findings(script))


@pytest.mark.parametrize("value", HOSTILE, ids=repr)
@pytest.mark.parametrize("member", ["reason", "domain", "metadata", "@type"])
def test_hostile_error_infos_do_not_break_rules(member: str, value: Any) -> None:
    detail = info(**{member: value})
    call = rpc("GetTask", {"id": "t9"}, error=rpc_error(-32001) | {"data": [detail]})
    body = {"error": {"code": 404, "status": "NOT_FOUND", "message": "no", "details": [detail]}}
    assert not of(call, BROKEN_RULE_ID)
    assert not of(rest("GET", "/tasks/t9", None, body, status=404), BROKEN_RULE_ID)


@pytest.mark.parametrize("value", HOSTILE, ids=repr)
@pytest.mark.parametrize("member", ["code", "status", "message", "details", "data"])
def test_hostile_errors_do_not_break_rules(member: str, value: Any) -> None:
    error = {
        "code": 404,
        "status": "NOT_FOUND",
        "message": "no",
        "details": [info()],
        "data": [info()],
    }
    assert not of(rpc("GetTask", {"id": "t9"}, error=error | {member: value}), BROKEN_RULE_ID)
    assert not of(
        rest("GET", "/tasks/t9", None, {"error": error | {member: value}}, status=404),
        BROKEN_RULE_ID,
    )


def test_reasons_of_other_domains_are_not_judged() -> None:
    foreign = rpc_error(-32001) | {"data": [info(reason={"a": 1}, domain="example.com")]}
    assert of(rpc("GetTask", {"id": "t9"}, error=foreign), "A2A-ERR-004") == 0
    ours = rpc_error(-32001) | {"data": [info(reason=["x"])]}
    assert of(rpc("GetTask", {"id": "t9"}, error=ours), "A2A-ERR-004") == 1


def test_error_details_are_shown_as_json() -> None:
    detail = info(metadata={"it's": {"a": [True, None]}})
    call = rpc("GetTask", {"id": "t9"}, error=rpc_error(-32001) | {"data": [detail]})
    (found,) = (each for each in findings(call) if each.rule == "A2A-ERR-004")
    assert found.summary == "metadata `it's` of an ErrorInfo is not a string"
    assert found.evidence["value"] == '{"a": [true, null]}'


@pytest.mark.parametrize("operation", ["GetTask", "SendMessage"])
def test_gateway_pages_are_not_judged_as_a2a_errors(operation: str) -> None:
    done = rpc("SendMessage", send(), {"task": task("COMPLETED")})
    page: Any = {"answer": "<html>", "status": 500, "reply_headers": {"Content-Type": "text/html"}}
    again = json_text(send(id="m2", taskId="t1"))
    refused = (
        http("GET", "/tasks/t9", **page)
        if operation == "GetTask"
        else http("POST", "/message:send", again, **page)
    )
    assert of(done + refused, "A2A-ERR-007") == 0


@pytest.mark.parametrize(
    ("status", "body", "count"),
    [
        (400, {"error": "Invalid request body", "issues": []}, 1),
        (500, {"error": "Internal Server Error"}, 1),
        (500, {"detail": "Internal Server Error"}, 0),
        (404, {"detail": "Not Found"}, 0),
        (503, {"message": "no upstream"}, 0),
        (400, "Bad Request", 0),
    ],
)
def test_rest_errors_are_objects(status: int, body: Any, count: int) -> None:
    """JSON that is no error of REST is judged, but not the answers of gateways."""
    call = rest("POST", "/message:send", send(), body, status=status, media="application/json")
    assert of(call, "A2A-ERR-005") == count


def test_problem_json_has_no_object_error() -> None:
    """It is reported as such."""
    call = rest(
        "POST",
        "/message:send",
        send(),
        {"title": "wrong", "status": 400},
        status=400,
        media="application/problem+json",
    )
    assert of(call, "A2A-ERR-005") == 0
    assert of(call, "A2A-ERR-009") == 1
