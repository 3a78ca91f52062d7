"""Operations on sockets of real connections."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from a2a_proxy.relay import tcp
from a2a_proxy.relay.tcp import (
    HIGH_WATER,
    READ_SIZE,
    read_unread,
    reset_connection,
    tune_socket,
    unsent_bytes,
)


@pytest.fixture
async def pair() -> AsyncIterator[tuple[asyncio.Transport, socket.socket]]:
    """A transport that does not read, and its peer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        peer = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
    transport, _ = await asyncio.get_running_loop().create_connection(
        asyncio.Protocol, sock=accepted
    )
    transport.pause_reading()
    yield transport, peer
    transport.abort()
    peer.close()


Pair = tuple[asyncio.Transport, socket.socket]


def test_a_socket_sends_at_once_keeps_alive_and_buffers_256_kib(pair: Pair) -> None:
    transport, _ = pair
    tune_socket(transport)
    sock = transport.get_extra_info("socket")
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert transport.get_write_buffer_limits()[1] == HIGH_WATER


async def test_unsent_bytes_are_those_of_the_transport_and_the_kernel(pair: Pair) -> None:
    transport, peer = pair
    assert unsent_bytes(transport) == 0
    size = 16 * 1024 * 1024
    transport.write(b"x" * size)
    assert transport.get_write_buffer_size() < unsent_bytes(transport) <= size
    read = 0
    while read < size:
        await asyncio.sleep(0)
        read += len(peer.recv(1 << 20))
    until = time.monotonic() + 10
    while unsent_bytes(transport) and time.monotonic() < until:
        await asyncio.sleep(0.01)
    assert unsent_bytes(transport) == 0


async def test_a_closed_socket_has_what_its_transport_has_and_is_not_reset_twice(
    pair: Pair,
) -> None:
    transport, peer = pair
    reset_connection(transport)
    await asyncio.sleep(0.01)
    assert unsent_bytes(transport) == 0
    reset_connection(transport)
    assert read_unread(transport) == b""
    with pytest.raises(ConnectionResetError):
        peer.recv(1)


class _LostTls:
    """A transport over TLS after the connection was lost: asyncio's has no socket then."""

    def get_extra_info(self, _: str) -> None:
        return None

    def get_write_buffer_size(self) -> int:
        return 7

    def abort(self) -> None:
        pass


def test_a_lost_tls_connection_has_no_socket() -> None:
    transport: Any = _LostTls()
    reset_connection(transport)
    assert unsent_bytes(transport) == 7
    assert read_unread(transport) == b""


@pytest.mark.parametrize("size", [0, 5, READ_SIZE, 3 * READ_SIZE + 1])
def test_unread_bytes_are_returned_once(pair: Pair, size: int) -> None:
    transport, peer = pair
    peer.sendall(b"x" * size)
    peer.close()
    time.sleep(0.05)
    assert read_unread(transport) == b"x" * size
    assert read_unread(transport) == b""


def test_unread_bytes_are_read_up_to_a_limit(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "MAX_UNREAD_BYTES", 2 * READ_SIZE)
    transport, peer = pair
    peer.sendall(b"x" * 4 * READ_SIZE)
    time.sleep(0.05)
    assert 0 < len(read_unread(transport)) <= 2 * READ_SIZE
