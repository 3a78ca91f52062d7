"""The proxy causes no gap: however the bytes are split, whichever side half-closes and however
often the recorder is killed, the client receives the agent's bytes, and no gap is reported if the
agent sent all events."""

from __future__ import annotations

import asyncio
import random
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from a2a_proxy.model.wire import ChunkKind, Direction
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.rules.examples.objects import Json, chunk, reply, send, snapshot, status
from support_kills import kill, next_recorder
from support_numbered import BINDINGS, over
from support_proxy import Proxy

CONVERSATIONS, AT_ONCE, KILLS = 36, 6, 2
SECONDS = 120.0
MARK = re.compile(rb"conversation-(\d{3})")


class Conversation(msgspec.Struct):
    """The bytes of both peers on one connection, and the received bytes."""

    number: int
    events: int
    request: bytes
    response: bytes
    half_closes: bool
    """Whether the client ends its side directly after its request."""
    asked: bytes = b""
    answered: bytes = b""


def conversation(number: int, chance: random.Random) -> Conversation:
    """Generate a stream that reports every change of a task of its own."""
    name, events = f"conversation-{number:03}", chance.randint(3, 30)
    about: dict[str, Any] = {"taskId": f"t-{name}", "contextId": f"c-{name}"}
    said: list[Json] = [
        snapshot("SUBMITTED", id=about["taskId"], contextId=about["contextId"], generation="1")
    ]
    for change in range(2, events):
        numbered = about | {"generation": str(change)}
        if change == 2 or chance.random() < 0.3:
            state = "WORKING" if change % 2 == 0 else "INPUT_REQUIRED"
            asks = reply(
                "which?" * chance.randint(1, 50),
                id=f"r-{name}-{change}",
                contextId=about["contextId"],
            )
            said.append(status(state, message=asks, **numbered))
        else:
            said.append(chunk("word " * chance.randint(1, 2000), id=f"a{change}", **numbered))
    said.append(status("COMPLETED", generation=str(events), **about))
    script = over(chance.choice(BINDINGS), *said, params=send(name, id=f"m-{name}"))
    request, response = (
        b"".join(
            each.data
            for each in script.make_chunks()
            if each.kind is ChunkKind.DATA and each.direction is direction
        )
        for direction in (Direction.TO_AGENT, Direction.TO_CLIENT)
    )
    return Conversation(number, events, request, response, chance.random() < 0.3)


def pieces(data: bytes, chance: random.Random) -> list[bytes]:
    """Generate pieces of any size: single bytes, a few, or many at once."""
    found, at = [], 0
    while at < len(data):
        size = chance.choice([1, 7, 9, 100, 1000, 20_000])
        found.append(data[at : at + size])
        at += size
    return found


async def say(writer: asyncio.StreamWriter, data: bytes, chance: random.Random) -> None:
    for each in pieces(data, chance):
        writer.write(each)
        await writer.drain()
        if chance.random() < 0.2:
            await asyncio.sleep(chance.random() * 0.004)


class Agent:
    """Answers each conversation with its bytes after the whole request has arrived."""

    def __init__(self, talks: list[Conversation], seed: int) -> None:
        self._talks, self._seed = talks, seed

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got = b""
        while not (found := MARK.search(got)):
            got += await reader.read(65536)
        talk = self._talks[int(found[1])]
        while len(got) < len(talk.request):
            got += await reader.read(65536)
        talk.asked = got
        await say(writer, talk.response, random.Random(self._seed + talk.number))
        writer.close()


async def talk_to(host: str, port: int, talk: Conversation, seed: int) -> None:
    """Run the client's side until the agent's side ends."""
    chance = random.Random(seed - talk.number - 1)
    reader, writer = await asyncio.open_connection(host, port)
    await say(writer, talk.request, chance)
    if talk.half_closes:
        writer.write_eof()
    while data := await reader.read(chance.choice([1, 100, 65536])):
        talk.answered += data
    writer.close()


async def all_of(running: Proxy, talks: list[Conversation], seed: int) -> int:
    """Run conversations at the same time while the recorder is killed now and then; return the
    number of recorders."""
    room, over_now, kills = asyncio.Semaphore(AT_ONCE), 0, 0

    async def one(talk: Conversation) -> None:
        nonlocal over_now
        async with room:
            await talk_to("127.0.0.1", running.port, talk, seed)
        over_now += 1

    async def kill_some() -> int:
        killed: list[int] = []
        for number in range(1, KILLS + 1):
            while over_now < number * len(talks) // (KILLS + 1):
                await asyncio.sleep(0.005)
            killed.append(await next_recorder(running.process.pid, *killed[-1:]))
            kill(killed[-1])
        return len(set(killed))

    async with asyncio.timeout(SECONDS):
        kills, *_ = await asyncio.gather(kill_some(), *map(one, talks))
    return kills


@pytest.mark.parametrize("seed", [1, 2])
def test_the_proxy_causes_no_gap(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    talks = [conversation(number, chance) for number in range(CONVERSATIONS)]

    async def play() -> int:
        server = await asyncio.start_server(Agent(talks, seed).serve, "127.0.0.1", 0)
        upstream = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        running = await asyncio.to_thread(Proxy(tmp_path, upstream).start)
        try:
            kills = await all_of(running, talks, seed)
            await asyncio.to_thread(running.stop)
        finally:
            await asyncio.to_thread(running.kill)
            server.close()
        return kills

    assert asyncio.run(play()) == KILLS
    assert [
        talk.number
        for talk in talks
        if (talk.asked, talk.answered) != (talk.request, talk.response)
    ] == []
    with Recording(tmp_path / "recording.a2a") as recording:
        (session,) = recording.read_sessions()
        tasks = {row.task.task_id: row.task for row in recording.read_tasks()}
        found = [
            row.finding
            for row in recording.read_findings()
            if row.finding.rule.startswith("A2A-GEN-")
        ]
    assert (session.complete, found) == ("complete", [])
    for talk in talks:
        task = tasks[f"t-conversation-{talk.number:03}"]
        assert (task.seen, task.missed) == (((1, talk.events),), ())
