from __future__ import annotations

import asyncio
import hashlib
import os
import socket
import time
from collections.abc import Callable

import pytest

from a2a_proxy.http import PREFACE
from a2a_proxy.model.wire import ChunkKind, Direction
from a2a_proxy.relay import connection
from a2a_proxy.relay.listener_state import EditPolicy
from support_relay import (
    NO_EDITS,
    SECONDS,
    CountingJournal,
    Story,
    agent,
    echo,
    relaying,
    reset,
    until,
)

Play = Callable[[Story], None]
TO_AGENT, TO_CLIENT = Direction.TO_AGENT, Direction.TO_CLIENT
MEBI = 1 << 20


def test_bytes_are_forwarded_and_captured(play: Play) -> None:
    """Each side receives the bytes of the other, in odd sizes, and the copy is equal."""

    async def story() -> None:
        async with agent(echo) as port, relaying(port) as bench:
            reader, writer = await bench.connect()
            sent = b""
            for size in (1, 2, 3, 997, 65535, 65536, 65537, 262144, 300001):
                part = os.urandom(size)
                sent += part
                writer.write(part)
                assert await reader.readexactly(size) == part
            writer.write_eof()
            assert await reader.read() == b""
            writer.close()
            await bench.closed()
            assert bench.journal.data(TO_AGENT) == sent
            assert bench.journal.data(TO_CLIENT) == sent
            assert bench.journal.kinds() == [
                "OPEN",
                "DIALED",
                "EOF to_agent",
                "EOF to_client",
                "CLOSED",
            ]
            times = [chunk.at for chunk in bench.journal.chunks]
            assert times == sorted(times)
            assert abs(times[0] - time.time_ns()) < 60_000_000_000

    play(story())


def test_timestamps_are_not_later_than_receipt(play: Play) -> None:
    """The time of bytes is taken before they are forwarded, so no peer can have acted on them
    earlier."""

    async def story() -> None:
        async with agent(echo) as port, relaying(port) as bench:
            reader, writer = await bench.connect()
            writer.write(b"first")
            await reader.readexactly(5)
            (pair,) = bench.relay._connections
            sent: list[int] = []
            pair.client.forward = lambda data: sent.append(bench.relay._clock())
            pair.client.data_received(b"second")
            writer.close()
            assert bench.journal.chunks[-1].data == b"second"
            assert bench.journal.chunks[-1].at <= sent[0]

    play(story())


def test_single_bytes_are_forwarded_at_once(play: Play) -> None:
    """Bytes that come one by one leave one by one: nothing waits for more."""

    async def story() -> None:
        async with agent(echo) as port, relaying(port) as bench:
            reader, writer = await bench.connect()
            for byte in PREFACE + b"GET / HTTP/1.1\r\n\r\n":
                writer.write(bytes((byte,)))
                assert await reader.readexactly(1) == bytes((byte,))
            writer.close()

    play(story())


def test_bulk_data_in_both_directions(play: Play) -> None:
    """64 MiB each way at the same time arrive unchanged."""
    block = os.urandom(MEBI)

    async def send(writer: asyncio.StreamWriter) -> None:
        for _ in range(64):
            writer.write(block)
            await writer.drain()
        writer.write_eof()

    async def digest(reader: asyncio.StreamReader) -> str:
        found = hashlib.sha256()
        while data := await reader.read(MEBI):
            found.update(data)
        return found.hexdigest()

    async def story() -> None:
        at_agent: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def both(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            _, got = await asyncio.gather(send(writer), digest(reader))
            at_agent.set_result(got)
            writer.close()

        journal = CountingJournal()
        async with agent(both) as port, relaying(port, journal=journal) as bench:
            reader, writer = await bench.connect()
            _, got = await asyncio.gather(send(writer), digest(reader))
            writer.close()
            await bench.closed()
            # CLOSED says that the kernel has all bytes, not that the agent has read them.
            async with asyncio.timeout(SECONDS):
                assert got == await at_agent == hashlib.sha256(block * 64).hexdigest()
            assert journal.byte_counts == [64 * MEBI, 64 * MEBI]
            assert bench.relay.stats.bytes_to_agent == 64 * MEBI

    play(story())


def test_many_connections(play: Play) -> None:
    """200 connections at once keep their bytes apart."""

    async def story() -> None:
        async with agent(echo) as port, relaying(port) as bench:

            async def one(number: int) -> None:
                reader, writer = await bench.connect()
                mine = f"client {number}".encode() * 50
                for _ in range(5):
                    writer.write(mine)
                    assert await reader.readexactly(len(mine)) == mine
                writer.close()
                await writer.wait_closed()

            await asyncio.gather(*(one(number) for number in range(200)))
            await until(lambda: bench.relay.stats.open == 0)
            assert bench.relay.stats.total == 200
            texts = {bench.journal.data(TO_AGENT, number) for number in range(1, 201)}
            assert texts == {f"client {number}".encode() * 250 for number in range(200)}

    play(story())


@pytest.mark.parametrize("slow", [TO_AGENT, TO_CLIENT])
def test_a_slow_reader_applies_back_pressure(play: Play, slow: Direction) -> None:
    """While a peer does not read, the relay keeps less than 1 MiB of 64; later everything
    arrives."""
    block = bytes(range(256)) * 4096
    go = asyncio.Event()

    async def send(writer: asyncio.StreamWriter) -> None:
        for _ in range(64):
            writer.write(block)
            await writer.drain()
        writer.close()

    async def receive(reader: asyncio.StreamReader) -> int:
        await go.wait()
        count = 0
        while data := await reader.read(MEBI):
            assert data == (block * 3)[count % 256 :][: len(data)]
            count += len(data)
        return count

    async def story() -> None:
        async def at_agent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if slow is TO_AGENT:
                writer.write(b"%d" % await receive(reader))
                writer.close()
            else:
                await send(writer)

        async with agent(at_agent) as port, relaying(port, journal=CountingJournal()) as bench:
            reader, writer = await bench.connect()
            sending = asyncio.create_task(send(writer)) if slow is TO_AGENT else None
            await until(lambda: bench.relay.stats.buffered > 0)
            seen = -1
            while seen != (
                seen := bench.relay.stats.bytes_to_agent + bench.relay.stats.bytes_to_client
            ):
                assert bench.relay.stats.buffered < MEBI
                await asyncio.sleep(0.05)
            assert seen < 64 * MEBI
            assert bench.relay.stats.buffered < MEBI
            go.set()
            if sending is None:
                assert await receive(reader) == 64 * MEBI
                writer.close()
            else:
                await sending
                await until(lambda: bench.relay.stats.bytes_to_agent == 64 * MEBI)

    play(story())


def test_the_client_half_closes_first(play: Play) -> None:
    """FIN of the client reaches the agent, whose answer still passes."""

    async def story() -> None:
        async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked = await reader.read()
            for part in (b"you ", b"said ", asked):
                writer.write(part)
                await asyncio.sleep(0.02)
            writer.close()

        async with agent(late) as port, relaying(port) as bench:
            reader, writer = await bench.connect()
            writer.write(b"all")
            writer.write_eof()
            assert await reader.read() == b"you said all"
            writer.close()
            await bench.closed()
            assert bench.journal.kinds() == [
                "OPEN",
                "DIALED",
                "EOF to_agent",
                "EOF to_client",
                "CLOSED",
            ]

    play(story())


def test_the_agent_half_closes_first(play: Play) -> None:
    """FIN of the agent reaches the client, whose bytes still pass."""

    async def story() -> None:
        heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        async def early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"bye")
            writer.write_eof()
            heard.set_result(await reader.read())
            writer.close()

        async with agent(early) as port, relaying(port) as bench:
            reader, writer = await bench.connect()
            assert await reader.read() == b"bye"
            writer.write(b"but ")
            await asyncio.sleep(0.02)
            writer.write(b"wait")
            writer.write_eof()
            assert await heard == b"but wait"
            writer.close()
            await bench.closed()
            assert bench.journal.kinds() == [
                "OPEN",
                "DIALED",
                "EOF to_client",
                "EOF to_agent",
                "CLOSED",
            ]

    play(story())


def test_a_half_close_before_the_upstream_is_connected_is_forwarded(play: Play) -> None:
    """Bytes and FIN that arrive in one go with the connection are not lost."""

    async def story() -> None:
        async with agent(echo) as port, relaying(f"localhost:{port}") as bench:
            with socket.create_connection(("127.0.0.1", bench.port)) as sock:
                sock.sendall(b"everything")
                sock.shutdown(socket.SHUT_WR)
                sock.setblocking(False)
                loop = asyncio.get_running_loop()
                assert await loop.sock_recv(sock, 100) == b"everything"
                assert await loop.sock_recv(sock, 100) == b""
            await bench.closed()

    play(story())


@pytest.mark.parametrize("size", [0, 10, 300_000])
def test_a_reset_of_the_client_reaches_the_agent(play: Play, size: int) -> None:
    """The agent reads what the client sent before, then ECONNRESET."""

    async def story() -> None:
        got: asyncio.Future[tuple[bytes, str]] = asyncio.get_running_loop().create_future()

        async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            got.set_result(await read_until_broken(reader))
            writer.close()

        sent = os.urandom(size)
        async with agent(listen) as port, relaying(port, journal=CountingJournal()) as bench:
            sock = socket.create_connection(("127.0.0.1", bench.port))
            await asyncio.get_running_loop().run_in_executor(None, sock.sendall, sent)
            await until(
                lambda: (
                    bench.relay.stats.bytes_to_agent == size and "DIALED" in bench.journal.kinds()
                )
            )
            reset(sock)
            assert await got == (sent, "ConnectionResetError")
            await bench.closed()
            assert bench.journal.kinds() == ["OPEN", "DIALED", "RESET to_agent", "CLOSED"]

    play(story())


@pytest.mark.parametrize("size", [0, 10, 300_000])
def test_a_reset_of_the_agent_reaches_the_client(play: Play, size: int) -> None:
    """The client reads what the agent sent before, then ECONNRESET."""

    async def story() -> None:
        sent = os.urandom(size)

        async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(sent)
            await writer.drain()
            await until(lambda: bench.relay.stats.bytes_to_client == size)
            reset_stream(writer)

        async with agent(break_off) as port, relaying(port, journal=CountingJournal()) as bench:
            reader, writer = await bench.connect()
            assert await read_until_broken(reader) == (sent, "ConnectionResetError")
            writer.close()
            await bench.closed()
            assert bench.journal.kinds() == ["OPEN", "DIALED", "RESET to_client", "CLOSED"]

    play(story())


def test_a_reset_follows_delayed_bytes(play: Play) -> None:
    """Bytes that wait in the relay when the agent breaks off are delivered before the reset
    follows."""

    async def story() -> None:
        broken = asyncio.Event()

        async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(bytes(6 * MEBI))
            await until(lambda: bench.relay.stats.buffered > 0)
            reset_stream(writer)
            broken.set()

        async with agent(break_off) as port, relaying(port, journal=CountingJournal()) as bench:
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            sock.connect(("127.0.0.1", bench.port))
            await (
                broken.wait()
            )  # a reader in a hurry would empty the relay before the agent sees it full
            reader, writer = await asyncio.open_connection(sock=sock)
            got, how = await read_until_broken(reader)
            writer.close()
            await bench.closed()
            assert how == "ConnectionResetError"
            assert len(got) == bench.relay.stats.bytes_to_client > 0

    play(story())


def test_a_response_before_an_early_close_is_delivered(play: Play) -> None:
    """An agent that refuses a large request answers and closes without reading: the client gets the
    answer."""
    answer = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"

    async def story() -> None:
        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readexactly(10)
            writer.write(answer)
            await writer.drain()
            writer.transport.abort()  # unread bytes make this a RST

        async with agent(refuse) as port, relaying(port, journal=CountingJournal()) as bench:
            reader, writer = await bench.connect()
            writer.write(bytes(4 * MEBI))
            got, _ = await read_until_broken(reader)
            assert got == answer
            writer.close()
            await bench.closed()
            assert "RESET to_client" in bench.journal.kinds()

    play(story())


def test_events_are_not_delayed(play: Play) -> None:
    """Each event arrives before the next is sent, and at once: a timer would delay all of them, a
    busy machine some, so that they go on until one was not delayed."""

    async def story() -> None:
        arrived = asyncio.Event()
        sent: list[float] = []
        delays: list[float] = []

        def enough() -> bool:
            return len(delays) >= 30 and min(delays) < 0.005

        async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while not enough():
                arrived.clear()
                sent.append(time.monotonic())
                writer.write(b"data: %d\n\n" % len(sent))
                await arrived.wait()
            writer.close()

        async with agent(stream) as port, relaying(port) as bench, asyncio.timeout(SECONDS):
            reader, writer = await bench.connect()
            while not enough():
                assert await reader.readuntil(b"\n\n") == b"data: %d\n\n" % len(sent)
                delays.append(time.monotonic() - sent[-1])
                arrived.set()
            writer.close()

    play(story())


def test_small_writes_are_not_coalesced(play: Play) -> None:
    """TCP_NODELAY is set on both sides."""

    async def story() -> None:
        async with agent(echo) as port, relaying(port) as bench:
            reader, writer = await bench.connect()
            writer.write(b"x")
            await reader.readexactly(1)
            (pair,) = bench.relay._connections
            for side in (pair.client, pair.agent):
                assert side.transport is not None
                sock = side.transport.get_extra_info("socket")
                assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            writer.close()

    play(story())


@pytest.mark.parametrize("editing", [NO_EDITS, EditPolicy()], ids=["no edits", "edits"])
def test_an_agent_that_speaks_before_an_http2_client_is_not_refused(
    play: Play, editing: EditPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first byte is what shows its protocol: a frame that comes in two reads is not refused in
    its middle. An editor holds it for a moment, because it waits for the client's first bytes."""
    monkeypatch.setattr(connection, "SILENT_CLIENT_SECONDS", 0.05)
    settings = b"\0\0\x06\x04\0\0\0\0\0" + b"\0\x03\0\0\0\x64"

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(settings[:5])
        await reader.readexactly(len(PREFACE))
        writer.write(b"\xff" + settings[5:])
        writer.close()

    async def story() -> None:
        async with agent(speak) as port, relaying(port, editing=editing) as bench:
            reader, writer = await bench.connect()
            assert await reader.readexactly(5) == settings[:5]
            writer.write(PREFACE)
            assert await reader.read() == b"\xff" + settings[5:]
            writer.close()
            await bench.closed()
            assert not bench.journal.data(Direction.TO_CLIENT, kind=ChunkKind.OURS)

    play(story())


def test_the_server_may_speak_first(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """A protocol in which the agent greets works, also where the relay has two upstreams to choose
    from."""
    monkeypatch.setattr(connection, "SILENT_CLIENT_SECONDS", 0.05)

    async def story() -> None:
        async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"220 hello\r\n")
            writer.write(b"you said " + await reader.readline())
            writer.close()

        async with agent(greet) as port, agent(echo) as other:
            for grpc in (None, other):
                async with relaying(port, grpc) as bench:
                    reader, writer = await bench.connect()
                    assert await reader.readline() == b"220 hello\r\n"
                    writer.write(b"EHLO\r\n")
                    assert await reader.read() == b"you said EHLO\r\n"
                    writer.close()

    play(story())


TLS_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(range(190))
FIRST_WORDS = {
    "upgrade": (
        (
            b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
            b"Upgrade: h2c\r\nHTTP2-Settings: AAM\r\n\r\n"
        ),
        "http",
    ),
    "connect": (b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", "http"),
    "tls": (TLS_HELLO, "http"),
    "nonsense": (b"\0\xff\r\n\r\n\x80", "http"),
    "one byte": (b"P", "http"),
    "almost a preface": (PREFACE[:-1] + b"X", "http"),
    "post": (b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "http"),
    "http/2": (PREFACE + b"\0\0\0\4\0\0\0\0\0", "grpc"),
    "only the preface": (PREFACE, "grpc"),
}


@pytest.mark.parametrize("case", FIRST_WORDS)
@pytest.mark.parametrize("split", ["whole", "by byte"])
def test_the_first_bytes_choose_the_upstream(
    play: Play, case: str, split: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an upstream for gRPC, the HTTP/2 preface goes there, everything else to the other, all
    bytes unchanged."""
    words, where = FIRST_WORDS[case]
    if (
        words == PREFACE[: len(words)] and where == "http"
    ):  # which is known when nothing more comes for a while
        monkeypatch.setattr(connection, "SILENT_CLIENT_SECONDS", 0.05)

    async def story() -> None:
        def named(name: bytes) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Story]:
            async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                got = await reader.read(len(words))
                while len(got) < len(words) and (more := await reader.read(len(words) - len(got))):
                    got += more
                writer.write(b"\0" + name + b":" + got)  # as HTTP/2 begins
                writer.close()

            return handler

        async with (
            agent(named(b"http")) as http,
            agent(named(b"grpc")) as grpc,
            relaying(http, grpc) as bench,
        ):
            reader, writer = await bench.connect()
            if split == "whole":
                writer.write(words)
            else:
                for byte in words:
                    writer.write(bytes((byte,)))
                    await asyncio.sleep(0)
            assert await reader.read() == b"\0" + where.encode() + b":" + words
            writer.close()
            await bench.closed()
            assert bench.journal.data(TO_AGENT) == words
            dialed = next(chunk for chunk in bench.journal.chunks if chunk.kind is ChunkKind.DIALED)
            assert f":{grpc if where == 'grpc' else http}".encode() in dialed.data

    play(story())


def reset_stream(writer: asyncio.StreamWriter) -> None:
    """Break a stream's connection with RST."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    writer.transport.abort()


async def read_until_broken(reader: asyncio.StreamReader) -> tuple[bytes, str]:
    """What came, and how it ended: the error's name, or `eof`. (StreamReader.read would let the
    error hide bytes.)"""
    got = bytearray()
    while True:
        try:
            part = await reader.read(65536)
        except ConnectionError as error:
            got += reader._buffer  # type: ignore[attr-defined]
            return bytes(got), type(error).__name__
        if not part:
            return bytes(got), "eof"
        got += part


@pytest.mark.parametrize(
    ("request_line", "method"),
    [
        (b"CONNECT agent.example:443 HTTP/1.1", "CONNECT"),
        (b"GET http://agent.example/ HTTP/1.1", "GET"),
        (b"GET /?next=http://agent.example/ HTTP/1.1", ""),
        (b"CONNECTED / HTTP/1.1", ""),
    ],
)
def test_a_client_that_takes_a_listener_for_its_proxy(
    play: Play, request_line: bytes, method: str
) -> None:
    """The agent answers it as before; the user reads of the option for such clients."""

    async def story() -> None:
        async with agent(echo) as port, relaying(port) as bench:
            reader, writer = await bench.connect()
            writer.write(request_line + b"\r\n\r\n")
            assert await reader.readexactly(len(request_line) + 4) == request_line + b"\r\n\r\n"
            writer.close()
            await bench.closed()
            assert [note.text for note in bench.notes] == [
                (
                    f"a client uses 127.0.0.1:{bench.port} as its HTTP "
                    f"proxy ({method}), but that port leads to one agent"
                )
            ] * bool(method)
            assert all("--forward" in note.hint for note in bench.notes)

    play(story())
