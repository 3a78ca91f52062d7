"""A script on a pipe: frames and lines, concurrent calls, invalid bytes, the end of the client."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from a2a_proxy.model.wire import Direction, Framed
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.replay.load import load_script
from a2a_proxy.replay.serve.mock import PipeMock
from a2a_proxy.wire.stdio_reader import PipeReader

SAMPLE = Path(__file__).parents[3] / "recordings" / "stdio.a2a.jsonl"
SECONDS = 60


def frame(call: Any) -> bytes:
    """With a Content-Length."""
    data = json.dumps(call).encode()
    return b"Content-Length: %d\r\nContent-Type: application/json\r\n\r\n%s" % (len(data), data)


async def talk(raw: bytes) -> tuple[list[Any], PipeMock]:
    """What a client gets that writes this and closes its end."""
    with open_recording_or_cassette(SAMPLE) as recording:
        script = load_script(recording)
    to_agent, to_client = os.pipe(), os.pipe()
    mock = PipeMock(script, read_from=to_agent[0], write_to=to_client[1])
    os.write(to_agent[1], raw)
    os.close(to_agent[1])
    reading = asyncio.create_task(
        asyncio.to_thread(_read_all, to_client[0])
    )  # it ends when the last writer closes
    try:
        async with asyncio.timeout(SECONDS):
            await mock.run()
    finally:
        os.close(to_client[1])
        os.close(to_agent[0])
    reports: list[Any] = []
    reader = PipeReader(Direction.TO_CLIENT)
    reader.feed(await reading, 1, reports)
    reader.finish(1, reports)
    os.close(to_client[0])
    return [json.loads(each.data) for each in reports if isinstance(each, Framed)], mock


def _read_all(descriptor: int) -> bytes:
    found = b""
    while data := os.read(descriptor, 65536):
        found += data
    return found


async def test_an_invalid_json_line_is_answered_with_an_error() -> None:
    """Empty lines are nothing; what follows is served."""
    good = json.dumps(call(1, "GetExtendedAgentCard", {})).encode()
    answers, _ = await talk(b"{bad\n\n" + good + b"\n")
    assert sorted(str(answer.get("error", {}).get("code")) for answer in answers) == [
        "-32700",
        "None",
    ]


def call(number: int, method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


@pytest.mark.parametrize("lines", [False, True], ids=["frames", "lines"])
async def test_calls_are_answered_in_the_framing_of_the_client(lines: bool) -> None:
    """A unary call and a stream, one write, stdin closed behind them."""
    with open_recording_or_cassette(SAMPLE) as recording:
        recorded = load_script(recording).calls
    asked = [each for each in recorded if each.operation.startswith("Send")][:2]
    calls = [call(number, each.operation, each.request) for number, each in enumerate(asked)]
    data = b"".join(json.dumps(each).encode() + b"\n" if lines else frame(each) for each in calls)
    answers, mock = await talk(data)
    for number, each in enumerate(asked):
        mine = [answer for answer in answers if answer["id"] == number]
        assert len(mine) == len([line for line in each.agent_lines if line.value is not None])
    assert mock.player.misses == []


async def test_misses_and_invalid_calls_are_errors() -> None:
    """Both are errors of JSON-RPC, and the pipe stays open for the next call."""
    answers, mock = await talk(
        frame([]) + frame(call(7, "ListTasks", {"pageSize": 3})) + frame(call(8, "Nonsense", {}))
    )
    codes = {answer["id"]: answer["error"]["code"] for answer in answers}
    assert codes == {None: -32600, 7: -32601, 8: -32601}
    assert len(mock.player.misses) == 2
