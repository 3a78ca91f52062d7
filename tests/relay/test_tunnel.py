from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Callable
from typing import Any

import grpc
import grpc.aio
import msgspec
import pytest
import trustme

from a2a_proxy.http import PREFACE
from a2a_proxy.model.wire import ChunkKind, Direction, PassedFacts
from a2a_proxy.relay import tunnel
from a2a_proxy.relay.tcp import reset_connection
from support_relay import (
    SECONDS,
    UNKNOWN,
    ForwardBench,
    Story,
    agent,
    echo,
    forwarding,
    refusing_port,
)

Play = Callable[[Story], None]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
SECRET = "Proxy-Authorization: Basic c2VjcmV0\r\n"


async def connect(
    bench: ForwardBench, target: str, early: bytes = b""
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Establish a tunnel; `early` are bytes that the client sends together with its request."""
    reader, writer = await bench.connect()
    writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{SECRET}\r\n".encode() + early)
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 200 Connection established\r\n\r\n"
    return reader, writer


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.readuntil(b"\r\n\r\n"):
        writer.write(OK)


@pytest.mark.parametrize("early", [False, True])
def test_http_1_in_a_tunnel(play: Play, early: bool) -> None:
    """Recorded as requests to the origin; the CONNECT request and its credentials are not."""

    async def story() -> None:
        async with agent(answer) as port, forwarding() as bench:
            request = f"GET /x HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
            reader, writer = await connect(bench, f"127.0.0.1:{port}", request if early else b"")
            writer.write(b"" if early else request)
            assert await reader.readexactly(len(OK)) == OK
            writer.write(request)
            assert await reader.readexactly(len(OK)) == OK
            writer.close()
            await bench.closed()
            assert [facts["upstream"] for facts in bench.opened()] == [f"127.0.0.1:{port}"]
            assert bench.journal.data(Direction.TO_AGENT) == request * 2
            assert bench.journal.data(Direction.TO_CLIENT) == OK * 2
            assert not any(
                b"CONNECT" in chunk.data or b"c2VjcmV0" in chunk.data
                for chunk in bench.journal.chunks
            )

    play(story())


def test_grpc_in_a_tunnel(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """Grpcio with `grpc_proxy` sends plaintext HTTP/2 through CONNECT."""

    async def story() -> None:
        async def handle(request: bytes, _: object) -> bytes:
            return request + b"!"

        server = grpc.aio.server()
        handlers = {"Call": grpc.unary_unary_rpc_method_handler(handle)}
        server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler("test.Service", handlers)]
        )
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with forwarding() as bench:
            for name in ("no_grpc_proxy", "no_proxy", "NO_PROXY"):
                monkeypatch.setenv(name, "")
            monkeypatch.setenv("grpc_proxy", f"http://127.0.0.1:{bench.port}")
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                call = channel.unary_unary("/test.Service/Call")
                assert await call(b"hello", timeout=SECONDS) == b"hello!"
            assert bench.journal.data(Direction.TO_AGENT).startswith(PREFACE)
            assert [facts["upstream"] for facts in bench.opened()] == [f"127.0.0.1:{port}"]
        await server.stop(None)

    play(story())


def passed(bench: ForwardBench) -> list[PassedFacts]:
    found = [chunk for chunk in bench.journal.chunks if chunk.kind is ChunkKind.PASSED]
    return [msgspec.json.decode(chunk.data, type=PassedFacts) for chunk in found]


@pytest.mark.parametrize(
    ("begin", "kind", "words"),
    [
        (b"\x16\x03\x01\x02\x00\x01" + os.urandom(500), "tls", "TLS to 127.0.0.1 passes unread"),
        (b"\x00garbage \xff" + os.urandom(500), "opaque", "neither HTTP nor TLS"),
        (b"SSH-2.0-x\r\n", "opaque", "neither HTTP nor TLS"),
    ],
)
def test_other_bytes_pass_unread(play: Play, begin: bytes, kind: str, words: str) -> None:
    """They are counted in both directions, not recorded, and a line says so once for each host."""

    async def story() -> None:
        async with agent(echo) as port, forwarding() as bench:
            for number in (1, 2):
                reader, writer = await connect(bench, f"127.0.0.1:{port}")
                for data in (begin, b"\x17" + os.urandom(300_000)):
                    writer.write(data)
                    assert await reader.readexactly(len(data)) == data
                writer.write_eof()
                assert await reader.read() == b""
                writer.close()
                await bench.closed(number)
            size = len(begin) + 300_001
            assert passed(bench) == [PassedFacts(size, kind)] * 4
            assert bench.journal.kinds()[:2] == ["OPEN", "DIALED"]
            assert not any(chunk.kind is ChunkKind.DATA for chunk in bench.journal.chunks)
            (note,) = bench.notes
            assert words in note.text

    play(story())


def test_an_origin_that_speaks_first(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its greeting reaches a client that waits for it; a client that sends nothing, and an origin
    that does not either, wait."""
    monkeypatch.setattr(tunnel, "SILENT_CLIENT_SECONDS", 0.05)

    async def story() -> None:
        async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"220 hello\r\n")
            await echo(reader, writer)

        async with agent(greet) as port, agent(answer) as silent, forwarding() as bench:
            reader, writer = await connect(bench, f"127.0.0.1:{port}")
            assert await reader.readuntil(b"\r\n") == b"220 hello\r\n"
            writer.write(b"EHLO x\r\n")
            assert await reader.readuntil(b"\r\n") == b"EHLO x\r\n"
            writer.close()
            await bench.closed()
            assert [facts.kind for facts in passed(bench)] == ["opaque"] * 2

            reader, writer = await connect(bench, f"127.0.0.1:{silent}")
            await asyncio.sleep(0.3)
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert await reader.readexactly(len(OK)) == OK
            writer.close()
            await bench.closed(2)
            assert bench.journal.data(Direction.TO_CLIENT, 2) == OK

    play(story())


@pytest.mark.parametrize("host", ["127.0.0.1", UNKNOWN])
def test_an_origin_that_cannot_be_reached(play: Play, host: str) -> None:
    """502 in words instead of 200, recorded without the credentials."""

    async def story() -> None:
        async with forwarding() as bench:
            reader, writer = await bench.connect()
            target = f"{host}:{refusing_port()}"
            writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{SECRET}\r\n".encode())
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 502 Bad Gateway")
            assert target in msgspec.json.decode(body)["detail"]
            writer.close()
            await bench.closed()
            assert bench.journal.data(Direction.TO_AGENT) == (
                f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode()
            )
            assert bench.journal.data(Direction.TO_CLIENT, kind=ChunkKind.OURS).endswith(body)

    play(story())


def test_own_ports_are_refused(play: Play) -> None:
    async def story() -> None:
        async with forwarding() as bench:
            for host in ("127.0.0.1", "localhost", "[::1]"):
                reader, writer = await bench.connect()
                writer.write(f"CONNECT {host}:{bench.port} HTTP/1.1\r\n\r\n".encode())
                assert b"it is a port of the proxy itself" in await reader.read()
                writer.close()

    play(story())


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"CONNECT a.test HTTP/1.1\r\nHost: a.test\r\n\r\n", "its target is not HOST:PORT"),
        (b"CONNECT a.test:0 HTTP/1.1\r\n\r\n", "its target is not HOST:PORT"),
        (b"CONNECT a.test:70000 HTTP/1.1\r\n\r\n", "its target is not HOST:PORT"),
        (b"CONNECT http://a.test/ HTTP/1.1\r\n\r\n", "its target is not HOST:PORT"),
        (b"CONNECT a.test:1 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "two host fields"),
        (b"CONNECT a.test:1 HTTP/1.1\n\n", "a bare LF in a head"),
        (b"CONNECT a.test:1 HTTP/1.1\r\nX: " + b"a" * 70_000, "a malformed request head"),
    ],
)
def test_requests_that_are_no_tunnel(play: Play, head: bytes, words: str) -> None:
    """400 in words, and a line with a hint."""

    async def story() -> None:
        async with forwarding() as bench:
            reader, writer = await bench.connect()
            writer.write(head)
            start, _, body = (await reader.read()).partition(b"\r\n\r\n")
            assert start.startswith(b"HTTP/1.1 400 Bad Request")
            assert words in msgspec.json.decode(body)["detail"]
            writer.close()
            (note,) = bench.notes
            assert words in note.text
            assert "CONNECT HOST:PORT" in note.hint

    play(story())


def test_empty_lines_before_connect_are_left_out(play: Play) -> None:
    """As before any other request (RFC 9112 2.2)."""

    async def story() -> None:
        async with agent(answer) as port, forwarding() as bench:
            reader, writer = await bench.connect()
            writer.write(b"\r")
            await asyncio.sleep(0.01)
            writer.write(f"\n\r\nCONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
            writer.close()

    play(story())


def test_a_second_request_cannot_begin_a_tunnel(play: Play) -> None:
    async def story() -> None:
        async with agent(answer) as port, forwarding() as bench:
            reader, writer = await bench.connect()
            writer.write(
                f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n"
                "CONNECT a:1 HTTP/1.1\r\n\r\n".encode()
            )
            text = await reader.read()
            assert text.startswith(OK)
            assert b"CONNECT must be the first request" in text
            writer.close()

    play(story())


def test_tls_to_the_origin_is_end_to_end(play: Play) -> None:
    """The client sees the origin's own certificate, and the recording has the number of bytes
    only."""

    async def story() -> None:
        ca = trustme.CA()
        server, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
        ca.issue_cert("a.test").configure_cert(server)
        ca.configure_trust(trusting)
        origin = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=server)
        port = origin.sockets[0].getsockname()[1]
        async with forwarding() as bench:
            sock = socket.create_connection(("127.0.0.1", bench.port))
            sock.sendall(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
            sock.setblocking(False)
            loop = asyncio.get_running_loop()
            assert (await loop.sock_recv(sock, 1000)).startswith(b"HTTP/1.1 200 ")
            reader, writer = await asyncio.open_connection(
                sock=sock, ssl=trusting, server_hostname="a.test"
            )
            writer.write(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
            assert await reader.readexactly(len(OK)) == OK
            writer.close()
            await bench.closed()
            assert [facts.kind for facts in passed(bench)] == ["tls"] * 2
            assert not any(chunk.kind is ChunkKind.DATA for chunk in bench.journal.chunks)
        origin.close()

    play(story())


def test_clients_that_leave_early(play: Play) -> None:
    """Before the request is complete, and after it without a byte: nothing stays open."""

    async def story() -> None:
        async with agent(answer) as port, forwarding() as bench:
            _, writer = await bench.connect()
            writer.write(b"CONNECT a")
            writer.close()
            _, writer = await connect(bench, f"127.0.0.1:{port}")
            writer.close()
            await bench.closed()
            _, writer = await connect(bench, f"127.0.0.1:{port}")
            await bench.relay.stop()
            writer.close()

    play(story())


@pytest.mark.parametrize("begin", [b"", b"\0opaque", b"GET / HTTP/1.1\r\n\r\n"])
def test_an_origin_that_resets_the_tunnel_at_once(play: Play, begin: bytes) -> None:
    """The client's connection ends too, whatever it sends."""

    async def story() -> None:
        was_reset = asyncio.Event()

        async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            reset_connection(writer.transport)
            was_reset.set()

        async with agent(refuse) as port, forwarding() as bench:
            reader, writer = await connect(bench, f"127.0.0.1:{port}")
            await was_reset.wait()
            writer.write(begin)
            writer.write_eof()
            with contextlib.suppress(ConnectionError):
                await reader.read()
            writer.close()

    play(story())


def test_bytes_that_arrive_with_a_request_that_is_refused(play: Play) -> None:
    """The answer is one to the request, whatever the client has sent after it."""

    async def story() -> None:
        async with forwarding() as bench:
            for number in range(1, 6):
                reader, writer = await bench.connect()
                request = b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: a\r\n\r\n" % refusing_port()
                writer.write(request + b"\x16\x03\x01\x01\x00\x01")
                assert (await reader.read()).startswith(b"HTTP/1.1 502 Bad Gateway")
                writer.close()
                await bench.closed(number)
                assert bench.journal.data(Direction.TO_AGENT, number).startswith(b"CONNECT ")

    play(story())


def test_a_client_that_leaves_before_it_is_refused(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer makes its socket a broken one; no error is left to the event loop."""

    async def story() -> None:
        errors: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, error: errors.append(error))
        connected, gone = tunnel.connect_socket, asyncio.Event()

        async def connect_later(*origin: Any, **options: Any) -> socket.socket:
            await gone.wait()
            return await connected(*origin, **options)

        monkeypatch.setattr(tunnel, "connect_socket", connect_later)
        async with forwarding() as bench:
            _, writer = await bench.connect()
            writer.write(
                f"CONNECT 127.0.0.1:{refusing_port()} HTTP/1.1\r\n\r\n"
                "GET / HTTP/1.1\r\n\r\n".encode()
            )
            writer.close()
            await writer.wait_closed()
            gone.set()
            await bench.closed()
        assert errors == []

    play(story())


def test_a_request_that_arrives_as_a_look_ends(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read: no byte is mistaken for the client's FIN."""

    async def story() -> None:
        async with agent(answer) as port, forwarding() as bench:
            peek, ended = tunnel.peek_bytes, asyncio.Event()

            async def peek_in_vain(
                sock: socket.socket, is_enough: Any, limit: int, seconds: Any
            ) -> bytes:
                if limit != tunnel.MAX_PREFIX or ended.is_set():
                    return await peek(sock, is_enough, limit, seconds)
                await peek(sock, bool, 1, None)
                ended.set()
                return b""

            monkeypatch.setattr(tunnel, "peek_bytes", peek_in_vain)
            reader, writer = await connect(
                bench, f"127.0.0.1:{port}", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
            )
            assert await reader.readexactly(len(OK)) == OK
            writer.close()
            await bench.closed()
            assert bench.journal.data(Direction.TO_CLIENT) == OK

    play(story())
