"""The options for TLS toward clients and for the certificate toward upstreams."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from a2a_proxy.cli.authority import load_authority, require_cryptography
from a2a_proxy.model.errors import UserError
from a2a_proxy.relay.tls import CertificateFiles, load_authorities, load_certificate, log_keys

if TYPE_CHECKING:
    from a2a_proxy.relay.client_tls import ClientTls
    from a2a_proxy.relay.host_patterns import InterceptPolicy
    from a2a_proxy.relay.tunnel import Interception

_CERTIFICATE_HINT = (
    "the client must trust the authority of --tls-cert, and ask for a name in that certificate"
)


class ClientTlsOptions(msgspec.Struct, frozen=True):
    """`--tls` and the options that belong to it."""

    own: CertificateFiles | None = None
    """The certificate to present instead of those of the proxy's authority."""
    client_ca: Path | None = None
    """File of the authorities of clients' certificates, which clients must present; None if they
    need none."""


def parse_client_tls(
    *, tls: bool, certificate: Path | None, key: Path | None, client_ca: Path | None
) -> ClientTlsOptions | None:
    """Return the options for TLS toward clients, or None without `--tls`. Raises UserError."""
    files = parse_certificate("--tls", certificate, key)
    if tls:
        require_cryptography("--tls")
        return ClientTlsOptions(files, client_ca)
    if files is not None or client_ca is not None:
        option = "--tls-cert" if files is not None else "--client-ca"
        raise UserError(f"{option} has no effect without --tls", "add --tls, or leave it out")
    return None


def parse_certificate(
    option: str, certificate: Path | None, key: Path | None
) -> CertificateFiles | None:
    """Return the files of the options `OPTION-cert` and `OPTION-key`, or None without them. Raises
    UserError."""
    if certificate is not None:
        files = CertificateFiles(certificate, key, option)
        load_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), files)
        return files
    if key is not None:
        raise UserError(
            f"{option}-key without {option}-cert",
            f"name the certificate of the key: {option}-cert FILE",
        )
    return None


def make_client_tls(options: ClientTlsOptions) -> ClientTls:
    """Return the acceptor of clients with TLS; the authority is created on first use. Raises
    UserError."""
    authority = load_authority("--tls") if options.own is None else None
    from a2a_proxy.certificates.contexts import FileContexts, IssuedContexts
    from a2a_proxy.relay.client_tls import ClientTls

    def prepare(context: ssl.SSLContext) -> None:
        log_keys(context)
        if options.client_ca is not None:
            load_authorities(context, options.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED

    prepare(
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    )  # a mistake must end the start, not the first connection
    required = options.client_ca is not None
    if authority is not None:
        return ClientTls(IssuedContexts(authority, prepare), required=required)
    assert options.own is not None
    return ClientTls(FileContexts(options.own, prepare), _CERTIFICATE_HINT, required=required)


def make_interception(policy: InterceptPolicy) -> Interception:
    """Return what a forward proxy opens, with the authority, which is created on first use. Raises
    UserError."""
    authority = load_authority("--intercept")
    from a2a_proxy.certificates.contexts import IssuedContexts
    from a2a_proxy.relay.client_tls import ClientTls
    from a2a_proxy.relay.tunnel import Interception

    log_keys(
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    )  # a mistake must end the start, not the first connection
    return Interception(policy, ClientTls(IssuedContexts(authority, log_keys)))
