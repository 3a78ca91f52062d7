from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
from collections.abc import Callable, Iterator

import pytest

from a2a_proxy.model.wire import Direction
from a2a_proxy.relay.clock import session_clock
from a2a_proxy.relay.route import Listen, Route, RouteError, Upstream
from a2a_proxy.relay.server import Relay
from support_relay import SECONDS, UNKNOWN, MemoryJournal, Story, agent, echo, relaying, until

Play = Callable[[Story], None]


def relay_to(*listens: str) -> Relay:
    upstream = Upstream.parse("127.0.0.1:9")
    return Relay([Route(Listen.parse(text), upstream) for text in listens], session_clock())


async def ask(host: str, port: int) -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(b"hello")
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


def test_loopback_means_both_families(play: Play) -> None:
    """`:0` listens on 127.0.0.1 and ::1, on one port, and on nothing else."""

    async def story() -> None:
        async with agent(echo) as port, relaying(port) as bench:
            assert [host for host, _ in bench.addresses] == ["127.0.0.1", "::1"]
            assert len({port for _, port in bench.addresses}) == 1
            for host, port in bench.addresses:
                assert await ask(host, port) == b"hello"

    play(story())


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "localhost:0"])
def test_named_hosts_are_bound(play: Play, listen: str) -> None:
    """Named hosts are bound exactly; `[::]` accepts IPv4 as well."""

    async def story() -> None:
        async with agent(echo) as port, relaying(port, listen=listen) as bench:
            host = "127.0.0.1" if listen != "localhost:0" else bench.addresses[0][0]
            assert await ask(host, bench.port) == b"hello"

    play(story())


def test_an_upstream_on_ipv6(play: Play) -> None:
    """The relay reaches an agent that listens on ::1 only."""

    async def story() -> None:
        async with agent(echo, "::1") as port:
            for upstream in (f"[::1]:{port}", f"http://[::1]:{port}/"):
                async with relaying(upstream) as bench:
                    assert await ask("127.0.0.1", bench.port) == b"hello"

    play(story())


def test_several_routes(play: Play) -> None:
    """Each listener leads to its own upstream."""

    async def story() -> None:
        def named(name: bytes) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Story]:
            async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await reader.read()
                writer.write(name)
                writer.close()

            return handler

        async with agent(named(b"one")) as one, agent(named(b"two")) as two:
            routes = [
                Route(Listen.parse(":0"), Upstream.parse(f"127.0.0.1:{port}"))
                for port in (one, two)
            ]
            relay = Relay(routes, session_clock())
            await relay.bind_listeners()
            relay.accept_connections(MemoryJournal())
            assert [route for route, _ in relay.bound_addresses] == routes
            ports = [int(addresses[0].rpartition(":")[2]) for _, addresses in relay.bound_addresses]
            assert [await ask("127.0.0.1", port) for port in ports] == [b"one", b"two"]
            await relay.stop()
            assert relay.bound_addresses == []

    play(story())


def test_connections_before_the_journal_is_ready_wait(play: Play) -> None:
    """Listening is not accepting: a client that comes in between is served, and copied, once there
    is a journal."""

    async def story() -> None:
        async with agent(echo) as port:
            relay = Relay(
                [Route(Listen.parse(":0"), Upstream.parse(f"127.0.0.1:{port}"))], session_clock()
            )
            await relay.bind_listeners()
            early = asyncio.create_task(
                ask("127.0.0.1", int(relay.bound_addresses[0][1][0].rpartition(":")[2]))
            )
            await asyncio.wait((early,), timeout=0.2)
            assert not early.done()
            assert relay.stats.total == 0
            journal = MemoryJournal()
            relay.accept_connections(journal)
            assert await early == b"hello"
            assert journal.data(Direction.TO_AGENT) == b"hello"
            await relay.stop()

    play(story())


def test_stopping_before_accepting(play: Play) -> None:
    """A relay that only listens is ended like another."""

    async def story() -> None:
        relay = relay_to(":0")
        await relay.bind_listeners()
        (_, (address, *_)) = relay.bound_addresses[0]
        await relay.stop(SECONDS)
        with pytest.raises(ConnectionRefusedError):
            await ask("127.0.0.1", int(address.rpartition(":")[2]))

    play(story())


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_busy_port(play: Play, host: str) -> None:
    """A port in use, in either family, is named in the error, and nothing stays bound."""

    async def story() -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family) as taken:
            taken.bind((host, 0))
            taken.listen()
            port = taken.getsockname()[1]
            relay = relay_to(":0", f":{port}")
            with pytest.raises(RouteError) as caught:
                await relay.bind_listeners()
            assert f"port {port} is in use" in caught.value.message
            assert str(port) in caught.value.hint
            assert relay.bound_addresses == []

    play(story())


@pytest.mark.parametrize(
    "listen", ["192.0.2.1:9000", f"{UNKNOWN}:9000"], ids=["not ours", "no such host"]
)
def test_a_foreign_address_is_an_error(play: Play, listen: str) -> None:
    """An address of another machine, or a name that does not resolve, is an error with a hint."""

    async def story() -> None:
        with pytest.raises(RouteError) as caught:
            await relay_to(listen).bind_listeners()
        assert listen in caught.value.message
        assert caught.value.hint

    play(story())


def test_running_out_of_descriptors_is_survived(play: Play) -> None:
    """EMFILE while accepting does not end the relay: it accepts again when connections have
    closed."""

    async def story() -> None:
        async with agent(echo) as port, relaying(port) as bench:
            clients = [socket.socket() for _ in range(60)]
            with few_descriptors(20):
                for client in clients:
                    client.setblocking(False)
                    client.connect_ex(("127.0.0.1", bench.port))
                await until(lambda: bench.relay.stats.accept_errors > 0)
            for client in clients:
                client.close()
            await until(lambda: bench.relay.stats.open == 0)
            assert await ask("127.0.0.1", bench.port) == b"hello"

    play(story())


@contextlib.contextmanager
def few_descriptors(left: int) -> Iterator[None]:
    """Only so many more files may be open."""
    with socket.socket() as probe:
        now = probe.fileno()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (now + left, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_stopping_closes_idle_connections_at_once(play: Play) -> None:
    """An idle connection does not delay the stop; one that waits for the agent does, until it is
    cut."""

    async def story() -> None:
        async def answer_the_first(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            while line := await reader.readline():
                if line == b"quick\n":
                    writer.write(b"answer\n")

        async with agent(answer_the_first) as port, relaying(port) as bench:
            idle, idle_writer = await bench.connect()
            idle_writer.write(b"quick\n")
            await idle.readline()
            waiting, waiting_writer = await bench.connect()
            waiting_writer.write(b"slow\n")
            await until(lambda: bench.relay.stats.bytes_to_agent == 11)
            stopping = asyncio.create_task(bench.relay.stop(SECONDS))
            assert await idle.read() == b""
            await until(lambda: bench.relay.stats.open == 1)
            assert not stopping.done()
            await bench.relay.stop()
            with pytest.raises(ConnectionResetError):
                await waiting.read()
            await stopping
            assert bench.relay.stats.open == 0
            assert bench.journal.kinds(1)[-1] == bench.journal.kinds(2)[-1] == "CLOSED"
            for writer in (idle_writer, waiting_writer):
                writer.close()

    play(story())


def test_stopping_while_dialling(play: Play) -> None:
    """A connection that waits for its upstream is closed too."""

    async def story() -> None:
        async with relaying("192.0.2.1:9") as bench:
            _, writer = await bench.connect()
            await until(lambda: bench.relay.stats.open == 1)
            await bench.relay.stop()
            assert bench.journal.kinds()[-1] == "CLOSED"
            writer.close()

    play(story())
