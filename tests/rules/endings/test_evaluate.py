"""Endings of a session: what they name, and that every recorded call is judged."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from a2a_proxy.model.values import Actor
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.endings.call_facts import CallFacts, SessionCalls
from a2a_proxy.rules.endings.call_index import NumberSample
from a2a_proxy.rules.endings.ending import CAUSES
from a2a_proxy.rules.examples.conversation import (
    QUESTION_CALL,
    STARTED_CALL,
    ClientLeaves,
    EventPause,
    RawBytes,
    grpc,
    http,
    json_text,
    rpc,
    rpc_error,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import chunk, send, snapshot, status, task
from a2a_proxy.rules.examples.script import MS, Script, run_together
from support_conversation import Script as Steps
from support_observer import scripted
from support_rules import endings
from support_websocket import CLOSE, TEXT, agreed, asked, closing, frame, up

SCRIPTS = [each for rule in all_rules().values() for each in (rule.flagged, rule.clean)]


def test_causes_are_rules() -> None:
    """One for each rule of the family, in the order of their ids."""
    ids = [each for each in all_rules() if each.startswith("A2A-END-")]
    assert sorted(each.rule for each in CAUSES.values()) == ids
    assert len(set(CAUSES)) == len(CAUSES)


@pytest.mark.parametrize("part", range(20))
def test_endings_are_complete(part: int) -> None:
    """Whatever ends, the account says who ended it, what the client received, and what to do."""
    for script in SCRIPTS[part::20]:
        for ending in endings(script).values():
            assert ending.cause in CAUSES
            assert ending.summary
            assert ending.next_step
            assert ending.received
            assert ending.ended_by
            assert ending.evidence
            assert ending.confidence in ("high", "low")
            assert ending.actor is not None
            assert bool(ending.remaining) >= (ending.confidence == "low"), ending
            json.dumps(ending.to_object())
            if ending.severity is not None:
                assert ending.to_finding().rule == ending.rule


def test_account_of_a_call() -> None:
    """What the client last received, who ended the call, and whether the agent went on."""
    script: Script = rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        status("WORKING"),
        EventPause(2),
        ClientLeaves(),
        EventPause(1),
        chunk(),
        status("COMPLETED", second=3),
    )
    (ending,) = endings(script).values()
    assert ending.received == "status working (#1.2), 2.0 s before the end"
    assert ending.ended_by == "the client, after 2.0 s"
    assert ending.agent_did == (
        "the task was working; the agent sent 2 more: status completed 1.0 s after the end"
    )


@pytest.mark.parametrize(
    ("separators", "what"),
    [(("", "\n"), "2 JSON objects (NDJSON)"), (("\x1e", "\n"), "2 JSON text records")],
)
@pytest.mark.parametrize("media", ["text/event-stream", "application/x-ndjson", "text/plain"])
def test_container_is_named(separators: tuple[str, str], what: str, media: str) -> None:
    """Objects that are no server-sent events, whatever their content type is."""
    before, after = separators
    answers = (
        {"jsonrpc": "2.0", "id": 1, "result": each} for each in (snapshot(), status("WORKING"))
    )
    script = rpc(
        "SendStreamingMessage",
        send(),
        answer="".join(before + json_text(each) + after for each in answers),
        reply_headers={"Content-Type": media},
    )
    (ending,) = endings(script).values()
    assert ending.cause == "wrong-container"
    assert ending.summary.startswith(f"the answer is {what} under `{media}`, ")


def test_error_under_an_event_stream_is_named() -> None:
    """The error is the outcome of the call, and the ending says that clients cannot read it."""
    script = rpc(
        "SendStreamingMessage",
        send(),
        error=rpc_error(-32004, "UNSUPPORTED_OPERATION", "task is over"),
        reply_headers={"Content-Type": "text/event-stream"},
    )
    (ending,) = endings(script).values()
    assert ending.cause == "wrong-container"
    assert "a JSON error under `text/event-stream`" in ending.summary
    assert "it says UNSUPPORTED_OPERATION -32004: task is over" in ending.summary


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_command_has_the_scheme_of_the_upstream(scheme: str) -> None:
    script = rpc(
        "SendMessage",
        send(),
        upstream=f"{scheme}://agent.example:8000",
        unreachable="connection refused",
    )
    (ending,) = endings(script).values()
    assert ending.command == f"a2a-inspect card --probe {scheme}://agent.example:8000"


def test_stream_that_ends_after_its_head() -> None:
    """No event was received, so it did not end in the middle of one."""
    script = rpc_stream("SendStreamingMessage", send(), finish="cut")
    (ending,) = endings(script).values()
    assert "reset the connection before any event" in ending.summary


def test_nested_json_in_place_of_events_is_no_container() -> None:
    """JSON that is nested deeper than it can be decoded: the call has another ending, or none."""
    script = rpc(
        "SendStreamingMessage",
        send(),
        answer='{"a":' * 100_000,
        reply_headers={"Content-Type": "text/event-stream"},
    )
    assert "wrong-container" not in {each.cause for each in endings(script).values()}


def test_page_of_the_manual_is_named() -> None:
    manual = Path(__file__).parents[3] / "proxy/a2a_proxy/manual/rules.md"
    text = manual.read_text()
    assert all(f"### {each.rule}: " in text for each in CAUSES.values())


def test_stream_that_showed_no_state() -> None:
    """That the task was active another stream has shown."""
    first = rpc_stream("SendStreamingMessage", send(), snapshot(), status("WORKING"))
    second = rpc_stream("SubscribeToTask", {"id": "t1"}, chunk("a"), EventPause(0.1), id=2)
    found = endings(run_together(first, second, after=25 * MS))
    assert {number: each.cause for number, each in found.items()} == {
        1: "stream-ended",
        2: "stream-ended",
    }


def test_status_of_a_stream_that_its_client_ended() -> None:
    """CANCELLED and DEADLINE_EXCEEDED follow from a deadline of the client; without one CANCELLED
    is the agent's."""
    call = ("SendStreamingMessage", send(), snapshot(), status("WORKING"))
    timed = {"grpc-timeout": "9S"}
    causes = [
        endings(script)[1].cause
        for script in (grpc(*call, status=1), grpc(*call, status=1, headers=timed))
    ]
    assert causes == ["stream-error", "agent-error"]


_SEND = ("SendMessage", send())
_STREAM = ("SendStreamingMessage", send())
_PING = RawBytes(b": ping\n\n")
_HTML = {"Content-Type": "text/html"}


@pytest.mark.parametrize(
    ("script", "cause", "actor"),
    [
        (rpc_stream(*_STREAM, _PING, finish="cut"), "no-answer", Actor.AGENT),
        (rpc_stream(*_STREAM, _PING), "no-answer", Actor.AGENT),
        (rpc_stream(*_STREAM), "no-answer", Actor.AGENT),
        (
            rpc(*_SEND, answer="<h1>Error</h1>", status=500, reply_headers=_HTML),
            "answered-between",
            Actor.BETWEEN,
        ),
        (http("GET", "/.well-known/agent-card.json", version="", status=304), "", None),
    ],
    ids=["ping, cut", "ping only", "no event", "page", "not modified"],
)
def test_answers_without_a_result(script: Script, cause: str, actor: Actor | None) -> None:
    """What is no event is no answer; of a page with an error the traffic does not show whose it
    is."""
    found = endings(script).get(1)
    assert ((found.cause, found.actor) if found is not None else ("", None)) == (cause, actor)
    assert found is None or found.cause == "no-answer" or found.confidence == "low"


def test_two_short_calls_prove_no_timer() -> None:
    """Two that end after the same long time do; after a short time it may be chance."""
    for seconds, is_timer in ((6, True), (2, False)):
        first = rpc(*_SEND, seconds=seconds, finish="cut")
        second = rpc("SendMessage", send(id="m2"), id=2, seconds=seconds, finish="cut")
        assert ("time-out" in endings(first + second)[1].summary) is is_timer


def test_tls_is_not_suggested_to_an_agent_that_has_answered() -> None:
    """An error is an answer too."""
    error = rpc("GetTask", {"id": "t1"}, error=rpc_error(-32001, "TASK_NOT_FOUND", "none"))
    cut = rpc("SendMessage", send(id="m5"), id=2, finish="cut")
    assert "https://" in endings(cut)[1].next_step
    assert "https://" not in endings(error + cut)[2].next_step


def test_question_that_is_answered_in_the_end() -> None:
    """A message that only refers to the task comes first."""
    refers = rpc(
        "SendMessage",
        send("for four", id="m2", contextId="c1", referenceTaskIds=["t1"]),
        {"task": task("COMPLETED", id="t2")},
        id=2,
    )
    answers = rpc("SendMessage", send("four", id="m3", taskId="t1"), snapshot("COMPLETED"), id=3)
    assert endings(QUESTION_CALL + refers)[1].cause == "answered-elsewhere"
    assert 1 not in endings(QUESTION_CALL + refers + answers)


def test_many_polls_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a poll is the last call of its task is looked up, not searched for."""
    read, made = SessionCalls.call, 0

    def count(session: SessionCalls, number: int) -> CallFacts:
        nonlocal made
        made += 1
        return read(session, number)

    monkeypatch.setattr(SessionCalls, "call", count)
    polls = [rpc("GetTask", {"id": "t1"}, task("WORKING"), id=n) for n in range(2, 302)]
    endings(sum(polls, STARTED_CALL))
    assert made < 2 * len(polls)


def test_sample_of_many_calls_has_the_last_ones() -> None:
    """Evenly spread, so that a time-out that began late is found."""
    sample = NumberSample()
    for number in range(10_000):
        sample.add(number)
    assert len(sample.numbers) <= 1000
    assert sample.numbers[-1] >= 9_980
    assert {b - a for a, b in pairwise(sample.numbers)} == {16}


def test_a_stream_that_is_cancelled_on_its_websocket() -> None:
    """The client said that it wants no more: nothing failed, and it has not left."""
    script = Steps().client(asked(Sec_WebSocket_Protocol="a2a.v1")).agent(agreed("a2a.v1"))
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": send()}
    script.client(up(TEXT, json.dumps(call).encode()))
    event = {"jsonrpc": "2.0", "id": 1, "result": snapshot("WORKING")}
    script.agent(frame(TEXT, json.dumps(event).encode()))
    script.client(up(TEXT, b'{"jsonrpc": "2.0", "id": 1, "cancelStream": true}'))
    script.agent(frame(TEXT, b'{"jsonrpc": "2.0", "id": 1, "streamEnd": true}'))
    script.client(up(CLOSE, closing(1000))).agent(frame(CLOSE, closing(1000)))
    assert not endings(scripted(script))
