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
from a2a_proxy.archive.storage_errors import fault, gone
from a2a_proxy.archive.url import absent, endpoint, parsed

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_PANIC = "PanicException"
"""What obstore raises where its Rust gives up: a port of 99999, or a line break in a key. No name leads to it."""
_RETRIES: Any = {"max_retries": 4, "retry_timeout": datetime.timedelta(seconds=30)}


class RequestCounts(msgspec.Struct):
    """Requests that were made."""

    gets: int = 0
    got: int = 0
    """Octets of them."""
    puts: int = 0
    put: int = 0
    lists: int = 0


class ArchiveStore:
    """One archive. Every method raises ArchiveError."""

    def __init__(self, url: str, tell: Callable[[str], None] | None = None) -> None:
        """`tell` is called with a line for each request."""
        self.url = url
        self.traffic = RequestCounts()
        self._tell = tell
        self._counting = threading.Lock()
        self._private = False
        with self._translated("open", ""):
            self._store = self._opened(url)

    def _opened(self, url: str) -> ObjectStore:
        target = parsed(url)
        if not target.bucket:
            self._private = True
            if not Path(target.path).is_dir():
                raise absent(url)
            return LocalStore(target.path)
        where = endpoint(os.environ)
        config: Any = {"endpoint": where} if where else {}
        options: Any = {"allow_http": where.startswith("http://"), "connect_timeout": "10s", "timeout": "60s"}
        prefix = target.path or None
        return S3Store(target.bucket, prefix=prefix, config=config, client_options=options, retry_config=_RETRIES)

    def put_once(self, key: str, data: bytes) -> bytes:
        """Put an object where none is; what is there then: `data`, or what somebody put before."""
        with self._translated("put", key):
            try:
                with self._own_only():
                    obstore.put(self._store, key, data, mode="create", use_multipart=False)
            except exceptions.AlreadyExistsError:
                return self.get(key)
        self._count(f"put {key}: {len(data):,} octets", puts=1, put=len(data))
        return data

    def get(self, key: str) -> bytes:
        """A whole object."""
        with self._translated("get", key):
            data = bytes(obstore.get(self._store, key).bytes())
        return self._got(key, data, "")

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """The octets of an object from `start` to before `end`."""
        with self._translated("get", key):
            data = bytes(obstore.get_range(self._store, key, start=start, end=end))
        return self._got(key, data, f" {start}-{end}")

    def folders(self, prefix: str) -> list[str]:
        """The names right below `prefix` that hold others, in order."""
        with self._translated("list", prefix):
            found = obstore.list_with_delimiter(self._store, prefix)["common_prefixes"]
        self._count(f"list {prefix}", lists=1)
        return sorted(each.rstrip("/").rpartition("/")[2] for each in found)

    def keys(self, prefix: str) -> list[str]:
        """The keys of all objects below `prefix`, in order."""
        with self._translated("list", prefix):
            found = [each["path"] for page in obstore.list(self._store, prefix) for each in page]
        self._count(f"list {prefix}", lists=1)
        return sorted(found)

    def _got(self, key: str, data: bytes, part: str) -> bytes:
        self._count(f"get {key}{part}: {len(data):,} octets", gets=1, got=len(data))
        return data

    def _count(self, line: str, **counts: int) -> None:
        with self._counting:
            for name, count in counts.items():
                setattr(self.traffic, name, getattr(self.traffic, name) + count)
            if self._tell is not None:
                self._tell(line)

    @contextlib.contextmanager
    def _own_only(self) -> Iterator[None]:
        """Files and folders that are made are the owner's alone, as recordings are."""
        before = os.umask(0o077) if self._private else None
        try:
            yield
        finally:
            if before is not None:
                os.umask(before)

    @contextlib.contextmanager
    def _translated(self, doing: str, key: str) -> Iterator[None]:
        try:
            yield
        except ArchiveError:
            raise
        except FileNotFoundError as wrong:  # obstore raises Python's own for what is not there
            raise gone(self.url, key, wrong) from wrong
        except (exceptions.BaseError, OSError, ValueError) as wrong:
            raise fault(self.url, f"{doing} {key}", wrong) from wrong
        except BaseException as wrong:
            if type(wrong).__name__ != _PANIC:
                raise
            raise fault(self.url, f"{doing} {key}", wrong) from wrong
