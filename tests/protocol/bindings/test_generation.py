"""Generations are read alike from protobuf, JSON-RPC and REST, whatever form a peer gives them
(Q-31)."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from a2a_proto import message_class
from a2a_proxy.protocol.event import to_event
from support_conversation import Grpc, Http, Played, Script, play
from support_messages import artifact, ask, status, task, v1
from support_observer import observe
from support_pipe import Stdio

EVERY = pytest.mark.parametrize("binding", ["jsonrpc", "rest", "grpc"])
JSON = pytest.mark.parametrize("binding", ["jsonrpc", "rest"])
NUMBERS = [1, 7, 2**31, 2**53, 2**53 + 1, 2**63 - 1, 0, -1, -(2**63)]
SERVICE = "/lf.a2a.v1.A2AService/"


def streamed(binding: str, *events: dict[str, Any]) -> Script:
    """A stream with these events."""
    if binding == "grpc":
        called = (
            Grpc()
            .open(SERVICE + "SendStreamingMessage")
            .send(v1("SendMessageRequest", ask()))
            .respond()
        )
        for event in events:
            called.give(v1("StreamResponse", event))
        return called.trailers()
    if binding == "rest":
        http = Http().request("POST /message:stream", ask()).stream()
        for event in events:
            http.event(event)
        return http.done()
    http = Http().call("SendStreamingMessage", ask()).stream()
    for event in events:
        http.rpc_event(event)
    return http.done()


def got(binding: str, wish: dict[str, Any], answer: dict[str, Any]) -> Played:
    """A GetTask with its answer."""
    if binding == "grpc":
        called = (
            Grpc()
            .open(SERVICE + "GetTask")
            .send(v1("GetTaskRequest", {"id": "t1", **wish}))
            .respond()
        )
        return play(called.give(v1("Task", answer)).trailers())
    if binding == "rest":
        query = "".join(f"?{name}={value}" for name, value in wish.items())
        return play(Http().request(f"GET /tasks/t1{query}").answer(answer))
    return play(Http().call("GetTask", {"id": "t1", **wish}).result(answer))


@EVERY
@pytest.mark.parametrize("number", NUMBERS)
def test_events_and_snapshots_have_a_generation(binding: str, number: int) -> None:
    """Beyond 2^53 exactly, also where a JavaScript agent would have rounded it; below 0 as it
    is."""
    told = str(number)
    played = play(
        streamed(
            binding,
            {"task": task(generation=told)},
            status(generation=told),
            artifact("x", generation=told),
        )
    )
    events = [each for each in played.frames if each.task_id and each.direction]
    assert [each.generation for each in events] == [number] * 3
    assert played.exchange.generation == max(number, 0)
    (snapshot,) = [
        each
        for each in got(binding, {}, task(generation=told)).frames
        if each.task_id and each.direction
    ]
    assert snapshot.generation == number


@JSON
@pytest.mark.parametrize(
    ("written", "number"),
    [
        (7, 7),
        (2**53 + 1, 2**53 + 1),
        (2**63 - 1, 2**63 - 1),
        (7.0, 0),
        (0, 0),
        (-3, -3),
        ("-3", -3),
        (2**63, 0),
        (str(2**63), 0),
        (10**30, 0),
        (None, 0),
        ("", 0),
        ("7.0", 0),
        (" 7", 0),
        ("0x7", 0),
        (7.5, 0),
        (True, 0),
        ([7], 0),
        ({"value": 7}, 0),
    ],
)
def test_invalid_generations_are_ignored(binding: str, written: object, number: int) -> None:
    """A number as well as a string; what is no int64 is no generation, and keeps nothing else from
    being read."""
    played = play(streamed(binding, status("WORKING", "on it", generation=written)))
    (event,) = [each for each in played.frames if each.task_id and each.direction]
    assert (event.generation, event.state, event.message_id) == (number, 2, "m-on it")


@EVERY
@pytest.mark.parametrize("number", [0, 1, 2**53 + 1, -1])
def test_a_long_poll_has_its_current_generation(binding: str, number: int) -> None:
    """0 is a number too: the client knows nothing yet."""
    exchange = got(binding, {"currentGeneration": str(number)}, task(generation="9")).exchange
    assert (exchange.current_generation, exchange.generation_match, exchange.generation) == (
        number,
        None,
        9,
    )
    assert not exchange.waits
    assert got(binding, {}, task()).exchange.current_generation is None


@JSON
@pytest.mark.parametrize("written", ["", "x", "7.5", str(2**63)])
def test_an_invalid_current_generation_is_ignored(binding: str, written: str) -> None:
    exchange = got(binding, {"currentGeneration": written}, task()).exchange
    assert (exchange.current_generation, exchange.task_id) == (None, "t1")


@EVERY
def test_a_poll_is_open_until_answered(binding: str) -> None:
    if binding == "grpc":
        script: Script = (
            Grpc()
            .open(SERVICE + "GetTask")
            .send(v1("GetTaskRequest", {"id": "t1", "currentGeneration": "5"}))
        )
    elif binding == "rest":
        script = Http().request("GET /tasks/t1?currentGeneration=5")
    else:
        script = Http().call("GetTask", {"id": "t1", "currentGeneration": 5})
    assert play(script).exchange.waits


@EVERY
@pytest.mark.parametrize("number", [0, 3, 2**53 + 1])
def test_a_precondition(binding: str, number: int) -> None:
    params = {**ask(), "configuration": {"ifGenerationMatch": str(number)}}
    if binding == "grpc":
        script: Script = Grpc().open(SERVICE + "SendMessage").send(v1("SendMessageRequest", params))
    elif binding == "rest":
        script = Http().request("POST /message:send", params)
    else:
        script = Http().call("SendMessage", params)
    played = play(script)
    assert (played.exchange.generation_match, played.exchange.current_generation) == (number, None)
    assert not played.exchange.waits
    assert play(streamed(binding)).exchange.generation_match is None


def refusal(code: int) -> dict[str, Any]:
    numbers = {"taskId": "t1", "expectedGeneration": "3", "currentGeneration": "5"}
    kind = "type.googleapis.com/google.rpc.ErrorInfo"
    info = {
        "@type": kind,
        "reason": "TASK_GENERATION_MISMATCH",
        "domain": "a2a-protocol.org",
        "metadata": numbers,
    }
    return {
        "code": code,
        "message": "changed",
        "status": "ABORTED",
        "data": [info],
        "details": [info],
    }


TOLD = "changed (expected generation 3, it is 5)"


def test_a_mismatch_on_json_rpc() -> None:
    error = {"jsonrpc": "2.0", "id": 1, "error": refusal(-32010)}
    exchange = play(Http().call("SendMessage", ask(), a2a_version="1.0").answer(error)).exchange
    assert exchange.error == f"TASK_GENERATION_MISMATCH -32010: {TOLD}"
    assert exchange.dialect == "1.1"


PROBLEM = {
    "type": "https://a2a-protocol.org/errors/task-generation-mismatch",
    "detail": "changed",
    "expectedGeneration": "3",
    "currentGeneration": 5,
}


@pytest.mark.parametrize(
    ("line", "body"),
    [("409 Conflict", {"error": refusal(409)}), ("412 Failed", PROBLEM), ("409 Conflict", PROBLEM)],
)
def test_a_mismatch_on_rest(line: str, body: dict[str, Any]) -> None:
    """The error body of 1.0, and the problem body of drafts; 412 is what a superseded draft had."""
    exchange = play(
        Http().request("POST /message:send", ask(), a2a_version="1.1").answer(body, line)
    ).exchange
    assert exchange.error == f"TASK_GENERATION_MISMATCH {line[:3]}: {TOLD}"
    assert exchange.dialect == "1.1"


def test_a_mismatch_on_grpc() -> None:
    info: Any = message_class("rpc", "ErrorInfo")(
        reason="TASK_GENERATION_MISMATCH", domain="a2a-protocol.org"
    )
    info.metadata.update({"expectedGeneration": "3", "currentGeneration": "5"})
    status_of: Any = message_class("rpc", "Status")(code=10, message="changed")
    status_of.details.add(
        type_url="type.googleapis.com/google.rpc.ErrorInfo", value=info.SerializeToString()
    )
    script = Grpc().open(SERVICE + "SendMessage").send(v1("SendMessageRequest", ask()))
    details = base64.b64encode(status_of.SerializeToString())
    exchange = play(
        script.trailers_only(10, grpc_message="changed", grpc_status_details_bin=details)
    ).exchange
    assert exchange.error == f"TASK_GENERATION_MISMATCH ABORTED: {TOLD}"
    assert exchange.dialect == "1.1"


def test_over_a_pipe() -> None:
    """Stdio carries JSON-RPC: the same numbers, gaps, long polls and refusals."""
    session = Stdio().call("SendStreamingMessage", ask(), A2A_Version="1.1")
    for each in (
        {"task": task(generation="1")},
        status(generation=2),
        artifact("x", generation="4"),
    ):
        session.result(each)
    session.call("GetTask", {"id": "t1", "currentGeneration": "4"}, 2).result(
        task("WORKING", generation="5"), 2
    )
    refused = {**ask(taskId="t1"), "configuration": {"ifGenerationMatch": 3}}
    session.call("SendMessage", refused, 3).answer(
        {"jsonrpc": "2.0", "id": 3, "error": refusal(-32010)}
    )
    seen = observe(session.call("GetTask", {"id": "t1", "currentGeneration": "5"}, 4).session())

    _, poll, third, last = (seen.exchanges[number] for number in range(1, 5))
    assert (poll.current_generation, poll.generation, poll.waits) == (4, 5, False)
    assert (third.generation_match, third.error) == (3, f"TASK_GENERATION_MISMATCH -32010: {TOLD}")
    assert (last.current_generation, last.waits) == (5, True)
    (line,) = seen.tasks.values()
    assert line.seen == ((1, 2), (4, 5))
    (missed,) = line.missed
    assert (missed.first, missed.last, missed.exchange, missed.by, missed.generation) == (
        3,
        3,
        1,
        2,
        5,
    )


@EVERY
def test_a_timeline_is_the_same_on_every_binding(binding: str) -> None:
    """In canonical JSON and as a typed event: a message, a status and an entry of an unknown
    kind."""
    said = {"messageId": "m2", "role": "ROLE_USER", "parts": [{"text": "more"}]}
    entries: list[dict[str, Any]] = [
        {"message": said, "generation": "3"},
        {"status": {"state": "TASK_STATE_WORKING"}, "generation": "5"},
        {"generation": "6"},
    ]
    shown = task(generation="6", timeline=entries)
    shown["artifacts"] = [
        {"artifactId": "a", "parts": [{"text": "x"}], "startGeneration": "4", "endGeneration": "4"},
    ]
    played = got(binding, {"timelineLength": 3}, shown)
    (frame,) = [each for each in played.frames if each.task_id and each.direction]
    exchange = played.exchange
    found = to_event(
        frame.payload, frame.schema, exchange.dialect, exchange.operation, frame.kind
    ).task
    assert found is not None
    assert [each.generation for each in found.timeline] == [3, 5, 6]
    first, second, third = found.timeline
    assert first.message is not None
    assert (first.message.message_id, first.message.parts[0].text, first.status) == (
        "m2",
        "more",
        None,
    )
    assert second.status is not None
    assert (second.status.state, second.message) == ("TASK_STATE_WORKING", None)
    assert (third.message, third.status) == (None, None)
    assert (found.artifacts[0].start_generation, found.artifacts[0].end_generation) == (4, 4)
