"""Row groups of a Parquet file in the archive: only what is read of it is fetched, and what comes is checked."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from a2a_proxy.archive.errors import GoneError
from a2a_proxy.archive.files import cut_in
from a2a_proxy.archive.manifest import Manifest, foreign
from a2a_proxy.archive.schema import FACTS_SCHEMA, FRAMES_SCHEMA
from a2a_proxy.archive.store import ArchiveStore

END = 64 << 10
"""Octets of a file's end that are read at first: its footer is seldom larger."""
_KEPT = 64
"""Ends that are kept."""


class ParquetFiles:
    """Reads files of one archive; their ends are kept for a while. What is gone has no rows."""

    def __init__(self, place: ArchiveStore) -> None:
        self._place = place
        self._ends: dict[str, bytes] = {}
        self.gone: set[str] = set()
        """Keys of those that were wanted and are not there: a rule of the bucket removes them one by one."""

    def read(self, manifest: Manifest, table: str, groups: list[int], columns: list[str] | None = None) -> pa.Table:
        """Some row groups of a file. Raises ArchiveError where it is not the one of the manifest."""
        key, size = manifest.cut.key(table), manifest.file(table).octets
        try:
            if not groups or key in self.gone:
                return _nothing(table, columns)
            source = pa.PythonFile(_RangeFile(self._place, key, size, self._end(key, size)), mode="r")
            with pq.ParquetFile(source, pre_buffer=True, page_checksum_verification=True) as file:
                told = len(manifest.file(table).groups)
                if cut_in(file.schema_arrow, key) != manifest.cut or file.num_row_groups != told:
                    raise foreign(key)
                return file.read_row_groups(groups, columns)
        except GoneError:
            self.gone.add(key)
            return _nothing(table, columns)
        except (pa.ArrowException, OSError, KeyError) as wrong:
            raise foreign(key) from wrong

    def _end(self, key: str, size: int) -> bytes:
        if key not in self._ends:
            self._ends[key] = self._place.get_range(key, max(size - END, 0), size)
            if len(self._ends) > _KEPT:
                del self._ends[next(iter(self._ends))]
        return self._ends[key]


def _nothing(table: str, columns: list[str] | None) -> pa.Table:
    schema = FRAMES_SCHEMA if table == "frames" else FACTS_SCHEMA
    return schema.empty_table().select(columns or schema.names)


class _RangeFile(io.RawIOBase):
    """An object as a file of which only what is read is fetched."""

    def __init__(self, place: ArchiveStore, key: str, size: int, end: bytes) -> None:
        self._place = place
        self._key = key
        self._size = size
        self._at = 0
        self._end = end
        self._end_from = size - len(end)

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go there."""
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def size(self) -> int:
        """Octets of all of it."""
        return self._size

    def read(self, size: int | None = -1) -> bytes:
        """So many octets from here."""
        end = self._size if size is None or size < 0 else min(self._at + size, self._size)
        if self._at >= end:
            return b""
        start, self._at = self._at, end
        if start >= self._end_from:
            return self._end[start - self._end_from : end - self._end_from]
        return self._place.get_range(self._key, start, end)
