"""TLS toward upstreams: the protocols offered, the certificates trusted, and error messages for
users."""

import asyncio
import datetime
import hashlib
import ipaddress
import os
import ssl
import sys
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path

import msgspec

from a2a_proxy.model.errors import UserError
from a2a_proxy.model.wire import CertificateFacts, TlsFacts
from a2a_proxy.relay.route import RouteError, Upstream

HTTP2, HTTP1 = "h2", "http/1.1"
MAX_CONTEXTS = 32
"""Contexts that are kept; clients of intercepted connections choose the protocols, of which there
may be many."""
MAX_NAMES, MAX_NAME = 16, 256
"""Names of a certificate that are recorded, and their characters; a peer may present thousands."""

_PROTOCOL_NAMES = {HTTP2: "HTTP/2", HTTP1: "HTTP/1.1"}
_WRONG_HOST, _EXPIRED, _NOT_YET = (62, 64), 10, 9
_UNTRUSTED = (18, 19, 20, 21)
CLIENT_CERTIFICATE_HINT = (
    "if it asks for a client certificate: --upstream-cert FILE --upstream-key FILE"
)
INSECURE_HINT = "to connect without verification: --upstream-insecure"
PASS_HINT = "to leave it unread: --pass "


class CertificateFiles(msgspec.Struct, frozen=True):
    """A certificate that the proxy presents."""

    certificate: Path
    """File of the certificate (PEM), and of the certificates between it and its authority."""
    key: Path | None = None
    """File of the private key; None if it is in the same file."""
    option: str = "--upstream"
    """The beginning of the options that name the files: `--upstream-cert`, `--upstream-key`."""


class Trust(msgspec.Struct, frozen=True):
    """Certificates of upstreams that are trusted, and the proxy's own for them."""

    ca: Path | None = None
    """File of CA certificates (PEM) to trust in addition to the system's."""
    insecure: bool = False
    """Whether any certificate is accepted."""
    own: CertificateFiles | None = None
    """The certificate for upstreams that ask for one."""
    of_clients: tuple[Path, ...] = ()
    """Files and folders of CA certificates that clients trust, and the proxy for them. Unreadable
    ones are left out."""


class TlsError(UserError):
    """A failed TLS connection: one line with the reason, one with the action to take (may be
    empty)."""


class Tls:
    """The TLS contexts of one relay toward upstreams, each created once."""

    def __init__(self, trust: Trust) -> None:
        self._trust = trust
        self._contexts: OrderedDict[tuple[str, ...], ssl.SSLContext] = OrderedDict()

    async def get_context(self, protocols: tuple[str, ...]) -> ssl.SSLContext:
        """Return the context that offers exactly these protocols. It is created in a thread,
        because reading the trusted certificates takes many milliseconds. Raises RouteError if the
        CA file cannot be read."""
        context = self._contexts.get(protocols)
        if context is None:
            context = await asyncio.get_running_loop().run_in_executor(
                None, self._make_context, protocols
            )
            self._contexts[protocols] = context
            if len(self._contexts) > MAX_CONTEXTS:
                self._contexts.popitem(last=False)
        self._contexts.move_to_end(protocols)
        return context

    def prepare_contexts(self) -> None:
        """Create the contexts for one protocol now. Raises RouteError if the CA file cannot be
        read."""
        for protocol in _PROTOCOL_NAMES:
            self._contexts[protocol,] = self._make_context((protocol,))

    def _make_context(self, protocols: tuple[str, ...]) -> ssl.SSLContext:
        context = create_client_context()
        if self._trust.ca is not None:
            load_authorities(context, self._trust.ca)
        for path in self._trust.of_clients:
            with suppress(OSError):  # ssl.SSLError too: the file has no certificate
                is_folder = path.is_dir()
                context.load_verify_locations(
                    None if is_folder else path, path if is_folder else None
                )
        if self._trust.own is not None:
            load_certificate(context, self._trust.own)
        if self._trust.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(list(protocols))
        return context


def create_client_context() -> ssl.SSLContext:
    """Return a context that verifies servers, with the names of their certificates that RFC 9525
    permits: those of subjectAltName, and no common name. All connections to servers over TLS use
    one.

    Raises RouteError if the file of `SSLKEYLOGFILE`, to which Python writes the keys, cannot be
    written.
    """
    try:
        context = ssl.create_default_context()
    except OSError as error:
        raise _key_log_error(error) from None
    context.hostname_checks_common_name = False
    return context


def log_keys(context: ssl.SSLContext) -> None:
    """Write the keys of the context's connections to the file of `SSLKEYLOGFILE`, as client
    contexts of Python do.

    Raises RouteError if it cannot be written.
    """
    if path := key_log_file():
        try:
            context.keylog_filename = path
        except OSError as error:
            raise _key_log_error(error) from None


def key_log_file() -> str:
    """Return the file to which the keys of TLS connections are written; empty if there is none."""
    return "" if sys.flags.ignore_environment else os.environ.get("SSLKEYLOGFILE", "")


def _key_log_error(error: OSError) -> RouteError:
    why = (error.strerror or str(error)).lower()
    return RouteError(
        f"SSLKEYLOGFILE={key_log_file()} cannot be written: {why}",
        "without it: unset SSLKEYLOGFILE",
    )


def load_authorities(context: ssl.SSLContext, file: Path) -> None:
    """Trust the CA certificates of a file. Raises RouteError if it cannot be read."""
    try:
        context.load_verify_locations(file)
    except OSError as error:
        why = (
            "it holds none"
            if isinstance(error, ssl.SSLError)
            else (error.strerror or str(error)).lower()
        )
        raise RouteError(
            f"cannot read CA certificates from {file}: {why}",
            "the file must hold certificates in PEM format",
        ) from None


def load_certificate(context: ssl.SSLContext, files: CertificateFiles) -> None:
    """Present the certificate. Raises RouteError if the files cannot be read or do not belong
    together."""
    certificate, key = files.certificate, files.key or files.certificate
    cert_option, key_option = f"{files.option}-cert", f"{files.option}-key"
    if b"-----BEGIN CERTIFICATE" not in _read_pem(certificate, cert_option):
        raise RouteError(
            f"{cert_option} {certificate} holds no certificate", "the file must be in PEM format"
        )
    key_text = _read_pem(key, key_option)
    if b"PRIVATE KEY-----" not in key_text:
        if files.key is None:
            raise RouteError(
                f"{cert_option} {certificate} holds no private key",
                f"name its file: {key_option} FILE",
            )
        raise RouteError(
            f"{key_option} {key} holds no private key", "the file must be in PEM format"
        )
    if b"ENCRYPTED" in key_text:
        raise RouteError(
            f"the private key in {key} is encrypted",
            f"decrypt it into another file: openssl pkey -in {key} -out FILE",
        )
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        if "MISMATCH" in (error.reason or ""):
            text = f"the private key in {key} does not belong to the certificate in {certificate}"
            raise RouteError(text, f"name the key of this certificate: {key_option} FILE") from None
        raise RouteError(
            f"cannot use the certificate in {certificate} with the key in {key}: "
            f"{error.reason or error}".lower(),
            f"check them: openssl x509 -in {certificate}; openssl pkey -in {key}",
        ) from None


def _read_pem(file: Path, option: str) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise RouteError(
            f"cannot read {option} {file}: {(error.strerror or str(error)).lower()}",
            "check the name and its permissions",
        ) from None


def describe_handshake(
    connection: ssl.SSLObject, server_name: str, certificate: CertificateFacts | None = None
) -> TlsFacts:
    """Return the facts of a completed handshake. `certificate` is the proxy's, if the proxy is the
    server."""
    cipher, peer = connection.cipher(), _describe_peer(connection)
    return TlsFacts(
        connection.version() or "",
        cipher[0] if cipher else "",
        connection.selected_alpn_protocol() or "",
        server_name,
        peer if certificate is None else certificate,
        None if certificate is None else peer,
    )


def describe_upstream(connection: ssl.SSLObject, host: str) -> TlsFacts:
    """Return the facts of a completed handshake with the upstream `host`. An address is not sent as
    a server name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return describe_handshake(connection, host)
    return describe_handshake(connection, "")


def _describe_peer(connection: ssl.SSLObject) -> CertificateFacts | None:
    data = connection.getpeercert(binary_form=True)
    if data is None:
        return None
    verified = connection.getpeercert() or {}  # empty without verification
    names = [str(pair[1])[:MAX_NAME] for pair in verified.get("subjectAltName", ())[:MAX_NAMES]]
    end = verified.get("notAfter")
    return CertificateFacts(
        hashlib.sha256(data).hexdigest(),
        tuple(names),
        format_time(ssl.cert_time_to_seconds(end)) if isinstance(end, str) else "",
        verified=bool(verified),
    )


def format_time(seconds: float) -> str:
    """Return the time as certificates are described with it: `2028-11-21T16:39:17Z`."""
    return f"{datetime.datetime.fromtimestamp(seconds, datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"


def check_agreement(connection: ssl.SSLObject, protocols: tuple[str, ...]) -> None:
    """Raise TlsError if the upstream has chosen none of the protocols that were offered to it."""
    agreed = connection.selected_alpn_protocol()
    if agreed not in protocols and (agreed is not None or (protocols and HTTP1 not in protocols)):
        raise protocol_mismatch(protocols)


def protocol_mismatch(protocols: tuple[str, ...]) -> TlsError:
    """Return the error of an upstream that does not speak the client's protocol over TLS."""
    hint = (
        "if the agent has another port for gRPC, name it with --upstream-grpc"
        if protocols == (HTTP2,)
        else ""
    )
    names = " or ".join(_PROTOCOL_NAMES.get(each, each) for each in protocols)
    return TlsError(
        f"over TLS it does not speak {names} (ALPN {', '.join(protocols)}), as the client does",
        hint,
    )


def explain_handshake_error(
    error: ssl.SSLError, upstream: Upstream, protocols: tuple[str, ...]
) -> TlsError:
    """Return the error that explains a failed handshake."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _explain_certificate_error(error, upstream)
    reason = (error.reason or str(error)).replace("_", " ").lower()
    if "no application protocol" in reason:
        return protocol_mismatch(protocols)
    if (
        "wrong version number" in reason
        or "record layer failure" in reason
        or "http request" in reason
    ):
        return TlsError(
            "it does not speak TLS on this port",
            f"if it speaks plain HTTP: --upstream http://{upstream.address}",
        )
    if any(
        each in reason
        for each in ("handshake failure", "certificate", "unknown ca", "access denied")
    ):
        return TlsError(f"the TLS handshake failed: {reason}", CLIENT_CERTIFICATE_HINT)
    return TlsError(f"the TLS handshake failed: {reason}")


def _explain_certificate_error(error: ssl.SSLCertVerificationError, upstream: Upstream) -> TlsError:
    code = error.verify_code
    if code in _WRONG_HOST:
        return TlsError(
            f"its certificate is not for {upstream.host}",
            f"use a host name of its subjectAltName, where a common name does not count; "
            f"{INSECURE_HINT}",
        )
    if code in (_EXPIRED, _NOT_YET):
        return TlsError(
            f"its certificate {'has expired' if code == _EXPIRED else 'is not valid yet'}",
            INSECURE_HINT,
        )
    if code in _UNTRUSTED:
        kind = (
            "is self-signed"
            if code == _UNTRUSTED[0]
            else "is issued by a CA that is not trusted on this machine"
        )
        return TlsError(
            f"its certificate {kind}", f"to trust a CA: --upstream-ca FILE; {INSECURE_HINT}"
        )
    return TlsError(f"its certificate is not valid: {error.verify_message.lower()}", INSECURE_HINT)
