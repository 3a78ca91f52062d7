"""Conversations with generations as a 1.1 agent sends them (manual/protocol.md "Generations"),
before anything is changed.

A new task has 1; each status update and each artifact update increases it by one; a snapshot has
the current generation of the task. The same update on two streams has one generation.
"""

from __future__ import annotations

import json
from typing import Any

from mutations.events import SECOND, read, state_of
from mutations.objects import alter, held
from mutations.pick import GRPC, JSONRPC, REST, change, failed
from mutations.refuse import refuse
from support_mutations import Ex, Msg, Talk, ordered

UNARY = 3
"""Generations between two answers that show a task in two states."""


class _Counter:
    """The generation of one task."""

    def __init__(self) -> None:
        self.at = 0
        self.state = ""
        self.updates: dict[str, int] = {}

    def update(self, message: Msg) -> int:
        """Return the generation of a status update or of an artifact update."""
        said = json.dumps(read(message), sort_keys=True)
        if said not in self.updates:
            self.at += 1
            self.updates[said] = self.at
            self.state = state_of(message) or self.state
        return self.updates[said]

    def snapshot(self, state: str) -> int:
        """Return the current generation of the task."""
        if not self.at:
            self.at = 1 if state == "SUBMITTED" else UNARY
        elif state != self.state:
            self.at += UNARY
        self.state = state
        return self.at


def numbered(talk: Talk) -> None:
    """Give every task and every update its generation, and let clients use 1.1, which cards
    declare."""
    tasks: dict[str, _Counter] = {}
    for call in ordered(talk):
        if call.operation in ("GetAgentCard", "GetExtendedAgentCard"):
            change(call.answers[0], lambda body: _declare(body.get("result", body)))
        if call.facts.binding in (JSONRPC, REST, GRPC):
            call.set("a2a-version", "1.1")
            _number(call, tasks)


def _declare(card: Any) -> None:
    for each in card["supportedInterfaces"]:
        if each["protocolVersion"] == "1.0":
            each["protocolVersion"] = "1.1"


def _number(call: Ex, tasks: dict[str, _Counter]) -> None:
    snapshots = []
    for message in call.answers:
        if b'"error"' in message.data:
            continue
        event = read(message) or {}
        if "taskId" in event and ("status" in event or "artifact" in event):
            number = tasks.setdefault(event["taskId"], _Counter()).update(message)
            for each in snapshots:  # it stands before what comes next
                give(each, number - 1)
            snapshots = []
            give(message, number)
        elif "status" in event and "id" in event:
            task = tasks.get(event["id"])
            if call.operation == "SubscribeToTask" and task is not None:
                snapshots.append(message)
            else:
                give(message, tasks.setdefault(event["id"], _Counter()).snapshot(state_of(message)))
        elif "tasks" in event:
            change(message, lambda body: _listed(body, tasks))


def _listed(body: Any, tasks: dict[str, _Counter]) -> None:
    for each in held(body)["tasks"]:
        if each["id"] in tasks:
            each["generation"] = str(tasks[each["id"]].at)


def give(message: Msg, number: int | str | None) -> None:
    """Set another generation, or remove it."""

    def put(event: Any) -> None:
        event.pop("generation", None)
        if number is not None:
            event["generation"] = str(number)

    alter(message, put)


def number_of(message: Msg) -> int:
    """Return the generation of an event or of a task; 0 if it has none."""
    return int(read(message).get("generation", 0))


# --- asking by generation


def ask(call: Ex, task_id: str, current: int | str | None = None) -> None:
    """Let a GetTask read this task, and request changes after a generation."""
    wish = {} if current is None else {"currentGeneration": str(current)}
    if call.facts.binding is REST:
        call.target = call.target.partition("/tasks/")[0] + f"/tasks/{task_id}"
        call.target += "".join(f"?{name}={value}" for name, value in wish.items())
    elif call.facts.binding is JSONRPC:
        change(call.requests[0], lambda body: body.update(params={"id": task_id} | wish))
    else:
        call.requests[0].put({"id": task_id} | wish)


def condition(call: Ex, match: int | str | None) -> None:
    """Set `ifGenerationMatch` of a message."""

    def put(params: Any) -> None:
        configuration = params.setdefault("configuration", {})
        configuration.pop("ifGenerationMatch", None)
        if match is not None:
            configuration["ifGenerationMatch"] = str(match)

    change(call.requests[0], lambda body: put(body["params"] if "jsonrpc" in body else body))


def look(
    talk: Talk, task: dict[str, Any], current: int | str | None = None, seconds: float = 0
) -> Ex:
    """Append a GetTask that is answered after this time."""
    call = talk.add(_lookup(talk), after=max(talk.exchanges, key=lambda each: each.ended))
    _rename(call)
    ask(call, task["id"], current)
    answer = call.answers[0]
    change(
        answer, lambda body: body.update(result=task)
    ) if call.facts.binding is JSONRPC else answer.put(task)
    call.answered = call.ended = call.ended + int(seconds * SECOND)
    answer.at = call.ended
    talk.length = max(talk.length, call.ended)
    return call


def _lookup(talk: Talk) -> Ex:
    return next(each for each in talk.all("GetTask") if not failed(each))


def _rename(call: Ex) -> None:
    """Set another id of a JSON-RPC request."""
    if call.facts.binding is JSONRPC:
        for each in (*call.requests, *call.answers):
            change(each, lambda body: body.update(id=f"call-{call.uid}"))


def waiting(talk: Talk) -> Ex:
    """Return a SendMessage whose task waits for input until the end."""
    found = [each for each in talk.all("SendMessage") if each.answers and not failed(each)]
    return [each for each in found if state_of(each.answers[0]) == "INPUT_REQUIRED"][-1]


def answered(talk: Talk) -> tuple[Ex, Ex]:
    """Return a SendMessage whose task waits for input, and the one with the input."""
    first = next(
        each for each in talk.all("SendMessage") if state_of(each.answers[0]) == "INPUT_REQUIRED"
    )
    task_id = read(first.answers[0])["id"]
    return first, next(
        each
        for each in talk.all("SendMessage")
        if each is not first and each.facts.task_id == task_id
    )


def asked(talk: Talk) -> None:
    """Add generations, and at the end a client that reads a task, requests changes, and waits for
    some."""
    numbered(talk)
    task = read(waiting(talk).answers[0])
    number = int(task["generation"])
    look(talk, task)
    look(talk, task, number - 1)
    look(talk, task, number, seconds=3)


def conditional(talk: Talk) -> None:
    """Add generations, and messages with conditions: one that is true, one that is false, one for a
    new task."""
    numbered(talk)
    before, call = answered(talk)
    condition(call, number_of(before.answers[0]))
    condition(talk.first("SendMessage"), 1)
    stale(talk)


def stale(talk: Talk) -> Ex:
    """Append a message to the waiting task with an old generation: it is refused."""
    before = waiting(talk)
    task = read(before.answers[0])
    call = talk.add(answered(talk)[1], after=max(talk.exchanges, key=lambda each: each.ended))
    _rename(call)
    _address(call, task)
    condition(call, int(task["generation"]) - 1)
    refuse(call, "TASK_GENERATION_MISMATCH", "the task has changed")
    return call


def snapshot_call(talk: Talk, during: Ex, task: dict[str, Any]) -> Ex:
    """Append a message to the task of a stream that is open; the answer is a snapshot."""
    call = talk.add(answered(talk)[1], after=during)
    shift = during.answers[2].at + SECOND - call.started
    for each in (*call.requests, *call.answers):
        each.at += shift
    call.started, call.answered, call.ended = (
        call.started + shift,
        call.answered + shift,
        call.ended + shift,
    )
    _rename(call)
    _address(call, task)
    change(
        call.requests[0],
        lambda body: body.get("params", body)["configuration"].update(returnImmediately=True),
    )
    change(call.answers[0], lambda body: body.get("result", body).update(task=task))
    return call


def _address(call: Ex, task: dict[str, Any]) -> None:
    """Give a message its own id, and this task."""
    message = {
        "messageId": f"said-{call.uid}",
        "taskId": task["id"],
        "contextId": task["contextId"],
    }
    change(call.requests[0], lambda body: body.get("params", body)["message"].update(message))
