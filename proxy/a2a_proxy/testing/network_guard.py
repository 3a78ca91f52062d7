"""Network guard: blocks connections of the process of the tests to hosts that are not allowed.

Python reports each connection to its audit hooks before it is made, for all libraries: asyncio,
aiohttp, httpx, requests. gRPC channels are refused when they are created, because the gRPC core
connects on its own. Not covered: connections of uvloop and of other extensions, and of other
processes.
"""

import ipaddress
import socket
import sys
import threading
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

_LOCAL_SCHEMES = ("unix", "unix-abstract", "vsock")
_RESOLVERS = ("dns", "ipv4", "ipv6")


class NetworkBlocked(RuntimeError):
    """A test tried to connect to a blocked host."""


class NetworkGuard:
    """The allowed hosts, and the blocked attempts."""

    def __init__(self) -> None:
        self.is_active = False
        self.blocked_attempts: list[str] = []
        """Connections refused since the last `start`."""
        self._hosts: frozenset[str] = frozenset()
        self._agent_places: set[tuple[str, int]] = set()
        self._is_installed = False
        self._address_cache = ""
        """The host name that was resolved last, because a connection only has an address."""
        self._resolving = threading.local()

    def start(self, hosts: Iterable[str]) -> None:
        """Refuse all connections except those to `hosts` and to the agents of the fixtures."""
        self._hosts = frozenset(each.strip().strip("[]").lower() for each in hosts if each.strip())
        self.blocked_attempts = []
        self.is_active = True
        if not self._is_installed:
            self._is_installed = True
            sys.addaudithook(self._on_audit_event)
            _guard_grpc_channels(self)

    def stop(self) -> None:
        """Stop refusing connections."""
        self.is_active = False

    def allow_address(self, host: str, port: int) -> None:
        """Allow connections to an agent of a fixture."""
        self._agent_places.add((host, port))

    def forget_address(self, host: str, port: int) -> None:
        """No longer allow connections to an agent."""
        self._agent_places.discard((host, port))

    def check_address(self, host: str, port: int, how: str) -> None:
        """Check a connection. Raises NetworkBlocked if it is not allowed."""
        host = host.strip("[]").partition("%")[0].lower()
        if not self.is_active or (host, port) in self._agent_places or self._is_allowed(host, port):
            return
        name = self._address_cache if _is_numeric(host) and self._address_cache else host
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        attempt = f"{how} to {where}" + (f" ({name})" if name != host else "")
        self._address_cache = ""
        self.blocked_attempts.append(attempt)
        raise NetworkBlocked(f"{attempt} is blocked; to allow it: --a2a-allowed-hosts={name}")

    def _is_allowed(self, host: str, port: int) -> bool:
        if {host, f"{host}:{port}"} & self._hosts:
            return True
        names = [
            each.rpartition(":")[0] if each.endswith(f":{port}") else each for each in self._hosts
        ]
        return any(
            _is_numeric(host) and host in self._resolve_addresses(name)
            for name in names
            if not _is_numeric(name)
        )

    def _resolve_addresses(self, name: str) -> set[str]:
        self._resolving.now = True
        try:
            return {str(each[4][0]) for each in socket.getaddrinfo(name, None)}
        except OSError:
            return set()
        finally:
            self._resolving.now = False

    def _on_audit_event(self, event: str, args: tuple[Any, ...]) -> None:
        if (
            not self.is_active
            or not event.startswith("socket.")
            or getattr(self._resolving, "now", False)
        ):
            return
        if event == "socket.getaddrinfo" and isinstance(args[0], str) and not _is_numeric(args[0]):
            self._address_cache = args[0]
        if event not in ("socket.connect", "socket.sendto", "socket.sendmsg"):
            return
        where = args[1]
        if (
            isinstance(where, tuple)
            and len(where) >= 2
            and isinstance(where[0], str)
            and isinstance(where[1], int)
        ):
            self.check_address(
                where[0], where[1], "a connection" if event == "socket.connect" else "a datagram"
            )


def _is_numeric(host: str) -> bool:
    """Whether the host is a numeric address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def parse_grpc_target(target: str) -> tuple[str, int] | None:
    """Return host and port of a gRPC target (`dns:///host:port`, `ipv4:1.2.3.4:5`, `host`); None if
    it is not a network one."""
    scheme, colon, rest = target.partition(":")
    if colon and scheme in _LOCAL_SCHEMES:
        return None
    if colon and scheme in _RESOLVERS:
        target = rest.rpartition("/")[2].partition(",")[0]
    try:
        found = urlsplit(
            f"//{target}" if target.count(":") < 2 or "[" in target else f"//[{target}]"
        )
        return found.hostname or "", found.port or 443
    except ValueError:
        return target, 443


def _guard_grpc_channels(guard: NetworkGuard) -> None:
    """Wrap the two channel classes of gRPC. Every channel runs their `__init__`, whatever name it
    was imported by."""
    from grpc import _channel
    from grpc.aio import _channel as _aio_channel

    for module in (_channel, _aio_channel):
        _wrap_channel_class(module.Channel, guard)


def _wrap_channel_class(kind: Any, guard: NetworkGuard) -> None:
    made = kind.__init__

    def checked(self: Any, target: str | bytes, *rest: Any, **named: Any) -> None:
        where = parse_grpc_target(target.decode() if isinstance(target, bytes) else target)
        if where is not None:
            guard.check_address(*where, "a gRPC channel")
        made(self, target, *rest, **named)

    kind.__init__ = checked


GUARD = NetworkGuard()
"""The guard of this process; audit hooks stay until it ends."""
