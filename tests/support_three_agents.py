"""Three small agents in a chain, over JSON-RPC with SSE: a concierge calls a planner, which calls a
railway.

Each reports to its caller that it works, calls the next agent, and answers with the result. Each
has contexts and tasks of its own; they are joined by the trace, in which each creates a span
(`traceparent`).
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
    """The behaviour of an agent."""

    name: str
    span: str
    asks: str
    """The text that it sends to the next agent; empty if it calls none."""
    answers: tuple[str, ...]
    """Its artifact, chunk by chunk."""


PARTS = (
    Part(
        "concierge",
        "00f067aa0ba902b7",
        "Lisbon to Porto, Friday morning, 2 travellers",
        (
            "Take the train at 08:09 from Oriente, ",
            "you are in Porto at 10:52. ",
            "Two seats cost 65.80 euros.",
        ),
    ),
    Part(
        "planner",
        "53995c3f42cd8ad8",
        "Trains and fares, Lisboa-Oriente to Porto-Campanha, Friday before noon, 2 adults",
        ("AP 121, 08:09 to 10:52, 32.90 euros each",),
    ),
    Part(
        "railway",
        "",
        "",
        ("AP 121: 08:09 - 10:52", "; IC 521: 08:39 - 11:54", "; AP fare 32.90, IC fare 25.70"),
    ),
)


def headers(span: str) -> dict[str, str]:
    """Return the headers of a call made within a span of the trace."""
    return {"A2A-Version": "1.0", "traceparent": f"00-{TRACE}-{span}-01"}


class Agent:
    """One of the three agents; `next_url` is the address of the next agent through the proxy."""

    def __init__(self, part: Part, pause: float) -> None:
        self.part = part
        self.next_url = ""
        self._pause = pause

    async def answer(self, session: aiohttp.ClientSession) -> AsyncIterator[Json]:
        """Yield the events of its response."""
        name, events = self.part.name, Events(f"{self.part.name}-task", f"{self.part.name}-context")
        yield events.task()
        await asyncio.sleep(self._pause)
        if self.part.asks:
            asked = {**message(self.part.asks), "messageId": f"{name}-asks"}
            heard = [
                event
                async for event in call(session, self.next_url, asked, headers(self.part.span))
            ]
            yield events.status("TASK_STATE_WORKING", f"told in {len(heard)} events")
        for number, chunk in enumerate(self.part.answers, 1):
            event = events.chunk(chunk, append=number > 1)
            event["artifactUpdate"]["lastChunk"] = number == len(self.part.answers)
            yield event
            await asyncio.sleep(self._pause)
        yield events.status(_DONE)


async def call(
    session: aiohttp.ClientSession, url: str, said: Json, sent: dict[str, str]
) -> AsyncIterator[Json]:
    """Yield the events of a stream."""
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendStreamingMessage",
        "params": {"message": said},
    }
    async with session.post(url, json=body, headers=sent) as response:
        async for line in response.content:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])["result"]


def application(agent: Agent) -> web.Application:
    """Return the agent as an HTTP application."""

    async def handle(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        )
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
    """Run the agents and return them with their ports. They pause for `pause` seconds between two
    actions. The caller starts a proxy in front of them and sets each `next_url`."""
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
    """Call the first agent as a client, and return its events; `listens` are the addresses of the
    agents, `host:port`."""
    for agent, following in zip(agents, listens[1:], strict=False):
        agent.next_url = f"http://{following}/"
    said = {**message(QUESTION), "messageId": "client-asks"}
    async with aiohttp.ClientSession() as session:
        return [
            each
            async for each in call(
                session, f"http://{listens[0]}/", said, headers("b7ad6b7169203331")
            )
        ]


def routes(ports: list[int]) -> tuple[str, ...]:
    """Return the options of a proxy in front of all agents except the first, which is its main
    upstream."""
    return tuple(
        word
        for port in ports[1:]
        for word in ("--listen", "127.0.0.1:0", "--upstream", f"127.0.0.1:{port}")
    )
