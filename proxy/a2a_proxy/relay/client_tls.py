"""TLS toward clients: a listener's connections are accepted with and without TLS, which their first
byte shows."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Callable
from typing import Protocol

import msgspec

from a2a_proxy.model.wire import CertificateFacts, TlsFacts
from a2a_proxy.relay.edits.edit import ConsoleNote
from a2a_proxy.relay.first_bytes import peek_bytes, peek_hello
from a2a_proxy.relay.route import format_address
from a2a_proxy.relay.tls import HTTP1, HTTP2, PASS_HINT, describe_handshake
from a2a_proxy.relay.tls_transport import TlsTransport
from a2a_proxy.wire.client_hello import ClientHello, HelloGap
from a2a_proxy.wire.detect import TLS_BYTE

HANDSHAKE_SECONDS = 10.0
"""Seconds that a client may take for its ClientHello, and again for the rest of the handshake."""
LISTENER_PROTOCOLS = (HTTP1, HTTP2)
"""The protocols of a listener, the preferred first: the extended card of JSON-RPC is edited in
HTTP/1.1 only; gRPC clients offer h2 alone."""

_DECODE_ERROR = b"\x15\x03\x01\x00\x02\x02\x32"
"""A fatal alert (RFC 8446, 6)."""
_REFUSALS = (
    "unknown ca",
    "certificate unknown",
    "bad certificate",
    "unsupported certificate",
    "certificate expired",
)
"""Alerts of clients that do not accept the proxy's certificate."""
_TRUST_HINT = (
    'make it trust the proxy: eval "$(a2a-proxy ca env)" before it starts, or a2a-proxy ca export'
)


class ServerContext(msgspec.Struct, frozen=True):
    """A TLS context with its certificate."""

    context: ssl.SSLContext
    certificate: CertificateFacts


class ServerContexts(Protocol):
    """The TLS contexts for the names that clients ask for (`certificates.contexts`)."""

    def find_context(self, name: str, protocols: tuple[str, ...]) -> ServerContext | None:
        """Return the context for a name that prefers these ALPN protocols in this order, or None if
        there is none."""

    def make_context(self, name: str, protocols: tuple[str, ...]) -> ServerContext:
        """Return such a context, created if there is none. Called in a thread. Raises OSError."""


def create_server_context(protocols: tuple[str, ...]) -> ssl.SSLContext:
    """Return a context without a certificate that prefers these ALPN protocols in this order."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(list(protocols))
    return context


class HandshakeFailure(msgspec.Struct, frozen=True):
    """Why a client was closed before its TLS connection was established."""

    reason: str
    """The reason for the recording: `the client closed the connection`."""
    note: ConsoleNote
    """The line for the user."""


Begin = Callable[[TlsFacts | None], asyncio.Protocol]
"""Called when a client's connection is established, with the facts of its TLS handshake; returns
its protocol."""


class ClientTls:
    """Accepts the clients of listeners that take TLS."""

    def __init__(
        self, contexts: ServerContexts, trust_hint: str = _TRUST_HINT, *, required: bool = False
    ) -> None:
        """Create the acceptor. `trust_hint` is the action for clients that refuse the certificate.
        With `required`, clients without TLS are refused, because they cannot present a certificate.
        """
        self._contexts = contexts
        self._trust_hint = trust_hint
        self._required = required

    async def accept(
        self, sock: socket.socket, begin: Begin, fail: Callable[[HandshakeFailure], None]
    ) -> None:
        """Give an accepted connection to the protocol of `begin`, after the handshake if the client
        speaks TLS.

        A client whose handshake fails is closed, and `fail` is called. A client that is gone is
        closed silently.
        """
        accepted = _Accepted()
        try:
            first = await peek_bytes(sock, bool, 1, None)
            if first and first[0] == TLS_BYTE:
                failure = await self._accept_tls(sock, accepted, begin)
            elif self._required and first:
                failure = _fail(
                    "the client speaks no TLS and --client-ca asks for its certificate",
                    f"a client without TLS was refused at {_local_address(sock)}: --client-ca asks "
                    f"for its certificate",
                    "let the client use https:// and a certificate",
                )
            else:
                failure = None
                await accepted.adopt(sock, lambda: begin(None))
            if failure is not None:
                fail(failure)
        except OSError:
            return
        finally:
            if not accepted.is_adopted:
                sock.close()

    async def _accept_tls(
        self, sock: socket.socket, accepted: _Accepted, begin: Begin
    ) -> HandshakeFailure | None:
        """Complete the handshake, or return the reason why that is impossible."""
        where = _local_address(sock)
        hello = await peek_hello(sock, HANDSHAKE_SECONDS)
        if hello is HelloGap.INCOMPLETE:
            return _fail(
                "the client sent only a part of its ClientHello",
                f"a client of {where} began a TLS handshake and sent only a part of its "
                f"ClientHello",
                "the client, or a proxy between, must send the rest",
            )
        if isinstance(hello, HelloGap):
            sock.send(_DECODE_ERROR)
            return _fail(
                "the client's bytes begin like TLS and are no ClientHello",
                f"a client of {where} sent bytes that begin like TLS and are no ClientHello",
                "the client must speak TLS or plain HTTP there",
            )
        name = hello.server_name or _certificate_host(sock)
        return await self._shake_hands(
            sock, accepted, begin, hello, name, LISTENER_PROTOCOLS, self._trust_hint
        )

    async def intercept(
        self,
        sock: socket.socket,
        begin: Begin,
        hello: ClientHello,
        name: str,
        protocols: tuple[str, ...],
    ) -> HandshakeFailure | None:
        """Complete the handshake with a client that takes this connection for one to the host
        `name`.

        Returns None if the protocol of `begin` has the connection, or the reason why that is
        impossible; the connection is then closed. Raises OSError if the client is gone.
        """
        accepted = _Accepted()
        try:
            hint = f"{self._trust_hint}; {PASS_HINT}{name}"
            return await self._shake_hands(sock, accepted, begin, hello, name, protocols, hint)
        finally:
            if not accepted.is_adopted:
                sock.close()

    async def _shake_hands(
        self,
        sock: socket.socket,
        accepted: _Accepted,
        begin: Begin,
        hello: ClientHello,
        name: str,
        protocols: tuple[str, ...],
        trust_hint: str,
    ) -> HandshakeFailure | None:
        """Complete the handshake with a certificate for `name`, or return the reason why that is
        impossible."""
        where = _local_address(sock)
        server = self._contexts.find_context(name, protocols)
        if server is None:
            try:
                loop = asyncio.get_running_loop()
                server = await loop.run_in_executor(
                    None, self._contexts.make_context, name, protocols
                )
            except OSError as error:
                text = (
                    f"cannot create a certificate for {name}: "
                    f"{(error.strerror or str(error)).lower()}"
                )
                return _fail(
                    text,
                    text,
                    "check the disk and the permissions of the folder for temporary files",
                )
        transport = TlsTransport(server.context, server_side=True)
        await accepted.adopt(sock, lambda: transport)
        try:
            await transport.shake_hands(HANDSHAKE_SECONDS)
        except OSError as error:
            return _explain_error(error, where, name, trust_hint)
        except ValueError:  # Python decodes the names as UTF-8
            text = "a client's certificate cannot be read"
            return _fail(
                text, f"{text} at {where}", "its names must be text: give the client another one"
            )
        facts = describe_handshake(transport.ssl_object, hello.server_name, server.certificate)
        transport.begin(begin(facts))
        return None


class _Accepted(asyncio.Protocol):
    """Gives an accepted socket to a protocol."""

    def __init__(self) -> None:
        self.is_adopted = False
        """Whether a transport has the socket."""
        self._make: Callable[[], asyncio.Protocol]

    async def adopt(self, sock: socket.socket, make: Callable[[], asyncio.Protocol]) -> None:
        """Give the socket to the protocol that `make` returns, which is called once there is a
        transport."""
        self._make = make
        await asyncio.get_running_loop().connect_accepted_socket(lambda: self, sock)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the connection."""
        self.is_adopted = True
        protocol = self._make()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)


def _fail(reason: str, text: str, hint: str) -> HandshakeFailure:
    return HandshakeFailure(reason, ConsoleNote(text, hint, loud=True))


def _explain_error(error: OSError, where: str, name: str, trust_hint: str) -> HandshakeFailure:
    """Return the reason of a failed handshake, and a line about it."""
    if not isinstance(error, ssl.SSLError):
        text = f"a client of {where} closed the connection during the TLS handshake for {name}"
        hint = f"if it does not accept the certificate: {trust_hint}"
        return _fail(f"the client closed the connection; {hint}", text, hint)
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = error.verify_message.lower()
        return _fail(
            f"the client's certificate was refused: {reason}",
            f"a client's certificate was refused at {where}: {reason}",
            "use a certificate that an authority of --client-ca has issued",
        )
    reason = (error.reason or str(error)).replace("_", " ").lower()
    if "peer did not return a certificate" in reason:
        return _fail(
            "the client presented no certificate, and --client-ca asks for one",
            f"a client without a certificate was refused at {where}: --client-ca asks for one",
            "give the client a certificate that an authority of that file has issued",
        )
    if any(alert in reason for alert in _REFUSALS):
        text = f"refused the proxy's certificate for {name}: {reason}"
        return _fail(f"the client {text}; {trust_hint}", f"a client of {where} {text}", trust_hint)
    return _fail(
        reason,
        f"the TLS handshake with a client of {where} failed: {reason}",
        "the client must speak TLS 1.2 or 1.3 there, or plain HTTP",
    )


def _local_address(sock: socket.socket) -> str:
    return format_address(*sock.getsockname()[:2])


def _certificate_host(sock: socket.socket) -> str:
    """Return the address that the client has connected to, an IPv4 address mapped into IPv6 as
    such."""
    address = ipaddress.ip_address(sock.getsockname()[0].partition("%")[0])
    return str(getattr(address, "ipv4_mapped", None) or address)
