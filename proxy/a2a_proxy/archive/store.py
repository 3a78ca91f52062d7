"""Object storage or a folder, by its URL. Stored objects are never replaced, and every request is
counted.

Several threads may use one store.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import obstore
from obstore import exceptions
from obstore.store import LocalStore, S3Store

from a2a_proxy.archive.destination import absent_archive_error, parse_archive_url, s3_endpoint
from a2a_proxy.archive.errors import ArchiveError, GoneError

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_PANIC_NAME = "PanicException"
"""Name of the exception that obstore raises when its Rust code panics: a port of 99999, or a line
break in a key. It cannot be imported.
"""
_RETRIES: Any = {"max_retries": 4, "retry_timeout": datetime.timedelta(seconds=30)}
_STATUS_PATTERN = re.compile(
    r"status code: (\d{3})(?:(?! Debug source).)*?(?:<Code>(\w+)</Code>| Debug source|$)"
)
_SYSTEM_PATTERN = re.compile(r'message: "([^"]+)"')
_NO_CREDENTIALS = ("redential", "api/token", "169.254.")
"""Parts of an error message if no credentials were given: obstore then queries the metadata
addresses of cloud machines.
"""
_REFUSED_ERRORS = (
    exceptions.UnauthenticatedError,
    exceptions.PermissionDeniedError,
    PermissionError,
)
_CREDENTIALS_HINT = (
    "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and their permissions; for a folder, its file "
    "permissions"
)
_MAX_MESSAGE = 200
"""Number of characters of a library's error that are shown."""


class RequestCounts(msgspec.Struct):
    """Number and size of the requests of a store."""

    gets: int = 0
    got: int = 0
    """Bytes received."""
    puts: int = 0
    put: int = 0
    lists: int = 0


class ArchiveStore:
    """One archive. Every method raises ArchiveError."""

    def __init__(self, url: str, log_request: Callable[[str], None] | None = None) -> None:
        """`log_request` is called with one line for each request."""
        self.url = url
        self.traffic = RequestCounts()
        self._log_request = log_request
        self._count_lock = threading.Lock()
        self._umask_lock = False
        with self._translate_errors("open", ""):
            self._store = self._open_store(url)

    def _open_store(self, url: str) -> ObjectStore:
        target = parse_archive_url(url)
        if not target.bucket:
            self._umask_lock = True
            if not Path(target.path).is_dir():
                raise absent_archive_error(url)
            return LocalStore(target.path)
        where = s3_endpoint(os.environ)
        config: Any = {"endpoint": where} if where else {}
        options: Any = {
            "allow_http": where.startswith("http://"),
            "connect_timeout": "10s",
            "timeout": "60s",
        }
        prefix = target.path or None
        return S3Store(
            target.bucket,
            prefix=prefix,
            config=config,
            client_options=options,
            retry_config=_RETRIES,
        )

    def put_once(self, key: str, data: bytes) -> bytes:
        """Store an object unless it exists, and return the stored bytes: `data`, or those of an
        earlier writer."""
        with self._translate_errors("put", key):
            try:
                with self._private_files():
                    obstore.put(self._store, key, data, mode="create", use_multipart=False)
            except exceptions.AlreadyExistsError:
                return self.read_object(key)
        self._count_request(f"put {key}: {len(data):,} bytes", puts=1, put=len(data))
        return data

    def read_object(self, key: str) -> bytes:
        """Return a whole object."""
        with self._translate_errors("get", key):
            data = bytes(obstore.get(self._store, key).bytes())
        return self._count_download(key, data, "")

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """Return the bytes of an object from `start` up to, not including, `end`."""
        with self._translate_errors("get", key):
            data = bytes(obstore.get_range(self._store, key, start=start, end=end))
        return self._count_download(key, data, f" {start}-{end}")

    def list_folders(self, prefix: str) -> list[str]:
        """Return the names directly below `prefix` that have objects below them, sorted."""
        with self._translate_errors("list", prefix):
            found = obstore.list_with_delimiter(self._store, prefix)["common_prefixes"]
        self._count_request(f"list {prefix}", lists=1)
        return sorted(each.rstrip("/").rpartition("/")[2] for each in found)

    def list_keys(self, prefix: str) -> list[str]:
        """Return the keys of all objects below `prefix`, sorted."""
        with self._translate_errors("list", prefix):
            found = [each["path"] for page in obstore.list(self._store, prefix) for each in page]
        self._count_request(f"list {prefix}", lists=1)
        return sorted(found)

    def _count_download(self, key: str, data: bytes, part: str) -> bytes:
        self._count_request(f"get {key}{part}: {len(data):,} bytes", gets=1, got=len(data))
        return data

    def _count_request(self, line: str, **counts: int) -> None:
        with self._count_lock:
            for name, count in counts.items():
                setattr(self.traffic, name, getattr(self.traffic, name) + count)
            if self._log_request is not None:
                self._log_request(line)

    @contextlib.contextmanager
    def _private_files(self) -> Iterator[None]:
        """Create files and folders for the owner only, as recordings are."""
        before = os.umask(0o077) if self._umask_lock else None
        try:
            yield
        finally:
            if before is not None:
                os.umask(before)

    @contextlib.contextmanager
    def _translate_errors(self, doing: str, key: str) -> Iterator[None]:
        try:
            yield
        except ArchiveError:
            raise
        except (
            FileNotFoundError
        ) as wrong:  # obstore raises Python's own exception for a missing object
            raise _gone_error(self.url, key, wrong) from wrong
        except (exceptions.BaseError, OSError, ValueError) as wrong:
            raise _storage_error(self.url, f"{doing} {key}", wrong) from wrong
        except BaseException as wrong:
            if type(wrong).__name__ != _PANIC_NAME:
                raise
            raise _storage_error(self.url, f"{doing} {key}", wrong) from wrong


def _gone_error(url: str, key: str, error: Exception) -> ArchiveError:
    """Return the error for an object that does not exist."""
    if "NoSuchBucket" in str(error) or not key:
        return absent_archive_error(url)
    return GoneError(
        f"{url} has no {key}", "it was deleted, by hand or by a lifecycle rule of the bucket"
    )


def _storage_error(url: str, doing: str, error: BaseException) -> ArchiveError:
    """Return the error for a failed action. `doing` names the action: `list manifests`."""
    message = " ".join(str(error).split())
    if "NoSuchBucket" in message:
        return absent_archive_error(url)
    if any(word in message for word in _NO_CREDENTIALS):
        return ArchiveError(
            f"{url}: access is refused: no credentials were found", _CREDENTIALS_HINT
        )
    answered = _STATUS_PATTERN.search(message)
    status, code = answered.groups() if answered else ("", "")
    if isinstance(error, _REFUSED_ERRORS) or status in ("401", "403"):
        return ArchiveError(
            f"{url}: access is refused{f' ({code})' if code else ''}: {doing}", _CREDENTIALS_HINT
        )
    folder = url.startswith("file:")
    hint = (
        "check the folder and the free space on its disk"
        if folder
        else "check the URL and AWS_ENDPOINT_URL"
    )
    if status:
        return ArchiveError(
            f"{url} cannot be used: it answers {status}{f' ({code})' if code else ''}", hint
        )
    if "HTTP error" in message:
        system = _SYSTEM_PATTERN.search(message)
        return ArchiveError(f"{url} cannot be reached{f': {system[1]}' if system else ''}", hint)
    return ArchiveError(
        f"{url} cannot be used ({doing}): {message.partition(' Debug source')[0][:_MAX_MESSAGE]}",
        hint,
    )
