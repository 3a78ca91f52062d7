"""A connection whose upstream was dialled before its client is there."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable

import pytest
import trustme

from a2a_proxy.model.wire import Direction
from a2a_proxy.relay.connection import ProxyConnection
from a2a_proxy.relay.dial import DialError, dial_upstream
from a2a_proxy.relay.early_upstream import EarlyUpstream
from a2a_proxy.relay.route import Upstream
from a2a_proxy.relay.server import Relay
from a2a_proxy.relay.tls import HTTP1, HTTP2, Tls, Trust
from support_relay import SECONDS, Bench, Story, agent, echo, relaying, reset, until

Play = Callable[[Story], None]


@pytest.fixture(scope="module")
def server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    context.set_alpn_protocols(["http/1.1"])
    return context


@contextlib.asynccontextmanager
async def begun_early(
    port: int,
    monkeypatch: pytest.MonkeyPatch,
    when_dialled: Callable[[EarlyUpstream], bool] = lambda _: True,
) -> AsyncIterator[tuple[Bench, asyncio.StreamReader, asyncio.StreamWriter]]:
    """A client's connection to a relay that had dialled its upstream when the client came."""
    async with relaying(port) as bench:
        early = EarlyUpstream(Upstream.parse(f"127.0.0.1:{port}"))
        await dial_upstream(early.upstream, lambda: early)
        await until(lambda: when_dialled(early))

        def begin(relay: Relay, client: socket.socket, listener: object) -> None:
            connection = ProxyConnection(1, listener, relay._context, early)  # type: ignore[arg-type]
            relay._connections.add(connection)
            task = asyncio.ensure_future(relay._adopt_client(client, connection))
            relay._accept_tasks.add(task)

        monkeypatch.setattr(Relay, "_begin_connection", begin)
        reader, writer = await bench.connect()
        yield bench, reader, writer
        writer.close()
        await bench.closed()


def test_bytes_go_both_ways(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """The records are those of a connection that dialled after its client came, and so are the
    ends."""

    async def story() -> None:
        async with agent(echo) as port, begun_early(port, monkeypatch) as (bench, reader, writer):
            writer.write(b"x" * 500_000)
            assert await reader.readexactly(500_000) == b"x" * 500_000
            writer.write_eof()
            assert await reader.read() == b""
            await bench.closed()
            assert bench.journal.data(Direction.TO_AGENT) == b"x" * 500_000
            assert bench.journal.kinds() == [
                "OPEN",
                "DIALED",
                "EOF to_agent",
                "EOF to_client",
                "CLOSED",
            ]
            assert b'"peer":"127.0.0.1:%d"' % port in bench.journal.chunks[1].data

    play(story())


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Speaks first, more than fits into the buffers, and ends."""
    writer.write(b"hello " * 1_000_000)
    writer.write_eof()
    await reader.read()
    writer.close()


def test_an_agent_that_speaks_first(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bytes wait for the client in the kernel, and its end follows them."""

    async def story() -> None:
        async with agent(greet) as port, begun_early(port, monkeypatch) as (bench, reader, _):
            (pair,) = bench.relay._connections
            assert pair.agent.received_bytes < 6_000_000
            assert await reader.read() == b"hello " * 1_000_000
            assert bench.journal.data(Direction.TO_CLIENT) == b"hello " * 1_000_000

    play(story())


def test_an_agent_that_ended_before_the_client_came(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last words and its end reach the client."""

    async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 503 Service Unavailable\r\n\r\n")
        writer.close()

    async def story() -> None:
        async with agent(leave) as port, begun_early(port, monkeypatch) as (bench, reader, writer):
            assert await reader.read() == b"HTTP/1.1 503 Service Unavailable\r\n\r\n"
            writer.close()
            await bench.closed()
            assert bench.journal.kinds()[:3] == ["OPEN", "DIALED", "EOF to_client"]

    play(story())


def test_a_connection_lost_before_the_client_came(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client reads the bytes that arrived before, and its connection ends as the agent's
    did."""

    async def story() -> None:
        async with agent(echo) as port:

            def lose(early: EarlyUpstream) -> bool:
                if not early._is_lost:
                    early._received = [b"last words"]
                    assert early.transport is not None
                    early.transport.abort()
                return early._is_lost

            async with begun_early(port, monkeypatch, lose) as (bench, reader, _):
                assert await reader.read() == b"last words"
                await bench.closed()
                assert bench.journal.kinds() == ["OPEN", "DIALED", "CLOSED"]

    play(story())


def test_what_arrives_before_is_handed_over_in_order(play: Play) -> None:
    """Loops may deliver bytes, FIN and the end although reading is paused."""

    class Supervisor(asyncio.Protocol):
        def __init__(self) -> None:
            self.calls: list[object] = []

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.calls.append("made")

        def data_received(self, data: bytes) -> None:
            self.calls.append(data)

        def eof_received(self) -> None:
            self.calls.append("fin")

        def connection_lost(self, exc: Exception | None) -> None:
            self.calls.append(exc)

    async def story() -> None:
        async with agent(echo) as port:
            early, supervisor, error = (
                EarlyUpstream(Upstream.parse(f"127.0.0.1:{port}")),
                Supervisor(),
                OSError("broken"),
            )
            await dial_upstream(early.upstream, lambda: early)
            early.data_received(b"one")
            early.data_received(b"two")
            assert early.eof_received() is True
            early.connection_lost(error)
            early.hand_over(supervisor)
            assert supervisor.calls == ["made", b"one", b"two", "fin", error]
            early.close()

    play(story())


def test_the_upstream_chooses_one_of_several_protocols(
    play: Play, server_context: ssl.SSLContext
) -> None:
    """Which one is known before the client's handshake. An upstream that chooses none speaks
    HTTP/1.1."""

    async def story() -> None:
        tls = Tls(Trust(insecure=True))
        async with agent(echo, tls=server_context) as port:
            upstream = Upstream.parse(f"https://127.0.0.1:{port}")
            for offered, chosen in (((HTTP2, HTTP1), HTTP1), ((), None), (("other", HTTP1), HTTP1)):
                early = EarlyUpstream(upstream)
                await dial_upstream(upstream, lambda early=early: early, tls=tls, protocols=offered)  # type: ignore[misc]
                assert early.alpn_protocol == chosen
                early.close()
            with pytest.raises(DialError, match="does not speak HTTP/2 or other"):
                await dial_upstream(
                    upstream, lambda: EarlyUpstream(upstream), tls=tls, protocols=(HTTP2, "other")
                )

    play(story())


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_connected_socket_is_used(
    play: Play, server_context: ssl.SSLContext, scheme: str
) -> None:
    """The name is not resolved: another proxy has done that."""

    async def story() -> None:
        async with contextlib.AsyncExitStack() as stack:
            tls = server_context if scheme == "https" else None
            port = await stack.enter_async_context(agent(echo, tls=tls))
            sock = socket.socket()
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
            upstream = Upstream.parse(f"{scheme}://unknown.invalid:1")
            early = EarlyUpstream(upstream)
            await dial_upstream(upstream, lambda: early, tls=Tls(Trust(insecure=True)), sock=sock)
            assert early.transport is not None
            assert early.transport.get_extra_info("peername")[1] == port
            early.close()

    play(story())


def test_a_socket_that_breaks_is_a_dial_error(play: Play) -> None:
    async def story() -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.close()
        with pytest.raises(DialError, match="TLS handshake"):
            await dial_upstream(
                Upstream.parse("https://agent"), asyncio.Protocol, SECONDS, sock=ours
            )
        with socket.create_server(("127.0.0.1", 0)) as server:
            ours = socket.create_connection(server.getsockname())
            reset(server.accept()[0])
        ours.setblocking(False)
        with pytest.raises(DialError):
            await dial_upstream(
                Upstream.parse("https://agent"), asyncio.Protocol, SECONDS, sock=ours
            )

    play(story())


async def test_contexts_are_bounded() -> None:
    """Clients choose the protocols that are offered, so what is kept for them is bounded; the
    newest stay."""
    tls = Tls(Trust())
    kept = await tls.get_context((HTTP1,))
    for number in range(40):
        await tls.get_context((f"protocol {number}",))
        assert await tls.get_context((HTTP1,)) is kept
    assert len(tls._contexts) == 32


async def test_contexts_are_created_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading the trusted certificates takes many milliseconds, in which no other connection would
    be served."""
    threads: list[int] = []

    def create(*_: object) -> ssl.SSLContext:
        threads.append(threading.get_ident())
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    monkeypatch.setattr(ssl, "create_default_context", create)
    tls = Tls(Trust())
    assert await tls.get_context((HTTP2, HTTP1)) is await tls.get_context((HTTP2, HTTP1))
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()
