"""Reading tasks: bindings, owners, and what must stay silent; the examples of the rules are judged
elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.rules.examples.conversation import (
    Fields,
    fetch_card,
    grpc,
    http,
    rest,
    rest_error,
    rpc,
    rpc_error,
)
from a2a_proxy.rules.examples.objects import card, error_info, message, reply, send, snapshot, task
from a2a_proxy.rules.examples.script import MS, Script, run_together
from support_rules import findings

ANN: Fields = {"Authorization": "Bearer t0ken-of-ann"}
BEN: Fields = {"Authorization": "Bearer t0ken-of-ben"}
GET = {"id": "t1"}
GONE = rest_error(404, "NOT_FOUND", "TASK_NOT_FOUND", "there is no such task")


def told(script: Script, number: str) -> list[str]:
    """How grave each finding of one rule is, with a question mark where it is not sure."""
    found = [each for each in findings(script) if each.rule == f"A2A-TASK-{number}"]
    return [
        each.severity.name.lower() + ("" if each.confidence == "high" else "?") for each in found
    ]


def made(headers: Fields | None) -> Script:
    return rpc("SendMessage", send(), {"task": task("WORKING")}, headers=headers)


@pytest.mark.parametrize(("owner", "asker"), [(ANN, BEN), (ANN, None), (None, BEN)])
def test_not_found_for_a_task_of_another_client_is_not_flagged(
    owner: Fields | None, asker: Fields | None
) -> None:
    assert (
        told(made(owner) + rest("GET", "/tasks/t1", None, GONE, status=404, headers=asker), "009")
        == []
    )


@pytest.mark.parametrize("headers", [None, ANN])
def test_not_found_for_the_own_task_is_flagged(headers: Fields | None) -> None:
    gone = rpc_error(-32001, "TASK_NOT_FOUND")
    status = grpc("GetTask", GET, status=5, text="no task", details=[error_info("TASK_NOT_FOUND")])
    assert told(made(headers) + rpc("GetTask", GET, error=gone, headers=headers, id=2), "009") == [
        "warning"
    ]
    assert told(
        made(headers) + rest("GET", "/tasks/t1", None, GONE, status=404, headers=headers), "009"
    ) == ["warning"]
    assert told(made(None) + status, "009") == ["warning"]
    old = rpc("message/send",
              {"message": {"kind": "message", "role": "user", "messageId": "m1", "parts": []}},
              {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "working"}},
              version="", headers=headers)  # fmt: skip
    again = rpc(
        "tasks/get", GET, error={"code": -32001, "message": "no"}, version="", headers=headers, id=2
    )
    assert told(old + again, "009") == ["warning"]


def test_not_found_for_a_task_of_unknown_owner_is_less_certain() -> None:
    seen = rpc("GetTask", GET, task("WORKING"), headers=ANN)
    gone = rpc("GetTask", GET, error=rpc_error(-32001, "TASK_NOT_FOUND"), headers=BEN, id=2)
    assert told(seen + gone, "009") == ["warning?"]


def test_a_task_under_404_is_not_lost() -> None:
    """The status is wrong, and that is another rule's."""
    assert (
        told(made(None) + rest("GET", "/tasks/t1", None, task("WORKING"), status=404), "009") == []
    )


@pytest.mark.parametrize("state", ["completed", "TASK_STATE_UNSPECIFIED", "DONE"])
def test_invalid_states_do_not_filter(state: str) -> None:
    page = {"tasks": [task("COMPLETED")], "nextPageToken": "", "pageSize": 50, "totalSize": 1}
    assert told(rpc("ListTasks", {"status": state}, page), "007") == []
    assert told(rest("GET", f"/tasks?status={state}", None, page), "007") == []


@pytest.mark.parametrize(("wanted", "number"), [(1, "001"), (0, "002")])
def test_history_in_every_binding(wanted: int, number: str) -> None:
    long = task(history=[message(taskId="t1", contextId="c1"), reply(taskId="t1", contextId="c1")])
    page = {"tasks": [long], "nextPageToken": "", "pageSize": 50, "totalSize": 1}
    limit = {"historyLength": wanted}
    for script in (
        rpc("GetTask", GET | limit, long),
        rest("GET", f"/tasks/t1?historyLength={wanted}", None, long),
        grpc("GetTask", GET | limit, long),
        grpc("ListTasks", limit, page),
        grpc("SendMessage", send(configuration=limit), {"task": long}),
    ):
        assert told(script, number) == ["error" if wanted else "warning"]


@pytest.mark.parametrize(("wanted", "found"), [(0, []), (1, ["warning"]), (2, [])])
def test_history_before_1_0(wanted: int, found: list[str]) -> None:
    """0.3 says how many messages are retrieved, but not what 0 means."""
    said = {"kind": "message", "messageId": "m1", "parts": [{"kind": "text", "text": "hello"}]}
    history = [said | {"role": "user"}, said | {"role": "agent", "messageId": "r1"}]
    old = {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "completed"}}
    script = rpc(
        "tasks/get", GET | {"historyLength": wanted}, old | {"history": history}, version=""
    )
    assert told(script, "001") == found
    assert not told(script, "002")


def test_gateway_pages_do_not_affect_tasks() -> None:
    page = http(
        "GET",
        "/tasks/t1",
        answer="<html>Not Found</html>",
        status=404,
        reply_headers={"Content-Type": "text/html"},
    )
    assert told(made(None) + page, "009") == []


def stamped(*stamps: str) -> dict[str, object]:
    """A page of tasks whose statuses have these times."""
    tasks = [task("COMPLETED", id=f"t{number}") for number, _ in enumerate(stamps)]
    for each, stamp in zip(tasks, stamps, strict=True):
        each["status"]["timestamp"] = stamp
    return {"tasks": tasks, "nextPageToken": "", "pageSize": 50, "totalSize": len(tasks)}


@pytest.mark.parametrize(
    ("first", "second", "flagged"),
    [
        ("2026-11-23T13:53:02.658729+00:00", "2026-11-23T13:53:03.664929+00:00", True),
        ("2026-11-23T13:53:03.664929+00:00", "2026-11-23T13:53:02.658729+00:00", False),
        ("2026-11-23T13:53:02Z", "2026-11-23T13:53:02.500Z", True),
        ("2026-11-23T13:53:02.500Z", "2026-11-23T13:53:02Z", False),
        ("2026-11-23T13:53:02Z", "2026-11-23T14:53:01+01:00", False),
        ("2026-11-23T13:53:02.658729", "2026-11-23T13:53:03.664929", True),
        ("2026-11-23T13:53:02.658729", "2026-11-23T13:53:03.664929Z", False),
        ("yesterday", "today", False),
    ],
)
def test_times_of_every_form_are_in_order(first: str, second: str, flagged: bool) -> None:
    """Fractions of any length and zones are compared as times; a time without a zone only with
    another such time."""
    assert told(rpc("ListTasks", {}, stamped(first, second)), "005") == ["error"] * flagged


@pytest.mark.parametrize(
    ("stamp", "flagged"),
    [
        ("2026-11-23T13:53:02.658729+00:00", True),
        ("2026-11-23T13:59:59.5Z", False),
        ("2026-11-23T14:00:00+00:00", False),
        ("2026-11-23T13:58:00", False),
        ("never", False),
    ],
)
def test_a_status_that_is_too_old_is_found_in_every_form_of_time(stamp: str, flagged: bool) -> None:
    """By at least a second, because agents shorten times; a time without a zone cannot be
    compared."""
    asked = {"statusTimestampAfter": "2026-11-23T14:00:00Z"}
    assert told(rpc("ListTasks", asked, stamped(stamp)), "007") == ["error"] * flagged


MINE = send(taskId="mine-1")


@pytest.mark.parametrize(
    "script",
    [
        rpc("SendMessage", MINE, error=rpc_error(-32001, "TASK_NOT_FOUND")),
        rpc("SendStreamingMessage", MINE, error=rpc_error(-32001, "TASK_NOT_FOUND")),
        rest("POST", "/message:send", MINE, GONE, status=404),
        grpc("SendMessage", MINE, status=5, details=[error_info("TASK_NOT_FOUND")]),
        rpc("SendMessage", MINE, error=rpc_error(-32602, text="Task mine-1 does not exist")),
        rest("POST", "/message:send", MINE, {"detail": "Task not found"}, status=404),
        grpc("SendMessage", MINE, status=5, text="unknown task"),
    ],
    ids=["jsonrpc", "jsonrpc stream", "rest", "grpc", "jsonrpc text", "rest text", "grpc text"],
)
def test_a_message_to_an_unknown_task_is_the_clients(script: Script) -> None:
    """Never certain: the task may be older than the recording."""
    assert told(script, "013") == ["info?"]


@pytest.mark.parametrize(
    "script",
    [
        rpc("SendMessage", send(), error=rpc_error(-32001, "TASK_NOT_FOUND")),
        rpc("SendMessage", MINE, error=rpc_error(-32602, "INVALID_PARAMS")),
        rpc("SendMessage", MINE, error=rpc_error(-32602, text="Task mine-1 is in a final state")),
        rest("POST", "/message:send", MINE, {"detail": "Not Found"}, status=404),
        grpc("SendMessage", MINE, status=5, text="no such tenant"),
        rpc("SendMessage", send(contextId="c9"), error=rpc_error(-32001, "TASK_NOT_FOUND")),
        made(None) + rpc("SendMessage", send(taskId="t1"), error=rpc_error(-32001, ""), id=2),
        rpc("GetTask", {"id": "mine-1"}, error=rpc_error(-32001, "TASK_NOT_FOUND")),
    ],
    ids=[
        "no task named",
        "another error",
        "another text",
        "a path that is not served",
        "gRPC without a name",
        "a context named",
        "a known task",
        "no message",
    ],
)
def test_other_refusals_are_not_the_unknown_task_of_a_message(script: Script) -> None:
    assert told(script, "013") == []


SENT = rpc("SendMessage", send(), snapshot("COMPLETED"))
BUSY = rpc("SendMessage", send(configuration={"returnImmediately": True}), snapshot("WORKING"))
LIST = "ListTasks"
ENDED, FULL = {"status": "TASK_STATE_COMPLETED"}, {"pageSize": 1}


def paged(*tasks: Any, token: str = "", total: int | None = None, size: int = 50) -> Any:
    """One page of a list."""
    count = len(tasks) if total is None else total
    return {"tasks": [*tasks], "nextPageToken": token, "pageSize": size, "totalSize": count}


@pytest.mark.parametrize(
    ("script", "found"),
    [
        (BUSY.then(rpc(LIST, {}, paged()), 6000 * MS), ["warning"]),
        (BUSY.then(rest("GET", "/tasks", None, paged()), 6000 * MS), ["warning"]),
        (BUSY.then(grpc(LIST, {}, paged()), 6000 * MS), ["warning"]),
        (BUSY + rpc(LIST, {}, paged()), ["warning?"]),
        (BUSY + rpc(LIST, {"lastUpdatedAfter": "2030-01-01T00:00:00Z"}, paged()), []),
        (BUSY + rpc(LIST, {}, {"error": "no database"}), []),
        (SENT + rpc(LIST, {}, paged()), ["warning?"]),
        (SENT + rpc(LIST, {"contextId": "c1"}, paged()), ["warning?"]),
        (SENT + rpc(LIST, ENDED, paged()), ["warning?"]),
        (SENT + rpc(LIST, {"contextId": "c2"}, paged()), []),
        (BUSY + rpc(LIST, ENDED, paged()), []),
        (SENT + rpc(LIST, {"statusTimestampAfter": "2026-01-01T00:00:00Z"}, paged()), []),
        (SENT + rpc(LIST, {"tenant": "acme"}, paged()), []),
        (SENT + rest("GET", "/acme/tasks", None, paged()), []),
        (SENT + rpc(LIST, {}, paged(token="more", total=1)), []),
        (SENT + rpc(LIST, FULL, paged(task(id="t2"), size=1)), []),
        (SENT + rpc(LIST, {}, paged(task())), []),
        (rpc(LIST, {}, paged()) + SENT, []),
        (SENT + rpc(LIST, {}, paged(), headers=ANN), []),
        (rpc("GetTask", GET, task()) + rpc(LIST, {}, paged()), []),
        (run_together(SENT, rpc(LIST, {}, paged(), seconds=5)), []),
        (SENT + rpc(LIST, {}, paged(task(contextId="c2"))), ["error"]),
    ],
    ids=[
        "jsonrpc",
        "rest",
        "grpc",
        "at once",
        "a parameter of another version",
        "no list",
        "an ended task",
        "its context",
        "its state",
        "another context",
        "another state",
        "a time",
        "a tenant",
        "a tenant in the path",
        "a page follows",
        "a full page",
        "listed",
        "a later task",
        "another caller",
        "a task from before the recording",
        "at the same time",
        "listed in another context",
    ],
)
def test_lists_and_what_the_agent_has_shown(script: Script, found: list[str]) -> None:
    assert told(script, "014") == found


def test_lists_of_the_same_caller() -> None:
    """With equal credentials the task must be there."""
    sent = rpc("SendMessage", send(), snapshot("COMPLETED"), headers=ANN)
    assert told(sent + rpc(LIST, {}, paged(), headers=ANN), "014") == ["warning?"]
    assert not told(sent + rpc(LIST, {}, paged(), headers=BEN), "014")


TENANT = {"tenant": "acme"}
USER: Fields = {"X-Forwarded-User": "ann"}
SESSION: Fields = {"Cookie": "session=ann"}


def test_lists_of_another_tenant_or_user() -> None:
    """A list is compared only with what was created for the same tenant and user."""
    asked, result = send(), snapshot("COMPLETED")
    other, sends = paged(), "SendMessage"
    for made in (
        rpc(sends, asked | TENANT, result),
        rest("POST", "/acme/message:send", asked, result),
        grpc(sends, asked | TENANT, result),
        rpc(sends, asked, result, headers=USER),
        rpc(sends, asked, result, headers=SESSION),
    ):
        assert not told(made + rpc(LIST, {}, other), "014")
    elsewhere = paged(task(contextId="c9"))
    made_for_acme = rpc(sends, asked | TENANT, result)
    assert not told(made_for_acme + rpc(LIST, {"tenant": "b"}, elsewhere), "014")
    assert told(made_for_acme + rpc(LIST, TENANT, elsewhere), "014") == ["error"]
    for made in (
        rpc(sends, asked | {"tenant": "a"}, result),
        grpc(sends, asked | {"tenant": "a"}, result),
        rest("POST", "/message:send", asked | {"tenant": "a"}, result),
        rest("POST", "/message:send?tenant=a", asked, result),
    ):
        for of in "ab":
            for listed in (
                rpc(LIST, {"tenant": of}, other),
                grpc(LIST, {"tenant": of}, other),
                rest("GET", f"/tasks?tenant={of}", None, other),
            ):
                assert told(made + listed, "014") == ["warning?"] * (of == "a")
    base = {"protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}
    for url, tenants in (("http://localhost:8000/api", ("", "")), ("http://localhost:8000", "ab")):
        offers = [base | {"url": url, "tenant": each} for each in tenants]
        path = url.removeprefix("http://localhost:8000")
        made = fetch_card(card(supportedInterfaces=offers))
        made += rest("POST", f"{path}/a/message:send", asked, result)
        for of in "ab":
            listed = rest("GET", f"{path}/{of}/tasks", None, other)
            assert told(made + listed, "014") == ["warning?"] * (of == "a")
    for params in (["tenant", "tenant"], "tenant", [{"tenant": "a"}]):
        odd = findings(rpc(sends, asked, result) + rpc(LIST, params, other))
        assert "RULES" not in {each.rule for each in odd}
    rpc_tenant = rpc(sends, asked | TENANT, result) + rpc(LIST, TENANT, other)
    rest_tenant = rest("POST", "/acme/message:send", asked, result)
    for script in (
        rpc_tenant,
        rest_tenant + rest("GET", "/acme/tasks", None, other),
        grpc(sends, asked | TENANT, result) + grpc(LIST, TENANT, other),
        rpc(sends, asked, result, headers=USER) + rpc(LIST, {}, other, headers=USER),
    ):
        assert told(script, "014") == ["warning?"]


def test_one_token_for_several_lists() -> None:
    """Tokens that are offsets are the same for every caller and every filter."""
    first, second, third = (task(id=f"t{at}", second=9 - at) for at in range(3))
    ann = rpc(LIST, {"pageSize": 2}, paged(first, second, token="2", size=2, total=3), headers=ANN)
    ben = rpc(LIST, {"pageSize": 1}, paged(third, token="2", size=1, total=2), headers=BEN)
    some = rpc(LIST, {"contextId": "c1"}, paged(third, token="2", size=50, total=2), headers=ANN)
    last = paged(third, size=2, total=3)
    rest_of_ann = rpc(LIST, {"pageSize": 2, "pageToken": "2"}, last, headers=ANN)
    assert not told(ann + ben + rest_of_ann, "010")
    assert not told(ann + some + rest_of_ann, "010")
    again = paged(second, size=2, total=3)
    assert told(
        ann + ben + rpc(LIST, {"pageSize": 2, "pageToken": "2"}, again, headers=ANN), "010"
    ) == ["warning"]


def test_a_task_twice_on_a_page() -> None:
    assert told(rpc(LIST, {}, paged(task(), task())), "010") == ["warning"]
    assert not told(rpc(LIST, {}, paged(task(), task(id="t2"))), "010")


@pytest.mark.parametrize(
    ("total", "found"), [(2, []), (1, ["info"]), (5, [])], ids=["right", "less", "more"]
)
def test_the_total_of_several_pages(total: int, found: list[str]) -> None:
    """More than all may have ended in between; on one page it is wrong."""
    new, old = task(id="t2", second=9), task(id="t1", second=4)
    first = rpc(LIST, FULL, paged(new, token="p", total=total, size=1))
    second = rpc(LIST, FULL | {"pageToken": "p"}, paged(old, total=total, size=1))
    assert told(first + second, "011") == found
    alone = told(rpc(LIST, {}, paged(new, old, total=total)), "011")
    assert alone == ([] if total == 2 else ["info"])
