"""Another HTTP proxy through which upstreams are dialled: its address, its credentials and its
exceptions.

`ask_proxy` works on a connected socket, which then leads to the upstream.
"""

from __future__ import annotations

import asyncio
import base64
import re
import socket
import urllib.parse

import msgspec

from a2a_proxy.http.h1 import MAX_HEAD_BYTES, Http1Error, parse_response_head
from a2a_proxy.model.errors import UserError
from a2a_proxy.relay.first_bytes import peek_bytes
from a2a_proxy.relay.host_patterns import HostPattern
from a2a_proxy.relay.route import RouteError, Upstream, is_loopback

_URL = re.compile(r"(?:([a-z][a-z0-9+.-]*)://)?(?:([^/@]*)@)?([^/@]+)/?", re.IGNORECASE)
_HINT = "write --upstream-proxy http://HOST:PORT"


class ProxyAnswerError(UserError):
    """The other proxy does not lead to the upstream. The text is a predicate (`answers 503`);
    `hint` is the action to take (may be empty)."""


class UpstreamProxy(msgspec.Struct, frozen=True):
    """The proxy of `--upstream-proxy`."""

    address: Upstream
    credentials: str = ""
    """User and password, `user:password`; empty without them."""
    exceptions: tuple[HostPattern, ...] = ()
    """Upstreams that are dialled directly, besides those of this machine."""

    @classmethod
    def parse(cls, text: str) -> UpstreamProxy:
        """Parse `http://[USER:PASSWORD@]HOST:PORT`. Raises RouteError, whose text has no
        credentials."""
        found = _URL.fullmatch(text)
        if found is None:
            raise RouteError("--upstream-proxy: the URL of a proxy has no path", _HINT)
        if (found[1] or "http").lower() != "http":
            raise RouteError(f"--upstream-proxy: {found[1]}:// proxies are not supported", _HINT)
        try:
            address = Upstream.parse(found[3])
        except RouteError as wrong:
            raise RouteError(f"--upstream-proxy: {wrong.message}", _HINT) from None
        return cls(address, urllib.parse.unquote(found[2] or ""))

    def leads_to(self, upstream: Upstream) -> bool:
        """Return whether the upstream is dialled through this proxy."""
        host = upstream.host.lower()
        if host == "localhost" or is_loopback(host):
            return False
        return not any(pattern.matches(host, upstream.port) for pattern in self.exceptions)


async def ask_proxy(
    sock: socket.socket, proxy: UpstreamProxy, upstream: Upstream, seconds: float
) -> None:
    """Let a socket that is connected to the proxy lead to the upstream. Raises ProxyAnswerError or
    OSError."""
    target = upstream.address
    request = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
    if proxy.credentials:
        request += (
            f"Proxy-Authorization: Basic "
            f"{base64.b64encode(proxy.credentials.encode()).decode()}\r\n"
        )
    await asyncio.get_running_loop().sock_sendall(sock, f"{request}\r\n".encode())
    data = await peek_bytes(sock, lambda data: b"\r\n\r\n" in data, MAX_HEAD_BYTES, seconds)
    try:
        status, _ = parse_response_head(data[: data.find(b"\r\n\r\n") + 4], to_head=True)
    except Http1Error:
        raise ProxyAnswerError("does not answer as an HTTP proxy") from None
    if status == 407:
        hint = "give it credentials: --upstream-proxy http://USER:PASSWORD@HOST:PORT"
        raise ProxyAnswerError("answers 407: it wants credentials", hint)
    if not 200 <= status < 300:
        raise ProxyAnswerError(f"answers {status}")
    sock.recv(data.find(b"\r\n\r\n") + 4)
