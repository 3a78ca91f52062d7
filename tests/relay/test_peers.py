"""Real libraries on both sides of the relay, and the journal on disk behind it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import aiohttp
import grpc
import grpc.aio
from aiohttp import web

from a2a_proxy.capture.journal import Journal
from a2a_proxy.capture.journal_files import JournalLimits
from a2a_proxy.model.wire import ChunkKind, Direction
from a2a_proxy.relay.clock import session_clock
from a2a_proxy.relay.route import Listen, Route, Upstream
from a2a_proxy.relay.server import Relay
from support_journal import payload, read_all
from support_relay import SECONDS, Story, agent, echo, relaying

Play = Callable[[Story], None]


async def count(request: bytes, context: object) -> AsyncIterator[bytes]:
    for number in range(20):
        yield request + b" %d" % number


async def repeat(requests: AsyncIterator[bytes], context: object) -> AsyncIterator[bytes]:
    async for request in requests:
        yield request


async def grpc_agent() -> tuple[grpc.aio.Server, int]:
    """A gRPC server with a server stream and a bidi stream of raw bytes; gives its port."""
    server = grpc.aio.server()
    handlers = {
        "Count": grpc.unary_stream_rpc_method_handler(count, bytes, bytes),
        "Repeat": grpc.stream_stream_rpc_method_handler(repeat, bytes, bytes),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("a.B", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    return server, port


def test_grpc_and_http_on_one_port(play: Play) -> None:
    """GRPC streams, also bidi and 3 MB large, and JSON over HTTP/1.1 share a port and reach their
    own agents."""

    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"you": await request.json()})

    async def story() -> None:
        server, grpc_port = await grpc_agent()
        application = web.Application()
        application.router.add_post("/", answer)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        http_port = runner.addresses[0][1]
        async with (
            relaying(http_port, grpc_port) as bench,
            grpc.aio.insecure_channel(f"127.0.0.1:{bench.port}") as channel,
            aiohttp.ClientSession() as session,
        ):
            got = [
                part
                async for part in channel.unary_stream("/a.B/Count", bytes, bytes)(
                    b"no", timeout=SECONDS
                )
            ]
            assert got == [b"no %d" % number for number in range(20)]
            call = channel.stream_stream("/a.B/Repeat", bytes, bytes)(None, timeout=SECONDS)
            for message in (b"a", b"", os.urandom(3_000_000), b"z"):
                await call.write(message)
                assert await call.read() == message
            await call.done_writing()
            assert await call.code() is grpc.StatusCode.OK
            for number in range(3):
                async with session.post(f"http://127.0.0.1:{bench.port}/", json=number) as response:
                    assert await response.json() == {"you": number}
            assert bench.relay.stats.total == 2
        await server.stop(None)
        await runner.cleanup()

    play(story())


def test_the_journal_contains_all_forwarded_bytes(play: Play, tmp_path: Path) -> None:
    """With the journal on disk: the bytes of eight connections, each direction, are in it once and
    in order."""

    async def story() -> None:
        loop, clock = asyncio.get_running_loop(), session_clock()
        journal = Journal(
            tmp_path / "journal", loop.call_later, JournalLimits(segment_bytes=1 << 20, keep_free=0)
        )
        async with agent(echo) as port:
            route = Route(Listen.parse(":0"), Upstream.parse(f"127.0.0.1:{port}"))
            relay = Relay([route], clock)
            await relay.bind_listeners()
            relay.accept_connections(journal)
            relay_port = int(relay.bound_addresses[0][1][0].rpartition(":")[2])
            sent = {os.urandom(500_000 + number) for number in range(8)}

            async def one(raw: bytes) -> None:
                reader, writer = await asyncio.open_connection("127.0.0.1", relay_port)
                writer.write(raw)
                writer.write_eof()
                assert await reader.read() == raw
                writer.close()

            await asyncio.gather(*map(one, sent))
            await relay.stop(SECONDS)
            assert journal.close(clock(), SECONDS)
        chunks = read_all(tmp_path / "journal")
        stats = journal.get_stats()
        assert (stats.appended, stats.lost) == (payload(chunks), 0)
        assert stats.segments > 4
        for direction in Direction:
            captured = {
                b"".join(
                    chunk.data
                    for chunk in chunks
                    if (chunk.connection, chunk.direction, chunk.kind)
                    == (number, direction, ChunkKind.DATA)
                )
                for number in range(1, 9)
            }
            assert captured == sent
        assert chunks[-1].kind is ChunkKind.END

    play(story())
