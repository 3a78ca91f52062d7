"""Connect to an upstream: resolve its name and try its addresses in order, with TLS if required.
Handles no clients."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from a2a_proxy.model.errors import UserError
from a2a_proxy.relay.route import RouteError, Upstream
from a2a_proxy.relay.tls import (
    CLIENT_CERTIFICATE_HINT,
    HTTP1,
    INSECURE_HINT,
    Tls,
    TlsError,
    Trust,
    check_agreement,
    explain_handshake_error,
)
from a2a_proxy.relay.tls_transport import TlsTransport
from a2a_proxy.system_errors import hint_for

if TYPE_CHECKING:
    from a2a_proxy.relay.upstream_proxy import UpstreamProxy

DIAL_SECONDS = 10.0
"""Seconds for resolving and connecting together."""
ADDRESS_SECONDS = 2.5
"""Seconds for one address if there are more."""

Factory = Callable[[], asyncio.Protocol]
Target = dict[str, Any]
"""Arguments of `create_connection`: `host` and `port`, or a connected `sock`."""
Connect = Callable[[Target], Awaitable[None]]
IsRefused = Callable[[Iterable[str], int], bool]
"""Whether an upstream with one of these addresses and this port must not be dialled."""


class DialError(UserError):
    """No address of the upstream answered. The text is the reason; `hint` is the action to take
    (may be empty)."""


async def dial_upstream(
    upstream: Upstream,
    factory: Factory,
    seconds: float = DIAL_SECONDS,
    *,
    tls: Tls | None = None,
    protocols: tuple[str, ...] = (HTTP1,),
    sock: socket.socket | None = None,
    is_refused: IsRefused | None = None,
    proxy: UpstreamProxy | None = None,
) -> None:
    """Connect `factory`'s protocol to the upstream. `protocols` are the ALPN names that are offered
    over TLS.

    `sock` is a non-blocking socket that leads to the upstream already, through another proxy; it is
    closed on failure. `is_refused` decides on the resolved addresses; `proxy` is used unless it has
    an exception for the upstream. Raises DialError if no address could be connected within
    `seconds`.
    """
    connect = (
        partial(_connect_tls, tls or Tls(Trust()), protocols) if upstream.tls else _connect_tcp
    )
    if sock is None and proxy is not None and proxy.leads_to(upstream):
        sock = await connect_socket(upstream, seconds, is_refused=is_refused, proxy=proxy)
    try:
        async with asyncio.timeout(seconds):
            if sock is None:
                await _dial_first_reachable(
                    upstream, partial(connect, upstream, factory), is_refused
                )
            else:
                await _use_socket(sock, partial(connect, upstream, factory))
    except TimeoutError:
        raise DialError(f"no answer within {seconds:g} s") from None
    except (TlsError, RouteError) as error:
        raise DialError(error.message, error.hint) from None


async def connect_socket(
    upstream: Upstream,
    seconds: float = DIAL_SECONDS,
    *,
    is_refused: IsRefused | None = None,
    proxy: UpstreamProxy | None = None,
) -> socket.socket:
    """Return a non-blocking socket that leads to the upstream, without TLS; the arguments are those
    of `dial_upstream`. Raises DialError."""
    connected: list[socket.socket] = []

    async def connect(target: Target) -> None:
        connected.append(await _connect_socket(**target))

    try:
        async with asyncio.timeout(seconds):
            if proxy is None or not proxy.leads_to(upstream):
                await _dial_first_reachable(upstream, connect, is_refused)
            else:
                await _connect_through(proxy, upstream, connect, connected, seconds, is_refused)
        return connected.pop()
    except TimeoutError:
        raise DialError(f"no answer within {seconds:g} s") from None
    finally:
        for sock in connected:
            sock.close()


async def _connect_through(
    proxy: UpstreamProxy,
    upstream: Upstream,
    connect: Connect,
    connected: list[socket.socket],
    seconds: float,
    is_refused: IsRefused | None,
) -> None:
    from a2a_proxy.relay.upstream_proxy import ProxyAnswerError, ask_proxy

    where = f"the upstream proxy {proxy.address.address}"
    try:
        await _dial_first_reachable(proxy.address, connect, is_refused)
        await ask_proxy(connected[0], proxy, upstream, seconds)
    except DialError as error:
        raise DialError(f"{where}: {error}", "check --upstream-proxy") from None
    except ProxyAnswerError as error:
        raise DialError(f"{where} {error}", error.hint) from None
    except OSError as error:
        raise DialError(f"{where}: {_dial_error_reason(error)}") from None


async def _connect_socket(host: str, port: int) -> socket.socket:
    loop = asyncio.get_running_loop()
    family, kind, protocol, _, where = (
        await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    )[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        await loop.sock_connect(sock, where)
    except BaseException:
        sock.close()
        raise
    return sock


async def _use_socket(sock: socket.socket, connect: Connect) -> None:
    try:
        await connect({"sock": sock})
    except OSError as error:
        raise _dial_error(error) from None


async def _dial_first_reachable(
    upstream: Upstream, connect: Connect, is_refused: IsRefused | None
) -> None:
    hosts = await _resolve_host(asyncio.get_running_loop(), upstream)
    if is_refused is not None and is_refused(hosts, upstream.port):
        raise DialError(
            "it is a port of the proxy itself",
            "send requests to the agents, not to the proxy's own ports",
        )
    for number, host in enumerate(hosts, 1):
        try:
            async with asyncio.timeout(ADDRESS_SECONDS if number < len(hosts) else None):
                await connect({"host": host, "port": upstream.port})
            return
        except (OSError, TimeoutError) as error:
            if number == len(hosts):
                raise _dial_error(error) from None


async def _connect_tcp(_: Upstream, factory: Factory, target: Target) -> None:
    await asyncio.get_running_loop().create_connection(factory, **target)


async def _connect_tls(
    tls: Tls, protocols: tuple[str, ...], upstream: Upstream, factory: Factory, target: Target
) -> None:
    try:
        upstream.host.encode("idna")  # as the handshake does, but there the error is one of many
        context = await tls.get_context(protocols)
        transport = TlsTransport(context, server_hostname=upstream.host)
    except BaseException as error:
        if sock := target.get("sock"):
            sock.close()
        if isinstance(error, UnicodeError):
            raise TlsError(
                f"{upstream.host} is no name for which a certificate can be verified"
            ) from None
        raise
    await asyncio.get_running_loop().create_connection(lambda: transport, **target)
    try:
        await transport.shake_hands()
    except ssl.SSLError as error:
        raise explain_handshake_error(error, upstream, protocols) from None
    except (ConnectionResetError, ConnectionAbortedError, BrokenPipeError):
        raise TlsError(
            "it closed the connection during the TLS handshake", CLIENT_CERTIFICATE_HINT
        ) from None
    except ValueError:  # Python decodes the names as UTF-8
        raise TlsError(
            "its certificate cannot be read: a name in it is no text", INSECURE_HINT
        ) from None
    try:
        check_agreement(transport.ssl_object, protocols)
    except TlsError:
        transport.close()
        raise
    transport.begin(factory())


async def _resolve_host(loop: asyncio.AbstractEventLoop, upstream: Upstream) -> list[str]:
    try:
        found = await loop.getaddrinfo(upstream.host, upstream.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise DialError(f"cannot resolve {upstream.host}: {_dial_error_reason(error)}") from None
    return list(dict.fromkeys(str(info[4][0]) for info in found))


def _dial_error(error: Exception) -> DialError:
    return DialError(_dial_error_reason(error), hint_for(error, ""))


def _dial_error_reason(error: Exception) -> str:
    """Return the reason in lower case, without the addresses that asyncio adds."""
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
