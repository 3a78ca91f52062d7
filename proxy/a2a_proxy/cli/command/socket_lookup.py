"""Look-up of TCP sockets in the kernel, by netlink (Linux).

One socket takes microseconds, where reading the table of all sockets may take tens of milliseconds.
"""

import socket
import struct
from collections.abc import Iterator

from a2a_proxy.cli.command.process_table import Address, TcpSocket

_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY = 4, 20
_REQUEST, _DUMP = 0x1, 0x300
_NLMSG_DONE, _NLMSG_ERROR = 3, 2
_LISTEN = 10
"""State of a listening socket."""
_ALL_STATES = 0xFFFFFFFF
_HEADER = struct.Struct("=IHHII")
_REQUEST_BODY = struct.Struct("=BBBBI")
_SOCKET_ID = struct.Struct(">HH16s16s")
_NO_INTERFACE_NO_COOKIE = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
_MESSAGE = struct.Struct("=BB2x")
_INODE_OFFSET = 68
_REPLY_BYTES = 65536
_SECONDS = 1.0


def find_inode(local: Address, remote: Address) -> int:
    """Return the inode of the connected socket with these addresses, or 0 if there is none, or if
    the kernel has no such look-up. Raises OSError: the system has no netlink."""
    family = socket.AF_INET6 if ":" in local[0] else socket.AF_INET
    here, there = (socket.inet_pton(family, host).ljust(16, b"\0") for host, _ in (local, remote))
    identity = _SOCKET_ID.pack(local[1], remote[1], here, there)
    for state, ports, inode in _ask(family, _ALL_STATES, identity, _REQUEST):
        if state != _LISTEN and ports == (local[1], remote[1]):
            return inode
    return 0


def read_listeners() -> list[TcpSocket]:
    """Return the listening sockets, whose addresses are unknown except for the port. Raises OSError
    as `find_inode`."""
    return [
        TcpSocket(("", ports[0]), ("", 0), inode, listening=True)
        for family in (socket.AF_INET, socket.AF_INET6)
        for _, ports, inode in _ask(family, 1 << _LISTEN, bytes(_SOCKET_ID.size), _REQUEST | _DUMP)
    ]


def _ask(
    family: int, states: int, identity: bytes, flags: int
) -> Iterator[tuple[int, tuple[int, int], int]]:
    """Yield state, local and remote port, and inode of each socket in the kernel's reply. Raises
    OSError."""
    body = (
        _REQUEST_BODY.pack(family, socket.IPPROTO_TCP, 0, 0, states)
        + identity
        + _NO_INTERFACE_NO_COOKIE
    )
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as netlink:
        netlink.settimeout(_SECONDS)
        netlink.send(
            _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, flags, 0, 0) + body
        )
        while True:
            data = netlink.recv(_REPLY_BYTES)
            while len(data) >= _HEADER.size:
                length, kind, *_ = _HEADER.unpack_from(data)
                if kind in (_NLMSG_DONE, _NLMSG_ERROR):
                    return
                message = data[_HEADER.size : length]
                _, state = _MESSAGE.unpack_from(message)
                local, remote = struct.unpack_from(">HH", message, _MESSAGE.size)
                (inode,) = struct.unpack_from("=I", message, _INODE_OFFSET)
                yield state, (local, remote), inode
                data = data[(length + 3) & ~3 :]
            if not flags & _DUMP:
                return
