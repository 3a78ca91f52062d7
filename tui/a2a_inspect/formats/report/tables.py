"""Tables of records inside an HTML page: compressed blocks of JSON that are written as they fill.

A block is an element `<script type="text/plain" id="row-7">` whose text is base64 of gzip of a JSON
array. Base64 has no characters with a meaning in HTML, so no text of a peer can become markup.
Browsers do not run such an element and keep it as text until the page reads it.
"""

import base64
import gzip
import re
from typing import Any, BinaryIO

import msgspec

from a2a_proxy.protocol.text import make_visible

MAX_BLOCK = 256 << 10
"""Characters of JSON after which a block is written."""
MAX_BLOCK_RECORDS = 1000
"""Records after which a block is written in any case, because lists read whole blocks."""
_COMPRESSION_LEVEL = 6
_encode = msgspec.json.Encoder().encode
_CONTROL_ESCAPE = re.compile(r"\\[^\"\\n]")
"""JSON escapes of control characters other than the line end. Also matches some harmless texts."""


class RecordTables:
    """Append-only tables. Memory holds only the current block of each table and the end of each
    block."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._open_blocks: dict[str, list[str]] = {}
        self._block_sizes: dict[str, int] = {}
        self._block_ends: dict[str, list[int]] = {}

    def count_records(self, table: str) -> int:
        """Return the number of records of a table, which is the number of the next record."""
        return (self._block_ends.get(table) or [0])[-1] + len(self._open_blocks.get(table, ()))

    def add(self, table: str, record: object) -> int:
        """Append a record of plain JSON values and return its number."""
        number = self.count_records(table)
        text = encode_visible(record)
        records = self._open_blocks.setdefault(table, [])
        records.append(text)
        self._block_sizes[table] = self._block_sizes.get(table, 0) + len(text)
        if self._block_sizes[table] >= MAX_BLOCK or len(records) >= MAX_BLOCK_RECORDS:
            self._write_block(table)
        return number

    def finish(self) -> dict[str, list[int]]:
        """Write the remaining blocks and return, per table, the number of records before the end of
        each block."""
        for table in list(self._open_blocks):
            self._write_block(table)
        return self._block_ends

    def write_block(self, name: str, text: str) -> None:
        """Write one block."""
        packed = base64.b64encode(gzip.compress(text.encode(), _COMPRESSION_LEVEL, mtime=0))
        self._stream.write(
            b'<script type="text/plain" id="%b">%b</script>\n' % (name.encode(), packed)
        )

    def _write_block(self, table: str) -> None:
        records = self._open_blocks.pop(table, [])
        if not records:
            return
        ends = self._block_ends.setdefault(table, [])
        self.write_block(f"{table}-{len(ends)}", f"[{','.join(records)}]")
        ends.append((ends or [0])[-1] + len(records))
        self._block_sizes[table] = 0


def encode_visible(value: object) -> str:
    """Return the JSON of `make_value_visible(value)`."""
    try:
        text = _encode(value).decode()
    except UnicodeEncodeError:  # half of a surrogate pair
        text = ""
    return (
        text
        if text and text.isprintable() and not _CONTROL_ESCAPE.search(text)
        else _encode(make_value_visible(value)).decode()
    )


def make_value_visible(value: Any) -> Any:
    """Return the value with each line of each string made visible, without control and
    bidirectional characters."""
    if isinstance(value, str):
        return value if value.isprintable() else "\n".join(map(make_visible, value.split("\n")))
    if isinstance(value, dict):
        return {make_visible(name): make_value_visible(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [make_value_visible(each) for each in value]
    return value
