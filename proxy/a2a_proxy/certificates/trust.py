"""The environment variables with which programs trust the authority, in addition to the certificates trusted before."""

from __future__ import annotations

import hashlib
import pkgutil
import ssl
from collections.abc import Mapping
from pathlib import Path

from a2a_proxy.certificates.store import write_public_file

BUNDLE_VARIABLES = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "DENO_CERT",
)
"""Variables with a file of all authorities that a program trusts."""
ADDED_VARIABLE = "NODE_EXTRA_CA_CERTS"
"""The variable with a file of authorities that Node.js trusts in addition to its own."""

_SYSTEM_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")


def make_trust_variables(certificate: bytes, environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Write files of authorities into `folder`, and return the variables that name them.

    A file holds the authorities that `environment` named for the variable, or else the system's, and `certificate`
    (PEM). Raises OSError: the folder, or a file that the environment names, cannot be used.
    """
    variables = {}
    for name in (*BUNDLE_VARIABLES, ADDED_VARIABLE):
        if environment.get(name):
            trusted = Path(environment[name]).read_bytes()
        else:
            trusted = b"" if name == ADDED_VARIABLE else _system_authorities()
        variables[name] = str(_write_bundle(folder, trusted, certificate))
    return variables


def _write_bundle(folder: Path, trusted: bytes, certificate: bytes) -> Path:
    """Write the file under the name of its content, so that programs which run keep theirs."""
    if certificate not in trusted:
        trusted = trusted.rstrip(b"\n") + b"\n" + certificate if trusted else certificate
    path = folder / f"trust-{hashlib.sha256(trusted).hexdigest()[:16]}.pem"
    if not path.exists():
        write_public_file(path, trusted)
    return path


def _system_authorities() -> bytes:
    """Return the authorities that OpenSSL trusts on this machine, else those that gRPC brings along."""
    for candidate in (ssl.get_default_verify_paths().openssl_cafile, *_SYSTEM_BUNDLES):
        try:
            return Path(candidate).read_bytes()
        except OSError:
            continue
    return pkgutil.get_data("grpc", "_cython/_credentials/roots.pem") or b""
