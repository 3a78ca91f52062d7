"""Addresses and names of hosts: those of an upstream's machine, and those on which this process
itself listens."""

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence

from a2a_proxy.relay.route import Route, Upstream

ResolvedUpstreams = dict[Upstream, list[str]]
"""The resolved addresses of each upstream."""
LOOKUP_SECONDS = 3.0
"""Seconds for all look-ups of one upstream."""

_Ip = ipaddress.IPv4Address | ipaddress.IPv6Address


async def find_aliases(host: str, seconds: float = LOOKUP_SECONDS) -> set[str]:
    """Return the addresses and other names of `host` in lower case, with the names of this machine
    if `host` is this machine. Empty if the look-ups take longer than `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            found = await _resolve_names(host)
            if any(ipaddress.ip_address(one).is_loopback for one in found if is_ip_address(one)):
                name = socket.gethostname()
                found |= {name.lower()} | await _resolve_names(name)
            return found
    except TimeoutError:
        return set()


async def _resolve_names(host: str) -> set[str]:
    """Return the addresses and canonical names of `host`; empty if it cannot be resolved."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(
            host, None, type=socket.SOCK_STREAM, flags=socket.AI_CANONNAME
        )
    except (OSError, UnicodeError):
        return set()
    return {str(info[4][0]).lower() for info in found} | {
        info[3].lower() for info in found if info[3]
    }


def is_ip_address(text: str) -> bool:
    """Return whether the text is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def find_self_loop(
    listening: Sequence[tuple[Route, list[str]]], resolved: Mapping[Upstream, list[str]]
) -> Upstream | None:
    """Return an upstream through which a connection would return to a listener that it has passed,
    or None.

    Each such connection would open another until no descriptor is left. `listening` holds the
    routes with the addresses they are bound to, as `host:port`. Each kind of connection is followed
    from listener to listener.
    """
    kinds: tuple[Callable[[Route], Upstream], ...] = (
        lambda route: route.upstream,
        lambda route: route.grpc or route.upstream,
    )
    for upstream_of in kinds:
        upstreams = [upstream_of(route) for route, _ in listening]
        following = [
            [
                number
                for number, (_, own) in enumerate(listening)
                if is_own_listener(resolved.get(upstream, []), upstream.port, own)
            ]
            for upstream in upstreams
        ]
        for start, upstream in enumerate(upstreams):
            if start in _reachable_listeners(start, following):
                return upstream
    return None


def _reachable_listeners(start: int, following: list[list[int]]) -> set[int]:
    """Return all listeners that can be reached from `start` in one or more steps."""
    found: set[int] = set()
    ahead = list(following[start])
    while ahead:
        number = ahead.pop()
        if number not in found:
            found.add(number)
            ahead += following[number]
    return found


def is_own_listener(hosts: Iterable[str], port: int, own: Iterable[str]) -> bool:
    """Return whether one of these IP addresses, with this port, reaches one of the process's own
    listeners (`own`, each `host:port` as bound)."""
    ours = [
        ipaddress.ip_address(text.rpartition(":")[0].strip("[]"))
        for text in own
        if text.endswith(f":{port}")
    ]
    return bool(ours) and any(
        _is_reached_by(_normalise_host(host), listener) for host in hosts for listener in ours
    )


def _normalise_host(host: str) -> _Ip:
    """Return the address without a zone; an unspecified address becomes the loopback address that a
    connection to it reaches."""
    address = ipaddress.ip_address(host.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    address = mapped or address
    if address.is_unspecified:
        return ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
    return address


def _is_reached_by(to: _Ip, listener: _Ip) -> bool:
    if not listener.is_unspecified:
        return to == listener
    return (listener.version == 6 or to.version == 4) and _is_own_address(to)


def _is_own_address(address: _Ip) -> bool:
    """Return whether this machine has the address: only then can a socket be bound to it."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((str(address), 0))
        except OSError:
            return False
    return True
