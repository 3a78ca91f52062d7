"""The environment variables with which programs trust the authority, in addition to the
certificates trusted before."""

import contextlib
import hashlib
import pkgutil
import re
import ssl
from collections.abc import Mapping
from pathlib import Path

from a2a_proxy.certificates.store import read_replaced, write_public_file

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

TRUSTSTORE_PASSWORD = "changeit"
"""The password of all truststores of Java, which protects public data."""
_PEM_BEGIN, _PEM_END = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
_PEM_BLOCK = re.compile(_PEM_BEGIN + rb"([A-Za-z0-9+/=\s]+)" + _PEM_END + rb"\n?")
_INDEX_NAME = re.compile(r"[0-9a-f]{8}\.[0-9]+")
"""The name of a certificate in a folder of OpenSSL: the hash of its subject, and a number."""
_SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
)


def make_trust_variables(
    certificate: bytes, environment: Mapping[str, str], folder: Path
) -> tuple[dict[str, str], dict[str, OSError]]:
    """Write files of authorities into `folder`, and return the variables that name them.

    A file holds the authorities that `environment` named for the variable, or else the system's,
    and `certificate` (PEM), without the earlier authorities of `folder` that it replaced. A
    variable may name a folder, whose files are read as OpenSSL reads them. The second result has
    the variables that name a path which cannot be read, with the reasons; the first result does not
    have them. Raises OSError: `folder` cannot be used.
    """
    variables, problems = {}, {}
    for name in (*BUNDLE_VARIABLES, ADDED_VARIABLE):
        if named := environment.get(name):
            try:
                trusted = _read_authorities(Path(named))
            except OSError as error:
                problems[name] = error
                continue
        else:
            trusted = b"" if name == ADDED_VARIABLE else _system_authorities()
        variables[name] = str(_write_bundle(folder, trusted, certificate))
    return variables, problems


def find_trusted_files(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the files and folders of authorities that `environment` names for programs."""
    names = (environment.get(name) for name in (*BUNDLE_VARIABLES, ADDED_VARIABLE))
    return tuple(dict.fromkeys(Path(name) for name in names if name))


def make_java_truststore(certificates: bytes, folder: Path) -> Path:
    """Write these certificates (PEM) into a truststore in `folder` that JVMs read with
    `TRUSTSTORE_PASSWORD`, and return its path.

    Raises OSError: the folder cannot be used. Raises ImportError: cryptography is older than 45.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
    from cryptography.hazmat.primitives.serialization.pkcs12 import (
        PKCS12Certificate,
        serialize_java_truststore,
    )

    path = folder / f"trust-{hashlib.sha256(certificates).hexdigest()[:16]}.p12"
    if not path.exists():
        found = []
        for number, text in enumerate(certificates.split(_PEM_END)[:-1]):
            with contextlib.suppress(
                ValueError
            ):  # some systems trust certificates that no TLS library reads
                certificate = x509.load_pem_x509_certificate(
                    text[text.find(_PEM_BEGIN) :] + _PEM_END
                )
                found.append(PKCS12Certificate(certificate, str(number).encode()))
        password = BestAvailableEncryption(TRUSTSTORE_PASSWORD.encode())
        write_public_file(path, serialize_java_truststore(found, password))
    return path


def _read_authorities(path: Path) -> bytes:
    """Return the certificates of a file, or of the files of a folder that have the names of its
    index (`c_rehash`). Raises OSError."""
    if not path.is_dir():
        return path.read_bytes()
    files = sorted(
        each.resolve()
        for each in path.iterdir()
        if _INDEX_NAME.fullmatch(each.name) and each.is_file()
    )
    blocks = dict.fromkeys(
        block[0].strip() for each in files for block in _PEM_BLOCK.finditer(each.read_bytes())
    )
    return b"".join(block + b"\n" for block in blocks)


def _write_bundle(folder: Path, trusted: bytes, certificate: bytes) -> Path:
    """Write the file under the name of its content, so that programs which run keep theirs."""
    trusted = _remove_authorities(trusted, read_replaced(folder))
    if certificate not in trusted:
        trusted = trusted.rstrip(b"\n") + b"\n" + certificate if trusted else certificate
    path = folder / f"trust-{hashlib.sha256(trusted).hexdigest()[:16]}.pem"
    if not path.exists():
        write_public_file(path, trusted)
    return path


def _remove_authorities(trusted: bytes, replaced: bytes) -> bytes:
    """Return `trusted` without these certificates: their authority was renewed, perhaps because
    others could read its key."""
    removed = [block[1].split() for block in _PEM_BLOCK.finditer(replaced)]
    for block in _PEM_BLOCK.finditer(trusted):
        if block[1].split() in removed:
            trusted = trusted.replace(block[0], b"")
    return trusted


def _system_authorities() -> bytes:
    """Return the authorities that OpenSSL trusts on this machine, else those that gRPC brings
    along."""
    for candidate in (ssl.get_default_verify_paths().openssl_cafile, *_SYSTEM_BUNDLES):
        try:
            return Path(candidate).read_bytes()
        except OSError:
            continue
    return pkgutil.get_data("grpc", "_cython/_credentials/roots.pem") or b""
