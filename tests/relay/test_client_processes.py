"""The processes of clients: looked up before a client's first byte is read, and in the first
record."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

from a2a_proxy.model.wire import ChunkKind, ClientProcess, ConnectionFacts
from a2a_proxy.relay.clock import session_clock
from a2a_proxy.relay.route import Listen, Route, Upstream
from a2a_proxy.relay.server import Relay
from support_relay import NO_EDITS, SECONDS, MemoryJournal, Story, agent, until

Play = Callable[[Story], None]
_PLANNER = ClientProcess(71, "planner", (8001,))


class Processes:
    """Knows each client after a while; its look-ups can be stopped."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.go_on = asyncio.Event()
        self._known: set[str] = set()

    async def learn(self, client: str, listener: str) -> None:
        self.asked.append((client, listener))
        await self.go_on.wait()
        self._known.add(client)

    def get(self, client: str) -> ClientProcess | None:
        return _PLANNER if client in self._known else None


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
    writer.close()


@asynccontextmanager
async def relay(
    upstream: int, processes: Processes
) -> AsyncIterator[tuple[list[int], MemoryJournal]]:
    """Yield the ports of a listener for the upstream and of a forward proxy."""
    journal = MemoryJournal()
    route = Route(Listen.parse("127.0.0.1:0"), Upstream.parse(f"127.0.0.1:{upstream}"))
    one = Relay([route], session_clock(), NO_EDITS, forwards=[Listen.parse("127.0.0.1:0")])
    one.identify_clients(processes)
    await one.bind_listeners()
    one.accept_connections(journal)
    addresses = [one.bound_addresses[0][1][0], one.forward_addresses[0][0]]
    try:
        yield [int(address.rpartition(":")[2]) for address in addresses], journal
    finally:
        await one.stop()


def opened(journal: MemoryJournal) -> list[ConnectionFacts]:
    return [
        msgspec.json.decode(c.data, type=ConnectionFacts)
        for c in journal.chunks
        if c.kind is ChunkKind.OPEN
    ]


def test_each_kind_of_connection_has_its_client_process(play: Play) -> None:
    """At a listener, through the forward proxy in absolute form, and in a tunnel."""

    async def story() -> None:
        processes = Processes()
        processes.go_on.set()
        async with agent(answer) as port, relay(port, processes) as ((listen, forward), journal):
            target = f"127.0.0.1:{port}"
            get = f"GET / HTTP/1.1\r\nHost: {target}\r\n\r\n"
            requests = [
                (listen, get),
                (forward, get.replace("GET /", f"GET http://{target}/")),
                (forward, f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n{get}"),
            ]
            for entry, request in requests:
                reader, writer = await asyncio.open_connection("127.0.0.1", entry)
                writer.write(request.encode())
                assert (await asyncio.wait_for(reader.read(), SECONDS)).endswith(b"hi")
                writer.close()
            assert [facts.client_process for facts in opened(journal)] == [_PLANNER] * 3
            assert processes.asked == [(facts.client, facts.listen) for facts in opened(journal)]

    play(story())


def test_a_look_up_delays_its_own_client_only(play: Play) -> None:
    """The relay reads nothing from the client meanwhile, and records nothing."""

    async def story() -> None:
        processes = Processes()
        async with agent(answer) as port, relay(port, processes) as ((listen, _), journal):
            reader, writer = await asyncio.open_connection("127.0.0.1", listen)
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await until(lambda: bool(processes.asked))
            assert journal.chunks == []
            processes.go_on.set()
            assert (await asyncio.wait_for(reader.read(), SECONDS)).endswith(b"hi")
            writer.close()

    play(story())


def test_a_client_that_is_gone_is_not_looked_up(play: Play) -> None:
    """Its address is unknown: the connection ends, and the next client is served."""

    async def story() -> None:
        processes = Processes()
        processes.go_on.set()
        async with agent(answer) as port, relay(port, processes) as (ports, journal):
            for entry in ports:
                with socket.create_connection(("127.0.0.1", entry)) as gone:
                    gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                reader, writer = await asyncio.open_connection("127.0.0.1", entry)
                writer.write(
                    f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\n"
                    f"Host: 127.0.0.1:{port}\r\n\r\n".encode()
                )
                assert (await asyncio.wait_for(reader.read(), SECONDS)).endswith(b"hi")
                writer.close()
            assert opened(journal)[-1].client_process == _PLANNER

    play(story())
