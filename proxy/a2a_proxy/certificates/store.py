"""The files of the authority: one with key and certificate, and one with the certificate alone, for
clients."""

import contextlib
import datetime
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from a2a_proxy.certificates.authority import Authority
from a2a_proxy.model.errors import UserError

AUTHORITY_FILE = "authority.pem"
"""Key and certificate, readable by the owner only."""
CERTIFICATE_FILE = "ca.pem"
"""The certificate alone."""
REPLACED_FILE = "replaced.pem"
"""The certificates of earlier authorities of the folder, which programs must not trust any more."""

_RENEW = "create a new authority: a2a-proxy ca renew"


class AuthorityError(UserError):
    """The authority cannot be used: one line with the problem, one with the action to take."""


def open_authority(folder: Path, now: datetime.datetime) -> Authority:
    """Return the authority of this folder, created on first use. If two processes create it, both
    get the first one's.

    Raises:
        AuthorityError: the key can be read by other users, or the file holds no authority that is
        valid now. OSError: the folder or a file cannot be read or written.
    """
    _close_folder(folder)
    path = folder / AUTHORITY_FILE
    if not path.exists():
        new = Authority.create(socket.gethostname(), now).encode()
        with _draft(folder, new) as draft, contextlib.suppress(FileExistsError):
            os.link(draft, path)
    authority = _load_authority(path)
    if not authority.is_valid(now):
        end = authority.certificate.not_valid_after_utc
        raise AuthorityError(
            f"the proxy's authority is valid only until {end:%Y-%m-%d}: {path}", _RENEW
        )
    _write_certificate(folder, authority)
    return authority


def renew_authority(folder: Path, now: datetime.datetime) -> Authority:
    """Replace the authority of this folder by a new one and return it. Raises OSError."""
    _close_folder(folder)
    authority = Authority.create(socket.gethostname(), now)
    with contextlib.suppress(FileNotFoundError):
        replaced = (folder / CERTIFICATE_FILE).read_bytes()
        write_public_file(folder / REPLACED_FILE, read_replaced(folder) + replaced)
    with _draft(folder, authority.encode()) as draft:
        os.replace(draft, folder / AUTHORITY_FILE)
    _write_certificate(folder, authority)
    return authority


def read_replaced(folder: Path) -> bytes:
    """Return the certificates of earlier authorities of this folder (PEM). Raises OSError."""
    path = folder / REPLACED_FILE
    return path.read_bytes() if path.exists() else b""


def write_public_file(path: Path, data: bytes) -> None:
    """Write a file that everybody may read, whole. Raises OSError."""
    with _draft(path.parent, data) as draft:
        os.chmod(draft, 0o644)
        os.replace(draft, path)


def _close_folder(folder: Path) -> None:
    """Let nobody but the owner into a folder that exists: who can write there can replace the
    authority."""
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        folder.chmod(0o700)


def _load_authority(path: Path) -> Authority:
    with path.open("rb") as file:
        if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
            raise AuthorityError(
                f"other users can read the key of the proxy's authority: {path}",
                f"if it was not read: chmod 600 {path}; else {_RENEW}",
            )
        pem = file.read()
    try:
        return Authority.parse(pem)
    except (ValueError, TypeError) as error:
        raise AuthorityError(f"{path} holds no authority: {error}", _RENEW) from None


def _write_certificate(folder: Path, authority: Authority) -> None:
    path = folder / CERTIFICATE_FILE
    if not path.exists() or path.read_bytes() != authority.certificate_pem:
        write_public_file(path, authority.certificate_pem)


@contextlib.contextmanager
def _draft(folder: Path, data: bytes) -> Iterator[str]:
    """Yield the name of a file with this content, which only its owner can read, and delete it if
    it is still there."""
    fd, name = tempfile.mkstemp(dir=folder)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        yield name
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
