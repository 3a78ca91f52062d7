"""Two small agents: a desk that calls a clerk and is interrupted by its client. Over JSON-RPC with
SSE, and over gRPC.

The desk reports to its client that it works, calls the clerk with the same text in the same
context, and then writes an artifact chunk by chunk until its client sends a message; it sends one
more chunk, then stops.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import grpc
from aiohttp import web

from a2a_proto import from_dict, message_class, to_dict

Json = dict[str, Any]
Ask = Callable[[Json], Awaitable[str]]
"""Sends the clerk a message through the proxy and returns the answer."""
QUESTION = "how much is a ticket to Porto"
PRICE = "a ticket to Porto is 27 euros"
SERVICE = "lf.a2a.v1.A2AService"
_AT_WORK, _DONE = "TASK_STATE_WORKING", "TASK_STATE_COMPLETED"


def message(text: str, **ids: str) -> Json:
    """Return a message of a client."""
    return {"messageId": f"m-{text[:8]}", "role": "ROLE_USER", "parts": [{"text": text}], **ids}


class Events:
    """The events of one task."""

    def __init__(self, task: str, context: str) -> None:
        self._ids = {"taskId": task, "contextId": context}

    def task(self) -> Json:
        return {
            "task": {
                "id": self._ids["taskId"],
                "contextId": self._ids["contextId"],
                "status": {"state": _AT_WORK},
            }
        }

    def chunk(self, text: str, *, append: bool = True) -> Json:
        artifact = {"artifactId": "offer", "parts": [{"text": text}]}
        return {
            "artifactUpdate": {
                **self._ids,
                "artifact": artifact,
                **({"append": True} if append else {}),
            }
        }

    def status(self, state: str, text: str = "") -> Json:
        said = {
            "messageId": f"a-{text[:8]}",
            "role": "ROLE_AGENT",
            "parts": [{"text": text}],
            **self._ids,
        }
        return {
            "statusUpdate": {
                **self._ids,
                "status": {"state": state, **({"message": said} if text else {})},
            }
        }


async def clerk(_: Json) -> AsyncIterator[Json]:
    """Answer with a price."""
    events = Events("clerk-task", "ctx")
    yield events.task()
    yield events.chunk(PRICE, append=False)
    yield events.status(_DONE)


class Desk:
    """The agent that calls the clerk; `interrupted` is set by its client's second message."""

    def __init__(self) -> None:
        self.ask: Ask
        self.interrupted = asyncio.Event()

    async def answer(self, asked: Json) -> AsyncIterator[Json]:
        events = Events("desk-task", "ctx")
        yield events.task()
        price = await self.ask(message(asked["parts"][0]["text"], contextId="ctx"))
        yield events.chunk(price, append=False)
        yield events.chunk("and there is also")
        await self.interrupted.wait()
        yield events.chunk("a first class")
        yield events.status(_AT_WORK, "all right, no more")
        yield events.status(_DONE)


# --- JSON-RPC


def served(
    answer: Callable[[Json], AsyncIterator[Json]], desk: Desk | None = None
) -> web.Application:
    """Run an agent over JSON-RPC."""

    async def call(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        around = {"jsonrpc": "2.0", "id": body["id"]}
        if body["method"] == "SendMessage":
            assert desk is not None
            desk.interrupted.set()
            return web.json_response({**around, "result": Events("desk-task", "ctx").task()})
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        async for event in answer(body["params"]["message"]):
            await response.write(
                b"data: " + json.dumps({**around, "result": event}).encode() + b"\n\n"
            )
        await response.write_eof()
        return response

    app = web.Application()
    app.router.add_post("/", call)
    return app


async def post(
    session: aiohttp.ClientSession, url: str, method: str, said: Json
) -> AsyncIterator[Json]:
    """Yield the results of a call."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": said}}
    async with session.post(url, json=body, headers={"A2A-Version": "1.0"}) as response:
        async for line in response.content:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])["result"]
            elif line.startswith(b"{"):
                yield json.loads(line)["result"]


# --- gRPC


def encoded(event: Json) -> bytes:
    return from_dict("1.0", "StreamResponse", event).SerializeToString()


def request(said: Json) -> bytes:
    return from_dict("1.0", "SendMessageRequest", {"message": said}).SerializeToString()


def asked_in(data: bytes) -> Json:
    found: Json = to_dict(message_class("1.0", "SendMessageRequest").FromString(data))["message"]
    return found


class Handler(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs only
    """An agent over gRPC: the desk as a live stream, the clerk as a server stream."""

    def __init__(self, desk: Desk | None) -> None:
        self._desk = desk

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        if handler_call_details.method == f"/{SERVICE}/SendLiveMessage":
            return grpc.stream_stream_rpc_method_handler(self._live)
        return grpc.unary_stream_rpc_method_handler(self._stream)

    async def _stream(self, data: bytes, _context: Any) -> AsyncIterator[bytes]:
        async for event in clerk(asked_in(data)):
            yield encoded(event)

    async def _live(self, requests: AsyncIterator[bytes], _context: Any) -> AsyncIterator[bytes]:
        assert self._desk is not None
        desk, incoming = self._desk, aiter(requests)
        first = asked_in(await anext(incoming))

        async def listen() -> None:
            async for _ in incoming:
                desk.interrupted.set()

        listening = asyncio.ensure_future(listen())
        async for event in desk.answer(first):
            yield encoded(event)
        listening.cancel()
