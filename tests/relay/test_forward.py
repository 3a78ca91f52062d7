from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Callable
from functools import partial
from random import Random

import grpc
import grpc.aio
import msgspec
import pytest

from a2a_proxy.model.wire import ChunkKind, Direction
from a2a_proxy.relay import connection_editing, forward
from a2a_proxy.relay.listener_state import EditPolicy
from a2a_proxy.relay.route import Listen, Route, Upstream
from support_relay import (
    SECONDS,
    UNKNOWN,
    Handler,
    Story,
    agent,
    echo,
    forwarding,
    refusing_port,
    until,
)

Play = Callable[[Story], None]


async def read_head(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")


def answering(
    name: bytes, *, requests: list[bytes] | None = None, until_close: bool = False
) -> Handler:
    """A server that answers each request without a body with its name and the request's target."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await read_head(reader)
                if requests is not None:
                    requests.append(head)
                body = name + b" " + head.split(b" ")[1]
                if until_close:
                    writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + body)
                    break
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        writer.close()

    return handle


async def read_answer(reader: asyncio.StreamReader) -> bytes:
    head = await read_head(reader)
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    return await reader.readexactly(length)


def get(port: int, path: str = "/", extra: str = "") -> bytes:
    return (
        f"GET http://127.0.0.1:{port}{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{extra}\r\n"
    ).encode()


def test_requests_to_two_origins_on_one_connection(play: Play) -> None:
    """Pipelined: each answer comes in order; each origin has a recorded connection of its own, in
    origin form and without the credentials for the proxy; the first one ends before the second
    begins."""

    async def story() -> None:
        seen: list[bytes] = []
        async with (
            agent(answering(b"one", requests=seen)) as one,
            agent(answering(b"two")) as two,
            forwarding() as bench,
        ):
            reader, writer = await bench.connect()
            secret = "Proxy-Authorization: Basic c2VjcmV0\r\nProxy-Connection: keep-alive\r\n"
            writer.write(get(one, "/a", secret) + get(one, "/b") + get(two, "/c") + get(one, "/d"))
            answers = [await read_answer(reader) for _ in range(4)]
            assert answers == [b"one /a", b"one /b", b"two /c", b"one /d"]
            writer.close()
            for number in (1, 2, 3):
                await bench.closed(number)
            assert [facts["upstream"] for facts in bench.opened()] == [
                f"127.0.0.1:{port}" for port in (one, two, one)
            ]
            assert {facts["forwarded"] for facts in bench.opened()} == {True}
            journal = bench.journal
            sent = (
                f"GET /a HTTP/1.1\r\nHost: 127.0.0.1:{one}\r\n\r\n"
                f"GET /b HTTP/1.1\r\nHost: 127.0.0.1:{one}\r\n\r\n"
            )
            assert journal.data(Direction.TO_AGENT, 1) == sent.encode() == b"".join(seen[:2])
            assert journal.data(Direction.TO_CLIENT, 2).endswith(b"two /c")
            assert not any(
                b"Proxy" in chunk.data or b"c2VjcmV0" in chunk.data for chunk in journal.chunks
            )
            assert journal.kinds(1) == ["OPEN", "DIALED", "CLOSED"]
            assert journal.kinds(3) == ["OPEN", "DIALED", "EOF to_agent", "EOF to_client", "CLOSED"]
            times = [chunk.at for chunk in journal.chunks]
            assert times == sorted(times)
            assert bench.relay.stats.total == 3

    play(story())


def test_requests_to_two_origins_one_after_another(play: Play) -> None:
    """A client that waits for each answer may change the origin at any request."""

    async def story() -> None:
        async with (
            agent(answering(b"one")) as one,
            agent(answering(b"two")) as two,
            forwarding() as bench,
        ):
            reader, writer = await bench.connect()
            for number, port in enumerate((one, one, two, two, one, two)):
                writer.write(get(port, f"/{number}"))
                assert (
                    await read_answer(reader)
                    == (b"one" if port == one else b"two") + b" /%d" % number
                )
            writer.close()
            await bench.closed(4)
            assert bench.relay.stats.total == 4

    play(story())


async def answer_by_request(
    name: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer each request with name, method, target and body; the query says how: with a length or
    in chunks."""
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while head := await read_head(reader):
            method, target, _ = head.split(b" ", 2)
            body = b""
            if b"content-length: " in head:
                body = await reader.readexactly(
                    int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
                )
            elif b"Transfer-Encoding: chunked" in head:
                while size := int(await reader.readuntil(b"\r\n"), 16):
                    body += (await reader.readexactly(size + 2))[:-2]
                await reader.readexactly(2)
            text = b" ".join((name, method, target, body))
            if method == b"HEAD":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text))
            elif b"chunked" in target:
                parts = (text[:3], text[3:])
                wire = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
                writer.write(
                    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + wire + b"0\r\n\r\n"
                )
            else:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
    writer.close()


async def read_text(reader: asyncio.StreamReader, *, head_only: bool) -> bytes:
    head = await read_head(reader)
    if head_only:
        return b""
    if b"Content-Length: " in head:
        return await reader.readexactly(
            int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
        )
    text = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        text += (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)
    return text


@pytest.mark.parametrize("seed", range(8))
def test_any_sequence_of_requests(play: Play, seed: int) -> None:
    """Methods, framings, repeated heads, pieces of any size, waiting for answers or not, over three
    origins."""
    random = Random(seed)

    async def story() -> None:
        async with contextlib.AsyncExitStack() as stack:
            names = (b"one", b"two", b"three")
            ports = [
                await stack.enter_async_context(agent(partial(answer_by_request, name)))
                for name in names
            ]
            bench = await stack.enter_async_context(forwarding())
            reader, writer = await bench.connect()
            expected: list[tuple[bytes, bool]] = []

            async def read_answers() -> None:
                for text, head_only in expected:
                    assert await read_text(reader, head_only=head_only) == text
                expected.clear()

            for _ in range(150):
                index = random.choice((0, 0, 0, 1, 2))
                method = random.choice(("GET", "POST", "HEAD"))
                path = random.choice(("/", "/x?chunked", f"/{random.randint(0, 9)}"))
                body, fields = b"", ""
                if method == "POST":
                    body = wire = b"b" * random.choice((0, 1, 5, 5, 5, 3000))
                    fields = f"content-length: {len(body)}\r\n"
                    if body and random.random() < 0.5:
                        fields, wire = (
                            "Transfer-Encoding: chunked\r\n",
                            b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body),
                        )
                else:
                    wire = b""
                head = f"{method} http://127.0.0.1:{ports[index]}{path} HTTP/1.1\r\n{fields}\r\n"
                data = head.encode() + wire
                while data:
                    size = random.choice((1, 30, len(data), len(data)))
                    writer.write(data[:size])
                    data = data[size:]
                    if random.random() < 0.3:
                        await asyncio.sleep(0)
                text = b" ".join((names[index], method.encode(), path.encode(), body))
                expected.append((b"" if method == "HEAD" else text, method == "HEAD"))
                if random.random() < 0.5:
                    await read_answers()
            await read_answers()
            writer.close()

    play(story())


def test_a_body_goes_on_before_it_is_complete(play: Play) -> None:
    """Nothing is buffered: the origin has the head and each piece of the body before the client
    sends the next one, and its 100 Continue reaches the client."""

    async def story() -> None:
        pieces: asyncio.Queue[bytes] = asyncio.Queue()

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(65536):
                await pieces.put(data)
                if data.startswith(b"POST"):
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                if data.endswith(b"0\r\n\r\n"):
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            writer.close()

        async with (
            agent(handle) as port,
            agent(answering(b"other")) as other,
            forwarding() as bench,
        ):
            reader, writer = await bench.connect()
            head = (
                f"POST http://127.0.0.1:{port}/ HTTP/1.1\r\nExpect: 100-continue\r\n"
                f"Transfer-Encoding: chunked\r\n\r\n"
            )
            for _ in range(2):
                writer.write(head.encode())
                assert (await pieces.get()).startswith(b"POST / HTTP/1.1\r\nHost: 127.0.0.1:")
                assert await read_head(reader) == b"HTTP/1.1 100 Continue\r\n\r\n"
                for piece in (b"2\r\nab\r\n", b"2\r\ncd", b"\r\n0\r\n\r\n"):
                    writer.write(piece)
                    assert await pieces.get() == piece
                assert await read_head(reader) == b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
            writer.write(get(other, "/x"))
            assert await read_answer(reader) == b"other /x"
            writer.close()

    play(story())


def test_the_next_origin_waits_for_the_whole_answer(play: Play) -> None:
    """The second origin sees no connection before the first one's answer has ended, however it
    comes."""

    async def story() -> None:
        go_on, dialled = asyncio.Event(), asyncio.Event()

        async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await read_head(reader)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
            await go_on.wait()
            writer.write(b"cd")
            await reader.read()
            writer.close()

        async def second(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            dialled.set()
            await answering(b"two")(reader, writer)

        async with agent(slow) as one, agent(second) as two, forwarding() as bench:
            reader, writer = await bench.connect()
            writer.write(get(one) + get(two, "/x"))
            await reader.readuntil(b"ab")
            await asyncio.sleep(0.05)
            assert not dialled.is_set()
            go_on.set()
            await reader.readuntil(b"cd")
            assert await read_answer(reader) == b"two /x"
            assert dialled.is_set()
            writer.close()

    play(story())


def test_an_origin_that_closes_before_the_next_request(play: Play) -> None:
    """The client gets the whole answer and then the end, as from the origin; the next origin sees
    no connection."""

    async def story() -> None:
        dialled = 0

        async def last(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await read_head(reader)
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
            writer.close()

        async def second(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal dialled
            dialled += 1
            writer.close()

        async with agent(last) as one, agent(second) as two, forwarding() as bench:
            for _ in range(20):
                reader, writer = await bench.connect()
                writer.write(get(one) + get(two))
                assert await read_answer(reader) == b"ok"
                assert await reader.read() == b""
                writer.close()
            await until(lambda: not bench.relay.stats.open)
            assert dialled == 0

    play(story())


@pytest.mark.parametrize("until_close", [False, True])
def test_http_1_0_and_answers_until_close(play: Play, until_close: bool) -> None:
    """The client of an origin that closes is closed too, after the whole answer."""

    async def story() -> None:
        async with agent(answering(b"one", until_close=until_close)) as port, forwarding() as bench:
            reader, writer = await bench.connect()
            writer.write(f"GET http://127.0.0.1:{port}/a HTTP/1.0\r\n\r\n".encode())
            if not until_close:
                assert await read_answer(reader) == b"one /a"
                writer.close()
            else:
                assert await reader.read() == b"HTTP/1.1 200 OK\r\n\r\none /a"
                writer.close()
            await bench.closed()

    play(story())


def test_an_upgraded_connection_is_opaque(play: Play) -> None:
    """After 101 the bytes of both sides pass unchanged, also those that look like requests."""

    async def story() -> None:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await read_head(reader)
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n")
            await echo(reader, writer)

        async with agent(handle) as port, forwarding() as bench:
            reader, writer = await bench.connect()
            writer.write(get(port, "/", "Connection: Upgrade\r\nUpgrade: x\r\n"))
            assert (await read_head(reader)).startswith(b"HTTP/1.1 101 ")
            data = b"\0\xff" + get(1) + b"\n\n"
            writer.write(data)
            assert await reader.readexactly(len(data)) == data
            writer.write_eof()
            assert await reader.read() == b""
            writer.close()
            await bench.closed()
            assert bench.journal.data(Direction.TO_AGENT).endswith(data)

    play(story())


def test_a_reset_of_either_side_reaches_the_other(play: Play) -> None:
    async def story() -> None:
        broken: asyncio.Queue[bool] = asyncio.Queue()

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await read_head(reader)
            if b"/reset" in head:
                _linger(writer)
                writer.transport.abort()
                return
            writer.write(b"HTTP/1.1 200 OK\r\n\r\nfirst")
            try:
                await reader.read()
                await broken.put(False)
            except ConnectionResetError:
                await broken.put(True)
            writer.close()

        async with agent(handle) as port, forwarding() as bench:
            reader, writer = await bench.connect()
            writer.write(get(port, "/reset"))
            with pytest.raises(ConnectionResetError):
                await reader.read()
            writer.close()
            reader, writer = await bench.connect()
            writer.write(get(port))
            await reader.readuntil(b"first")
            _linger(writer)
            writer.transport.abort()
            assert await broken.get()
            await bench.closed(2)
            assert "RESET to_agent" in bench.journal.kinds(2)

    play(story())


def _linger(writer: asyncio.StreamWriter) -> None:
    """Make the close of this connection a reset."""
    writer.get_extra_info("socket").setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
    )


def test_a_slow_client_slows_the_origin(play: Play) -> None:
    """The relay holds a bounded part of a long answer that the client does not read, and delivers
    all of it."""
    size = 32 << 20

    async def story() -> None:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await read_head(reader)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
            for _ in range(size >> 16):
                writer.write(bytes(1 << 16))
                await writer.drain()
            await reader.read()
            writer.close()

        async with agent(handle) as port, agent(answering(b"two")) as two, forwarding() as bench:
            reader, writer = await bench.connect()
            writer.write(get(port) + get(two, "/x"))
            await read_head(reader)
            await asyncio.sleep(0.2)
            assert bench.relay.stats.buffered < 2 << 20
            await reader.readexactly(size)
            assert await read_answer(reader) == b"two /x"
            writer.close()

    play(story())


@pytest.mark.parametrize(
    ("request_bytes", "words"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "names no origin"),
        (b"GET http://a.test/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "two host fields"),
        (b"\x80garbage\r\n\r\n", "malformed"),
    ],
)
def test_requests_that_cannot_be_forwarded(play: Play, request_bytes: bytes, words: str) -> None:
    """A problem in words, after the answers to the requests before; the console names what is wrong
    and a hint."""

    async def story() -> None:
        async with agent(answering(b"one")) as port, forwarding() as bench:
            for before in (b"", get(port, "/a")):
                reader, writer = await bench.connect()
                writer.write(before + request_bytes)
                if before:
                    assert await read_answer(reader) == b"one /a"
                head, _, body = (await reader.read()).partition(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
                assert words in msgspec.json.decode(body)["detail"]
                writer.close()
            hint = "HTTP_PROXY" if "names no origin" in words else "the client"
            assert [
                words in note.text and note.loud and hint in note.hint for note in bench.notes
            ] == [True]

    play(story())


@pytest.mark.parametrize("host", ["127.0.0.1", UNKNOWN])
def test_an_origin_that_cannot_be_reached(play: Play, host: str) -> None:
    """502 in words, recorded as the proxy's own; the next request of the client reaches its
    origin."""

    async def story() -> None:
        async with forwarding() as bench:
            reader, writer = await bench.connect()
            port = refusing_port()
            writer.write(f"GET http://{host}:{port}/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 502 Bad Gateway")
            assert f"{host}:{port}" in msgspec.json.decode(body)["detail"]
            assert bench.journal.data(Direction.TO_CLIENT, kind=ChunkKind.OURS).endswith(body)
            writer.close()
            await bench.closed()

    play(story())


def test_own_ports_are_refused_by_address(play: Play) -> None:
    """The port of the forward proxy, of a listener beside it and a reserved one, under each name of
    this machine."""

    async def story() -> None:
        route = Route(Listen.parse(":0"), Upstream.parse("127.0.0.1:9"))
        async with forwarding(routes=[route]) as bench, agent(answering(b"metrics")) as metrics:
            bench.relay.reserve_addresses([f"127.0.0.1:{metrics}"])
            listener = int(bench.relay.bound_addresses[0][1][0].rpartition(":")[2])
            hosts = ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"]
            for port in (bench.port, listener, metrics):
                for host in hosts if port != metrics else hosts[:1]:
                    reader, writer = await bench.connect()
                    writer.write(f"GET http://{host}:{port}/ HTTP/1.1\r\nHost: a\r\n\r\n".encode())
                    answer = await reader.read()
                    assert answer.startswith(b"HTTP/1.1 502 "), (host, answer)
                    assert b"it is a port of the proxy itself" in answer
                    writer.close()

    play(story())


def test_http2_and_tls_at_the_port_of_the_proxy(play: Play) -> None:
    """A gRPC channel without a proxy setting gets UNAVAILABLE in words; a TLS client is closed;
    both are named."""

    async def story() -> None:
        async with forwarding() as bench:
            async with grpc.aio.insecure_channel(
                f"127.0.0.1:{bench.port}", [("grpc.enable_http_proxy", 0)]
            ) as channel:
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await channel.unary_unary("/a/B")(b"", timeout=SECONDS)
                assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
                assert "HTTP/2" in str(caught.value.details())
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await asyncio.open_connection(
                    "127.0.0.1", bench.port, ssl=ssl.create_default_context()
                )
            assert [note.text.split(" sent ")[1].split(" ")[0] for note in bench.notes] == [
                "HTTP/2",
                "TLS",
            ]

    play(story())


def test_traceparent_of_forwarded_requests(play: Play) -> None:
    """--propagate works as at other listeners; cards and authorities stay."""

    async def story() -> None:
        seen: list[bytes] = []
        policy = EditPolicy("always", propagate=True)
        async with (
            agent(answering(b"one", requests=seen)) as port,
            forwarding(editing=policy) as bench,
        ):
            reader, writer = await bench.connect()
            writer.write(get(port, "/.well-known/agent-card.json"))
            assert await read_answer(reader) == b"one /.well-known/agent-card.json"
            writer.close()
            await bench.closed()
            assert f"Host: 127.0.0.1:{port}\r\ntraceparent: 00-".encode() in seen[0]
            assert bench.journal.data(Direction.TO_AGENT) == get(port).replace(
                f"http://127.0.0.1:{port}/".encode(), b"/.well-known/agent-card.json"
            )

    play(story())


def test_a_flood_of_small_messages_delays_nobody(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests and chunks beyond the budget wait for later turns of the event loop, and all arrive
    in order."""
    monkeypatch.setattr(connection_editing, "WORK_PER_TURN", 50)
    monkeypatch.setattr(forward, "WORK_PER_STEP", 50)
    count = 500

    async def story() -> None:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(asyncio.IncompleteReadError):
                while True:
                    target = (await read_head(reader)).split(b" ")[1]
                    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                    writer.write(b"".join(b"1\r\n%c\r\n" % byte for byte in target) + b"0\r\n\r\n")
            writer.close()

        async with agent(handle) as one, agent(handle) as two, forwarding() as bench:
            reader, writer = await bench.connect()
            ports = [(one, two)[number // 100 % 2] for number in range(count)]
            writer.write(b"".join(get(port, f"/{number}") for number, port in enumerate(ports)))
            writer.write_eof()
            answer = await reader.read()
            found = [
                part.partition(b"\r\n\r\n")[2] for part in answer.split(b"HTTP/1.1 200 OK")[1:]
            ]
            texts = [b"".join(body.split(b"\r\n")[1::2]).decode() for body in found]
            assert texts == [f"/{number}" for number in range(count)]
            writer.close()
            assert len(bench.opened()) == 5

    play(story())


def test_clients_without_a_request_are_closed_at_the_end(play: Play) -> None:
    async def story() -> None:
        async with forwarding() as bench:
            reader, writer = await bench.connect()
            writer.write(b"GET http")
            await asyncio.sleep(0.05)
            await bench.relay.stop()
            assert await reader.read() == b""
            writer.close()
            await until(lambda: not bench.relay.stats.open)

    play(story())


def test_the_origin_closes_while_a_request_for_another_waits(play: Play) -> None:
    """The client expects no more answers, and nothing stays open. The proxy does not read from it
    at that time."""

    async def story() -> None:
        async with (
            agent(answering(b"one", until_close=True)) as one,
            agent(answering(b"two")) as two,
            forwarding() as bench,
        ):
            reader, writer = await bench.connect()
            writer.write(get(one) + get(two))
            assert (await reader.read()).endswith(b"one /")
            writer.close()
            await until(lambda: not bench.relay.stats.open)
            assert len(bench.opened()) == 1

    play(story())
