from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable, Iterator

import pytest

from a2a_proxy.relay.first_bytes import peek_bytes
from support_relay import SECONDS, Story, reset

Play = Callable[[Story], None]


@contextlib.contextmanager
def accepted() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A client's socket and the accepted one, which does not block."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        served, _ = server.accept()
    served.setblocking(False)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with client, served:
        yield client, served


def ends_with(end: bytes) -> Callable[[bytes], bool]:
    return lambda data: data.endswith(end)


def test_bytes_stay_in_the_socket(play: Play) -> None:
    """They may come before or while they are waited for, in pieces, and a transport reads them
    afterwards."""

    async def story() -> None:
        for early in (b"", b"a", b"abc.", b"abc"):
            with accepted() as (client, served):
                client.send(early)
                seen: list[bytes] = []

                def is_enough(data: bytes, seen: list[bytes] = seen) -> bool:
                    seen.append(data)
                    return data.endswith(b".")

                peeking = asyncio.ensure_future(peek_bytes(served, is_enough, 100, SECONDS))
                for byte in b"abc."[len(early) :]:
                    await asyncio.sleep(0.01)
                    client.send(bytes([byte]))
                assert await peeking == b"abc."
                assert len(seen) == len(set(seen))  # nothing polls
                assert served.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 1
                reader, writer = await open_accepted(served)
                assert await reader.readexactly(4) == b"abc."
                writer.write(b"answer")
                assert await asyncio.to_thread(client.recv, 6) == b"answer"
                writer.close()

    play(story())


async def open_accepted(sock: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.connect_accepted_socket(lambda: protocol, sock)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


def test_the_limit_ends_the_wait(play: Play) -> None:
    async def story() -> None:
        with accepted() as (client, served):
            client.send(b"x" * 10)
            assert await peek_bytes(served, lambda _: False, 4, SECONDS) == b"xxxx"

    play(story())


@pytest.mark.parametrize("sent", [b"", b"abc"])
def test_fin_ends_the_wait(play: Play, sent: bytes) -> None:
    """FIN before, and while more bytes are waited for."""

    async def story() -> None:
        for pause in (0.0, 0.05):
            with accepted() as (client, served):
                client.send(sent)
                peeking = asyncio.ensure_future(peek_bytes(served, ends_with(b"."), 100, SECONDS))
                await asyncio.sleep(pause)
                client.shutdown(socket.SHUT_WR)
                assert await peeking == sent

    play(story())


@pytest.mark.parametrize("sent", [b"", b"abc"])
def test_the_time_is_bounded(play: Play, sent: bytes) -> None:
    """What has arrived is returned; nothing of the wait stays with the socket."""

    async def story() -> None:
        with accepted() as (client, served):
            client.send(sent)
            began = time.monotonic()
            assert await peek_bytes(served, ends_with(b"."), 100, 0.05) == sent
            assert time.monotonic() - began >= 0.04
            assert served.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 1
            assert not asyncio.get_running_loop().remove_reader(served)

    play(story())


def test_a_reset_ends_the_wait(play: Play) -> None:
    """With the bytes that came before it; without any it is an error."""

    async def story() -> None:
        for sent in (b"abc", b""):
            with accepted() as (client, served):
                client.send(sent)
                peeking = asyncio.ensure_future(peek_bytes(served, ends_with(b"."), 100, SECONDS))
                await asyncio.sleep(0.02)
                reset(client)
                if sent:
                    assert await peeking == sent
                else:
                    with pytest.raises(ConnectionResetError):
                        await peeking

    play(story())
