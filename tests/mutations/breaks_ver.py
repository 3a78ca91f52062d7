"""Versions that are missing, wrong or contradictory, and payloads of another version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mutations.breaks_ext import message, stream
from mutations.refuse import refuse
from support_mutations import MS, Ex, Msg, Talk, Want, mutation

SDK = ("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-1.x-grpc")
TEXT = ("sdk-1.x-jsonrpc", "sdk-1.x-rest", "demo")
V1 = (*SDK, "concurrent-grpc", "demo")
V0_3 = ("sdk-0.3-jsonrpc", "sdk-0.3-rest", "sdk-0.3-grpc")


def version(call: Ex, value: str | None) -> None:
    """Set the version of all requests, or remove it."""
    call.set("a2a-version" if call.grpc else "A2A-Version", value)


def events(call: Ex, *kinds: str) -> Iterator[tuple[Msg, str]]:
    """Yield the events of a stream that are of these kinds."""
    for answer in call.answers:
        value = answer.value
        inner = value.get("result", value)
        yield from ((answer, kind) for kind in kinds if kind in inner)


def edit(call: Ex, kind: str, how: Callable[[dict[str, Any]], object], number: int = 0) -> Msg:
    """Change the n-th event of a kind."""
    answer, _ = list(events(call, kind))[number]
    answer.edit(lambda event: how(event[kind]))
    return answer


@mutation(*V1)
def the_version_is_missing(talk: Talk) -> Iterator[Want]:
    """The agent accepts the call."""
    call = stream(talk)
    version(call, None)
    yield Want("A2A-VER-001", call)
    yield Want("A2A-VER-006", call, call.answers[0])


@mutation(*SDK)
def the_version_of_a_refused_call_is_missing(talk: Talk) -> Iterator[Want]:
    """The agent refuses the call for it."""
    call = talk.all("GetTask")[-1]
    version(call, None)
    refuse(call, "VERSION_NOT_SUPPORTED", "0.3 is not supported")
    yield Want("A2A-VER-001", call)


@mutation(*V1)
def the_version_begins_with_a_letter(talk: Talk) -> Iterator[Want]:
    """Version 1.0."""
    call = stream(talk)
    version(call, "v1.0")
    yield Want("A2A-VER-002", call)


@mutation(*V1)
def the_version_has_a_patch_number(talk: Talk) -> Iterator[Want]:
    """Like a version of a library."""
    call = stream(talk)
    version(call, "1.0.1")
    yield Want("A2A-VER-002", call)


@mutation("sdk-1.x-jsonrpc", "sdk-1.x-grpc", "concurrent-grpc", "demo")
def a_call_of_1_0_says_0_3(talk: Talk) -> Iterator[Want]:
    """The method belongs to 1.0."""
    call = stream(talk)
    version(call, "0.3")
    yield Want("A2A-VER-003", call)
    yield Want("A2A-VER-004", call, call.answers[0])


@mutation(*V0_3, "dialect-0.2")
def a_call_of_0_3_says_1_0(talk: Talk) -> Iterator[Want]:
    """The method belongs to 0.3."""
    call = stream(talk)
    version(call, "1.0")
    yield Want("A2A-VER-003", call)


@mutation(*V1)
def a_version_of_nobody_is_accepted(talk: Talk) -> Iterator[Want]:
    """The card does not declare it."""
    call = stream(talk)
    version(call, "9.9")
    yield Want("A2A-VER-004", call, call.answers[0])


@mutation(*V1)
def the_declared_version_is_refused(talk: Talk) -> Iterator[Want]:
    """The card declares it."""
    call = stream(talk)
    yield Want("A2A-VER-005", call, refuse(call, "VERSION_NOT_SUPPORTED", "1.0 is not supported"))


def _old_task(task: dict[str, Any]) -> dict[str, Any]:
    state = task["status"]["state"].removeprefix("TASK_STATE_").lower().replace("_", "-")
    return {
        "kind": "task",
        "id": task["id"],
        "contextId": task["contextId"],
        "status": {"state": state},
    }


def _new_task(task: dict[str, Any]) -> dict[str, Any]:
    state = "TASK_STATE_" + task["status"]["state"].upper().replace("-", "_")
    return {"task": {"id": task["id"], "contextId": task["contextId"], "status": {"state": state}}}


@mutation(*TEXT)
def an_answer_is_of_0_3(talk: Talk) -> Iterator[Want]:
    """The client called with 1.0."""
    call = next(
        each for each in talk.all("SendMessage") if b"TASK_STATE_COMPLETED" in each.answers[0].data
    )
    yield Want("A2A-VER-007", call, _answer(call, lambda result: _old_task(result["task"])))


@mutation("sdk-0.3-jsonrpc", "dialect-0.2")
def an_answer_is_of_1_0(talk: Talk) -> Iterator[Want]:
    """The client called with 0.3."""
    call = talk.first("SendMessage")
    yield Want("A2A-VER-007", call, _answer(call, _new_task))


def _answer(call: Ex, how: Callable[[dict[str, Any]], dict[str, Any]]) -> Msg:
    answer = call.answers[0]
    value = answer.value
    answer.put(value | {"result": how(value["result"])} if "jsonrpc" in value else how(value))
    return answer


@mutation(*TEXT)
def an_event_is_of_0_3(talk: Talk) -> Iterator[Want]:
    """In the middle of a stream of 1.0."""
    call = stream(talk)
    answer, _ = list(events(call, "artifactUpdate"))[1]
    value = answer.value
    update = value.get("result", value)["artifactUpdate"]
    old = {"kind": "artifact-update", **update}
    answer.put(value | {"result": old} if "jsonrpc" in value else old)
    yield Want("A2A-VER-007", call, answer)


@mutation("dialect-0.2")
def the_agent_is_of_0_1(talk: Talk) -> Iterator[Want]:
    """As its card says."""
    call = talk.first("GetAgentCard")
    call.answers[0].edit(lambda card: card.update(authentication={"schemes": ["bearer"]}))
    yield Want("A2A-VER-008", call)


@mutation(*TEXT)
def a_status_update_says_final(talk: Talk) -> Iterator[Want]:
    """As in 0.3."""
    call = stream(talk)
    yield Want(
        "A2A-VER-009",
        call,
        edit(call, "statusUpdate", lambda update: update.update(final=True), -1),
    )


@mutation(*TEXT)
def a_request_says_blocking(talk: Talk) -> Iterator[Want]:
    """As in 0.3."""
    call = talk.first("SendMessage")
    call.requests[0].edit(lambda asked: asked.setdefault("configuration", {}).update(blocking=True))
    yield Want("A2A-VER-009", call, call.requests[0])


@mutation(*TEXT)
def a_part_has_a_kind(talk: Talk) -> Iterator[Want]:
    """As in 0.3."""
    call = stream(talk)
    yield Want(
        "A2A-VER-009",
        call,
        edit(
            call,
            "artifactUpdate",
            lambda update: update["artifact"]["parts"][0].update(kind="text"),
        ),
    )


@mutation(*TEXT)
def a_state_is_spelled_as_in_0_3(talk: Talk) -> Iterator[Want]:
    """In lower case."""
    call = stream(talk)
    answer = edit(call, "statusUpdate", lambda update: update["status"].update(state="working"))
    yield Want("A2A-VER-010", call, answer)


@mutation("sdk-0.3-jsonrpc", "dialect-0.2")
def a_state_is_spelled_as_in_1_0(talk: Talk) -> Iterator[Want]:
    """In capitals."""
    call = next(each for each in talk.all("SendStreamingMessage") if len(each.answers) > 5)
    answer = next(each for each in call.answers if '"working"' in str(each.value).replace("'", '"'))
    answer.edit(lambda event: event["status"].update(state="TASK_STATE_WORKING"))
    yield Want("A2A-VER-010", call, answer)


@mutation(*TEXT)
def a_role_is_spelled_as_in_0_3(talk: Talk) -> Iterator[Want]:
    """In the client's message."""
    call = talk.first("SendMessage")
    call.requests[0].edit(lambda asked: message(asked).update(role="user"))
    yield Want("A2A-VER-010", call, call.requests[0])


@mutation(*V1)
def a_message_update_in_1_0(talk: Talk) -> Iterator[Want]:
    """An event that clients of 1.0 do not know."""
    call = stream(talk)
    answer, kind = next(events(call, "statusUpdate"))
    value = answer.value
    update = value.get("result", value)[kind]
    said = {"messageId": "m-update-1", "role": "ROLE_AGENT", "parts": [{"text": "still at it"}]}
    new = {
        "messageUpdate": {
            "taskId": update["taskId"],
            "contextId": update["contextId"],
            "message": said,
        }
    }
    added = answer.again(MS)
    if call.grpc:
        ident = update["taskId"].encode()
        added.data = b"\x2a" + bytes([len(ident) + 2]) + b"\x0a" + bytes([len(ident)]) + ident
    else:
        added.put(value | {"result": new} if "jsonrpc" in value else new)
    call.answers.insert(call.answers.index(answer) + 1, added)
    yield Want("A2A-VER-012", call, added)


@mutation(*SDK, "demo")
def the_version_changes_within_a_task(talk: Talk) -> Iterator[Want]:
    """Created with 1.0, read with 1.1."""
    call = next(each for each in talk.all("GetTask") if each.status == 200)
    version(call, "1.1")
    yield Want("A2A-VER-013", call)
    yield Want("A2A-VER-004", call, call.answers[0])
