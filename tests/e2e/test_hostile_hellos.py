"""Hostile ClientHellos at a real proxy: others are served at once, memory and console stay
bounded."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support_fuzz_round import Link, is_captured
from support_hostile_hellos import HOSTILE_HELLOS
from support_relay import SECONDS, echo
from support_ways import Contexts, Way

IDLE_CLIENTS = 2000
RELAY_MIB = 128
MAX_LINES = 20
"""Lines of the console for all clients together, except findings about bytes that are no TLS: each
kind of problem has one."""
SLOWEST_SECONDS = 5.0
"""The slowest answer to a normal client on a busy machine; a client that is blocked waits 10 s."""


@pytest.fixture
def link(tmp_path: Path) -> Iterator[Link]:
    """A proxy that takes TLS."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    found = Link(tmp_path / "proxy", (), 1, secure=True)
    yield found
    found.kill()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def ask(port: int, context: ssl.SSLContext) -> float:
    """Return the seconds until a normal client has connected and its bytes have come back."""
    begin = time.monotonic()
    async with asyncio.timeout(SECONDS):
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname="localhost"
        )
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        writer.close()
    return time.monotonic() - begin


async def send(port: int, data: bytes) -> None:
    """Send the bytes of a hostile client and read until the proxy or the agent closes."""
    with contextlib.suppress(OSError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(data)
            writer.write_eof()
            await reader.read()
        finally:
            writer.close()


def client_context(link: Link) -> ssl.SSLContext:
    contexts = link.contexts
    assert isinstance(contexts, Contexts)
    return contexts.client(Way.TLS, http2=False)


async def test_hostile_hellos_harm_nobody(link: Link) -> None:
    """Each is sent several times at once; normal clients beside them are answered."""
    context = client_context(link)
    async with await asyncio.start_server(echo, sock=link.listeners[0]):
        slowest = await ask(link.ports[0], context)
        for data in HOSTILE_HELLOS.values():
            async with asyncio.timeout(SECONDS):
                *_, took = await asyncio.gather(
                    *(send(link.ports[0], data) for _ in range(5)), ask(link.ports[0], context)
                )
            slowest = max(slowest, took)
        assert link.deaths() == []
        assert 0 < link.memory()[0] < RELAY_MIB
    assert slowest < SLOWEST_SECONDS
    summary = await asyncio.to_thread(link.proxy.stop)
    assert is_captured(summary["missing"])
    assert link.proxy.err == []
    assert len([line for line in link.proxy.out if '"finding"' not in line]) < MAX_LINES
    assert not any(byte in link.proxy.text for byte in ("\x1b", "\u202e", "\0"))
    warnings = [said["message"] for said in link.proxy.said("warning")]
    assert len(set(warnings)) == len(warnings)
    assert any("sent only a part of its ClientHello" in said for said in warnings)
    assert any("are no ClientHello" in said for said in warnings)


async def test_idle_clients_do_not_delay_others(link: Link) -> None:
    """Clients that send the first byte of a ClientHello and wait cost little memory."""
    context = client_context(link)
    async with await asyncio.start_server(echo, sock=link.listeners[0]):
        await ask(link.ports[0], context)
        before = link.memory()[0]
        idle = []
        for _ in range(IDLE_CLIENTS):
            _, writer = await asyncio.open_connection("127.0.0.1", link.ports[0])
            writer.write(b"\x16")
            idle.append(writer)
        assert max([await ask(link.ports[0], context) for _ in range(10)]) < SLOWEST_SECONDS
        assert link.memory()[0] - before < RELAY_MIB / 2
        for writer in idle:
            writer.close()
        assert link.deaths() == []
    summary = await asyncio.to_thread(link.proxy.stop)
    assert is_captured(summary["missing"])
    assert link.proxy.err == []
    assert len([line for line in link.proxy.out if '"finding"' not in line]) < MAX_LINES
