"""Agents and clients of A2A frameworks with the real proxy between them: they behave as without it,
the operation of each call is recorded, and each error that the rules find is a fault of the
framework that the manual lists.

Each agent is called twice directly and through the proxy: by the tests, call by call, so that each
operation and each error comes up; and by the client of the same framework, where it has one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import support_framework_calls as tables
from a2a_proxy.model.values import Binding, FrameKind, Severity
from a2a_proxy.model.wire import Direction
from a2a_proxy.recording.read.reader import Recording
from support_faults import explained
from support_frameworks import Answer, Call, Player, anonymous, in_order, run_client
from support_peers import agent, require_peers
from support_proxy import proxy
from support_rules import find_again

CARD, SEND, STREAM, GET, CANCEL = (
    "GetAgentCard",
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "CancelTask",
)
NO_OPERATION = ""
HOOKS = (
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
)
A2AKIT_CLIENT = (
    *(CARD, NO_OPERATION, STREAM, GET, CANCEL, *HOOKS),
    *(SEND, SEND, SEND, STREAM, CANCEL, GET),
)
"""It begins with a call of its own, `health`."""
JS03_CLIENT = (
    *(CARD, SEND, GET, CANCEL, "SubscribeToTask", *HOOKS),
    *(STREAM, SEND, SEND, SEND, STREAM, STREAM, CANCEL, GET, SEND),
)

HANDLER_CLIENT = (
    *(CARD, CARD, "GetExtendedAgentCard"),
    *(
        word
        for each in (SEND, STREAM, STREAM, SEND, STREAM, SEND, SEND, SEND)
        for word in (CARD, each)
    ),
    *(word for each in (CANCEL, CANCEL, GET) for word in (CARD, each)),
    *(CARD, "ListTasks", "ListTasks"),
    *(CARD, HOOKS[0], CARD, HOOKS[2], HOOKS[1], CARD, HOOKS[2], CARD, HOOKS[2], HOOKS[3]),
    *(word for each in (GET, CANCEL, "SubscribeToTask", HOOKS[2]) for word in (CARD, each)),
)
"""Each command fetches the card."""


@dataclass(frozen=True)
class Pair:
    """An agent with its options, and either calls of the test or a client."""

    agent: str
    calls: tuple[Call, ...] = ()
    client: str = ""
    operations: tuple[str, ...] = ()
    """What the client calls."""
    by_command: bool = False
    """Not in CI; run by `tests/run -m "soak or not soak" tests/e2e/test_frameworks.py`."""

    @property
    def name(self) -> str:
        """As in the manual."""
        return f"{self.client or 'calls'}-to-{self.agent}".replace(" --", "-")

    @property
    def expected(self) -> list[str]:
        """The operations, in the order in which the calls begin."""
        return [call.operation for call in in_order(self.calls)] or list(self.operations)


PAIRS = [
    Pair("fasta2a", tables.FASTA2A),
    Pair("fasta2a", client="fasta2a", operations=(CARD, STREAM, GET, GET, SEND)),
    Pair("adk", tables.ADK),
    Pair("adk", client="adk", operations=(CARD, STREAM, STREAM, STREAM)),
    Pair("a2akit", tables.A2AKIT),
    Pair("a2akit", client="a2akit", operations=A2AKIT_CLIENT),
    Pair("a2akit --rest", tables.A2AKIT_REST),
    Pair("a2akit --rest", client="a2akit", operations=A2AKIT_CLIENT, by_command=True),
    Pair("agno", tables.AGNO),
    Pair("agno", client="agno", operations=(CARD, SEND, SEND, STREAM, SEND)),
    Pair("js03", tables.JS03),
    Pair("js03", client="js03", operations=JS03_CLIENT),
    Pair("js03", client="js03 --rest", operations=JS03_CLIENT),
    Pair("pythona2a", tables.PYTHONA2A, by_command=True),
    Pair(
        "pythona2a",
        client="pythona2a",
        operations=(CARD, SEND, SEND, GET, CANCEL, GET, GET),
        by_command=True,
    ),
    Pair("beeai", client="beeai", operations=(CARD, STREAM, SEND, SEND, STREAM), by_command=True),
    Pair("beeai --jsonrpc", tables.BEEAI, by_command=True),
    *(
        Pair(
            f"sdk1 --first {binding}", client="handler", operations=HANDLER_CLIENT, by_command=True
        )
        for binding in ("JSONRPC", "HTTP+JSON", "GRPC")
    ),
    Pair("langgraph", tables.LANGGRAPH, by_command=True),
    Pair("adk --legacy", tables.ADK, by_command=True),
    Pair(
        "adk --legacy",
        client="adk --legacy",
        operations=(CARD, STREAM, STREAM, STREAM),
        by_command=True,
    ),
]


@dataclass(frozen=True)
class Talk:
    """What one pair did directly and through the proxy, and the recording of the latter."""

    pair: Pair
    direct: list[Any]
    relayed: list[Any]
    answers: list[Answer]
    """Those through the proxy; none if a client called."""
    recording: Recording


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(pair, id=pair.name, marks=pytest.mark.soak if pair.by_command else ())
        for pair in PAIRS
    ],
)
def talk(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Talk]:
    """A pair's talk: made once, looked at by all tests."""
    pair: Pair = request.param
    kind, *options = pair.agent.split()
    require_peers(kind, *pair.client.split()[:1])
    folder = tmp_path_factory.mktemp("talk")
    with agent(kind, *options) as far:
        direct, _ = play(pair, far.base_url)
        with proxy(folder, f"127.0.0.1:{far.http}", far.grpc_target) as between:
            relayed, answers = play(pair, between.base_url)
            between.stop()
    with Recording(folder / "recording.a2a") as recording:
        yield Talk(pair, direct, relayed, answers, recording)


def play(pair: Pair, base_url: str) -> tuple[list[Any], list[Answer]]:
    """What the pair's caller saw, without ids and times, and the answers as they came."""
    if pair.client:
        return anonymous(run_client(pair.client, base_url)), []
    answers = asyncio.run(Player(base_url).play(pair.calls))
    return anonymous([each.shown() for each in answers]), answers


@pytest.mark.peers
def test_the_caller_sees_the_same_as_without_the_proxy(talk: Talk) -> None:
    assert len(talk.direct) >= 4
    assert talk.relayed == talk.direct


@pytest.mark.peers
def test_the_operation_of_each_call_is_recorded(talk: Talk) -> None:
    """Only a method that A2A does not have has none, and no call is left as HTTP of an unknown
    kind."""
    exchanges = [row.exchange for row in talk.recording.read_exchanges()]
    assert [each.operation for each in exchanges] == talk.pair.expected
    assert [
        each.target for each in exchanges if each.operation and each.binding is Binding.OTHER
    ] == []


@pytest.mark.peers
def test_the_recording_is_whole(talk: Talk) -> None:
    """Nothing is lost or still open, and the payloads could be read."""
    (session,) = talk.recording.read_sessions()
    assert (session.how, session.complete, session.lost) == ("clean", "complete", 0)
    assert {row.exchange.how for row in talk.recording.read_exchanges()} == {"complete"}
    assert not [
        row for row in talk.recording.frames_after(0) if row.frame.kind is FrameKind.UNDECODABLE
    ]


@pytest.mark.peers
def test_answers_and_events_are_recorded_as_they_were_sent(talk: Talk) -> None:
    """Each once and in order; cards apart, whose addresses the proxy rewrites for the client."""
    for answer, row in zip(
        talk.answers, talk.recording.read_exchanges(), strict=bool(talk.answers)
    ):
        if row.exchange.operation.endswith("AgentCard"):
            continue
        frames = [each.frame for each in talk.recording.read_frames(row.key)]
        said = [
            each.payload
            for each in frames
            if each.direction is Direction.TO_CLIENT and each.payload
        ]
        assert len(said) == len(answer.said)
        assert all(same(read(each), sent) for each, sent in zip(said, answer.said, strict=True))


def same(recorded: Any, sent: Any) -> bool:
    """Are these equal, but for the labels in place of secrets?"""
    if isinstance(recorded, dict) and isinstance(sent, dict):
        return recorded.keys() == sent.keys() and all(
            same(each, sent[name]) for name, each in recorded.items()
        )
    if isinstance(recorded, list) and isinstance(sent, list):
        return len(recorded) == len(sent) and all(map(same, recorded, sent))
    return bool(recorded == sent) or str(recorded).startswith("redacted-")


def read(payload: bytes) -> Any:
    """A JSON document, or the text of an answer that is none."""
    try:
        return json.loads(payload)
    except ValueError:
        return payload.decode()


@pytest.mark.peers
def test_each_error_is_a_fault_that_the_manual_lists(talk: Talk) -> None:
    """No false alarm: the rules find in this pair's traffic the errors that the manual's table has
    for it, no other."""
    found = {
        row.finding.rule
        for row in talk.recording.read_findings()
        if row.finding.severity is Severity.ERROR
    }
    assert {rule for rule in found if rule.startswith("A2A-")} == explained(talk.pair.name)


@pytest.mark.peers
def test_rechecking_the_recording_finds_the_same(talk: Talk) -> None:
    live = [
        row.finding for row in talk.recording.read_findings() if row.finding.rule.startswith("A2A-")
    ]
    (session,) = talk.recording.read_sessions()
    assert [
        each for each in find_again(talk.recording, session) if each.rule.startswith("A2A-")
    ] == live
