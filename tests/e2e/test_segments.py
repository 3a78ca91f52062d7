"""Two real agents, one of which calls the other through a second listener of the same proxy: the
client's barge-in and the agent's hand-off are in the recording and in `a2a-inspect segments`, with
their latencies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
from aiohttp import web

from a2a_proxy.model.values import YIELD_WITHIN
from a2a_proxy.recording.read.conversations import read_conversations
from a2a_proxy.recording.read.reader import Recording
from support_proxy import Proxy, inspect
from support_two_agents import (
    PRICE,
    QUESTION,
    SERVICE,
    Desk,
    Handler,
    clerk,
    message,
    post,
    request,
    served,
)

Json = dict[str, Any]


async def serve(app: web.Application) -> tuple[web.AppRunner, int]:
    runner = web.AppRunner(app, shutdown_timeout=0.5)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, runner.addresses[0][1]


async def between(
    folder: Path, desk: int, clerk: int, talk: Callable[[str, str], Awaitable[None]]
) -> None:
    """Run a proxy with a listener for each agent; `talk` receives their addresses."""
    proxy = Proxy(
        folder,
        f"127.0.0.1:{desk}",
        "",
        "--listen",
        "127.0.0.1:0",
        "--upstream",
        f"127.0.0.1:{clerk}",
    )
    await asyncio.to_thread(proxy.start)
    try:
        first, second = (route["listen"][0] for route in proxy.said("start")[0]["routes"])
        await talk(first, second)
        await asyncio.to_thread(proxy.stop)
    finally:
        await asyncio.to_thread(proxy.kill)


async def over_jsonrpc(folder: Path) -> int:
    """Run the agents and yield the clerk's port."""
    desk = Desk()
    (one, desk_port), (other, clerk_port) = (
        await serve(served(desk.answer, desk)),
        await serve(served(clerk)),
    )

    async def talk(to_desk: str, to_clerk: str) -> None:
        async with aiohttp.ClientSession() as session:

            async def ask(said: Json) -> str:
                events = [
                    event
                    async for event in post(
                        session, f"http://{to_clerk}/", "SendStreamingMessage", said
                    )
                ]
                return str(events[1]["artifactUpdate"]["artifact"]["parts"][0]["text"])

            desk.ask = ask
            asked = message(QUESTION, contextId="ctx")
            async for event in post(session, f"http://{to_desk}/", "SendStreamingMessage", asked):
                if event.get("artifactUpdate", {}).get("append") and not desk.interrupted.is_set():
                    stop = message("no, only the price", taskId="desk-task", contextId="ctx")
                    assert [
                        _ async for _ in post(session, f"http://{to_desk}/", "SendMessage", stop)
                    ]

    await between(folder, desk_port, clerk_port, talk)
    await one.cleanup()
    await other.cleanup()
    return clerk_port


async def over_grpc(folder: Path) -> int:
    """Run the agents, with the desk's conversation as one live stream, and yield the clerk's
    port."""
    desk = Desk()
    servers = [grpc.aio.server(), grpc.aio.server()]
    ports = []
    for server, handler in zip(servers, (Handler(desk), Handler(None)), strict=True):
        server.add_generic_rpc_handlers((handler,))
        ports.append(server.add_insecure_port("127.0.0.1:0"))
        await server.start()

    async def talk(to_desk: str, to_clerk: str) -> None:
        async with (
            grpc.aio.insecure_channel(to_desk) as channel,
            grpc.aio.insecure_channel(to_clerk) as second,
        ):

            async def ask(said: Json) -> str:
                call = second.unary_stream(f"/{SERVICE}/SendStreamingMessage")(request(said))
                data = [event async for event in call]
                assert PRICE.encode() in data[1]
                return PRICE

            desk.ask = ask
            call = channel.stream_stream(f"/{SERVICE}/SendLiveMessage")()
            await call.write(request(message(QUESTION, contextId="ctx")))
            async for event in call:
                if b"there is also" in event:
                    await call.write(request(message("no, only the price")))
                    await call.done_writing()

    await between(folder, ports[0], ports[1], talk)
    for server in servers:
        await server.stop(0.2)
    return ports[1]


@pytest.mark.parametrize("conversation", [over_jsonrpc, over_grpc])
def test_a_barge_in_and_a_hand_off_are_recorded(
    tmp_path: Path, conversation: Callable[[Path], Any]
) -> None:
    clerk_port = asyncio.run(conversation(tmp_path))
    path = tmp_path / "recording.a2a"
    objects = [
        json.loads(line)
        for line in inspect(tmp_path / "state", "segments", path, "--json").splitlines()
    ]
    of = {
        what: [each for each in objects if each["what"] == what]
        for what in ("interruption", "handoff", "summary")
    }

    (broken,) = of["interruption"]
    assert (broken["task_id"], broken["kind"]) == ("desk-task", "message")
    assert broken["outcome"] == (
        "yielded" if broken["latency_ns"] <= YIELD_WITHIN else "overlapped"
    )
    assert broken["residual_frames"] == 1
    assert broken["wasted_bytes"] == len("a first class")
    assert broken["latency_ns"] > 0
    assert broken["reaction_time_ns"] > 0

    (handed,) = of["handoff"]
    assert (handed["task_id"], handed["kind"], handed["evidence"]) == (
        "desk-task",
        "delegation",
        "context",
    )
    assert (handed["to_agent"], handed["to_task"]) == (f"127.0.0.1:{clerk_port}", "clerk-task")
    assert handed["latency_ns"] > 0
    assert handed["briefing_bytes"] > len(QUESTION)
    assert handed["context_carried"] == 1.0  # only the question had been sent

    (summary,) = of["summary"]
    assert summary["interruption_latency"]["count"] == summary["transfer_latency"]["count"] == 1

    with Recording(path) as recording:
        (session,) = recording.read_sessions()
        found = read_conversations(recording, session)
        assert [row.interruption for row in recording.read_interruptions()] == found.interruptions
        assert [row.handoff for row in recording.read_handoffs()] == found.handoffs
        stored = [row.segment for row in recording.read_segments()]
        assert stored
        assert [each for each in found.segments if each in stored] == stored

    text = inspect(tmp_path / "state", "segments", path)
    assert "hand-off to 127.0.0.1:" in text
    assert "interrupted by a message" in text
    shown = inspect(tmp_path / "state", "show", path)
    assert "delegation by context" in shown
    assert "interrupted by a message" in shown
