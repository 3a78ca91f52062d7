"""TLS toward upstreams: the protocols offered, the certificates trusted, and error messages for users."""

from __future__ import annotations

import asyncio
import ssl
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import msgspec

from a2a_proxy.relay.route import RouteError, Upstream

HTTP2, HTTP1 = "h2", "http/1.1"
MAX_CONTEXTS = 32
"""Contexts that are kept; clients of intercepted connections choose the protocols, of which there may be many."""

_PROTOCOL_NAMES = {HTTP2: "HTTP/2", HTTP1: "HTTP/1.1"}
_WRONG_HOST, _EXPIRED, _NOT_YET = (62, 64), 10, 9
_UNTRUSTED = (18, 19, 20, 21)
_INSECURE_HINT = "to connect without verification: --upstream-insecure"


class Trust(msgspec.Struct, frozen=True):
    """Certificates of upstreams that are trusted."""

    ca: Path | None = None
    """File of CA certificates (PEM) to trust in addition to the system's."""
    insecure: bool = False
    """Whether any certificate is accepted."""


class TlsError(Exception):
    """A failed TLS connection: one line with the reason, one with the action to take (may be empty)."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Tls:
    """The TLS contexts of one relay toward upstreams, each created once."""

    def __init__(self, trust: Trust) -> None:
        self._trust = trust
        self._contexts: OrderedDict[tuple[str, ...], ssl.SSLContext] = OrderedDict()

    def get_context(self, protocols: tuple[str, ...]) -> ssl.SSLContext:
        """Return the context that offers exactly these protocols. Raises RouteError if the CA file cannot be read."""
        context = self._contexts.get(protocols)
        if context is None:
            context = self._contexts[protocols] = self._make_context(protocols)
            if len(self._contexts) > MAX_CONTEXTS:
                self._contexts.popitem(last=False)
        self._contexts.move_to_end(protocols)
        return context

    def prepare_contexts(self) -> None:
        """Create the contexts for one protocol now. Raises RouteError if the CA file cannot be read."""
        for protocol in _PROTOCOL_NAMES:
            self.get_context((protocol,))

    def _make_context(self, protocols: tuple[str, ...]) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if self._trust.ca is not None:
            try:
                context.load_verify_locations(self._trust.ca)
            except (OSError, ssl.SSLError) as error:
                why = (getattr(error, "strerror", None) or str(error)).lower()
                raise RouteError(
                    f"cannot read CA certificates from {self._trust.ca}: {why}",
                    "the file must hold certificates in PEM format",
                ) from None
        if self._trust.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(list(protocols))
        return context


class Handshake(asyncio.Protocol):
    """Handles a connection until the negotiated protocol is known; then the protocol of `factory` replaces it."""

    def __init__(self, factory: Callable[[], asyncio.Protocol], protocols: tuple[str, ...]) -> None:
        self._factory = factory
        self._protocols = protocols
        self.mismatch: TlsError | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Check the negotiated protocol: the handshake is complete."""
        agreed = transport.get_extra_info("ssl_object").selected_alpn_protocol()
        if agreed in self._protocols or (agreed is None and (HTTP1 in self._protocols or not self._protocols)):
            protocol = self._factory()
            transport.set_protocol(protocol)
            protocol.connection_made(transport)
        else:
            self.mismatch = protocol_mismatch(self._protocols)
            transport.abort()  # type: ignore[attr-defined]


def protocol_mismatch(protocols: tuple[str, ...]) -> TlsError:
    """Return the error of an upstream that does not speak the client's protocol over TLS."""
    hint = "if the agent has another port for gRPC, name it with --upstream-grpc" if protocols == (HTTP2,) else ""
    names = " or ".join(_PROTOCOL_NAMES.get(each, each) for each in protocols)
    return TlsError(f"over TLS it does not speak {names} (ALPN {', '.join(protocols)}), as the client does", hint)


def explain_handshake_error(error: ssl.SSLError, upstream: Upstream, protocols: tuple[str, ...]) -> TlsError:
    """Return the error that explains a failed handshake."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _explain_certificate_error(error, upstream)
    reason = (error.reason or str(error)).replace("_", " ").lower()
    if "no application protocol" in reason:
        return protocol_mismatch(protocols)
    if "wrong version number" in reason or "record layer failure" in reason or "http request" in reason:
        return TlsError(
            "it does not speak TLS on this port", f"if it speaks plain HTTP: --upstream http://{upstream.address}"
        )
    return TlsError(f"the TLS handshake failed: {reason}")


def _explain_certificate_error(error: ssl.SSLCertVerificationError, upstream: Upstream) -> TlsError:
    code = error.verify_code
    if code in _WRONG_HOST:
        return TlsError(
            f"its certificate is not for {upstream.host}",
            f"use the host name in the certificate; {_INSECURE_HINT}",
        )
    if code in (_EXPIRED, _NOT_YET):
        return TlsError(f"its certificate {'has expired' if code == _EXPIRED else 'is not valid yet'}", _INSECURE_HINT)
    if code in _UNTRUSTED:
        kind = "is self-signed" if code == _UNTRUSTED[0] else "is issued by a CA that is not trusted on this machine"
        return TlsError(f"its certificate {kind}", f"to trust a CA: --upstream-ca FILE; {_INSECURE_HINT}")
    return TlsError(f"its certificate is not valid: {error.verify_message.lower()}", _INSECURE_HINT)
