"""Event streams keep their framing: ids, retry times, names and comments as the recorded agent sent
them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
from msgspec.structs import replace

from a2a_proto import from_dict
from a2a_proxy.model.values import Binding
from a2a_proxy.recording.cassette.file import read_cassette
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.replay.core.options import ReplayOptions
from a2a_proxy.replay.core.script import LineKind, ReplayScript
from a2a_proxy.replay.load import load_script
from a2a_proxy.replay.serve.mock import MockServer
from support_replay import SAMPLES, call, message, script

PLAIN = r'"framing":"data: \u0000\n\n"'
KEPT = ": keep-alive\n\n"


def framed(folder: Path) -> ReplayScript:
    """The demo's first stream, whose agent numbers its events and keeps the connection alive in the
    place of one."""
    lines = next(each for each in SAMPLES if each.name == "demo.a2a.jsonl").read_text().splitlines()
    for index, line in enumerate(lines):
        if '"exchange":2,"seq":4,' in line:
            lines[index] = line.partition(',"schema"')[0].replace('"event"', '"comment"')
            lines[index] += f',"framing":{json.dumps(KEPT)}}}'
        elif '"exchange":2,' in line and '"frame":"event"' in line:
            named = json.dumps(f": now\nid: e{index}\nretry: 50\ndata: \0\n\n")
            lines[index] = line.replace(PLAIN, f'"framing":{named}')
    cassette, path = folder / "framed.a2a.jsonl", folder / "framed.a2a.db"
    cassette.write_text("\n".join([*lines, ""]))
    read_cassette(cassette, path, verify=False)
    with Recording(path) as recording:
        return load_script(recording)


@pytest.fixture
async def mock(tmp_path: Path) -> AsyncIterator[MockServer]:
    made = MockServer(framed(tmp_path), ReplayOptions())
    await made.start()
    yield made
    await made.stop()


async def body(mock: MockServer, method: str, params: Any, **headers: str) -> bytes:
    """All bytes of an answer of JSON-RPC."""
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    async with (
        aiohttp.ClientSession() as http,
        http.post(
            f"{mock.url}/rpc", json=request, headers={"A2A-Version": "1.0", **headers}
        ) as answer,
    ):
        return await answer.read()


async def test_event_streams_keep_their_framing(mock: MockServer) -> None:
    recorded = mock.script.calls[0]
    blocks = (await body(mock, "SendStreamingMessage", recorded.request)).decode().split("\n\n")
    events = [
        line for line in recorded.agent_lines if line.what in (LineKind.MESSAGE, LineKind.COMMENT)
    ]
    assert len(blocks) == len(events) + 1
    assert blocks[3] + "\n\n" == KEPT
    heads = [block.partition("data: ")[0] for block in blocks if "data: " in block]
    assert heads == [f": now\nid: {line.event_id}\nretry: 50\n" for line in events if line.event_id]
    assert len(heads) == 5


async def test_a_client_resumes_after_its_last_event_id(mock: MockServer) -> None:
    recorded = mock.script.calls[0]
    first = (await body(mock, "SendStreamingMessage", recorded.request)).decode().split("\n\n")
    last = next(line for line in first[1].splitlines() if line.startswith("id: ")).removeprefix(
        "id: "
    )
    rest = await body(mock, "SubscribeToTask", {"id": recorded.task}, **{"Last-Event-ID": last})
    assert [block for block in first[2:] if "data: " in block] == rest.decode().split("\n\n")[:-1]


async def test_comments_are_sent_only_over_the_recorded_binding(mock: MockServer) -> None:
    recorded = mock.script.calls[0]
    data = from_dict(
        "1.0", "SendMessageRequest", recorded.request, lenient=True
    ).SerializeToString()
    async with grpc.aio.insecure_channel(mock.address) as channel:
        stream = channel.unary_stream("/lf.a2a.v1.A2AService/SendStreamingMessage")
        assert len([each async for each in stream(data)]) == 5


async def test_line_separators_are_escaped_as_recorded() -> None:
    """The agent wrote U+2028 as an escape; unescaped, clients that take it for a line end cannot
    read the event."""
    answered = {
        "message": {"messageId": "a", "role": "ROLE_AGENT", "parts": [{"text": "one\u2028two é"}]}
    }
    request = message("go")
    recorded = call(
        1,
        "SendStreamingMessage",
        request,
        ("s", 1, answered),
        ("s", 2, "end"),
        binding=Binding.JSONRPC,
    )
    wire = {"jsonrpc": "2.0", "id": 7, "result": answered}
    raw = json.dumps(wire, ensure_ascii=False).replace("\u2028", "\\u2028").encode()
    lines = (replace(recorded.lines[0], raw=raw, schema="json"), *recorded.lines[1:])
    made = MockServer(script(replace(recorded, lines=lines, streaming=True)), ReplayOptions())
    await made.start()
    try:
        blocks = (await body(made, "SendStreamingMessage", request)).decode()
    finally:
        await made.stop()
    assert '"one\\u2028two é"' in blocks


async def test_line_separators_are_escaped_if_the_agent_sent_no_json() -> None:
    answered = {
        "message": {"messageId": "a", "role": "ROLE_AGENT", "parts": [{"text": "one\u2028two é"}]}
    }
    recorded = call(1, "SendStreamingMessage", message("go"), ("s", 1, answered), ("s", 2, "end"))
    made = MockServer(script(recorded), ReplayOptions())
    await made.start()
    try:
        blocks = (await body(made, "SendStreamingMessage", message("go"))).decode()
    finally:
        await made.stop()
    assert '"one\\u2028two é"' in blocks
