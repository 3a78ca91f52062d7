"""Object storage or a folder by its URL: what is put there is never replaced, and every request is counted.

Several threads may use one place.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import obstore
from obstore import exceptions
from obstore.store import LocalStore, S3Store

from a2a_proxy.archive.errors import ArchiveError
from a2a_proxy.archive.storage_errors import gone_error, storage_error
from a2a_proxy.archive.url import absent_archive_error, parse_archive_url, s3_endpoint

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_PANIC_NAME = "PanicException"
"""What obstore raises where its Rust gives up: a port of 99999, or a line break in a key. No name leads to it."""
_RETRIES: Any = {"max_retries": 4, "retry_timeout": datetime.timedelta(seconds=30)}


class RequestCounts(msgspec.Struct):
    """Requests that were made."""

    gets: int = 0
    got: int = 0
    """Bytes of them."""
    puts: int = 0
    put: int = 0
    lists: int = 0


class ArchiveStore:
    """One archive. Every method raises ArchiveError."""

    def __init__(self, url: str, log_request: Callable[[str], None] | None = None) -> None:
        """`tell` is called with a line for each request."""
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
        options: Any = {"allow_http": where.startswith("http://"), "connect_timeout": "10s", "timeout": "60s"}
        prefix = target.path or None
        return S3Store(target.bucket, prefix=prefix, config=config, client_options=options, retry_config=_RETRIES)

    def put_once(self, key: str, data: bytes) -> bytes:
        """Put an object where none is; what is there then: `data`, or what somebody put before."""
        with self._translate_errors("put", key):
            try:
                with self._private_files():
                    obstore.put(self._store, key, data, mode="create", use_multipart=False)
            except exceptions.AlreadyExistsError:
                return self.get(key)
        self._count_request(f"put {key}: {len(data):,} bytes", puts=1, put=len(data))
        return data

    def get(self, key: str) -> bytes:
        """A whole object."""
        with self._translate_errors("get", key):
            data = bytes(obstore.get(self._store, key).bytes())
        return self._count_download(key, data, "")

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """The bytes of an object from `start` to before `end`."""
        with self._translate_errors("get", key):
            data = bytes(obstore.get_range(self._store, key, start=start, end=end))
        return self._count_download(key, data, f" {start}-{end}")

    def folders(self, prefix: str) -> list[str]:
        """The names right below `prefix` that hold others, in order."""
        with self._translate_errors("list", prefix):
            found = obstore.list_with_delimiter(self._store, prefix)["common_prefixes"]
        self._count_request(f"list {prefix}", lists=1)
        return sorted(each.rstrip("/").rpartition("/")[2] for each in found)

    def keys(self, prefix: str) -> list[str]:
        """The keys of all objects below `prefix`, in order."""
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
        """Files and folders that are made are the owner's alone, as recordings are."""
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
        except FileNotFoundError as wrong:  # obstore raises Python's own for what is not there
            raise gone_error(self.url, key, wrong) from wrong
        except (exceptions.BaseError, OSError, ValueError) as wrong:
            raise storage_error(self.url, f"{doing} {key}", wrong) from wrong
        except BaseException as wrong:
            if type(wrong).__name__ != _PANIC_NAME:
                raise
            raise storage_error(self.url, f"{doing} {key}", wrong) from wrong
