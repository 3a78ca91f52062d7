"""Row groups of a Parquet file in the archive: only the needed byte ranges are fetched, and they are checked."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from a2a_proxy.archive.errors import GoneError
from a2a_proxy.archive.files import range_of_schema
from a2a_proxy.archive.manifest import Manifest, foreign_object_error
from a2a_proxy.archive.schema import FACTS_SCHEMA, FRAMES_SCHEMA
from a2a_proxy.archive.store import ArchiveStore

FOOTER_BYTES = 64 << 10
"""Bytes at the end of a file that are fetched first: the footer is seldom larger."""
_MAX_FOOTERS = 64
"""Number of file ends that are cached."""


class ParquetFiles:
    """Reads the files of one archive and caches their ends. A missing file reads as having no rows."""

    def __init__(self, store: ArchiveStore) -> None:
        self._store = store
        self._footers: dict[str, bytes] = {}
        self.gone: set[str] = set()
        """Keys of requested files that do not exist: a lifecycle rule of the bucket deletes files one by one."""

    def read(self, manifest: Manifest, table: str, groups: list[int], columns: list[str] | None = None) -> pa.Table:
        """Read some row groups of a file. Raises ArchiveError if the file does not match the manifest."""
        key, size = manifest.cut.object_key(table), manifest.stored_file(table).byte_count
        try:
            if not groups or key in self.gone:
                return _empty_table(table, columns)
            source = pa.PythonFile(_RangeFile(self._store, key, size, self._read_footer(key, size)), mode="r")
            with pq.ParquetFile(source, pre_buffer=True, page_checksum_verification=True) as file:
                told = len(manifest.stored_file(table).groups)
                if range_of_schema(file.schema_arrow, key) != manifest.cut or file.num_row_groups != told:
                    raise foreign_object_error(key)
                return file.read_row_groups(groups, columns)
        except GoneError:
            self.gone.add(key)
            return _empty_table(table, columns)
        except (pa.ArrowException, OSError, KeyError) as wrong:
            raise foreign_object_error(key) from wrong

    def _read_footer(self, key: str, size: int) -> bytes:
        if key not in self._footers:
            self._footers[key] = self._store.get_range(key, max(size - FOOTER_BYTES, 0), size)
            if len(self._footers) > _MAX_FOOTERS:
                del self._footers[next(iter(self._footers))]
        return self._footers[key]


def _empty_table(table: str, columns: list[str] | None) -> pa.Table:
    schema = FRAMES_SCHEMA if table == "frames" else FACTS_SCHEMA
    return schema.empty_table().select(columns or schema.names)


class _RangeFile(io.RawIOBase):
    """An object as a seekable file that fetches only the byte ranges that are read."""

    def __init__(self, store: ArchiveStore, key: str, size: int, footer: bytes) -> None:
        self._store = store
        self._key = key
        self._size = size
        self._position = 0
        self._footer = footer
        self._footer_start = size - len(footer)

    def readable(self) -> bool:
        """True: the object can be read."""
        return True

    def seekable(self) -> bool:
        """True: every read names its byte range."""
        return True

    def tell(self) -> int:
        """Return the byte offset of the next read."""
        return self._position

    def seek(self, offset: int, whence: int = 0) -> int:
        """Set the byte offset of the next read."""
        self._position = offset + (0, self._position, self._size)[whence]
        return self._position

    def size(self) -> int:
        """Return the size of the object in bytes."""
        return self._size

    def read(self, size: int | None = -1) -> bytes:
        """Read up to `size` bytes from the current offset; all remaining bytes if `size` is None or negative."""
        end = self._size if size is None or size < 0 else min(self._position + size, self._size)
        if self._position >= end:
            return b""
        start, self._position = self._position, end
        if start >= self._footer_start:
            return self._footer[start - self._footer_start : end - self._footer_start]
        return self._store.get_range(self._key, start, end)
