"""Sockets and transports: operations that asyncio does not offer. Handles single ones, not
connections of two legs."""

import asyncio
import contextlib
import fcntl
import os
import socket
import struct
import termios
from abc import ABC, abstractmethod

from a2a_proxy.relay.route import format_address

HIGH_WATER = 256 * 1024
"""Bytes that wait for a slow reader before reading from its sender stops."""
READ_SIZE = 65536
"""Bytes of one read for asyncio's own transports; their default of 256 KiB costs an mmap per read
(cpython #85451)."""
MAX_UNREAD_BYTES = 4 * 1024 * 1024
"""Bytes taken from a broken socket at most."""


class LegTransport(asyncio.Transport, ABC):
    """A transport whose two directions end cleanly or cut off, as those of TLS do: with or without
    close_notify."""

    @property
    @abstractmethod
    def is_cut(self) -> bool:
        """Whether the peer's bytes ended cut off, so that the last ones may be missing."""

    @abstractmethod
    def cut(self) -> None:
        """Send FIN so that the peer reads that bytes may be missing."""


def is_cut(transport: asyncio.Transport | None) -> bool:
    """Return whether the peer's bytes ended cut off; False over plain TCP, where an end does not
    tell."""
    return isinstance(transport, LegTransport) and transport.is_cut


def write_eof(transport: asyncio.Transport, *, cut: bool = False) -> None:
    """Send FIN after the buffered bytes; with `cut` a TLS peer reads that bytes may be missing."""
    with contextlib.suppress(
        OSError
    ):  # asyncio's transport raises it if the peer has reset the connection
        if cut and isinstance(transport, LegTransport):
            transport.cut()
        else:
            transport.write_eof()


def tune_socket(transport: asyncio.Transport) -> None:
    """Set TCP_NODELAY, a bounded write buffer and the kernel's keep-alive, because the relay has no
    idle time-out."""
    if transport.is_closing():  # lost before its leg took it over: the socket is closed
        return
    transport.set_write_buffer_limits(high=HIGH_WATER)
    if hasattr(transport, "max_size"):
        transport.max_size = READ_SIZE
    sock = transport.get_extra_info("socket")
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def socket_name(transport: asyncio.BaseTransport, which: str) -> str:
    """Return `host:port` of `peername` or `sockname`; empty if the socket is closed."""
    address = _socket_address(transport, which)
    return format_address(address[0], address[1]) if address else ""


def host_of_socket(transport: asyncio.BaseTransport, which: str) -> str:
    """Return the IP address of `peername` or `sockname`; empty if the socket is closed."""
    address = _socket_address(transport, which)
    return address[0] if address else ""


def _socket_address(transport: asyncio.BaseTransport, which: str) -> tuple[str, int] | None:
    try:
        address: tuple[str, int] | None = transport.get_extra_info(which)
    except AttributeError:  # uvloop's transport, after its connection was lost
        return None
    return address


def socket_names(sock: socket.socket) -> tuple[str, str]:
    """Return the peer's address and the own one, both `host:port`; empty if the peer is gone."""
    try:
        return format_address(*sock.getpeername()[:2]), format_address(*sock.getsockname()[:2])
    except OSError:
        return "", ""


def unsent_bytes(transport: asyncio.Transport) -> int:
    """Return the number of bytes that the peer's kernel has not acknowledged yet."""
    waiting = transport.get_write_buffer_size()
    try:
        answer = fcntl.ioctl(
            transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, b"\0\0\0\0"
        )
    except (OSError, AttributeError, ValueError):  # closed
        return waiting
    return waiting + int(struct.unpack("i", answer)[0])


def reset_connection(transport: asyncio.Transport) -> None:
    """Close with RST. Bytes in the send buffer are lost."""
    try:
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    except (OSError, AttributeError):  # the peer closed first
        pass
    transport.abort()


def read_unread(transport: asyncio.BaseTransport) -> bytes:
    """Return the bytes that the peer sent before the connection broke and that were not read.

    A failed write ends a transport at once, although the peer's response may be in the receive
    buffer. Must be called in `connection_lost`.
    """
    parts: list[bytes] = []
    try:
        with socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())) as sock:
            while len(parts) * READ_SIZE < MAX_UNREAD_BYTES and (
                part := sock.recv(READ_SIZE, socket.MSG_DONTWAIT)
            ):
                parts.append(part)
    except (OSError, AttributeError):
        pass
    return b"".join(parts)
