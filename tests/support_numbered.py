"""Conversations about tasks with generations on any binding, and the findings of the rules
A2A-GEN."""

from __future__ import annotations

from typing import Any

from a2a_proxy.rules.examples.conversation import (
    fetch_card,
    grpc,
    http,
    json_text,
    rest,
    rest_stream,
    rpc,
    rpc_error,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import Json, reply, send, snapshot, status, task
from a2a_proxy.rules.examples.script import MS, Script
from support_rules import findings

SEND, SUB = "SendStreamingMessage", "SubscribeToTask"
ID = {"id": "t1"}
MISMATCH = "TASK_GENERATION_MISMATCH"
FIRST = snapshot(generation="1")
SECOND = status("WORKING", generation="2")
BINDINGS = ["jsonrpc", "rest", "grpc"]


def done(number: int) -> Json:
    """Return the last event."""
    return status("COMPLETED", second=1, generation=str(number))


def step(text: str, number: int | None) -> Json:
    """Return a progress update."""
    numbered: Json = {} if number is None else {"generation": str(number)}
    return status("WORKING", message=reply(text, id=text), **numbered)


def verdicts(script: Script, number: str) -> list[str]:
    """Return the severities of one rule's findings, with `?` if the finding is not sure."""
    return [
        each.severity.name + ("?" if each.confidence == "low" else "")
        for each in findings(script.then(fetch_card(), 20_000 * MS))
        if each.rule == f"A2A-GEN-{number}"
    ]


def words(script: Script, number: str) -> str:
    """Return the summary of one rule's first finding."""
    return next(each.summary for each in findings(script) if each.rule == f"A2A-GEN-{number}")


def over(
    binding: str, *events: Any, subscribes: bool = False, version: str = "1.1", **options: Any
) -> Script:
    """Return the same stream on any binding."""
    method, params = (SUB, ID) if subscribes else (SEND, options.pop("params", send()))
    if binding == "grpc":
        return grpc(method, params, *events, version=version, **options)
    if binding == "rest":
        target = "/tasks/t1:subscribe" if subscribes else "/message:stream"
        return rest_stream(
            "POST", target, None if subscribes else params, *events, version=version, **options
        )
    return rpc_stream(method, params, *events, version=version, **options)


def stream(*events: Any, **options: Any) -> Script:
    """Return a stream that creates a task."""
    return over("jsonrpc", *events, **options)


def push(event: Json) -> Script:
    """Return a notification to the client's webhook."""
    token: dict[str, str | None] = {"X-A2A-Notification-Token": "t"}
    return http(
        "POST",
        "/hook",
        json_text(event),
        headers=token,
        host="client:9",
        upstream="http://client:9",
    )


def get(
    number: int | None, *, current: int | None = None, binding: str = "jsonrpc", **options: Any
) -> Script:
    """Return a GetTask call; `current`: the client waits for later changes."""
    numbered: Json = {} if number is None else {"generation": str(number)}
    answer = task(options.pop("state", "WORKING"), **numbered)
    options.setdefault("version", "1.1")
    wish = {} if current is None else {"currentGeneration": str(current)}
    if binding == "rest":
        query = "" if current is None else f"?currentGeneration={current}"
        return rest("GET", f"/tasks/t1{query}", result=answer, **options)
    if binding == "grpc":
        return grpc("GetTask", ID | wish, answer, **options)
    return rpc("GetTask", ID | wish, answer, id=9, **options)


def told(
    match: int | None,
    result: Json | None,
    error: Json | None = None,
    task_id: str = "t1",
    **options: Any,
) -> Script:
    """Return a message with `ifGenerationMatch`."""
    configuration = None if match is None else {"ifGenerationMatch": str(match)}
    params = send(
        "go on", id="m2", configuration=configuration, **({"taskId": task_id} if task_id else {})
    )
    return rpc("SendMessage", params, result, error=error, id=2, version="1.1", **options)


def refusal(current: int = 5, code: int = -32010) -> Json:
    """Return a TaskGenerationMismatchError."""
    return rpc_error(
        code, MISMATCH, taskId="t1", expectedGeneration="3", currentGeneration=str(current)
    )
