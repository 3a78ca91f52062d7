"""A relay between two scripted peers, and a journal in memory."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any

import msgspec

from a2a_proxy.model.wire import Chunk, ChunkKind, Direction
from a2a_proxy.relay.client_tls import ClientTls
from a2a_proxy.relay.clock import session_clock
from a2a_proxy.relay.edits.edit import ConsoleNote
from a2a_proxy.relay.listener_state import EditPolicy
from a2a_proxy.relay.route import Listen, Route, Upstream
from a2a_proxy.relay.server import Relay
from a2a_proxy.relay.tunnel import Interception

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Story = Coroutine[Any, Any, None]
SECONDS = 120.0
"""Seconds after which a hanging step has failed, also on a slow machine."""
NO_EDITS = EditPolicy("never", keep_host=True)
UNKNOWN = ".".join(["agent" * 10] * 6)
"""A host name that is too long to be resolved, so that the error is immediate."""


class MemoryJournal:
    """Keeps the records of the relay."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []

    def append(
        self, kind: ChunkKind, direction: Direction, connection: int, at: int, data: bytes
    ) -> None:
        self.chunks.append(Chunk(connection, kind, direction, at, data))

    def kinds(self, connection: int = 1) -> list[str]:
        """Return the records of a connection without their bytes: `EOF to_agent`."""
        return [
            chunk.kind.name
            if chunk.kind in (1, 2, 6)
            else f"{chunk.kind.name} {chunk.direction.name.lower()}"
            for chunk in self.chunks
            if chunk.connection == connection and chunk.kind is not ChunkKind.DATA
        ]

    def data(
        self, direction: Direction, connection: int = 1, kind: ChunkKind = ChunkKind.DATA
    ) -> bytes:
        """Return the captured bytes of one direction."""
        return b"".join(
            chunk.data
            for chunk in self.chunks
            if chunk.kind is kind
            and chunk.direction is direction
            and chunk.connection == connection
        )


class CountingJournal(MemoryJournal):
    """Keeps the records without bytes, and counts the bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.byte_counts = [0, 0]

    def append(
        self, kind: ChunkKind, direction: Direction, connection: int, at: int, data: bytes
    ) -> None:
        if kind is ChunkKind.DATA:
            self.byte_counts[direction] += len(data)
        else:
            super().append(kind, direction, connection, at, data)


class Bench:
    """One relay under test."""

    def __init__(
        self, relay: Relay, journal: MemoryJournal, notes: list[ConsoleNote], listener: int = 0
    ) -> None:
        self.relay = relay
        self._listener = listener
        self.journal = journal
        self.notes = notes
        """What the user was told."""

    @property
    def addresses(self) -> list[tuple[str, int]]:
        found = []
        for text in self.relay.bound_addresses[self._listener][1]:
            host, _, port = text.rpartition(":")
            found.append((host.strip("[]"), int(port)))
        return found

    @property
    def port(self) -> int:
        return self.addresses[0][1]

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def closed(self, connection: int = 1) -> None:
        """Wait for the last record of a connection."""
        await until(
            lambda: any(
                c.kind is ChunkKind.CLOSED and c.connection == connection
                for c in self.journal.chunks
            )
        )


class ForwardBench(Bench):
    """One forward proxy under test."""

    @property
    def addresses(self) -> list[tuple[str, int]]:
        hosts = [text.rpartition(":") for text in self.relay.forward_addresses[0]]
        return [(host.strip("[]"), int(port)) for host, _, port in hosts]

    def opened(self) -> list[dict[str, Any]]:
        """Return the facts of each recorded connection."""
        return [
            msgspec.json.decode(chunk.data)
            for chunk in self.journal.chunks
            if chunk.kind is ChunkKind.OPEN
        ]


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that has no event of its own."""
    async with asyncio.timeout(SECONDS):
        while not condition():
            await asyncio.sleep(0.002)


@contextlib.asynccontextmanager
async def agent(
    handler: Handler, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Run a server whose connections run `handler`; return its port."""
    server = await asyncio.start_server(handler, host, 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@contextlib.asynccontextmanager
async def relaying(
    upstream: int | str,
    grpc: int | None = None,
    journal: MemoryJournal | None = None,
    listen: str = ":0",
    editing: EditPolicy = NO_EDITS,
    client_tls: ClientTls | None = None,
) -> AsyncIterator[Bench]:
    """Run a relay to a port of 127.0.0.1, or to an upstream as a user writes it."""
    to = Upstream.parse(f"127.0.0.1:{upstream}" if isinstance(upstream, int) else upstream)
    to_grpc = Upstream.parse(f"127.0.0.1:{grpc}") if grpc is not None else None
    journal = journal or MemoryJournal()
    notes: list[ConsoleNote] = []
    relay = Relay(
        [Route(Listen.parse(listen), to, to_grpc)],
        session_clock(),
        editing,
        notes.append,
        client_tls=client_tls,
    )
    await relay.bind_listeners()
    relay.accept_connections(journal)
    try:
        yield Bench(relay, journal, notes)
    finally:
        await relay.stop()


@contextlib.asynccontextmanager
async def forwarding(
    journal: MemoryJournal | None = None,
    editing: EditPolicy = EditPolicy(),  # noqa: B008 (frozen)
    routes: Sequence[Route] = (),
    interception: Interception | None = None,
) -> AsyncIterator[ForwardBench]:
    """Run a forward proxy on loopback, beside listeners for `routes`."""
    journal = journal or MemoryJournal()
    notes: list[ConsoleNote] = []
    forwards = [Listen.parse(":0")]
    relay = Relay(
        routes, session_clock(), editing, notes.append, forwards, interception=interception
    )
    await relay.bind_listeners()
    relay.accept_connections(journal)
    try:
        yield ForwardBench(relay, journal, notes)
    finally:
        await relay.stop()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send the received bytes back, then close."""
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


_refusing: list[socket.socket] = []


def refusing_port() -> int:
    """Return a port that refuses connections: bound until the tests end, so that no other process
    gets it, and without a listener.

    A process that sets SO_REUSEPORT, as gRPC servers and nginx do, can still bind it.
    """
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind(("127.0.0.1", 0))
    _refusing.append(sock)
    port: int = sock.getsockname()[1]
    return port


def reset(sock: socket.socket) -> None:
    """Close with RST."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()
