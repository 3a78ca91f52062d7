"""A live client by grpc.aio: it sends a message when it wants to, and knows that the agent has it.

`say` returns when the agent has the message: had anything on the way kept it until more came, it
would wait in vain.
"""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
from grpc import aio as _aio

from a2a_proto import from_dict, parse, to_dict
from peers.live.agent import SERVICE, STORY, LiveAgent
from peers.live.payloads import BIDI, Family, Json

ANSWER_SECONDS = 60.0
aio: Any = _aio
"""Its stubs do not know all of it."""


class LiveClient:
    """One channel to an agent."""

    def __init__(self, address: str, agent: LiveAgent, version: str = "1.0") -> None:
        self._version = version
        self._channel = aio.insecure_channel(
            address, options=[("grpc.use_local_subchannel_pool", 1)]
        )
        self.agent = agent
        self.transcript: list[list[Any]] = []
        """Of each stream, in order of opening, what was heard and with what it ended; of each look
        at a task too."""

    async def ready(self) -> None:
        """Wait until it is connected."""
        async with asyncio.timeout(ANSWER_SECONDS):
            await self._channel.channel_ready()

    async def close(self) -> None:
        """Leave."""
        await self._channel.close()

    def live(
        self,
        story: str,
        family: Family = BIDI,
        method: str = "SendLiveMessage",
        *,
        gzip: bool = False,
    ) -> LiveStream:
        """Open a live stream."""
        call = self._channel.stream_stream(f"/{SERVICE}/{method}")
        packed = grpc.Compression.Gzip if gzip else None
        return self._noted(
            LiveStream(call(metadata=self._metadata(story), compression=packed), family, self.agent)
        )

    def subscribe(self, story: str, task_id: str) -> LiveStream:
        """Open a subscription."""
        call = self._channel.unary_stream(f"/{SERVICE}/SubscribeToTask")
        data = from_dict("1.0", "SubscribeToTaskRequest", {"id": task_id}).SerializeToString()
        return self._noted(LiveStream(call(data, metadata=self._metadata(story)), BIDI, self.agent))

    async def get(self, story: str, task_id: str) -> Json:
        """GetTask."""
        data = from_dict("1.0", "GetTaskRequest", {"id": task_id}).SerializeToString()
        found = _read("Task", await self._unary("GetTask", story, data))
        self.transcript.append([found])
        return found

    async def card(self, story: str) -> Json:
        """GetExtendedAgentCard."""
        return _read("AgentCard", await self._unary("GetExtendedAgentCard", story, b""))

    def _noted(self, stream: LiveStream) -> LiveStream:
        self.transcript.append(stream.heard)
        return stream

    def _metadata(self, story: str) -> tuple[tuple[str, str], ...]:
        return (
            ("a2a-version", self._version),
            ("authorization", "Bearer live-client-token"),
            (STORY, story),
        )

    async def _unary(self, method: str, story: str, data: bytes) -> bytes:
        call = self._channel.unary_unary(f"/{SERVICE}/{method}")
        return bytes(await call(data, metadata=self._metadata(story), timeout=ANSWER_SECONDS))


def _read(name: str, data: bytes) -> Json:
    return dict(to_dict(parse("1.0", name, data)))


class LiveStream:
    """One stream as the client sees it."""

    def __init__(self, call: Any, family: Family, agent: LiveAgent) -> None:
        self._call = call
        self._family = family
        self._agent = agent
        self.heard: list[Any] = []
        """Messages, and the status when it was asked for."""

    async def say(self, value: Json) -> None:
        """Send a message, and wait until the agent has it."""
        data = self._family.ask(value)
        await self._call.write(data)
        await self._agent.has(data)

    async def hear(self) -> Json:
        """The agent's next message; empty where there is none any more."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                data = await self._call.read()
        except aio.AioRpcError:  # what it was, `code` tells
            return {}
        if data is aio.EOF:
            return {}
        told = self._family.told(data)
        self.heard.append(told)
        return told

    async def hears(self, count: int) -> list[Json]:
        """The next ones."""
        return [await self.hear() for _ in range(count)]

    async def hear_out(self) -> list[Json]:
        """All that come until the end."""
        heard = []
        while event := await self.hear():
            heard.append(event)
        return heard

    async def bytes_out(self) -> None:
        """Take what comes until the end, and do not read it."""
        async with asyncio.timeout(ANSWER_SECONDS):
            while await self._call.read() is not aio.EOF:
                pass

    async def half_close(self) -> None:
        """Say that nothing more will be said."""
        await self._call.done_writing()

    def cancel(self) -> None:
        """Give up."""
        self._call.cancel()

    async def code(self) -> grpc.StatusCode:
        """With what it ended."""
        async with asyncio.timeout(ANSWER_SECONDS):
            code: grpc.StatusCode = await self._call.code()
        self.heard.append(code.name)
        return code
