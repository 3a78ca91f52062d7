"""Create listening sockets. Accepts no connections."""

import asyncio
import errno
import socket
from typing import Any

from a2a_proxy.relay.route import Listen, RouteError, format_address
from a2a_proxy.system_errors import hint_for

BACKLOG = 1024
_PORT_ATTEMPTS = 16
_NEXT_PORTS = 64


async def bind_listener(loop: asyncio.AbstractEventLoop, listen: Listen) -> list[socket.socket]:
    """Return the sockets of one listener, all on one port. Raises RouteError if an address cannot
    be bound."""
    for attempt in range(_PORT_ATTEMPTS):
        try:
            return await _bind_once(loop, listen)
        except OSError as error:
            free_port_taken = listen.port == 0 and error.errno == errno.EADDRINUSE
            if not free_port_taken or attempt == _PORT_ATTEMPTS - 1:
                raise _explain_bind_error(listen, error) from None
    raise AssertionError("unreachable")


async def _bind_once(loop: asyncio.AbstractEventLoop, listen: Listen) -> list[socket.socket]:
    sockets: list[socket.socket] = []
    port = listen.port
    try:
        for host in listen.hosts:
            try:
                sockets.append(await _bind_host(loop, host, port))
            except OSError as error:
                if not sockets or error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise
            port = sockets[0].getsockname()[1]
    except OSError:
        for sock in sockets:
            sock.close()
        raise
    return sockets


async def _bind_host(loop: asyncio.AbstractEventLoop, host: str, port: int) -> socket.socket:
    family, kind, proto, _, where = (await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))[0]
    return _start_listening(socket.socket(family, kind, proto), where)


def _start_listening(sock: socket.socket, where: tuple[Any, ...]) -> socket.socket:
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sock.family == socket.AF_INET6:  # `[::]` accepts all clients, IPv4 included
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(where[0] != "::"))
        sock.setblocking(False)
        sock.bind(where)
        sock.listen(BACKLOG)
    except BaseException:
        sock.close()
        raise
    return sock


def _explain_bind_error(listen: Listen, error: OSError) -> RouteError:
    where = format_address(listen.host, listen.port)
    if error.errno == errno.EADDRINUSE:
        return RouteError(
            f"port {listen.port} is in use",
            f"stop the program that listens on {where}, or choose another port",
        )
    if error.errno == errno.EACCES:
        return RouteError(
            f"no permission to listen on port {listen.port}", "choose a port above 1023"
        )
    reason = (error.strerror or str(error)).lower()
    hint = hint_for(error, f"to listen on this machine only: --listen :{listen.port}")
    return RouteError(f"cannot listen on {where}: {reason}", hint)


def bind_next_port(neighbours: list[socket.socket]) -> list[socket.socket]:
    """Return sockets on the hosts of `neighbours`, on the first free port after theirs, or an empty
    list if none of the next 64 ports is free."""
    hosts = [(sock.family, sock.getsockname()) for sock in neighbours]
    first = int(hosts[0][1][1]) + 1
    for port in range(first, min(first + _NEXT_PORTS, 65536)):
        found: list[socket.socket] = []
        try:
            for family, where in hosts:
                found.append(_start_listening(socket.socket(family), (where[0], port, *where[2:])))
        except OSError:
            for sock in found:
                sock.close()
        else:
            return found
    return []
