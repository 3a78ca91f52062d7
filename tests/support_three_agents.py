"""Three small agents in a chain, over JSON-RPC with SSE: a concierge asks a planner, and that asks a railway.

Each tells its caller that it is at work, asks the next one, and answers with what it was told. Each has contexts and
tasks of its own; what joins them is the trace, of which each makes a span (`traceparent`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import msgspec
from aiohttp import web

from support_two_agents import Events, Json, message

QUESTION = "Two of us want to be in Porto on Friday. How do we get there from Lisbon?"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
_DONE = "TASK_STATE_COMPLETED"


class Part(msgspec.Struct, frozen=True):
    """What an agent does."""

    name: str
    span: str
    asks: str
    """What it asks the next agent; empty: it asks nobody."""
    answers: tuple[str, ...]
    """Its artifact, chunk by chunk."""


PARTS = (
    Part(
        "concierge",
        "00f067aa0ba902b7",
        "Lisbon to Porto, Friday morning, 2 travellers",
        ("Take the train at 08:09 from Oriente, ", "you are in Porto at 10:52. ", "Two seats cost 65.80 euros."),
    ),
    Part(
        "planner",
        "53995c3f42cd8ad8",
        "Trains and fares, Lisboa-Oriente to Porto-Campanha, Friday before noon, 2 adults",
        ("AP 121, 08:09 to 10:52, 32.90 euros each",),
    ),
    Part("railway", "", "", ("AP 121: 08:09 - 10:52", "; IC 521: 08:39 - 11:54", "; AP fare 32.90, IC fare 25.70")),
)


def headers(span: str) -> dict[str, str]:
    """Of a call made within a span of the trace."""
    return {"A2A-Version": "1.0", "traceparent": f"00-{TRACE}-{span}-01"}


class Agent:
    """One of the three; `next_url` is where the agent that it asks is reached, through the proxy."""

    def __init__(self, part: Part, pause: float) -> None:
        self.part = part
        self.next_url = ""
        self._pause = pause

    async def answer(self, session: aiohttp.ClientSession) -> AsyncIterator[Json]:
        """What it tells, event by event."""
        name, events = self.part.name, Events(f"{self.part.name}-task", f"{self.part.name}-context")
        yield events.task()
        await asyncio.sleep(self._pause)
        if self.part.asks:
            asked = {**message(self.part.asks), "messageId": f"{name}-asks"}
            heard = [event async for event in call(session, self.next_url, asked, headers(self.part.span))]
            yield events.status("TASK_STATE_WORKING", f"told in {len(heard)} events")
        for number, chunk in enumerate(self.part.answers, 1):
            event = events.chunk(chunk, append=number > 1)
            event["artifactUpdate"]["lastChunk"] = number == len(self.part.answers)
            yield event
            await asyncio.sleep(self._pause)
        yield events.status(_DONE)


async def call(session: aiohttp.ClientSession, url: str, said: Json, sent: dict[str, str]) -> AsyncIterator[Json]:
    """The events of a stream, one by one."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": said}}
    async with session.post(url, json=body, headers=sent) as response:
        async for line in response.content:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])["result"]


def application(agent: Agent) -> web.Application:
    """The agent behind HTTP."""

    async def handle(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await response.prepare(request)
        async with aiohttp.ClientSession() as session:
            async for event in agent.answer(session):
                said = {"jsonrpc": "2.0", "id": body["id"], "result": event}
                await response.write(b"data: " + json.dumps(said).encode() + b"\n\n")
        await response.write_eof()
        return response

    app = web.Application()
    app.router.add_post("/", handle)
    return app


@asynccontextmanager
async def chain(pause: float = 0.0) -> AsyncIterator[tuple[list[Agent], list[int]]]:
    """The agents with the ports that they listen on; between two things they do they wait for `pause` seconds. Who
    starts a proxy before them gives each its `next_url`."""
    agents = [Agent(part, pause) for part in PARTS]
    async with AsyncExitStack() as stack:
        ports = []
        for agent in agents:
            runner = web.AppRunner(application(agent), shutdown_timeout=0.5)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            ports.append(int(runner.addresses[0][1]))
        yield agents, ports


async def ask(listens: list[str], agents: list[Agent]) -> list[Json]:
    """A client asks the first agent; the agents are reached at `listens`, `host:port`. What the client was told."""
    for agent, following in zip(agents, listens[1:], strict=False):
        agent.next_url = f"http://{following}/"
    said = {**message(QUESTION), "messageId": "client-asks"}
    async with aiohttp.ClientSession() as session:
        return [each async for each in call(session, f"http://{listens[0]}/", said, headers("b7ad6b7169203331"))]


def routes(ports: list[int]) -> tuple[str, ...]:
    """Options of a proxy in front of all but the first agent, which is its main upstream."""
    return tuple(word for port in ports[1:] for word in ("--listen", "127.0.0.1:0", "--upstream", f"127.0.0.1:{port}"))
