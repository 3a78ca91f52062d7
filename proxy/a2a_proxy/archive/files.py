"""Encoding and description of the Parquet files of a segment."""

from __future__ import annotations

import hashlib
import io

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from a2a_proxy.archive.bloom import bloom_filter
from a2a_proxy.archive.manifest import (
    RowGroup,
    SegmentRange,
    StoredFile,
    decode_range,
    encode_manifest,
    foreign_object_error,
)
from a2a_proxy.archive.rows import PARQUET_OPTIONS
from a2a_proxy.archive.schema import ROW_GROUP_ROWS

_RANGE_KEY = b"a2a_proxy.cut"
_INDEXED_COLUMNS = {"task": "task_id", "context": "context_id", "trace": "trace_id"}
_FILTERED_COLUMNS = ("task_id", "context_id", "trace_id")
"""Columns that get Parquet's own bloom filters, for other readers."""


def encode_file(table: pa.Table, segment_range: SegmentRange, order: str) -> bytes:
    """Return a table as a Parquet file, sorted by task, then by the column `order`."""
    table = table.sort_by([("task_id", "ascending"), (order, "ascending")])
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), _RANGE_KEY: encode_manifest(segment_range)})
    stream = io.BytesIO()
    ndv = max(min(table.num_rows, ROW_GROUP_ROWS), 1)
    filters = {name: {"ndv": ndv, "fpp": 0.01} for name in _FILTERED_COLUMNS}
    with pq.ParquetWriter(stream, table.schema, bloom_filter_options=filters, **PARQUET_OPTIONS) as writer:
        writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
    return stream.getvalue()


def range_of_file(data: bytes, key: str) -> SegmentRange:
    """Return the range that a file was written for. Raises ArchiveError if a2a-proxy did not write the file."""
    try:
        return range_of_schema(pq.read_schema(io.BytesIO(data)), key)
    except (pa.ArrowException, OSError) as wrong:
        raise foreign_object_error(key) from wrong


def range_of_schema(schema: pa.Schema, key: str) -> SegmentRange:
    """Return the range in the metadata of a file's schema. Raises ArchiveError if it has none."""
    return decode_range((schema.metadata or {}).get(_RANGE_KEY, b""), key)


def describe_file(data: bytes, key: str) -> StoredFile:
    """Return the manifest's entry of a file. Raises ArchiveError if a2a-proxy did not write the file."""
    try:
        file = pq.ParquetFile(io.BytesIO(data))
        wanted = [
            name
            for name in (*_INDEXED_COLUMNS.values(), "exchange", "kind", "number")
            if name in file.schema_arrow.names
        ]
        groups = tuple(_row_group(file.read_row_group(number, wanted)) for number in range(file.num_row_groups))
        return StoredFile(len(data), hashlib.sha256(data).hexdigest(), file.metadata.num_rows, groups)
    except (pa.ArrowException, OSError, KeyError) as wrong:
        raise foreign_object_error(key) from wrong


def _row_group(table: pa.Table) -> RowGroup:
    index = {kind: bloom_filter(_distinct_values(table.column(name))) for kind, name in _INDEXED_COLUMNS.items()}
    calls = _distinct_values(table.column("exchange"))
    if "number" in table.column_names:
        numbers = table.filter(pc.equal(table.column("kind").cast(pa.string()), "connection")).column("number")
        calls += [f"c{number}" for number in _distinct_values(numbers)]
    return RowGroup(table.num_rows, {**index, "call": bloom_filter(calls)})


def _distinct_values(column: pa.ChunkedArray) -> list[str]:
    return [str(value) for value in pc.unique(column).to_pylist() if value is not None]


def distinct_in_file(data: bytes, name: str) -> list[str]:
    """Return the distinct values of a column of a file, sorted."""
    return sorted(_distinct_values(pq.read_table(io.BytesIO(data), columns=[name]).column(name)))


def agents_with_card(data: bytes) -> list[str]:
    """Return the agents that have a card in a file of frames."""
    table = pq.read_table(io.BytesIO(data), columns=["agent", "event"], filters=[("event", "=", "card")])
    return sorted(_distinct_values(table.column("agent")))
