"""A live agent by grpc.aio: it plays the part of the agent in a story, and knows what it has
received and when.

A client names the story in the metadata `x-story`. All that the agent reads is noted at once, so
that a client can wait for the receipt of one message before it sends the next.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from grpc import aio as _aio

from a2a_proto import from_dict, parse
from peers.live.payloads import Family, Json, Work

SERVICE = "lf.a2a.v1.A2AService"
STORY = "x-story"
RECEIPT_SECONDS = 60.0
aio: Any = _aio
"""Its stubs do not know all of it."""
OPTIONS = [("grpc.so_reuseport", 0)]


class Ended(Exception):
    """The client has half-closed: nothing more comes from it."""


class Call:
    """One live stream, or subscription, as the agent sees it."""

    def __init__(self, agent: LiveAgent, context: Any, family: Family, number: int) -> None:
        self.agent = agent
        self.context = context
        self.family = family
        self.number = number
        """Which of the streams of its story it is, from 0 in order of coming."""

    async def read(self) -> Json:
        """The client's next message. Raises Ended."""
        data = await self.context.read()
        if data is aio.EOF:
            raise Ended
        self.agent.note(data)
        return self.family.asked(data)

    async def told_all(self) -> None:
        """Wait until the client has half-closed; what it says until then is read."""
        try:
            while True:
                await self.read()
        except Ended:
            return

    async def tell(self, *events: Json) -> None:
        """Send events, one message each."""
        for event in events:
            await self.context.write(self.family.tell(event))

    async def refuse(self, code: grpc.StatusCode, text: str) -> None:
        """End the call with an error."""
        await self.context.abort(code, text)

    def compress(self) -> None:
        """From here on messages are in gzip."""
        self.context.set_compression(grpc.Compression.Gzip)


Part = Callable[[Call], Awaitable[None]]
"""What the agent does on one stream, from its first message to its end."""


class LiveAgent:
    """The server. `parts` are by the name of their story; of `tasks` it knows what a story has put
    there."""

    def __init__(self, parts: dict[str, tuple[Family, Part]], card: Json) -> None:
        self._parts = parts
        self._card = card
        self.tasks: dict[str, Work] = {}
        self._received: dict[bytes, asyncio.Event] = {}
        self._streams: dict[str, int] = {}
        self._signals: dict[str, asyncio.Event] = {}
        self.calls: dict[str, list[Call]] = {}
        """The open ones of a story, for those that tell all of them the same."""
        self._server = aio.server(options=OPTIONS)
        live = grpc.stream_stream_rpc_method_handler(self._live)
        handlers = {
            "SendLiveMessage": live,
            "ReconnectToTask": live,
            "SubscribeToTask": grpc.unary_stream_rpc_method_handler(self._subscribe),
            "GetTask": grpc.unary_unary_rpc_method_handler(self._get),
            "GetExtendedAgentCard": grpc.unary_unary_rpc_method_handler(self._tell_card),
        }
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, handlers),)
        )

    async def start(self) -> str:
        """Listen on a free port of loopback; the address."""
        port = self._server.add_insecure_port("127.0.0.1:0")
        await self._server.start()
        for interface in self._card["supportedInterfaces"]:
            interface["url"] = f"127.0.0.1:{port}"
        return f"127.0.0.1:{port}"

    async def stop(self) -> None:
        """End it, and what is open still."""
        await self._server.stop(None)

    # --- receipts

    def note(self, data: bytes) -> None:
        """A message has come."""
        self._of(data).set()

    async def has(self, data: bytes) -> None:
        """Wait until this message has come. Raises TimeoutError."""
        async with asyncio.timeout(RECEIPT_SECONDS):
            await self._of(data).wait()

    def _of(self, data: bytes) -> asyncio.Event:
        return self._received.setdefault(data, asyncio.Event())

    def signal(self, name: str) -> asyncio.Event:
        """Something that parts and clients tell one another beside the wire."""
        return self._signals.setdefault(name, asyncio.Event())

    # --- methods

    async def _live(self, _requests: object, context: Any) -> None:
        await self._play(context, "")

    async def _subscribe(self, request: bytes, context: Any) -> None:
        await self._play(context, "+subscribe", request)

    async def _play(self, context: Any, method: str, request: bytes | None = None) -> None:
        story = dict(context.invocation_metadata())[STORY] + method
        number = self._streams.get(story, 0)
        self._streams[story] = number + 1
        family, part = self._parts[story]
        call = Call(self, context, family, number)
        with contextlib.suppress(
            Ended
        ):  # the client has left its side, and this part had nothing more to tell
            await part(call)

    async def _get(self, request: bytes, context: Any) -> bytes:
        asked: Any = parse("1.0", "GetTaskRequest", request)
        work = self.tasks.get(asked.id)
        if work is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "there is no such task")
            raise AssertionError("abort does not return")
        return from_dict("1.0", "Task", work.task()["task"]).SerializeToString()

    async def _tell_card(self, _request: bytes, _context: Any) -> bytes:
        return from_dict("1.0", "AgentCard", self._card).SerializeToString()
