"""Parquet files of a segment: their encoding, their description in the manifest, and their reading
by byte ranges."""

import hashlib
import io

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from a2a_proxy.archive.errors import GoneError
from a2a_proxy.archive.manifest import (
    Manifest,
    RowGroup,
    SegmentRange,
    StoredFile,
    bloom_filter,
    decode_range,
    encode_manifest,
    foreign_object_error,
)
from a2a_proxy.archive.rows import PARQUET_OPTIONS
from a2a_proxy.archive.schema import FACTS_SCHEMA, FRAMES_SCHEMA, ROW_GROUP_ROWS
from a2a_proxy.archive.store import ArchiveStore

_RANGE_KEY = b"a2a_proxy.cut"
_INDEXED_COLUMNS = {"task": "task_id", "context": "context_id", "trace": "trace_id"}
_FILTERED_COLUMNS = ("task_id", "context_id", "trace_id")
"""Columns that get Parquet's own bloom filters, for other readers."""
FOOTER_BYTES = 64 << 10
"""Bytes at the end of a file that are fetched first: the footer is seldom larger."""
_MAX_FOOTERS = 64
"""Number of file ends that are cached."""


def encode_file(table: pa.Table, segment_range: SegmentRange, order: str) -> bytes:
    """Return a table as a Parquet file, sorted by task, then by the column `order`."""
    table = table.sort_by([("task_id", "ascending"), (order, "ascending")])
    table = table.replace_schema_metadata(
        {**(table.schema.metadata or {}), _RANGE_KEY: encode_manifest(segment_range)}
    )
    stream = io.BytesIO()
    ndv = max(min(table.num_rows, ROW_GROUP_ROWS), 1)
    filters = {name: {"ndv": ndv, "fpp": 0.01} for name in _FILTERED_COLUMNS}
    with pq.ParquetWriter(
        stream, table.schema, bloom_filter_options=filters, **PARQUET_OPTIONS
    ) as writer:
        writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
    return stream.getvalue()


def range_of_file(data: bytes, key: str) -> SegmentRange:
    """Return the range that a file was written for. Raises ArchiveError if a2a-proxy did not write
    the file."""
    try:
        return _range_of_schema(pq.read_schema(io.BytesIO(data)), key)
    except (pa.ArrowException, OSError) as wrong:
        raise foreign_object_error(key) from wrong


def _range_of_schema(schema: pa.Schema, key: str) -> SegmentRange:
    """Return the range in the metadata of a file's schema. Raises ArchiveError if it has none."""
    return decode_range((schema.metadata or {}).get(_RANGE_KEY, b""), key)


def describe_file(data: bytes, key: str) -> StoredFile:
    """Return the manifest's entry of a file. Raises ArchiveError if a2a-proxy did not write the
    file."""
    try:
        file = pq.ParquetFile(io.BytesIO(data))
        wanted = [
            name
            for name in (*_INDEXED_COLUMNS.values(), "exchange", "kind", "number")
            if name in file.schema_arrow.names
        ]
        groups = tuple(
            _row_group(file.read_row_group(number, wanted)) for number in range(file.num_row_groups)
        )
        return StoredFile(
            len(data), hashlib.sha256(data).hexdigest(), file.metadata.num_rows, groups
        )
    except (pa.ArrowException, OSError, KeyError) as wrong:
        raise foreign_object_error(key) from wrong


def _row_group(table: pa.Table) -> RowGroup:
    index = {
        kind: bloom_filter(_distinct_values(table.column(name)))
        for kind, name in _INDEXED_COLUMNS.items()
    }
    calls = _distinct_values(table.column("exchange"))
    if "number" in table.column_names:
        numbers = table.filter(
            pc.equal(table.column("kind").cast(pa.string()), "connection")
        ).column("number")
        calls += [f"c{number}" for number in _distinct_values(numbers)]
    return RowGroup(table.num_rows, {**index, "call": bloom_filter(calls)})


def _distinct_values(column: pa.ChunkedArray) -> list[str]:
    return [str(value) for value in pc.unique(column).to_pylist() if value is not None]


def distinct_in_file(data: bytes, name: str) -> list[str]:
    """Return the distinct values of a column of a file, sorted."""
    return sorted(_distinct_values(pq.read_table(io.BytesIO(data), columns=[name]).column(name)))


def agents_with_card(data: bytes) -> list[str]:
    """Return the agents that have a card in a file of frames."""
    table = pq.read_table(
        io.BytesIO(data), columns=["agent", "event"], filters=[("event", "=", "card")]
    )
    return sorted(_distinct_values(table.column("agent")))


class ParquetFiles:
    """Reads the files of one archive and caches their ends. A missing file reads as having no
    rows."""

    def __init__(self, store: ArchiveStore) -> None:
        self._store = store
        self._footers: dict[str, bytes] = {}
        self.gone: set[str] = set()
        """Keys of requested files that do not exist: a lifecycle rule of the bucket deletes files
        one by one."""

    def read(
        self, manifest: Manifest, table: str, groups: list[int], columns: list[str] | None = None
    ) -> pa.Table:
        """Read some row groups of a file. Raises ArchiveError if the file does not match the
        manifest."""
        key, size = manifest.cut.object_key(table), manifest.stored_file(table).byte_count
        try:
            if not groups or key in self.gone:
                return _empty_table(table, columns)
            if key not in self._footers:
                self._footers[key] = self._store.get_range(key, max(size - FOOTER_BYTES, 0), size)
                if len(self._footers) > _MAX_FOOTERS:
                    del self._footers[next(iter(self._footers))]
            source = pa.PythonFile(_RangeFile(self._store, key, size, self._footers[key]), mode="r")
            with pq.ParquetFile(source, pre_buffer=True, page_checksum_verification=True) as file:
                group_count = len(manifest.stored_file(table).groups)
                if (
                    _range_of_schema(file.schema_arrow, key) != manifest.cut
                    or file.num_row_groups != group_count
                ):
                    raise foreign_object_error(key)
                return file.read_row_groups(groups, columns)
        except GoneError:
            self.gone.add(key)
            return _empty_table(table, columns)
        except (pa.ArrowException, OSError, KeyError) as wrong:
            raise foreign_object_error(key) from wrong


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

    def get_size(self) -> int:
        """Return the size of the object in bytes."""
        return self._size

    def read(self, size: int | None = -1) -> bytes:
        """Read up to `size` bytes from the current offset; all remaining bytes if `size` is None or
        negative."""
        end = self._size if size is None or size < 0 else min(self._position + size, self._size)
        if self._position >= end:
            return b""
        start, self._position = self._position, end
        if start >= self._footer_start:
            return self._footer[start - self._footer_start : end - self._footer_start]
        return self._store.get_range(self._key, start, end)
