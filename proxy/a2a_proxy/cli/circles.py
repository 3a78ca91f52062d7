"""Upstreams that lead back to the proxy itself: one connection would make another, until no descriptor is left."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Mapping, Sequence

from a2a_proxy.cli.errors import UserError
from a2a_proxy.relay.route import Route, Upstream

Resolved = dict[Upstream, list[str]]
"""The addresses of each upstream."""
_Ip = ipaddress.IPv4Address | ipaddress.IPv6Address


def refuse_circles(listening: Sequence[tuple[Route, list[str]]], resolved: Mapping[Upstream, list[str]]) -> None:
    """Follow each kind of connection from listener to listener; a chain that ends elsewhere is fine.

    `listening` has the routes with the addresses they are bound to, `host:port`.

    Raises:
        UserError: a connection would come back to a listener that it has passed.
    """
    kinds: tuple[Callable[[Route], Upstream], ...] = (
        lambda route: route.upstream,
        lambda route: route.grpc or route.upstream,
    )
    for upstream_of in kinds:
        to = [upstream_of(route) for route, _ in listening]
        nexts = [
            [at for at, (_, own) in enumerate(listening) if _reaches(resolved.get(upstream, []), upstream.port, own)]
            for upstream in to
        ]
        for start, upstream in enumerate(to):
            if start in _reachable(start, nexts):
                raise UserError(
                    f"upstream {upstream.text} leads back to the proxy itself",
                    "--upstream names the agent's port, not the proxy's",
                )


def _reachable(start: int, nexts: list[list[int]]) -> set[int]:
    """All that can be reached from `start` in one step or more."""
    found: set[int] = set()
    ahead = list(nexts[start])
    while ahead:
        at = ahead.pop()
        if at not in found:
            found.add(at)
            ahead += nexts[at]
    return found


def _reaches(hosts: list[str], port: int, own: list[str]) -> bool:
    """One of the addresses, with this port, is one of our own."""
    ours = [ipaddress.ip_address(text.rpartition(":")[0].strip("[]")) for text in own if text.endswith(f":{port}")]
    return bool(ours) and any(_leads(_plain(host), listener) for host in hosts for listener in ours)


def _plain(host: str) -> _Ip:
    """Without a zone; what means this machine as the address that a connection to it goes to."""
    address = ipaddress.ip_address(host.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    address = mapped or address
    if address.is_unspecified:
        return ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
    return address


def _leads(to: _Ip, listener: _Ip) -> bool:
    if not listener.is_unspecified:
        return to == listener
    return (listener.version == 6 or to.version == 4) and _is_ours(to)


def _is_ours(address: _Ip) -> bool:
    """Whether this machine has the address: only then can a socket be bound to it."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((str(address), 0))
        except OSError:
            return False
    return True
