"""Patterns that name hosts in options: `agent.example`, `*.example.com`, `agent.example:8443`,
`private`, `*`."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

import msgspec

from a2a_proxy.relay.route import RouteError

PRIVATE = "private"
"""The pattern for this machine and private networks."""

_PATTERN = re.compile(
    r"(\*|(?:\*\.)?[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?"
)
_HINT = "write a host, *.example.com, HOST:PORT, private (this machine and private networks) or *"


class HostPattern(msgspec.Struct, frozen=True):
    """One pattern."""

    host: str
    """Host in lower case, `*.` and the end of its name, a network (`10.0.0.0/8`), `private` or
    `*`."""
    port: int = 0
    """Port, or 0 for all ports."""

    @property
    def text(self) -> str:
        """The pattern as a user writes it."""
        host = f"[{self.host}]" if ":" in self.host and "/" not in self.host else self.host
        return f"{host}:{self.port}" if self.port else host

    @classmethod
    def parse(cls, text: str) -> HostPattern:
        """Parse a pattern. Raises RouteError."""
        found = _PATTERN.fullmatch(text)
        bare_ipv6 = text.count(":") > 1 and not text.startswith("[")
        if found is None or bare_ipv6 or (found[2] and not 0 < int(found[2]) < 65536):
            raise RouteError(f"{text!r} is not a pattern for hosts", _HINT)
        return cls(_plain(found[1]), int(found[2] or 0))

    @classmethod
    def parse_network(cls, text: str) -> HostPattern:
        """Parse a network, which names addresses only. Raises ValueError."""
        return cls(str(ipaddress.ip_network(text, strict=False)))

    def matches(self, host: str, port: int, address: str = "") -> bool:
        """Return whether the pattern names this host and port. `address` is the host's IP address
        if it is known, which `private` needs for a name."""
        if self.port and self.port != port:
            return False
        name = _plain(host)
        if self.host == PRIVATE:
            return is_private(address or name)
        if "/" in self.host:
            found = _parse_address(address or name)
            return found is not None and found in ipaddress.ip_network(self.host)
        if self.host.startswith("*."):
            return name.endswith(self.host[1:]) and len(name) >= len(self.host)
        return self.host in ("*", name)


class InterceptPolicy(msgspec.Struct, frozen=True):
    """Which TLS connections of a forward proxy are opened."""

    intercept: tuple[HostPattern, ...] = ()
    passed: tuple[HostPattern, ...] = ()
    """Exceptions, which win."""

    def passes(self, hosts: Iterable[str], port: int, address: str) -> bool:
        """Return whether a host with these names is an exception (`HostPattern.matches`)."""
        return _is_named(self.passed, hosts, port, address)

    def opens(self, hosts: Iterable[str], port: int, address: str) -> bool:
        """Return whether to open a connection to a host with these names
        (`HostPattern.matches`)."""
        names = list(hosts)
        return _is_named(self.intercept, names, port, address) and not self.passes(
            names, port, address
        )


def _is_named(
    patterns: tuple[HostPattern, ...], hosts: Iterable[str], port: int, address: str
) -> bool:
    return any(pattern.matches(host, port, address) for host in hosts for pattern in patterns)


def is_private(host: str) -> bool:
    """Return whether the host is `localhost`, or an address of this machine or a private network.
    Resolves no name."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    found = _parse_address(host)
    return found is not None and (found.is_private or found.is_loopback or found.is_link_local)


def _parse_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address, an IPv4 address mapped into IPv6 as such, or None for a name."""
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def _plain(host: str) -> str:
    return host.lower().strip("[]").removesuffix(".")
