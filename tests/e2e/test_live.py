"""Live streams with the real proxy between grpc.aio peers: relayed without delay, decoded, and
checked correctly.

Every story of `tests/peers/live` runs once, all through one proxy. In a story the client continues
only when the agent has received its message, so that a proxy that held data back would stop it. The
expected findings are declared beside each story.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import EventKind, Exchange, Finding, Frame, FrameKind
from a2a_proxy.recording.read.reader import Recording
from peers.live.agent import STORY, LiveAgent
from peers.live.client import LiveClient
from peers.live.faults import FAULTS, NOTICED, UNDECLARED_FAULT
from peers.live.payloads import card
from peers.live.proposals import PROPOSALS
from peers.live.stories import LONG, MANY, STORIES, UNDECLARED
from peers.live.story import Story, parts
from support_proxy import Proxy, inspect
from support_rules import find_again

DECLARED = [*STORIES, *PROPOSALS, *FAULTS]
BARE = [UNDECLARED, UNDECLARED_FAULT]
EVERY = [*DECLARED, *BARE, LONG]
NOTICE_SECONDS = 120


@dataclass
class Told:
    """The recording of one story."""

    exchanges: list[Exchange] = field(default_factory=list)
    frames: list[list[Frame]] = field(default_factory=list)
    findings: list[list[Finding]] = field(default_factory=list)


@dataclass
class Account:
    """The recordings of all stories."""

    folder: Path
    path: Path
    stories: dict[str, Told]
    console: list[dict[str, Any]]
    """Console lines about exchanges."""
    skipped: int
    """Lines that the console omitted for lack of time."""


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """Run all stories once."""
    folder = tmp_path_factory.mktemp("live")
    console, skipped = asyncio.run(tell(folder))
    path = folder / "recording.a2a"
    with Recording(path) as recording:
        yield Account(folder, path, _by_story(recording), console, skipped)


async def tell(folder: Path) -> tuple[list[dict[str, Any]], int]:
    """Run the stories, the longest one alone; return the console lines about exchanges and the
    number of omitted lines."""
    agent = LiveAgent(parts([*DECLARED, LONG]), card(streaming=True, bidiStreaming=True))
    bare = LiveAgent(parts(BARE), card(streaming=True))
    one, other = await agent.start(), await bare.start()
    between = Proxy(folder, one, "", "--listen", "127.0.0.1:0", "--upstream", other)
    await asyncio.to_thread(between.start)
    try:
        second = between.said("start")[0]["routes"][1]["listen"][0]
        client, plain = LiveClient(between.address, agent), LiveClient(second, bare)
        newer = LiveClient(between.address, agent, "1.1")
        await client.card("card")
        await plain.card("card")
        async with asyncio.TaskGroup() as group:
            group.create_task(_notice(between, agent))
            for story in DECLARED:
                group.create_task(_run(story, client if story.version == "1.0" else newer))
            for story in BARE:
                group.create_task(_run(story, plain))
        await _run(LONG, client)
        for each in (client, newer, plain):
            await each.close()
        await asyncio.to_thread(between.stop)
    finally:
        await asyncio.to_thread(between.kill)
        await agent.stop()
        await bare.stop()
    return between.said("exchange"), sum(each["count"] for each in between.said("skipped"))


async def _run(story: Story, client: LiveClient) -> None:
    try:
        await story.client(client)
    except Exception as error:
        error.add_note(f"in the story {story.name}")
        raise


async def _notice(between: Proxy, agent: LiveAgent) -> None:
    """Signal an agent that keeps a stream open to continue when the recorder has reported it."""
    async with asyncio.timeout(NOTICE_SECONDS):
        while not await asyncio.to_thread(_noticed, between.recording):
            await asyncio.sleep(0.2)
    agent.signal("lingering: noticed").set()


def _noticed(path: Path) -> bool:
    with Recording(path) as recording:
        return any(row.finding.rule == NOTICED for row in recording.read_findings())


def _by_story(recording: Recording) -> dict[str, Told]:
    found: dict[str, Told] = {}
    for row in recording.read_exchanges():
        names = [
            value.decode() for name, value in row.exchange.request_headers if name == STORY.encode()
        ]
        told = found.setdefault(names[0], Told())
        told.exchanges.append(row.exchange)
        told.frames.append([each.frame for each in recording.read_frames(row.key)])
        told.findings.append([each.finding for each in recording.read_findings(exchange=row.key)])
    return found


def _place(frames: list[Frame], seq: int) -> str:
    """Return the place of a frame: `<2` is the agent's third frame."""
    if seq < 0:
        return "-"
    direction = frames[seq].direction
    number = sum(frame.direction is direction for frame in frames[:seq])
    return f"{'<' if direction else '>'}{number}"


# --- findings


def of_the_agent(finding: Finding) -> bool:
    """Return the findings without those of rules about latency, which a machine that stops for half
    a second causes."""
    return not finding.rule.startswith("A2A-LAT-")


@pytest.mark.parametrize("story", EVERY, ids=lambda story: story.name)
def test_the_findings_of_each_story_are_exact(account: Account, story: Story) -> None:
    """Exactly the findings that the story declares, in their places, and no others."""
    told = account.stories[story.name]
    found = Counter(
        (finding.rule, number, _place(told.frames[number], finding.seq))
        for number, findings in enumerate(told.findings)
        for finding in findings
        if of_the_agent(finding)
    )
    assert found == {(each.rule, each.exchange, each.place): each.times for each in story.finds}


def test_connections_and_cards_have_no_findings(account: Account) -> None:
    """Neither the connections nor the cards have any."""
    with Recording(account.path) as recording:
        everything = [row.finding for row in recording.read_findings()]
        (session,) = recording.read_sessions()
        again = find_again(recording, session)
    assert sum(map(of_the_agent, everything)) == sum(
        each.times for story in EVERY for each in story.finds
    )
    assert Counter(map(repr, again)) == Counter(map(repr, everything))
    assert (session.how, session.complete) == ("clean", "complete")


# --- decoding

_ASK, _WORK = "INPUT_REQUIRED", "WORKING"
LOOP = [
    ("to agent", "MESSAGE", ""),
    ("to client", "TASK", "SUBMITTED"),
    ("to client", "STATUS", _WORK),
    ("to client", "STATUS", _ASK),
    ("to agent", "MESSAGE", ""),
    ("to client", "STATUS", _WORK),
    ("to client", "STATUS", "AUTH_REQUIRED"),
    ("to agent", "MESSAGE", ""),
]
RESULT = [
    ("to client", "STATUS", _WORK),
    ("to client", "ARTIFACT", ""),
    ("to client", "ARTIFACT", ""),
    ("to client", "STATUS", "COMPLETED"),
    ("to client", "END", ""),
]


def timeline(frames: list[Frame]) -> list[tuple[str, str, str]]:
    """Return the sender of each message, in the order of the recording."""
    return [
        (
            "to client" if frame.direction else "to agent",
            frame.event.name if frame.event else frame.kind.name,
            TaskState(frame.state).name if frame.state else "",
        )
        for frame in frames
    ]


@pytest.mark.parametrize("name", ["approval", "approval-ids", "configured"])
def test_the_approval_loop(account: Account, name: str) -> None:
    """Both directions on one timeline; the agent is the first to end."""
    told = account.stories[name]
    assert timeline(told.frames[0]) == [*LOOP, *RESULT]
    (exchange,) = told.exchanges
    passed = [
        "submitted",
        "working",
        "input-required",
        "working",
        "auth-required",
        "working",
        "completed",
    ]
    assert list(exchange.states) == passed
    assert (exchange.half_close, exchange.how, exchange.grpc_status) == ("agent", "complete", 0)
    assert (exchange.requests, exchange.events, exchange.request_ended) == (3, 9, 0)


def test_the_client_half_closes_first(account: Account) -> None:
    """Its end is between its last message and the agent's next message, or among the agent's
    messages."""
    told = account.stories["approval-closed"]
    line = timeline(told.frames[0])
    ended = line.index(("to agent", "END", ""))
    assert ended > LOOP.index(("to client", "STATUS", "AUTH_REQUIRED")) + 1
    assert line[:ended] + line[ended + 1 :] == [*LOOP, *RESULT]
    assert told.exchanges[0].half_close == "client"


def test_every_frame_is_decoded_in_order(account: Account) -> None:
    """Times do not decrease; every message has its schema and its task."""
    for name, told in account.stories.items():
        for exchange, frames in zip(told.exchanges, told.frames, strict=True):
            assert [frame.at for frame in frames] == sorted(frame.at for frame in frames), name
            assert [frame.seq for frame in frames] == list(range(len(frames)))
            assert not [frame for frame in frames if frame.kind is FrameKind.UNDECODABLE]
            schemas = {
                frame.schema
                for frame in frames
                if frame.kind in (FrameKind.REQUEST, FrameKind.EVENT)
            }
            if exchange.operation == "SendLiveMessage" and name not in (
                "talk",
                "gap",
                "mixed",
                "uplink",
            ):
                assert exchange.live_payload == "bidi"
                assert schemas <= {"lf.a2a.v1.SendMessageRequest", "lf.a2a.v1.StreamResponse"}


def test_proposals_are_recognised_by_their_bytes(account: Account) -> None:
    """The bytes decide: from the first message on, or when the agent first sends a message of only
    one proposal."""
    schemas = {
        name: [
            [
                frame.schema.rpartition(".")[2]
                for frame in frames
                if frame.kind in (FrameKind.REQUEST, FrameKind.EVENT)
            ]
            for frames in account.stories[name].frames
        ]
        for name in ("talk", "uplink")
    }
    payloads = {
        name: [each.live_payload for each in account.stories[name].exchanges] for name in schemas
    }
    assert payloads == {"talk": ["1975"], "uplink": ["2153", "2153"]}
    assert set(schemas["talk"][0]) == {"LiveRequest@live-1975", "LiveResponse@live-1975"}
    stream, short = schemas["uplink"]
    assert stream == [
        "SendMessageRequest",
        *["StreamResponse"] * 2,
        *["StreamResponse@live-2153"] * 3,
    ]
    assert short == ["StreamRequest@live-2153", "StreamResponse@live-2153"]
    talked = account.stories["talk"].frames[0]
    assert [TaskState(frame.state).name for frame in talked if frame.state] == [
        "SUBMITTED",
        "WORKING",
        "COMPLETED",
    ]
    assert (
        account.stories["uplink"].exchanges[1].task_id
        == account.stories["uplink"].exchanges[0].task_id
    )


ENDS = {
    "answered": [("complete", "agent", 0)],
    "lost": [("client cancel", "", -1), ("complete", "agent", 0)],
    "over": [("complete", "agent", 0), ("complete", "agent", 0)],
    "refused": [("complete", "agent", 0), ("complete", "agent", 9)],
    "shared": [("complete", "agent", 0), ("complete", "agent", 0)],
    "watched": [("complete", "agent", 0), ("complete", "client", 0)],
    "unknown": [("complete", "agent", 5)],
    "unimplemented": [("complete", "agent", 12)],
    "malformed": [("complete", "agent", 3)],
    "idle": [("complete", "agent", 0)],
    "cancelled": [("client cancel", "", -1)],
    "closing": [("complete", "agent", 0)],
    "deaf": [("complete", "client", 0)],
}


@pytest.mark.parametrize("name", ENDS)
def test_the_end_of_each_stream_is_recorded(account: Account, name: str) -> None:
    """Its end, the side that half-closed first, and the status."""
    ended = [
        (each.how, each.half_close, each.grpc_status) for each in account.stories[name].exchanges
    ]
    assert ended == ENDS[name]


def test_a_cancel_ends_the_stream(account: Account) -> None:
    """The client cancels, as recorded on the wire."""
    frames = account.stories["cancelled"].frames[0]
    assert (frames[-1].kind, frames[-1].note, frames[-1].direction.name) == (
        FrameKind.CUT,
        "rst_stream cancel",
        "TO_AGENT",
    )


def test_two_streams_show_the_same_task(account: Account) -> None:
    """Multiplexed, and beside a subscription: one task with both exchanges, and each event once in
    its history."""
    with Recording(account.path) as recording:
        for name in ("shared", "watched"):
            told = account.stories[name]
            (row,) = recording.read_task(told.exchanges[0].task_id)
            assert set(row.task.exchanges) == {exchange.id for exchange in told.exchanges}
            said = [
                [frame.payload for frame in frames if frame.event is EventKind.ARTIFACT]
                for frames in told.frames
            ]
            assert len(said[0]) == 2
            assert said[0] == said[1]
            assert [artifact.chunks for artifact in row.task.artifacts] == [2]


def test_compressed_messages(account: Account) -> None:
    """They are recorded decompressed, with the encoding on the wire."""
    frames = account.stories["packed"].frames[0]
    messages = [frame for frame in frames if frame.kind in (FrameKind.REQUEST, FrameKind.EVENT)]
    packed = [
        frame for frame in messages if frame.framing == "gzip"
    ]  # gRPC does not compress small messages
    assert {frame.direction.name for frame in packed} == {"TO_AGENT", "TO_CLIENT"}
    assert any(frame.size > 2 * (frame.end - frame.start) for frame in packed)
    assert timeline(frames)[1:4] == LOOP[1:4]


def test_ten_thousand_events(account: Account) -> None:
    """Every event is recorded, in order."""
    (frames,) = account.stories["many"].frames
    (exchange,) = account.stories["many"].exchanges
    assert exchange.events == MANY
    artifacts = [frame.payload for frame in frames if frame.event is EventKind.ARTIFACT]
    assert [int(payload.rpartition(b"\n")[2][1:].split()[0]) for payload in artifacts] == list(
        range(MANY - 3)
    )


# --- output


def test_show_of_a_live_stream(account: Account) -> None:
    """One timeline, with both half-closes in words."""
    told = account.stories["approval-closed"]
    lines = inspect(account.folder, "show", account.path, str(told.exchanges[0].id)).splitlines()
    head = next(line for line in lines if "SendLiveMessage" in line)
    assert "grpc 1.0  live:bidi  client half-closed first  ok" in head
    said = [line.strip().partition(" --> ")[2] for line in lines if " --> " in line]
    assert said == [
        'message user "deploy it"',
        'message user "to Frankfurt"',
        'message user "yes, go on"',
        "client half-closed",
    ]
    assert lines[-1].endswith("<-- agent half-closed (OK)")
    lost = inspect(
        account.folder, "show", account.path, account.stories["lost"].exchanges[0].task_id
    ).splitlines()
    assert any(line.endswith("--> client broke off: rst_stream cancel") for line in lost)
    assert any(" --> reconnect for task " in line for line in lost)
    refused = inspect(
        account.folder, "show", account.path, str(account.stories["refused"].exchanges[1].id)
    )
    assert refused.rstrip().endswith(
        "agent half-closed (FAILED_PRECONDITION: the task has a live stream)"
    )


def test_console_lines_of_live_streams(account: Account) -> None:
    """The same facts as JSON, as far as the recorder had time to print them, and the number of
    omitted lines."""
    recorded = {
        exchange.id: exchange for told in account.stories.values() for exchange in told.exchanges
    }
    said = {each["id"]: each for each in account.console if not each["live"]}
    assert len(said) >= len(recorded) - account.skipped
    for number, each in said.items():
        assert each["live_payload"] == (recorded[number].live_payload or None)
        assert each["half_close"] == (recorded[number].half_close or None)


# --- options


def test_the_payload_option_overrides_detection(tmp_path: Path) -> None:
    """`--live 1975` for a stream of another proposal: it is relayed unchanged, and recorded with
    the schema in the option."""
    asyncio.run(_forced(tmp_path))
    with Recording(tmp_path / "recording.a2a") as recording:
        (session,) = recording.read_sessions()
        (row,) = recording.read_exchanges()
        frames = [each.frame for each in recording.read_frames(row.key)]
        found = [each.finding for each in recording.read_findings()]
        assert list(map(repr, find_again(recording, session))) == list(map(repr, found))
    assert session.facts.command[-2:] == ("--live", "1975")
    assert row.exchange.live_payload == "1975"
    assert frames[0].kind is FrameKind.UNDECODABLE
    words = "looks like `bidi`, read as `--live 1975`"
    assert [words in finding.summary for finding in found if finding.rule == "UNDECODABLE"] == [
        True,
        True,
    ]
    shown = inspect(tmp_path, "show", tmp_path / "recording.a2a")
    assert "live:1975" in shown
    assert words in shown


async def _forced(folder: Path) -> None:
    agent = LiveAgent(parts(STORIES), card())
    between = Proxy(folder, await agent.start(), "", "--live", "1975")
    await asyncio.to_thread(between.start)
    try:
        client = LiveClient(between.address, agent)
        await STORIES[0].client(client)
        await client.close()
        await asyncio.to_thread(between.stop)
    finally:
        await asyncio.to_thread(between.kill)
        await agent.stop()
