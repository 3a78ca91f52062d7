"""Real agents and clients with the real proxy between them: they behave as without it, and the
recording is complete.

Every client of a pair runs its scenarios, one process per binding, all at the same time through one
port, and once more without the proxy. The recording must match the transcript of its SDK: each
event once, in order, with its task, context, state, artifact and time, and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Binding, EventKind, Exchange, Frame, FrameKind, Severity, Task
from a2a_proxy.recording.read.reader import Recording
from support_account import Line, Told, lines, match, told
from support_faults import explained
from support_peers import Agent, Transcript, agent, normalise, require_peers, run_client
from support_proxy import proxy
from support_rules import find_again

ALL = ("jsonrpc", "rest", "grpc")
CLOCKS_NS = 5_000_000
"""Maximum difference between the clocks of two processes: the proxy's clock is monotonic, theirs
may be set meanwhile."""
SOON_NS = 5_000_000_000

STREAMS = ["streaming", "failures", "errors", "concurrent"]
COMMON = ["card", *STREAMS, "unary", "parts", "tricky", "input", "cancel", "push", "big"]
TASKS = [*COMMON, "message-only", "subscribe"]
SCENARIOS = {
    "sdk1": [*TASKS, "webhook", "malformed"],
    "sdk03": [*TASKS, "webhook", "malformed"],
    "js": TASKS,
    # 1.0.3 answers a second CancelTask with the task or an error, depending on which of its own
    # coroutines is faster.
    "sdk1.0": [each for each in [*TASKS, "webhook", "malformed"] if each != "cancel"],
    "sdk1.1": [*TASKS, "webhook", "malformed"],
    "0_1": COMMON,
    "0_2": TASKS,
    "vendor": STREAMS,
}

SEND, STREAM, SUBSCRIBE = "SendMessage", "SendStreamingMessage", "SubscribeToTask"
GET, CANCEL, LIST = "GetTask", "CancelTask", "ListTasks"
PUSH = {f"{verb}TaskPushNotificationConfig" for verb in ("Create", "Get", "Delete")} | {
    "ListTaskPushNotificationConfigs"
}
OPERATIONS: dict[str, set[str]] = {
    "card": {"GetAgentCard", "GetExtendedAgentCard"},
    "streaming": {STREAM},
    "failures": {STREAM, SEND},
    "errors": {STREAM, SEND, GET, CANCEL, SUBSCRIBE, "GetTaskPushNotificationConfig", ""},
    "concurrent": {STREAM},
    "unary": {SEND, GET, LIST},
    "parts": {STREAM},
    "tricky": {STREAM},
    "input": {STREAM, SEND},
    "cancel": {STREAM, CANCEL},
    "push": {SEND, *PUSH},
    "big": {STREAM, SEND},
    "message-only": {STREAM, SEND},
    "subscribe": {STREAM, SUBSCRIBE, SEND},
    "webhook": {STREAM},
    "malformed": {STREAM, SEND, GET, ""},
}
"""The operations that each scenario calls; empty if the method is not part of A2A."""

ENDINGS = {
    "tricky": {"client gone"},
    "cancel": {"client gone", "client cancel"},
    "message-only": {"client gone", "client cancel"},
    "failures": {"client gone", "agent gone"},
    "errors": {"client gone", "agent gone"},
}
"""Ends of an exchange other than complete: a client gives up, or leaves directly after an error or
the only message; or a 0.3 agent aborts a stream (1.6)."""


@dataclass(frozen=True)
class Pair:
    """An agent with its options, a client, and the expected content of the recording."""

    agent: str
    client: str
    dialects: frozenset[str]
    bindings: tuple[str, ...] = ALL
    changed: frozenset[str] = frozenset()
    """Members that the client's SDK changes on bindings other than JSON-RPC."""

    @property
    def name(self) -> str:
        """Return the name for test ids."""
        return f"{self.client}-to-{self.agent}".replace(" --", "-")


def old(kind: str, dialect: str) -> Pair:
    """Return a small pair of a dialect older than the SDKs."""
    return Pair(kind, kind, frozenset({dialect}), ("jsonrpc",))


PAIRS = [
    Pair("sdk1", "sdk1", frozenset({"1.0"})),
    Pair("sdk1", "js", frozenset({"1.0"})),
    Pair("sdk03", "sdk03", frozenset({"0.3"})),
    Pair("sdk1 --compat", "sdk03", frozenset({"0.3"})),
    # The JS SDK omits `append` and file names when it reads the protobuf form of 0.3.
    Pair("sdk03", "js", frozenset({"0.3"}), changed=frozenset({"append", "name"})),
    Pair("sdk1.0", "sdk1.0", frozenset({"1.0"})),
    Pair("sdk1.1", "sdk1.1", frozenset({"1.0"})),
    old("0_1", "0.1"),
    old("0_2", "0.2"),
    old("vendor", "vendor"),
]


@dataclass(frozen=True)
class Talk:
    """The transcripts of one pair and its recording."""

    pair: Pair
    direct: dict[str, list[Transcript]]
    relayed: dict[str, list[Transcript]]
    summary: dict[str, Any]
    recording: Recording
    account: list[Line]
    strangers: list[list[Told]]

    def lines(self, scenario: str) -> list[Line]:
        """Return the streams of a scenario, of all bindings."""
        return [line for line in self.account if line.scenario == scenario]

    def pairs(self) -> Iterator[tuple[Line, dict[str, Any], int, Told]]:
        """Yield each event that a client received, with the time, and the recorded event."""
        for line in self.account:
            for entry, one in line.told:
                yield line, entry.event, entry.at, one

    def task(self, task_id: str) -> Task:
        """Return the only task with this id."""
        (row,) = self.recording.read_task(task_id)
        return row.task


BY_COMMAND = {"sdk03-to-sdk1-compat", "js-to-sdk03", "sdk1.0-to-sdk1.0", "sdk1.1-to-sdk1.1"}
"""CI tests the dialects of these pairs with other partners or versions; `tests/run -m "soak or not
soak" tests/e2e/test_real_peers.py` tests these pairs too."""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(pair, id=pair.name, marks=pytest.mark.soak if pair.name in BY_COMMAND else ())
        for pair in PAIRS
    ],
)
def talk(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Talk]:
    """Run a pair once for all tests."""
    pair: Pair = request.param
    kind, *options = pair.agent.split()
    require_peers(kind, pair.client)
    folder = tmp_path_factory.mktemp("talk")
    with agent(kind, *options) as far:
        relayed, summary = through_proxy(pair, far, folder)
        direct = asyncio.run(run_all(pair, far.base_url, far.grpc_target))
    account = []
    for binding, seen in relayed.items():
        account += lines(binding, seen, pair.changed if binding != "jsonrpc" else frozenset())
    with Recording(folder / "recording.a2a") as recording:
        yield Talk(
            pair, direct, relayed, summary, recording, account, match(told(recording), account)
        )


def through_proxy(
    pair: Pair, far: Agent, folder: Path
) -> tuple[dict[str, list[Transcript]], dict[str, Any]]:
    """Run the pair's clients through a proxy of their own; return their transcripts and the proxy's
    summary."""
    with proxy(folder, f"127.0.0.1:{far.http}", far.grpc_target) as between:
        seen = asyncio.run(run_all(pair, between.base_url, between.address if far.grpc else ""))
        return seen, between.stop()


async def run_all(pair: Pair, base_url: str, grpc: str) -> dict[str, list[Transcript]]:
    """Run the pair's clients, one process per binding."""
    scenarios = SCENARIOS[pair.client]
    seen = await asyncio.gather(
        *(run_client(pair.client, each, scenarios, base_url, grpc) for each in pair.bindings)
    )
    return dict(zip(pair.bindings, seen, strict=True))


@pytest.mark.peers
def test_clients_behave_as_without_the_proxy(talk: Talk) -> None:
    """Each client's transcript is the same through the proxy and without it, in every scenario, and
    no scenario failed."""
    for binding in talk.pair.bindings:
        broken = [
            one.scenario
            for one in talk.direct[binding]
            if any(e.event["kind"] == "broken" for e in one.entries)
        ]
        assert broken == []
        assert normalise(talk.direct[binding]) == normalise(talk.relayed[binding])


@pytest.mark.peers
def test_every_event_is_recorded_exactly_once(talk: Talk) -> None:
    """The recording contains each stream of each client from beginning to end, and nothing that no
    client received."""
    assert {
        (line.binding, line.scenario, line.stream): line.untold
        for line in talk.account
        if line.untold
    } == {}
    assert [(said[0].exchange.id, [one.event for one in said]) for said in talk.strangers] == []
    swallowed = {line.scenario for line in talk.account if line.swallowed}
    assert swallowed <= {
        "tricky",
        "cancel",
    }  # after a U+2028 that its SDK cannot read, or after it had left


@pytest.mark.peers
def test_frame_columns_describe_the_event(talk: Talk) -> None:
    """A frame has the task, context, message, state and artifact that the client received."""
    kinds = {"task": EventKind.TASK, "message": EventKind.MESSAGE}
    kinds |= {"status": EventKind.STATUS, "artifact": EventKind.ARTIFACT}
    looked_at = 0
    for _, event, _, one in talk.pairs():
        if event["kind"] not in kinds:
            continue
        frame = one.frame
        assert frame.event is kinds[event["kind"]]
        assert frame.task_id == (event.get("task") or "")
        assert frame.context_id == (event.get("context") or "")
        assert frame.message_id == event.get("message", frame.message_id)
        assert frame.artifact_id == (str(event["artifact"]) if "artifact" in event else "")
        assert state_of(frame) == event.get("state", "")
        looked_at += 1
    assert looked_at > 30


def state_of(frame: Frame) -> str:
    """Return the state as the transcripts write it."""
    return TaskState(frame.state).label if frame.state else ""


@pytest.mark.peers
def test_times_lie_between_the_request_and_the_receipt(talk: Talk) -> None:
    """No event is recorded before its request began, nor after the client received it; the median
    is not seconds earlier, because a busy machine delays clients now and then."""
    late, early, waits = [], [], []
    for line, event, at, one in talk.pairs():
        where = (line.binding, line.scenario, line.stream, event["kind"], one.exchange.id)
        # An answer without content is received with its head.
        recorded = one.exchange.response_started if event["kind"] == "ok" else one.frame.at
        if recorded > at + CLOCKS_NS:
            late.append((*where, recorded - at))
        if event["kind"] != "card":
            waits.append(at - recorded)
        if not one.exchange.started < one.frame.began <= one.frame.at:
            early.append((*where, one.exchange.started - one.frame.began))
    assert late == []
    assert early == []
    assert median(waits) < SOON_NS


@pytest.mark.peers
def test_the_recording_is_whole_and_clean(talk: Talk) -> None:
    """Nothing is missing or still open, and only deliberately malformed messages could not be
    decoded."""
    (session,) = talk.recording.read_sessions()
    exchanges = [row.exchange for row in talk.recording.read_exchanges()]
    undecodable = [
        row.frame.exchange
        for row in talk.recording.frames_after(0)
        if row.frame.kind is FrameKind.UNDECODABLE
    ]
    malformed = {one.exchange.id for line in talk.lines("malformed") for _, one in line.told}

    cards = [exchange for exchange in exchanges if exchange.operation.endswith("AgentCard")]
    assert (session.how, session.complete, session.lost) == ("clean", "complete", 0)
    assert session.edits <= 2 * len(cards), "only requests for cards and their answers are changed"
    assert talk.summary["complete"]
    assert talk.summary["exchanges"] == len(exchanges)
    assert talk.summary["frames"] == talk.recording.count_rows().frames
    assert [exchange.id for exchange in exchanges if not exchange.closed] == []
    endings = {
        (line.binding, line.scenario, one.exchange.id, one.exchange.how, one.exchange.error)
        for line in talk.account
        for _, one in line.told
        if one.exchange.how not in {"complete"} | ENDINGS.get(line.scenario, set())
    }
    assert endings == set()
    own = [
        row.finding for row in talk.recording.read_findings() if row.finding.rule == "UNDECODABLE"
    ]
    assert {finding.exchange for finding in own} == set(undecodable)
    assert set(undecodable) <= malformed
    assert all(
        row.connection.closed and not row.connection.lost_bytes
        for row in talk.recording.read_connections()
    )


@pytest.mark.peers
def test_every_error_finding_is_a_documented_fault(talk: Talk) -> None:
    """No false alarm: the errors that rules find in this pair's traffic are those in the manual's
    table, and no others."""
    found = {
        row.finding.rule
        for row in talk.recording.read_findings()
        if row.finding.severity is Severity.ERROR
    }
    assert {rule for rule in found if rule.startswith("A2A-")} == explained(talk.pair.name)


@pytest.mark.peers
def test_rechecking_the_recording_finds_the_same(talk: Talk) -> None:
    """`check` reports the findings of the live run again, in the same order."""
    live = [
        row.finding for row in talk.recording.read_findings() if row.finding.rule.startswith("A2A-")
    ]
    (session,) = talk.recording.read_sessions()
    assert [
        each for each in find_again(talk.recording, session) if each.rule.startswith("A2A-")
    ] == live


@pytest.mark.peers
def test_every_call_has_its_operation(talk: Talk) -> None:
    """Operation, binding and dialect of every call are those of the client, whatever else shares
    the port."""
    for line, event, _, one in talk.pairs():
        exchange = one.exchange
        where = (line.binding, line.scenario, exchange.id)
        assert exchange.operation in OPERATIONS[line.scenario], where
        if exchange.operation and exchange.binding is not Binding.CARD:
            assert exchange.binding == line.binding, where
            assert exchange.dialect in talk.pair.dialects, where
        if exchange.binding is Binding.OTHER:
            assert (line.scenario, line.binding) == ("malformed", "rest"), where
        if event["kind"] in ("status", "artifact"):
            assert exchange.streaming, where


@pytest.mark.peers
def test_tasks_are_joined_over_exchanges(talk: Talk) -> None:
    """A follow-up belongs to the task that requested it, a subscription and a cancellation to the
    task that they name."""
    for line in talk.lines("input"):
        for asking, answering in two_and_two(line):
            task = talk.task(asking.task_id)
            assert task.exchanges == (asking.id, answering.id)
            assert [TaskState(state).label for _, state in task.states if state > 2][-2:] == [
                "input-required",
                "completed",
            ]
    for scenario, streams in (("subscribe", {"first", "second"}), ("cancel", {"first", "main"})):
        for binding in talk.pair.bindings:
            joined = [
                line
                for line in talk.lines(scenario)
                if line.binding == binding and line.stream in streams
            ]
            ids = {one.exchange.id for line in joined for _, one in line.told}
            named = {one.exchange.task_id for line in joined for _, one in line.told}
            assert len(named) == (1 if joined else 0)
            assert all(set(talk.task(task_id).exchanges) == ids for task_id in named)


def two_and_two(line: Line) -> list[tuple[Exchange, Exchange]]:
    """Return the exchanges of a stream in pairs."""
    exchanges = list({one.exchange.id: one.exchange for _, one in line.told}.values())
    return list(zip(exchanges[::2], exchanges[1::2], strict=True))


@pytest.mark.peers
def test_artifacts_are_put_together(talk: Talk) -> None:
    """Chunks are counted, and the bytes of a large artifact are complete."""
    for line in talk.lines("streaming") if talk.pair.client != "vendor" else []:
        task = talk.task(line.told[0][1].exchange.task_id)
        assert [(one.chunks, one.complete) for one in task.artifacts] == [(4, True), (1, True)]
    for line in talk.lines("big"):
        for task_id in {one.exchange.task_id for _, one in line.told}:
            (artifact,) = talk.task(task_id).artifacts
            assert (artifact.size, artifact.complete) == (1_048_554, True)
