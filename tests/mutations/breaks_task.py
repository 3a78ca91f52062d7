"""Reading and listing of tasks: history, artifacts, pages, filters, order, unknown tasks,
polling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.values import Binding
from mutations.pick import change, failed, frame, refused
from support_mutations import Ex, Talk, Want, mutation

EACH = ("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-1.x-grpc")
JSON = EACH[:2]
OLD = ("sdk-0.3-jsonrpc", "sdk-0.3-grpc", "dialect-0.2")


def _params(call: Ex, **members: Any) -> None:
    """Change parameters; in REST those of the query. None removes one."""
    if call.facts.binding is not Binding.REST:
        call.requests[0].edit(lambda body: _update(body, members))
        return
    path, _, query = call.target.partition("?")
    pairs = dict(pair.split("=") for pair in query.split("&") if pair)
    _update(
        pairs, {name: str(value) if value is not None else None for name, value in members.items()}
    )
    query = "&".join(f"{name}={value}" for name, value in pairs.items())
    call.target = f"{path}?{query}" if query else path


def _update(members: dict[str, Any], changes: dict[str, Any]) -> None:
    for name, value in changes.items():
        members.pop(name, None)
        if value is not None:
            members[name] = value


def _answer(call: Ex, **members: Any) -> None:
    call.answers[0].edit(lambda body: _update(body, members))


def _get(talk: Talk) -> Ex:
    """Return a task with history."""
    return next(each for each in talk.all("GetTask") if not failed(each))


def _list(talk: Talk) -> Ex:
    return talk.first("ListTasks")


def _two_tasks(talk: Talk) -> None:
    """The list has a second, older task."""
    call = _list(talk)

    def add(body: Any) -> None:
        first = body["tasks"][0]
        status = {"state": "TASK_STATE_COMPLETED", "timestamp": "2026-11-21T07:00:00.000001Z"}
        body["tasks"].append({"id": "older", "contextId": first["contextId"], "status": status})
        body["totalSize"] = 2

    call.answers[0].edit(add)


# --- history


@mutation(*EACH)
def more_history_than_asked_for(talk: Talk) -> Iterator[Want]:
    """The client requested one message."""
    call = _get(talk)
    _params(call, historyLength=1)
    yield Want("A2A-TASK-001", call, call.answers[0])


@mutation(*EACH)
def history_that_nobody_wants(talk: Talk) -> Iterator[Want]:
    """`historyLength` is 0."""
    call = _get(talk)
    _params(call, historyLength=0)
    yield Want("A2A-TASK-002", call, call.answers[0])


@mutation(*JSON)
def more_history_in_the_answer_to_a_send(talk: Talk) -> Iterator[Want]:
    """The client requested one message."""
    call = talk.first("SendMessage")
    change(
        call.requests[0],
        lambda body: body.get("params", body)["configuration"].update(historyLength=1),
    )
    yield Want("A2A-TASK-001", call, call.answers[0])


# --- lists


@mutation(*EACH)
def artifacts_in_a_list(talk: Talk) -> Iterator[Want]:
    """The client did not request them."""
    call = _list(talk)
    made = [{"artifactId": "answer", "name": "the answer", "parts": [{"text": "forty-two"}]}]
    call.answers[0].edit(lambda body: body["tasks"][0].update(artifacts=made))
    yield Want("A2A-TASK-003", call, call.answers[0])


@mutation(*JSON)
def no_next_page_token(talk: Talk) -> Iterator[Want]:
    """Not even an empty one."""
    call = _list(talk)
    _answer(call, nextPageToken=None)
    yield Want("A2A-TASK-004", call, call.answers[0])


@mutation(*EACH, prepare=_two_tasks)
def the_oldest_first(talk: Talk) -> Iterator[Want]:
    """The order of the list is reversed."""
    call = _list(talk)
    call.answers[0].edit(lambda body: body["tasks"].reverse())
    yield Want("A2A-TASK-005", call, call.answers[0])


@mutation(*EACH, prepare=_two_tasks)
def a_page_that_is_too_large(talk: Talk) -> Iterator[Want]:
    """Two tasks although one was requested."""
    call = _list(talk)
    _params(call, pageSize=1)
    call.answers[0].edit(lambda body: body.update(pageSize=1))
    yield Want("A2A-TASK-006", call, call.answers[0])


@mutation(*EACH)
def a_page_size_of_101(talk: Talk) -> Iterator[Want]:
    """Accepted by the agent."""
    call = _list(talk)
    _params(call, pageSize=101)
    call.answers[0].edit(lambda body: body.update(pageSize=101))
    yield Want("A2A-TASK-006", call, call.answers[0])
    yield Want("A2A-SCH-008", call, call.requests[0] if call.requests else None)


@mutation(*EACH)
def a_task_of_another_context(talk: Talk) -> Iterator[Want]:
    """The filter has no effect."""
    call = _list(talk)
    _params(call, contextId="ctx-of-somebody-else")
    yield Want("A2A-TASK-007", call, call.answers[0])


@mutation(*EACH)
def a_task_in_another_state(talk: Talk) -> Iterator[Want]:
    """The filter has no effect."""
    call = _list(talk)
    _params(call, status="TASK_STATE_FAILED")
    yield Want("A2A-TASK-007", call, call.answers[0])


@mutation(*JSON)
def a_task_that_is_too_old(talk: Talk) -> Iterator[Want]:
    """The filter has no effect."""
    call = _list(talk)
    stamp = "2026-12-01T00:00:00.000Z"
    if call.requests:
        _params(call, statusTimestampAfter=stamp)
    else:
        call.target += f"&statusTimestampAfter={stamp.replace(':', '%3A')}"
    yield Want("A2A-TASK-007", call, call.answers[0])


def _two_pages(talk: Talk) -> None:
    """The second page of the list has an older task."""
    first = _list(talk)
    first.answers[0].edit(lambda body: body.update(nextPageToken="page-2", totalSize=2))
    second = talk.add(first, after=first)
    _params(second, pageToken="page-2")

    def older(body: Any) -> None:
        body["tasks"][0] = {
            "id": "older",
            "contextId": body["tasks"][0]["contextId"],
            "status": {"state": "TASK_STATE_COMPLETED", "timestamp": "2026-11-21T07:00:00.000001Z"},
        }
        body["nextPageToken"] = ""

    second.answers[0].edit(older)


@mutation(*EACH, prepare=_two_pages)
def the_last_page_leads_to_itself(talk: Talk) -> Iterator[Want]:
    """The page has the token with which it was requested."""
    page = talk.first("ListTasks", 1)
    page.answers[0].edit(lambda body: body.update(nextPageToken="page-2"))
    yield Want("A2A-TASK-010", page, page.answers[0])


@mutation(*EACH, prepare=_two_pages)
def a_task_on_two_pages(talk: Talk) -> Iterator[Want]:
    """In the same state."""
    first, page = talk.all("ListTasks")
    shown = first.answers[0].value
    task = shown.get("result", shown)["tasks"][0]
    page.answers[0].edit(lambda body: body["tasks"].insert(0, task))
    yield Want("A2A-TASK-010", page, page.answers[0])


@mutation(*EACH, prepare=_two_tasks)
def fewer_tasks_in_all_than_on_the_page(talk: Talk) -> Iterator[Want]:
    """`totalSize` is 1."""
    call = _list(talk)
    _answer(call, totalSize=1)
    yield Want("A2A-TASK-011", call, call.answers[0])


@mutation(*JSON)
def another_page_size(talk: Talk) -> Iterator[Want]:
    """Other than requested."""
    call = _list(talk)
    _answer(call, pageSize=7)
    yield Want("A2A-TASK-011", call, call.answers[0])


# --- asking


@mutation(*EACH, *OLD)
def a_known_task_is_not_found(talk: Talk) -> Iterator[Want]:
    """A stream has just shown it."""
    call, shown = refused(talk), _get(talk).answers[0].value
    task = shown.get("result", shown)["id"]
    if call.requests:
        call.requests[0].edit(lambda body: _name(body, task))
    else:
        call.target = f"{call.target.rpartition('/')[0]}/{task}"
    yield Want("A2A-TASK-009", call, frame(call))


def _name(body: dict[str, Any], task: str) -> None:
    body["name" if "name" in body else "id"] = f"tasks/{task}" if "name" in body else task
