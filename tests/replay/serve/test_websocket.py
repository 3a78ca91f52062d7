"""A script on a WebSocket: concurrent calls, the end and the cancellation of a stream, refusals."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from a2a_proxy.model.values import Binding
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.replay.core.faults import inject_faults, parse_fault
from a2a_proxy.replay.load import load_script
from a2a_proxy.replay.serve.mock import MockServer
from a2a_proxy.replay.serve.performance import PlayedCall, ReplayReport

SAMPLE = Path(__file__).parents[3] / "recordings" / "sdk-1.x-jsonrpc.a2a.jsonl"
SECONDS = 60
VERSION = {"A2A-Version": "1.0"}


class Client:
    """A socket to a mock of a sample."""

    def __init__(
        self, mock: MockServer, socket: aiohttp.ClientWebSocketResponse, told: list[ReplayReport]
    ) -> None:
        self.mock = mock
        self.socket = socket
        self.told = told

    def recorded(self, operation: str) -> Any:
        """What the first recorded call of this operation asked."""
        return next(call.request for call in self.mock.script.calls if call.operation == operation)

    async def say(self, **members: Any) -> None:
        """Send a message."""
        await self.socket.send_str(json.dumps({"jsonrpc": "2.0", **members}))

    async def read(self) -> Any:
        """The next message."""
        return json.loads(await asyncio.wait_for(self.socket.receive_str(), SECONDS))


@asynccontextmanager
async def serving(fault: str = "") -> AsyncIterator[Client]:
    """A client of the mock; with a fault in its recorded stream, `{}` stands for its place."""
    reports: list[ReplayReport] = []
    with open_recording_or_cassette(SAMPLE) as recording:
        script = load_script(recording)
    stream = next(call for call in script.calls if call.operation == "SendStreamingMessage")
    if fault:
        script = inject_faults(script, [parse_fault(fault.format(stream.place))])
    mock = MockServer(script, report=reports.append)
    await mock.start()
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(
                f"{mock.url}/a2a/ws", protocols=["other", "a2a.v1"], headers=VERSION
            ) as socket,
        ):
            assert socket.protocol == "a2a.v1"
            yield Client(mock, socket, reports)
    finally:
        await mock.stop()


async def test_a_stream_and_a_call() -> None:
    """Each with its id; a message marks the end of the stream."""
    async with serving() as client:
        params = client.recorded("SendStreamingMessage")
        await client.say(id="s", method="SendStreamingMessage", params=params)
        events = [await client.read()]
        while "streamEnd" not in events[-1]:
            events.append(await client.read())
        assert {each["id"] for each in events} == {"s"}
        assert events[-1] == {"jsonrpc": "2.0", "id": "s", "streamEnd": True}
        states = [str(each.get("result")) for each in events]
        assert "TASK_STATE_COMPLETED" in states[-2]
        send = client.recorded("SendMessage")
        await client.say(id=7, method="SendMessage", params=send, serviceParams={"x": "y"})
        answer = await client.read()
        assert answer["id"] == 7
        assert "task" in answer["result"]
        played = [each for each in client.told if isinstance(each, PlayedCall)]
        assert [each.binding for each in played] == [Binding.WEBSOCKET] * 2


async def test_a_client_cancels_a_stream() -> None:
    """The stream ends; the socket and other calls continue."""
    async with serving("stall 600s before {}.2") as client:
        params = client.recorded("SendStreamingMessage")
        await client.say(id="s", method="SendStreamingMessage", params=params)
        await client.say(id="s", cancelStream=True)
        messages = [await client.read()]
        while "streamEnd" not in messages[-1]:
            messages.append(await client.read())
        assert len(messages) <= 2
        await client.say(id="t", method="SendMessage", params=client.recorded("SendMessage"))
        assert (await client.read())["id"] == "t"


@pytest.mark.parametrize(
    ("message", "code"), [("{", -32700), ("[]", -32600), ('{"id": 1, "method": "Nothing"}', -32601)]
)
async def test_what_is_not_served(message: str, code: int) -> None:
    """An error in place of an answer."""
    async with serving() as client:
        await client.socket.send_str(message)
        assert (await client.read())["error"]["code"] == code


async def test_other_sockets_are_not_opened() -> None:
    """Without the subprotocol the handshake is a request as any other."""
    async with serving() as client, aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(f"{client.mock.url}/a2a/ws", protocols=["chat"])
