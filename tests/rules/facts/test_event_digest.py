"""Equal events have equal digests on every binding; different events have different ones."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.model.values import Frame, FrameKind, Observation
from a2a_proxy.observer import Observer
from a2a_proxy.redaction import Redactor
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.examples.conversation import grpc, http, json_text, rest_stream, rpc_stream
from a2a_proxy.rules.examples.objects import Json, chunk, reply, send, snapshot, status
from a2a_proxy.rules.examples.script import Script
from a2a_proxy.rules.facts.event_digest import artifacts_digest, update_digest
from a2a_proxy.rules.state.records import ExchangeRecord
from a2a_proxy.rules.state.session_state import SessionState
from support_rules import KEY


def sees(script: Script) -> list[RuleContext]:
    """Every event of a conversation, as rules see it."""
    observer = Observer(Redactor(KEY))
    out: list[Observation] = []
    for piece in script.make_chunks():
        observer.feed(piece, out)
    exchange = observer.pop_changes().exchanges[0]
    found = []
    for frame in out:
        if type(frame) is Frame and frame.kind is FrameKind.EVENT:
            track = ExchangeRecord(
                1, 1, "agent", exchange.binding, exchange.operation, exchange.started
            )
            see = RuleContext(SessionState(), track, exchange, frame.at, lambda *_: None)
            see.set_frame(frame)
            found.append(see)
    return found


def everywhere(event: Json) -> list[RuleContext]:
    """One event over JSON-RPC, REST, gRPC and as a push."""
    token: dict[str, str | None] = {"X-A2A-Notification-Token": "t"}
    scripts = [
        rpc_stream("SendStreamingMessage", send(), event),
        rest_stream("POST", "/message:stream", send(), event),
        grpc("SendStreamingMessage", send(), event),
        http("POST", "/hook", json_text(event), headers=token),
    ]
    return [see for script in scripts for see in sees(script)]


PARTS: list[Json] = [
    {"text": "a"},
    {"raw": "_-8=", "mediaType": "application/octet-stream", "filename": "x"},
    {"url": "https://example.com/x"},
    {"data": {"b": 1, "a": [1.5, None, True, "x"]}},
    {"data": None},
]


def parts_of(parts: list[Json], **members: Any) -> Json:
    """An artifact update with these parts."""
    inner = {"artifactId": "a1", "parts": parts}
    return {"artifactUpdate": {"taskId": "t1", "contextId": "c1", "artifact": inner} | members}


@pytest.mark.parametrize(
    "event",
    [
        chunk("x"),
        chunk("x", append=True, lastChunk=True, generation="4"),
        parts_of(PARTS),
        status("WORKING"),
        status("WORKING", message=reply("half way"), generation="3"),
    ],
    ids=["artifact", "flags", "parts", "status", "message"],
)
def test_digests_are_equal_over_all_bindings(event: Json) -> None:
    found = [update_digest(see) for see in everywhere(event)]
    assert len(found) == 4
    assert found[0]
    assert len(set(found)) == 1


def test_digests_ignore_json_spelling() -> None:
    one = parts_of([{"raw": "//8="}, {"data": {"a": 1}}])
    two = parts_of(
        [{"raw": "__8", "metadata": {"x": 1}}, {"data": {"a": 1.0}}], append=False, lastChunk=False
    )
    first, second = sees(rpc_stream("SendStreamingMessage", send(), one, two))
    assert update_digest(first) == update_digest(second)


def test_digests_differ_by_content() -> None:
    events = [
        chunk("x"),
        chunk("y"),
        chunk("x", id="a2"),
        chunk("x", append=True),
        chunk("x", lastChunk=True),
        parts_of([{"url": "x"}]),
        parts_of([{"raw": "eA=="}]),
        parts_of([{"raw": "eQ=="}]),
        parts_of([{"raw": "eA==", "filename": "x"}]),
        parts_of([{"raw": "eA==", "mediaType": "text/plain"}]),
        *(
            parts_of([{"data": data}])
            for data in ("x", 1, 2, True, None, {}, {"a": 1}, {"b": 1}, {"a": [1]}, [1], [[]])
        ),
        parts_of([{"text": "x"}, {"text": "x"}]),
        status("WORKING"),
        status("COMPLETED"),
        status("WORKING", message=reply("x")),
        status("WORKING", message=reply("x", id="r2")),
    ]
    found = {
        update_digest(see) for see in sees(rpc_stream("SendStreamingMessage", send(), *events))
    }
    assert len(found) == len(events)


@pytest.mark.parametrize("raw", ["e", "e!==", "?", "\u00e9"])
def test_text_that_is_not_base64_is_compared_as_it_is(raw: str) -> None:
    events = [parts_of([{"raw": each}]) for each in (raw, f"{raw}e!", "")]
    found = {
        update_digest(see) for see in sees(rpc_stream("SendStreamingMessage", send(), *events))
    }
    assert len(found) == 3


def test_numbers_are_equal_to_a_depth_of_64() -> None:
    def nested(number: float, depth: int) -> Json:
        value: Any = number
        for _ in range(depth):
            value = [value]
        return parts_of([{"data": value}])

    script = rpc_stream(
        "SendStreamingMessage", send(), nested(1, 63), nested(1.0, 63), nested(2, 63), nested(3, 70)
    )
    one, same, two, deep = map(update_digest, sees(script))
    assert one == same != two
    assert deep


def test_a_snapshot_is_no_event_but_has_artifacts() -> None:
    pieces = [{"artifactId": name, "parts": [{"text": name}]} for name in ("a1", "a2")]
    tasks = [
        snapshot(artifacts=pieces),
        snapshot(artifacts=pieces[::-1]),
        snapshot(artifacts=pieces[:1]),
        snapshot(),
    ]
    one, two, less, none = sees(rpc_stream("SendStreamingMessage", send(), *tasks))
    assert update_digest(one) == ""
    assert artifacts_digest(one) == artifacts_digest(two) != artifacts_digest(less)
    assert artifacts_digest(none) == ""
