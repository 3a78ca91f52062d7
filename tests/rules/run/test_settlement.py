"""Deadlines that the end of the session precedes: settled if the rule declares it, otherwise
dropped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from a2a_proxy.model.values import Finding, Observation
from a2a_proxy.model.wire import Chunk, ChunkKind, Direction
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.tools.recheck import recheck_session
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.define.rule import Rule
from a2a_proxy.rules.examples.conversation import (
    EventPause,
    Finish,
    fetch_card,
    grpc,
    http,
    rest,
    rest_error,
    rest_stream,
    rpc,
    rpc_error,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import card, chunk, send, snapshot, status, task
from a2a_proxy.rules.examples.script import MS, Script, run_together
from a2a_proxy.rules.families.gen.words import MISMATCH_REASON
from a2a_proxy.rules.families.live.words import RECONNECT_MESSAGE
from support_observer import fresh, observe
from support_rules import findings, record

_SETTLED = {
    *(
        "A2A-CARD-001",
        "A2A-GEN-013",
        "A2A-LIVE-016",
        "A2A-PUSH-010",
        "A2A-STATE-011",
        "A2A-STREAM-013",
    ),
    "A2A-STREAM-014",
}
_DROPPED = {
    *(
        "A2A-GEN-018",
        "A2A-LAT-005",
        "A2A-LIVE-005",
        "A2A-LIVE-011",
    ),
    *(
        "A2A-PUSH-009",
        "A2A-PUSH-011",
        "A2A-STDIO-018",
        "A2A-STREAM-006",
    ),
}
_WAITING = [rule for rule in all_rules().values() if rule.due is not None]
_A, _B, _C, _END = (
    chunk("a"),
    chunk("b", id="a2"),
    chunk("c", id="a3"),
    status("COMPLETED", second=9),
)
_LIVE = {"half_close": False}
_Stream = Callable[..., Script]


def _grpc_stream(*events: Any, **options: Any) -> Script:
    return grpc("SendStreamingMessage", send(), *events, **options)


def _grpc_subscription(*events: Any, **options: Any) -> Script:
    return grpc("SubscribeToTask", {"id": "t1"}, *events, **options)


_BINDINGS: dict[str, tuple[_Stream, _Stream]] = {
    "jsonrpc": (
        lambda *events, **options: rpc_stream("SendStreamingMessage", send(), *events, **options),
        lambda *events, **options: rpc_stream(
            "SubscribeToTask", {"id": "t1"}, *events, id=2, **options
        ),
    ),
    "rest": (
        lambda *events, **options: rest_stream(
            "POST", "/message:stream", send(), *events, **options
        ),
        lambda *events, **options: rest_stream(
            "GET", "/tasks/t1:subscribe", None, *events, **options
        ),
    ),
    "grpc": (_grpc_stream, _grpc_subscription),
    "live": (
        lambda *events, **options: grpc("SendLiveMessage", send(), *events, **_LIVE, **options),
        lambda *events, **options: grpc(
            "SendLiveMessage", RECONNECT_MESSAGE, *events, **_LIVE, **options
        ),
    ),
}


def _two_streams(
    binding: str, one: tuple[Any, ...], two: tuple[Any, ...], finish: Finish = "end"
) -> Script:
    """Return two streams that begin together and finish well within the time of the rules."""
    first, second = _BINDINGS[binding]
    head = (snapshot(), status("WORKING"), EventPause(0.1))
    return run_together(
        first(*head, *one, finish=finish),
        second(snapshot("WORKING"), EventPause(0.1), *two, finish=finish),
        after=45 * MS,
    )


def _told(script: Script, *rules: str) -> list[tuple[str, str, str]]:
    return [
        (each.rule.removeprefix("A2A-"), each.severity.name.lower(), each.confidence)
        for each in findings(script)
        if each.rule in rules
    ]


def _stopped(chunks: list[Chunk], at: int) -> list[Chunk]:
    """Return the session with the proxy stopped at `at`: it closes the open connections."""
    kept = [each for each in chunks if each.at < at and each.kind is not ChunkKind.END]
    still_open = {each.connection for each in kept} - {
        each.connection for each in kept if each.kind is ChunkKind.CLOSED
    }
    closed = [
        Chunk(number, ChunkKind.CLOSED, Direction.TO_AGENT, at) for number in sorted(still_open)
    ]
    return [*kept, *closed, Chunk(0, ChunkKind.END, Direction.TO_AGENT, at)]


def _early(rule: Rule) -> list[Chunk]:
    """Return the flagged example of the rule, with the proxy stopped 1 ms before the deadline."""
    at = max(each.at for each in findings(rule.flagged) if each.rule == rule.id)
    return _stopped(rule.flagged.make_chunks(), at - MS)


def _of_rule(rule: Rule, chunks: list[Chunk]) -> list[Finding]:
    return [each for each in observe(chunks).out if type(each) is Finding and each.rule == rule.id]


# --- the declaration


def test_each_rule_with_a_deadline_has_a_decision() -> None:
    """A new rule with a deadline must be added to one of the two sets."""
    assert {rule.id for rule in _WAITING if rule.settled_at_end} == _SETTLED
    assert {rule.id for rule in _WAITING if not rule.settled_at_end} == _DROPPED
    assert not [
        rule.id for rule in all_rules().values() if rule.settled_at_end and rule.due is None
    ]


@pytest.mark.parametrize("rule", _WAITING, ids=lambda rule: rule.id)
def test_an_example_that_ends_before_its_deadline_is_judged_as_declared(rule: Rule) -> None:
    assert bool(_of_rule(rule, _early(rule))) is rule.settled_at_end


@pytest.mark.parametrize("rule", _WAITING, ids=lambda rule: rule.id)
def test_the_end_of_a_recording_settles_the_same(rule: Rule, tmp_path: Path) -> None:
    live = record(tmp_path / "r.db", _early(rule))
    with Recording(tmp_path / "r.db") as recording:
        assert [
            each
            for session in recording.read_sessions()
            for each in recheck_session(recording, session)
        ] == live


@pytest.mark.parametrize(
    "rule", [rule for rule in _WAITING if rule.settled_at_end], ids=lambda rule: rule.id
)
def test_a_restart_at_any_record_settles_the_same(rule: Rule) -> None:
    chunks = _early(rule)
    whole = observe(chunks).out
    for cut in range(1, len(chunks)):
        assert observe(chunks, restart_at=[cut]).out == whole, cut


@pytest.mark.parametrize(
    "rule", [rule for rule in _WAITING if rule.settled_at_end], ids=lambda rule: rule.id
)
def test_a_proxy_that_is_killed_settles_too(rule: Rule) -> None:
    """The session has no END record; the time of its last record is its end."""
    *chunks, end = _early(rule)
    observer, out = fresh(), list[Observation]()
    for each in chunks:
        observer.feed(each, out)
    observer.interrupt_session(end.at, out)
    assert [each for each in out if type(each) is Finding and each.rule == rule.id] == _of_rule(
        rule, [*chunks, end]
    )


# --- streams

_TOGETHER = ("A2A-STREAM-013", "A2A-STREAM-014", "A2A-LIVE-016")
_MISSING = {"live": "LIVE-016"}


@pytest.mark.parametrize("binding", _BINDINGS)
def test_a_loss_on_a_stream_that_its_agent_has_ended_is_certain(binding: str) -> None:
    script = _two_streams(binding, (_A, _B, _C, _END), (_A, _C, _END))
    assert _told(script, *_TOGETHER) == [(_MISSING.get(binding, "STREAM-014"), "error", "high")]


@pytest.mark.parametrize("binding", _BINDINGS)
def test_a_loss_on_an_open_stream_has_low_confidence(binding: str) -> None:
    script = _two_streams(binding, (_A, _B, _C), (_A, _C), "open")
    assert _told(script, *_TOGETHER) == [(_MISSING.get(binding, "STREAM-014"), "error", "low")]


def test_a_loss_on_a_stream_that_its_client_has_left_has_low_confidence() -> None:
    script = _two_streams("jsonrpc", (_A, _B, _C), (_A, _C), "leave")
    assert _told(script, *_TOGETHER) == [("STREAM-014", "error", "low")]


@pytest.mark.parametrize(
    ("finish", "confidence"), [("end", "high"), ("open", "low"), ("leave", "low")]
)
@pytest.mark.parametrize("binding", _BINDINGS)
def test_a_crossing_is_certain_if_the_agent_has_ended_both_streams(
    binding: str, finish: Finish, confidence: str
) -> None:
    script = _two_streams(binding, (_A, _B, _C, _END), (_A, _C, _B, _END), finish)
    assert _told(script, *_TOGETHER) == [("STREAM-013", "error", confidence)]


@pytest.mark.parametrize("finish", ["end", "open", "leave"])
@pytest.mark.parametrize(
    "second",
    [(_A, _B, _C, _END), (_A, _B, _C), (_A, _B), (_A,), ()],
    ids=lambda events: f"{len(events)} events",
)
@pytest.mark.parametrize("binding", _BINDINGS)
def test_a_stream_that_lags_at_the_end_is_silent(
    binding: str, second: tuple[Any, ...], finish: Finish
) -> None:
    """A proxy may stop between the delivery of an event on one stream and on the other."""
    for one, two in (((_A, _B, _C, _END), second), (second, (_A, _B, _C, _END))):
        assert _told(_two_streams(binding, one, two, finish), *_TOGETHER) == []


def test_an_event_that_comes_before_the_end_is_not_missing() -> None:
    script = _two_streams("jsonrpc", (_A, _B, _C), (EventPause(1), _A, _B, _C, _END))
    assert _told(script, *_TOGETHER) == []


def test_a_deadline_before_the_end_keeps_its_confidence() -> None:
    script = _two_streams(
        "jsonrpc", (_A, _B, _C, EventPause(7), _END), (_A, _C, EventPause(7), _END), "open"
    )
    assert _told(script, *_TOGETHER) == [("STREAM-014", "error", "high")]


# --- conditions on generations

_SEND = send("go on", id="m2", taskId="t1", configuration={"ifGenerationMatch": "5"})
_MISMATCH = {"taskId": "t1", "expectedGeneration": "5"}


def _refusal(binding: str, current: str) -> Script:
    """Return a read of the task with generation 5, and a refused message with that condition."""
    read, facts = task("WORKING", generation="5"), _MISMATCH | {"currentGeneration": current}
    if binding == "jsonrpc":
        error = rpc_error(-32010, MISMATCH_REASON, "changed", **facts)
        return rpc("GetTask", {"id": "t1"}, read, version="1.1") + rpc(
            "SendMessage", _SEND, error=error, id=2, version="1.1"
        )
    refused = rest_error(409, "ABORTED", MISMATCH_REASON, "changed", **facts)
    return rest("GET", "/tasks/t1", None, read, version="1.1") + rest(
        "POST", "/message:send", _SEND, refused, status=409, version="1.1"
    )


@pytest.mark.parametrize("current", ["5", "6"])
@pytest.mark.parametrize("binding", ["jsonrpc", "rest"])
def test_a_refused_condition_is_judged_at_the_end(binding: str, current: str) -> None:
    """A higher generation could still have been relayed, also if the error has the generation of
    the condition."""
    assert _told(_refusal(binding, current), "A2A-GEN-013") == [("GEN-013", "warning", "low")]


def test_a_higher_generation_before_the_end_explains_the_refusal() -> None:
    again = rpc("GetTask", {"id": "t1"}, task("WORKING", generation="6"), id=3, version="1.1")
    assert _told(_refusal("jsonrpc", "5") + again, "A2A-GEN-013") == []


# --- the agent card

_NO_CARD = http("GET", "/.well-known/agent-card.json", version="", status=404, answer="{}")
_OLD_PATH = "/.well-known/agent.json"
_CARD_0_2 = {
    "name": "a",
    "description": "b",
    "url": "http://localhost:8000/",
    "version": "1",
    "capabilities": {},
    "defaultInputModes": ["text"],
    "defaultOutputModes": ["text"],
    "skills": [],
}


def test_a_card_that_may_still_be_found_has_low_confidence() -> None:
    call = rpc("SendMessage", send(), snapshot("COMPLETED"))
    for script in (_NO_CARD, _NO_CARD + call, call + _NO_CARD):
        assert _told(script, "A2A-CARD-001") == [("CARD-001", "warning", "low")]


def test_a_card_at_another_path_is_certain() -> None:
    assert _told(_NO_CARD + fetch_card(card(), path=_OLD_PATH), "A2A-CARD-001") == [
        ("CARD-001", "warning", "high")
    ]


def test_an_agent_of_an_older_version_may_use_another_path() -> None:
    assert _told(_NO_CARD + fetch_card(_CARD_0_2, path=_OLD_PATH), "A2A-CARD-001") == []
