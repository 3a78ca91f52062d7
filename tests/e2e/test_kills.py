"""Recorder and relay are killed in mid-stream, between real gRPC and SSE peers: every received
event is recorded once. So on each way from the client to the agent: plain, with TLS, through a
forward proxy."""

from __future__ import annotations

import asyncio
import math
import os
import random
import socket
import sys
import time
from pathlib import Path

import pytest

from a2a_proxy.recording.read.reader import Recording
from support_cli import until_dead
from support_kills import Clients, Mark, Reach, kill, next_recorder, recorded
from support_proxy import Proxy, inspect, running
from support_recorder import kill_blamelessly
from support_ways import Way

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="finds the recorder in /proc"
)
WAYS = (Way.PLAIN, Way.TLS, Way.ABSOLUTE, Way.INTERCEPT)
ROUNDS = [
    pytest.param(way, kills, id=f"{way} {kills}", marks=marks)
    for way in WAYS
    for kills, marks in (
        (4 if way is Way.PLAIN else 2, ()),
        (math.ceil(int(os.environ.get("KILLS", "200")) / len(WAYS)), pytest.mark.soak),
    )
]
SECONDS = 120.0
LATEST_NS = 5_000_000
"""Time whose records are lost with a killed relay, on an idle machine."""
STALLED_NS = 5_000_000_000
"""The same on a busy machine."""
MOST_KILLS = 40
"""Number of kills after which a quarter of them found the relay running."""


@pytest.fixture(autouse=True)
def no_exceptions(monkeypatch: pytest.MonkeyPatch) -> None:
    """GRPC uses the forward proxy for this machine too."""
    monkeypatch.setenv("no_grpc_proxy", "")


async def gone(between: Proxy) -> None:
    """Wait until the recorder has ended by itself."""
    async with asyncio.timeout(SECONDS):
        while list((between.state / "journals").iterdir()):
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(("way", "kills"), ROUNDS)
async def test_the_recorder_is_killed_in_mid_stream(tmp_path: Path, way: Way, kills: int) -> None:
    """No client notices, no frame is lost or duplicated, and the console reports each kill; at most
    two segments stay on disk."""
    chance = random.Random(11)
    clients, reach = Clients(), Reach(way, tmp_path)
    async with reach.agent() as agent:
        with running(reach.proxy(tmp_path, agent, "--journal-segment", "256K")) as between:
            clients.start(reach, agent, between, 2)
            await clients.begun()
            recorder = 0
            (journal,) = (between.state / "journals").iterdir()
            for _ in range(kills):
                recorder = await next_recorder(between.process.pid, recorder)
                await asyncio.sleep(chance.uniform(0, 1.2))
                await asyncio.to_thread(kill_blamelessly, recorder, journal, between.recording)
            agent.enough.set()
            await clients.ended()
            await caught_up(journal)
            summary = await asyncio.to_thread(between.stop)
    assert set(clients.ends.values()) == {"ok"}
    assert dict(recorded(between.recording)) == dict(clients.got)
    assert all(
        [number for number, _ in got] == list(range(len(got))) for got in clients.got.values()
    )
    assert summary["complete"]
    with Recording(between.recording) as recording:
        assert not [
            row for row in recording.read_findings() if not row.finding.rule.startswith("A2A-")
        ]
    assert (
        len([said for said in between.said("trouble") if "the recorder died" in said["message"]])
        == kills
    )


async def caught_up(journal: Path) -> None:
    """Wait until the recorder reads the newest segment and has deleted the earlier ones, as long as
    it deletes any."""
    left = set(journal.glob("*.a2aj"))
    while len(left) > 2:
        async with asyncio.timeout(SECONDS):
            while (now := set(journal.glob("*.a2aj"))) == left:
                await asyncio.sleep(0.02)
        left = now


@pytest.mark.parametrize(("way", "kills"), ROUNDS)
async def test_the_relay_is_killed_in_mid_traffic(tmp_path: Path, way: Way, kills: int) -> None:
    """The recorder ends by itself: everything except the last milliseconds is recorded once, and
    the session says up to which time.

    A relay that held records longer would lose more in every kill; a busy machine loses more only
    sometimes.
    """
    chance = random.Random(12)
    windows: list[int] = []
    reach = Reach(way, tmp_path)
    async with reach.agent() as agent:
        while len(windows) < kills or (quarter(windows) > LATEST_NS and len(windows) < MOST_KILLS):
            round_ = len(windows)
            clients = Clients()
            between = await asyncio.to_thread(reach.proxy(tmp_path, agent).start)
            clients.start(reach, agent, between, 2, f"r{round_}x")
            await clients.begun()
            await asyncio.sleep(chance.uniform(0, 0.3))
            at = time.time_ns()
            await asyncio.to_thread(between.kill)
            await clients.ended()
            await gone(between)
            with Recording(between.recording) as stored:
                session = stored.read_sessions()[-1]
            assert (session.id, session.how) == (round_ + 1, "unclean")
            assert "the proxy was killed; complete until 2" in session.complete
            windows.append(missing(clients.got, recorded(between.recording, session.id), at))
    print("missing before the kill, ms:", sorted(round(window / 1e6, 1) for window in windows))
    assert quarter(windows) <= LATEST_NS
    assert max(windows) <= STALLED_NS


def quarter(windows: list[int]) -> int:
    """Return the first quartile."""
    return sorted(windows)[len(windows) // 4]


def missing(got: dict[str, list[Mark]], found: dict[str, list[Mark]], killed: int) -> int:
    """Return how long before the kill the agent sent the oldest event that a client received and
    the recording lacks, ns."""
    oldest = killed
    for stream, marks in got.items():
        kept = found[stream]
        assert kept[: len(marks)] == marks[: len(kept)]
        assert len({number for number, _ in kept}) == len(kept)
        if len(kept) < len(marks):
            oldest = min(oldest, marks[len(kept)][1])
    return killed - oldest


async def test_recover_finishes_a_session_whose_processes_were_killed(tmp_path: Path) -> None:
    """The next start reports it; `recover` finishes it; a second `recover` has nothing to do."""
    clients, reach = Clients(), Reach(Way.PLAIN, tmp_path)
    async with reach.agent() as agent:
        between = await asyncio.to_thread(reach.proxy(tmp_path, agent).start)
        clients.start(reach, agent, between, 2)
        await clients.begun(50)
        recorder = await next_recorder(between.process.pid)
        at = time.time_ns()
        kill(recorder, between.process.pid)
        await clients.ended()
        await asyncio.to_thread(between.kill)
        await asyncio.to_thread(until_dead, recorder)
    with socket.create_server(
        ("127.0.0.1", 0)
    ) as idle:  # an agent that listens, so that nothing else is warned of
        after = await asyncio.to_thread(Proxy(tmp_path, f"127.0.0.1:{idle.getsockname()[1]}").start)
        await asyncio.to_thread(after.stop)
    assert [said["message"] for said in after.said("warning")] == [
        "a session was not recorded to the end"
    ]
    assert [said["hint"] for said in after.said("warning")] == ["finish with: a2a-inspect recover"]
    said = await asyncio.to_thread(inspect, between.state, "recover")
    assert said.startswith(f"recovered {between.recording.resolve()}: ")
    once = recorded(between.recording, 1)
    assert missing(clients.got, once, at) <= STALLED_NS
    assert await asyncio.to_thread(inspect, between.state, "recover") == "nothing to recover\n"
    assert recorded(between.recording, 1) == once
    with Recording(between.recording) as stored:
        assert [row.how for row in stored.read_sessions()] == ["unclean", "clean"]
