"""Calls without a recorded answer are passed through to a live agent, on every binding."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import grpc
import pytest

from a2a_proto import from_dict, message_class, to_dict
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.replay.core.script import ReplayScript
from a2a_proxy.replay.load import load_script
from a2a_proxy.replay.serve.mock import MockServer
from a2a_proxy.replay.serve.passthrough import Passthrough

_SAMPLE = Path(__file__).parents[3] / "recordings" / "sdk-1.x-jsonrpc.a2a.jsonl"
_VERSION = {"A2A-Version": "1.0"}
_SERVICE = "/lf.a2a.v1.A2AService"


class Two:
    """A mock that knows nothing, and behind it one of a sample."""

    def __init__(self) -> None:
        with open_recording_or_cassette(_SAMPLE) as recording:
            self.live = MockServer(load_script(recording))

    async def start(self) -> None:
        await self.live.start()
        self.behind = Passthrough(self.live.address)
        self.front = MockServer(ReplayScript(name="nothing"), passthrough=self.behind)
        await self.front.start()

    def calls(self, operation: str) -> list[object]:
        """What was asked in the recorded calls of this operation."""
        return [call.request for call in self.live.script.calls if call.operation == operation]


@pytest.fixture
async def two() -> AsyncIterator[Two]:
    made = Two()
    await made.start()
    yield made
    await made.front.stop()
    await made.live.stop()


async def test_calls_are_passed_through_over_http(two: Two) -> None:
    async with aiohttp.ClientSession(headers=_VERSION) as http:
        url = two.front.url
        async with http.get(f"{url}/.well-known/agent-card.json") as answer:
            card = await answer.json()
        assert all(
            two.front.address in each["url"] for each in card["supportedInterfaces"]
        )  # by the client's `Host`
        call = {
            "jsonrpc": "2.0",
            "id": "7",
            "method": "SendMessage",
            "params": two.calls("SendMessage")[0],
        }
        async with http.post(f"{url}/rpc", json=call) as answer:
            document = await answer.json()
        assert (answer.status, document["id"], "task" in document["result"]) == (200, "7", True)
        call = {
            **call,
            "method": "SendStreamingMessage",
            "params": two.calls("SendStreamingMessage")[0],
        }
        async with http.post(f"{url}/rpc", json=call) as answer:
            assert answer.content_type == "text/event-stream"
            events = [
                json.loads(line[6:]) async for line in answer.content if line.startswith(b"data: ")
            ]
        assert len(events) > 2
        async with http.get(f"{url}/tasks?pageSize=99") as answer:
            assert (answer.status, (await answer.json())["error"]["details"][0]["@type"]) == (
                400,
                "a2a-replay-miss",
            )
    assert two.behind.call_count == 4


async def test_calls_are_passed_through_over_grpc(two: Two) -> None:
    async with grpc.aio.insecure_channel(two.front.address) as channel:
        request = from_dict("1.0", "SendMessageRequest", two.calls("SendMessage")[0], lenient=True)
        raw = await channel.unary_unary(f"{_SERVICE}/SendMessage")(request.SerializeToString())
        assert "task" in to_dict(message_class("1.0", "SendMessageResponse").FromString(raw))
        request = from_dict(
            "1.0", "SendMessageRequest", two.calls("SendStreamingMessage")[0], lenient=True
        )
        stream = channel.unary_stream(f"{_SERVICE}/SendStreamingMessage")(
            request.SerializeToString()
        )
        assert len([each async for each in stream]) > 2
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await channel.unary_unary(f"{_SERVICE}/NoSuchMethod")(b"")
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert (refused.value.details() or "").startswith("replay miss")
    assert "a2a-replay-miss-bin" in dict(tuple(refused.value.trailing_metadata() or ()))
    assert two.behind.call_count == 3


async def test_an_unreachable_live_agent_is_an_error(two: Two) -> None:
    """The live agent has gone: an error of each binding, not a broken connection."""
    await two.live.stop()
    async with aiohttp.ClientSession() as http, http.get(f"{two.front.url}/tasks/nobody") as answer:
        assert answer.status == 502
        assert "the live agent" in (await answer.json())["error"]["message"]
    async with grpc.aio.insecure_channel(two.front.address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await channel.unary_unary(f"{_SERVICE}/GetTask")(b"")
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
