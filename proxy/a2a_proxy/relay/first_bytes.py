"""Look at the first bytes of an accepted connection without taking them, before it has a
transport."""

import asyncio
import socket
from collections.abc import Callable

from a2a_proxy.wire.client_hello import MAX_HELLO_BYTES, ClientHello, ClientHelloReader, HelloGap


async def peek_bytes(
    sock: socket.socket, is_enough: Callable[[bytes], bool], limit: int, seconds: float | None
) -> bytes:
    """Return the bytes that the peer has sent so far, which stay in the socket.

    Waits until `is_enough`, but not beyond `limit` bytes, the peer's FIN or RST, or `seconds`
    (None: no limit). The caller must be ready for fewer bytes, also for none. Raises OSError if the
    connection broke before the first byte.
    """
    data = b""
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    data, before = sock.recv(limit, socket.MSG_PEEK), data
                except BlockingIOError:
                    pass
                else:
                    if len(data) in (len(before), limit) or is_enough(
                        data
                    ):  # no more bytes: FIN or RST
                        return data
                    # Readable only with more bytes than these, or after FIN: no polling.
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, len(data) + 1)
                await _wait_readable(sock)
    except TimeoutError:
        return data
    finally:
        if data:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)


async def peek_hello(sock: socket.socket, seconds: float) -> ClientHello | HelloGap:
    """Return the ClientHello with which a TLS client begins, or why there is none. Raises OSError
    as `peek_bytes`."""
    reader = ClientHelloReader()

    def has_hello(data: bytes) -> bool:
        return reader.read(data) is not HelloGap.INCOMPLETE

    return reader.read(await peek_bytes(sock, has_hello, MAX_HELLO_BYTES, seconds))


async def _wait_readable(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    readable = loop.create_future()
    loop.add_reader(sock, _finish, readable)
    try:
        await readable
    finally:
        loop.remove_reader(sock)


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
