"""Detect addresses on which this process itself listens. Independent of routes and cards."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable

_Ip = ipaddress.IPv4Address | ipaddress.IPv6Address


def is_own_listener(hosts: Iterable[str], port: int, own: Iterable[str]) -> bool:
    """Return whether one of these IP addresses, with this port, reaches one of the process's own listeners (`own`, each
    `host:port` as bound)."""
    ours = [ipaddress.ip_address(text.rpartition(":")[0].strip("[]")) for text in own if text.endswith(f":{port}")]
    return bool(ours) and any(_is_reached_by(_normalise_host(host), listener) for host in hosts for listener in ours)


def _normalise_host(host: str) -> _Ip:
    """Return the address without a zone; an unspecified address becomes the loopback address that a connection to it
    reaches."""
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
