"""A real proxy with a fault, beside a response that is hostile to it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from pathlib import Path

from a2a_proxy.recording.read.reader import Recording
from support_floods import ANSWER, EVENTS, stream
from support_proxy import inspect, proxy

CHUNK, MOST_CHUNKS = b"1\r\nx\r\n", 400_000
STOP_SECONDS = 20.0
"""2 s are usual. With work that is not divided the proxy does not end for minutes."""


async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer a call for a stream with one event in chunks of one byte, and other requests at
    once."""
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65_536):
            if b"Streaming" not in data:
                writer.write(ANSWER)
                continue
            writer.write(EVENTS + b"Transfer-Encoding: chunked\r\n\r\n")
            for _ in range(MOST_CHUNKS // 10_000):
                writer.write(CHUNK * 10_000)
                await writer.drain()
            writer.write(b"0\r\n\r\n")
    writer.close()


async def test_the_proxy_answers_others_and_sigterm_during_a_response_of_tiny_chunks(
    tmp_path: Path,
) -> None:
    server = await asyncio.start_server(flood, "127.0.0.1", 0)
    upstream = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with proxy(tmp_path, upstream, "", "--fault", "slow 1ms every SendStreamingMessage") as between:
        reader, writer = await asyncio.open_connection("127.0.0.1", between.port)
        writer.write(stream(b"/"))
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"text/event-stream" in head
        other, asking = await asyncio.open_connection("127.0.0.1", between.port)
        async with asyncio.timeout(STOP_SECONDS):
            for _ in range(20):
                asking.write(b"POST /other HTTP/1.1\r\nHost: agent\r\nContent-Length: 0\r\n\r\n")
                assert await other.readexactly(len(ANSWER)) == ANSWER
        for each in (writer, asking):
            each.close()
        began = time.monotonic()
        between.process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(between.process.wait, STOP_SECONDS)
        assert time.monotonic() - began < STOP_SECONDS
        assert between.process.returncode == 0
    # On a busy machine the recorder finishes without the proxy, which then prints no summary.
    assert "INCOMPLETE" not in inspect(between.state, "show", between.recording)
    with Recording(between.recording) as stored:
        assert [row.how for row in stored.read_sessions()] == ["clean"]
    server.close()
