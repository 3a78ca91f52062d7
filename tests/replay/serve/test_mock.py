"""A script on one port: every binding answers, and unrecorded calls are refused with an
explanation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest

from a2a_proto import from_dict, message_class, to_dict
from a2a_proxy.model.values import Binding
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.relay.route import Listen, RouteError
from a2a_proxy.replay.core.faults import inject_faults, parse_fault
from a2a_proxy.replay.core.options import ReplayOptions
from a2a_proxy.replay.load import load_script
from a2a_proxy.replay.serve.mock import MockServer
from a2a_proxy.replay.serve.performance import (
    MaskedCall,
    MissedCall,
    PlayedCall,
    ReplayReport,
    UnservedCall,
)
from support_replay import call, message, script, task

SAMPLES = Path(__file__).parents[3] / "recordings"
VERSION = {"A2A-Version": "1.0"}


class Client:
    """A mock of one sample, and a client for each binding."""

    def __init__(self, mock: MockServer, reports: list[ReplayReport]) -> None:
        self.mock = mock
        self.told = reports
        self.http = aiohttp.ClientSession()
        self.channel = grpc.aio.insecure_channel(mock.address)

    def recorded(self, operation: str) -> Any:
        """What the first recorded call of this operation asked."""
        return next(call.request for call in self.mock.script.calls if call.operation == operation)

    async def rpc(self, method: str, params: Any, **more: Any) -> Any:
        """The body of a JSON-RPC answer."""
        call = {"jsonrpc": "2.0", "id": "id-1", "method": method, "params": params, **more}
        async with self.http.post(f"{self.mock.url}/rpc", json=call, headers=VERSION) as answer:
            if answer.content_type == "text/event-stream":
                return [
                    json.loads(line[6:])
                    async for line in answer.content
                    if line.startswith(b"data: ")
                ]
            return await answer.json()

    async def close(self) -> None:
        await self.http.close()
        await self.channel.close()
        await self.mock.stop()


async def serving(sample: str, **options: Any) -> Client:
    """A client of a mock of this sample."""
    reports: list[ReplayReport] = []
    with open_recording_or_cassette(SAMPLES / f"{sample}.a2a.jsonl") as recording:
        mock = MockServer(load_script(recording), report=reports.append, **options)
    await mock.start()
    return Client(mock, reports)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """Of the Python SDK's JSON-RPC sample."""
    made = await serving("sdk-1.x-jsonrpc")
    yield made
    await made.close()


async def test_one_port_serves_all_bindings(client: Client) -> None:
    """The same recorded call, asked over JSON-RPC, then REST, then gRPC: the same task, each in its
    form."""
    asked = client.recorded("SendMessage")
    by_rpc = await client.rpc("SendMessage", asked)
    assert by_rpc["id"] == "id-1"
    task = by_rpc["result"]["task"]
    async with client.http.get(
        f"{client.mock.url}/tasks/{task['id']}?historyLength=10", headers=VERSION
    ) as answer:
        by_rest = await answer.json()
        assert (answer.status, answer.content_type) == (200, "application/a2a+json")
    call = client.channel.unary_unary("/lf.a2a.v1.A2AService/GetTask")
    request = from_dict(
        "1.0", "GetTaskRequest", {"id": task["id"], "historyLength": 10}
    ).SerializeToString()
    by_grpc = to_dict(message_class("1.0", "Task").FromString(await call(request)))
    assert by_rest["id"] == by_grpc["id"] == task["id"]
    assert by_rest["status"]["state"] == by_grpc["status"]["state"] == "TASK_STATE_COMPLETED"
    assert [each.operation for each in client.told if isinstance(each, PlayedCall)] == [
        "SendMessage",
        "GetTask",
        "GetTask",
    ]


async def test_streams_are_served_over_every_binding(client: Client) -> None:
    """Over SSE and over gRPC: as many events as were recorded."""
    recorded = next(
        call for call in client.mock.script.calls if call.operation == "SendStreamingMessage"
    )
    events = await client.rpc("SendStreamingMessage", recorded.request)
    assert len(events) == len([line for line in recorded.agent_lines if line.value is not None])
    assert {event["id"] for event in events} == {"id-1"}
    other = next(
        c
        for c in client.mock.script.calls
        if c.operation == "SendStreamingMessage" and c is not recorded
    )
    call = client.channel.unary_stream("/lf.a2a.v1.A2AService/SendStreamingMessage")
    request = from_dict(
        "1.0", "SendMessageRequest", other.request, lenient=True
    ).SerializeToString()
    seen = [each async for each in call(request)]
    assert len(seen) == len([line for line in other.agent_lines if line.value is not None])


async def test_the_card_leads_to_the_mock(client: Client) -> None:
    """Every interface of the card is at the mock, with the path that it had."""
    for path in ("/.well-known/agent-card.json", "/.well-known/agent.json"):
        async with client.http.get(client.mock.url + path) as answer:
            card = await answer.json()
        urls = [each["url"] for each in card["supportedInterfaces"]]
        assert urls
        assert all(client.mock.address in url for url in urls)


async def test_a_masked_match_is_reported() -> None:
    """The reports name the recorded call that answers, and what was masked."""
    recorded = call(7, "SendMessage", message("on 2023-11-14"), ("s", 1, task()), ("s", 2, "end"))
    reports: list[ReplayReport] = []
    today = datetime.now(UTC).date()
    mock = MockServer(script(recorded), report=reports.append)
    await mock.start()
    client = Client(mock, reports)
    try:
        answer = await client.rpc("SendMessage", message(f"on {today}"))
        assert answer["result"]["task"]["id"]
    finally:
        await client.close()
    [text] = [each.match.text for each in reports if isinstance(each, MaskedCall)]
    assert text == f'masked match: SendMessage "on {today}" equals #7 except for: date'


async def test_a_miss_is_an_error_of_each_binding(client: Client) -> None:
    """With the id echoed, the text for a person, and the detail for a machine."""
    unknown = await client.rpc("NoSuchMethod", {})
    assert (unknown["id"], unknown["error"]["code"]) == ("id-1", -32601)
    assert unknown["error"]["data"][0]["kind"] == "unknown-operation"
    differs = await client.rpc("ListTasks", {"pageSize": 99})
    assert differs["error"]["message"].startswith("replay miss (arguments-differ)")
    async with client.http.get(f"{client.mock.url}/tasks?pageSize=99", headers=VERSION) as answer:
        assert answer.status == 400
        assert (await answer.json())["error"]["details"][0]["@type"] == "a2a-replay-miss"
    async with client.http.get(f"{client.mock.url}/no/such/path") as answer:
        assert answer.status == 501
    call = client.channel.unary_unary("/lf.a2a.v1.A2AService/ListTasks")
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call(from_dict("1.0", "ListTasksRequest", {"pageSize": 99}).SerializeToString())
    assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    trailing = dict(tuple(refused.value.trailing_metadata() or ()))
    assert json.loads(trailing["a2a-replay-miss-bin"])["kind"] == "arguments-differ"
    with pytest.raises(grpc.aio.AioRpcError) as unheard:
        await client.channel.unary_unary("/lf.a2a.v1.A2AService/NoSuchMethod")(b"")
    assert unheard.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert (
        len([each for each in client.told if isinstance(each, MissedCall)])
        == len(client.mock.player.misses)
        == 6
    )


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"jsonrpc":"2.0","id":1}', b"\xff\xfe", b""])
async def test_invalid_json_rpc_is_answered_with_an_error(client: Client, body: bytes) -> None:
    """An error of JSON-RPC, never a broken connection."""
    async with client.http.post(client.mock.url, data=body) as answer:
        assert (await answer.json())["error"]["code"] in (-32700, -32600)


async def test_invalid_bodies_on_a_json_rpc_path_are_answered_with_an_error(client: Client) -> None:
    """The path of the recorded calls decides the binding; on other paths it is unknown."""
    for body, code in ((b'{"jsonrpc"', -32700), (b"[1]", -32600)):
        async with client.http.post(f"{client.mock.url}/a2a/jsonrpc?x=1", data=body) as answer:
            assert (answer.status, (await answer.json())["error"]["code"]) == (200, code)
    misses = [
        (each.operation, each.reason.partition(":")[0])
        for each in client.told
        if isinstance(each, UnservedCall)
    ]
    assert misses == [
        ("POST /a2a/jsonrpc", "Parse error"),
        ("POST /a2a/jsonrpc", "Invalid request"),
    ]
    async with client.http.post(f"{client.mock.url}/no/such/path", data=b"{") as answer:
        assert answer.status == 501


def posted(method: str, params: Any) -> bytes:
    """A call as it stands on the wire."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    head = f"POST / HTTP/1.1\r\nHost: a\r\nA2A-Version: 1.0\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def half_closing(mock: MockServer, data: bytes) -> bytes:
    """All that comes back to a client that says this and no more."""
    host, _, port = mock.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize("operation", ["GetExtendedAgentCard", "SendStreamingMessage"])
async def test_a_half_closed_client_is_answered(client: Client, operation: str) -> None:
    """As programs do that send what they have and then read to the end; the mock then closes as
    well."""
    answer = await half_closing(client.mock, posted(operation, client.recorded(operation)))
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n0\r\n\r\n" if operation == "SendStreamingMessage" else b"}")


LEFT = call(
    1,
    "SendStreamingMessage",
    message("plan"),
    *(("s", 1, task()), ("c", 2, "cut")),
    binding=Binding.JSONRPC,
    streaming=True,
)
"""Its client broke the stream off."""


async def test_a_half_close_counts_as_the_recorded_disconnect() -> None:
    """No line follows, so the replay does not wait."""
    mock = MockServer(script(LEFT), ReplayOptions(patience=None))
    await mock.start()
    answer = await half_closing(mock, posted("SendStreamingMessage", message("plan")))
    assert answer.count(b"data: ") == 1
    assert not mock.player.playbacks
    await mock.stop()


async def test_a_recorded_disconnect_is_no_miss() -> None:
    """It is noticed though nothing is written to it any more."""
    reports: list[ReplayReport] = []
    mock = MockServer(script(LEFT), ReplayOptions(patience=None), report=reports.append)
    await mock.start()
    host, _, port = mock.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(posted("SendStreamingMessage", message("plan")))
    await reader.readuntil(b"data: ")
    writer.close()
    async with asyncio.timeout(120):
        while mock.player.playbacks:
            await asyncio.sleep(0.01)
    await mock.stop()
    assert [each.outcome for each in reports if isinstance(each, PlayedCall)] == ["client gone"]
    assert not mock.player.misses


@pytest.mark.parametrize("sent", [b"", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{"])
async def test_a_half_close_without_a_request_closes_the_connection(
    client: Client, sent: bytes
) -> None:
    """It asked nothing, or not to the end: nothing stays open."""
    assert await half_closing(client.mock, sent) == b""


async def test_a_port_in_use(client: Client) -> None:
    """Is said, and nothing stays open."""
    second = MockServer(
        client.mock.script,
        listen=(Listen("127.0.0.1", int(client.mock.address.rpartition(":")[2])),),
    )
    with pytest.raises(RouteError, match="is in use"):
        await second.start()


async def test_invalid_http_is_answered_with_an_error(client: Client) -> None:
    """With 400; aiohttp 3.12 takes garbage for an unknown method. No call is disturbed."""
    host, _, port = client.mock.address.rpartition(":")
    for sent in (
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x00\xff garbage\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n",
    ):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(sent)
        assert (await reader.readline()).endswith(
            (b" 400 Bad Request\r\n", b" 501 Not Implemented\r\n")
        )
        writer.close()
    assert "result" in await client.rpc("GetExtendedAgentCard", {})


async def test_a_cut_stream_is_replayed_as_cut() -> None:
    """Over HTTP the response ends without its end; over gRPC, which cannot do that, the call is
    refused."""
    with open_recording_or_cassette(SAMPLES / "sdk-1.x-jsonrpc.a2a.jsonl") as recording:
        script = load_script(recording)
    recorded = next(call for call in script.calls if call.operation == "SendStreamingMessage")
    line = [line for line in recorded.agent_lines if line.value is not None][2]
    mock = MockServer(inject_faults(script, [parse_fault(f"cut {line.place} @ 50%")]))
    await mock.start()
    client = Client(mock, [])
    try:
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "SendStreamingMessage",
            "params": recorded.request,
        }
        seen = bytearray()
        async with client.http.post(mock.url, json=call, headers=VERSION) as answer:
            with pytest.raises(aiohttp.ClientPayloadError):
                await _all_of(answer.content, seen)
        assert seen.count(b"\r\n\r\n") == 2
    finally:
        await client.close()
    other = MockServer(inject_faults(script, [parse_fault(f"cut {line.place}")]))
    await other.start()
    second = Client(other, [])
    try:
        stream = second.channel.unary_stream("/lf.a2a.v1.A2AService/SendStreamingMessage")
        data = from_dict(
            "1.0", "SendMessageRequest", recorded.request, lenient=True
        ).SerializeToString()
        with pytest.raises(grpc.aio.AioRpcError, match="cannot break off without a status"):
            async for _ in stream(data):
                pass
    finally:
        await second.close()


async def _all_of(stream: aiohttp.StreamReader, seen: bytearray) -> None:
    while piece := await stream.readany():
        seen += piece


async def test_response_heads_are_as_recorded(client: Client) -> None:
    """On the recorded binding, each field once."""
    asked = client.recorded("SendStreamingMessage")
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": asked}
    async with client.http.post(f"{client.mock.url}/", json=call, headers=VERSION) as answer:
        assert answer.headers.getall("Content-Type") == ["text/event-stream; charset=utf-8"]
        assert answer.headers.getall("X-Accel-Buffering") == ["no"]
    async with client.http.get(f"{client.mock.url}/.well-known/agent-card.json") as answer:
        recorded = dict(client.mock.script.cards[0].answer_headers)
        assert answer.headers["Content-Type"] == recorded[b"content-type"].decode()
