"""The addresses on which the relay listens and to which it sends, parsed from the user's options.
Opens no sockets."""

from __future__ import annotations

import ipaddress
import re

import msgspec

from a2a_proxy.system_errors import HintedError

HTTP_PORT, HTTPS_PORT = 80, 443
_MAX_PORT = 65535
LOOPBACK = ("127.0.0.1", "::1")

_UNIX_SOCKET = re.compile(r"unix:|\.{0,2}/|~/", re.IGNORECASE)


class RouteError(HintedError):
    """An invalid address or a port that cannot be bound: one line with the problem, one with the
    action to take."""


class Listen(msgspec.Struct, frozen=True):
    """One `--listen`."""

    host: str
    """Host to bind; empty for loopback, 127.0.0.1 and ::1."""
    port: int
    """Port to bind; 0 for any free port."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts to bind, each with the same port."""
        return (self.host,) if self.host else LOOPBACK

    @classmethod
    def parse(cls, text: str) -> Listen:
        """Parse `:9000`, `0.0.0.0:9000`, `[::1]:9000` or `host:9000`. Raises RouteError."""
        if _UNIX_SOCKET.match(text):
            raise RouteError(
                f"cannot listen on {text!r}: Unix sockets are not supported",
                "clients connect by TCP: --listen :9000",
            )
        scheme, separator, rest = text.partition("://")
        if separator:
            address = rest.rstrip("/") if ":" in rest else ":9000"
            raise RouteError(
                f"cannot listen on {text!r}: {scheme}:// is not part of the address",
                f"write --listen {address}",
            )
        host, port = _split_authority(text)
        if port is None:
            hint = (
                f"write --listen :{text}"
                if text.isdigit() and int(text) <= _MAX_PORT
                else "write --listen :9000"
            )
            raise RouteError(f"cannot listen on {text!r}: no port", hint)
        return cls(host, port)


class Upstream(msgspec.Struct, frozen=True):
    """One `--upstream` or `--upstream-grpc`."""

    host: str
    port: int
    tls: bool
    text: str
    """The option as the user wrote it."""

    @property
    def address(self) -> str:
        """`host:port`."""
        return format_address(self.host, self.port)

    @property
    def authority(self) -> str:
        """The value of `Host` that a client of the upstream sends: without the port if it is the
        default of the scheme.
        """
        usual = self.port == (HTTPS_PORT if self.tls else HTTP_PORT)
        return (
            format_address(self.host, self.port).removesuffix(f":{self.port}")
            if usual
            else self.address
        )

    @classmethod
    def parse(cls, text: str) -> Upstream:
        """Parse `HOST`, `HOST:PORT`, `[v6]:PORT`, `http://HOST[:PORT][/]` or `https://...`. Raises
        RouteError.

        The default port is 80, with https 443.
        """
        if _UNIX_SOCKET.match(text):
            raise RouteError(
                f"cannot send to {text!r}: Unix sockets are not supported",
                "let the agent listen on a port, or lead one to it: socat TCP-LISTEN:8000,"
                "bind=127.0.0.1,fork "
                f"UNIX-CONNECT:{text.partition(':')[2].removeprefix('//') or text}",
            )
        authority = _authority_of_url(text) if "://" in text else text
        host, port = _split_authority(authority)
        if not host or port == 0:
            raise RouteError(
                f"upstream {text!r} has no host or its port is 0", "write --upstream HOST:PORT"
            )
        if port is None and host.isdigit():
            raise RouteError(f"upstream {text!r} has no host", f"write --upstream localhost:{host}")
        tls = text[:8].lower() == "https://"
        return cls(host, (HTTPS_PORT if tls else HTTP_PORT) if port is None else port, tls, text)


class PortRanges(msgspec.Struct, frozen=True):
    """The ports of `--learn-ports`."""

    ranges: tuple[tuple[int, int], ...] = ()
    """First and last port of each range."""
    text: str = ""
    """The option as the user wrote it."""

    def __contains__(self, port: int) -> bool:
        """Return whether the port is in one of the ranges."""
        return any(first <= port <= last for first, last in self.ranges)

    def text_with(self, port: int) -> str:
        """Return the option's value with another port added."""
        return f"{self.text},{port}" if self.text else str(port)

    @classmethod
    def parse(cls, text: str) -> PortRanges:
        """Parse a list such as `8001` or `8001,9000-9010`. Raises RouteError."""
        ranges = []
        for part in text.split(","):
            found = re.fullmatch(r"\s*([0-9]{1,5})(?:-([0-9]{1,5}))?\s*", part)
            first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
            if not 0 < first <= last < 65536:
                raise RouteError(
                    f"--learn-ports: {part.strip()!r} is not a port or a range of ports",
                    "for example: --learn-ports 8001,9000-9010; every port: --learn-ports 1-65535",
                )
            ranges.append((first, last))
        return cls(tuple(ranges), "".join(text.split()))


class Route(msgspec.Struct, frozen=True):
    """One listener and the upstreams it relays to."""

    listen: Listen
    upstream: Upstream
    grpc: Upstream | None = None
    """Upstream for connections that begin with the HTTP/2 preface; None for `upstream`."""
    name: str = ""
    """The agent's name as given by the user; empty if there is none."""


def is_loopback(host: str) -> bool:
    """Return whether the host is a loopback address: 127.x, `::1`, or 127.x mapped into IPv6.
    Resolves no name."""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return False
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback


def format_address(host: str, port: int) -> str:
    """Return `host:port`, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _authority_of_url(text: str) -> str:
    scheme, _, rest = text.partition("://")
    authority, slash, path = rest.partition("/")
    if "@" in authority:
        raise RouteError(
            "the upstream URL contains user information",
            "leave it out; clients send their own credentials",
        )
    if scheme.lower() not in ("http", "https"):
        raise RouteError(f"cannot send to {scheme}:// URLs", "write --upstream http://HOST:PORT")
    if path or "?" in authority or "#" in authority:
        raise RouteError(
            f"the upstream URL has a path: {slash}{path}"
            if path
            else "the upstream URL has a query or fragment",
            f"the proxy relays bytes and cannot add one; write --upstream "
            f"{scheme}://{authority.split('?')[0].split('#')[0]}",
        )
    return authority


def _split_authority(text: str) -> tuple[str, int | None]:
    """Split an address into host and port; the port is None if the address has none. Raises
    RouteError."""
    if "@" in text:
        raise RouteError(
            "the address contains user information",
            "leave it out; clients send their own credentials",
        )
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")) or ":" not in host:
            raise RouteError(f"cannot read the address {text!r}", "write [::1]:9000")
        return host, _parse_port(rest[1:], text) if rest else None
    if text.count(":") > 1:
        raise RouteError(
            f"cannot read the address {text!r}", f"put an IPv6 address in brackets: [{text}]:9000"
        )
    host, colon, port = text.partition(":")
    if any(character.isspace() or character in "/?#" for character in host):
        raise RouteError(f"cannot read the address {text!r}", "write HOST:PORT")
    return host, _parse_port(port, text) if colon else None


def _parse_port(digits: str, text: str) -> int:
    if not (digits.isascii() and digits.isdigit()) or int(digits) > _MAX_PORT:
        raise RouteError(
            f"{digits!r} in {text!r} is not a port", "a port is a number from 0 to 65535"
        )
    return int(digits)
