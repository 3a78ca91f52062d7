"""Tables of records inside an HTML page: compressed blocks of JSON that are written as they fill.

A block is an element `<script type="text/plain" id="row-7">` whose text is base64 of gzip of a JSON array. Base64 has
no character that means anything in HTML, so nothing of a peer's text can become markup, whatever it is. A browser runs
no such element, and keeps it as text until the page asks for it.
"""

from __future__ import annotations

import base64
import gzip
import re
from typing import Any, BinaryIO

import msgspec

from a2a_proxy.protocol.text import make_visible

MAX_BLOCK = 256 << 10
"""Characters of JSON after which a block is written."""
MAX_BLOCK_RECORDS = 1000
"""Records after which it is in any case: what a list shows is read by the block."""
_COMPRESSION_LEVEL = 6
_encode = msgspec.json.Encoder().encode
_CONTROL_ESCAPE = re.compile(r"\\[^\"\\n]")
"""How JSON writes a control character that is no end of a line. It finds some harmless texts too."""


class RecordTables:
    """Append-only tables; of each only the block that is being filled is in memory, and where each block ends."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._open_blocks: dict[str, list[str]] = {}
        self._block_sizes: dict[str, int] = {}
        self._block_ends: dict[str, list[int]] = {}

    def count(self, table: str) -> int:
        """How many records it has; the number of the next one."""
        return (self._block_ends.get(table) or [0])[-1] + len(self._open_blocks.get(table, ()))

    def add(self, table: str, record: object) -> int:
        """Append a record of plain JSON values; its number."""
        number = self.count(table)
        text = encode_visible(record)
        records = self._open_blocks.setdefault(table, [])
        records.append(text)
        self._block_sizes[table] = self._block_sizes.get(table, 0) + len(text)
        if self._block_sizes[table] >= MAX_BLOCK or len(records) >= MAX_BLOCK_RECORDS:
            self._write_block(table)
        return number

    def finish(self) -> dict[str, list[int]]:
        """Write what is left; for each table the number of records before the end of each block."""
        for table in list(self._open_blocks):
            self._write_block(table)
        return self._block_ends

    def element(self, name: str, text: str) -> None:
        """Write one block."""
        packed = base64.b64encode(gzip.compress(text.encode(), _COMPRESSION_LEVEL, mtime=0))
        self._stream.write(b'<script type="text/plain" id="%b">%b</script>\n' % (name.encode(), packed))

    def _write_block(self, table: str) -> None:
        records = self._open_blocks.pop(table, [])
        if not records:
            return
        ends = self._block_ends.setdefault(table, [])
        self.element(f"{table}-{len(ends)}", f"[{','.join(records)}]")
        ends.append((ends or [0])[-1] + len(records))
        self._block_sizes[table] = 0


def encode_visible(value: object) -> str:
    """JSON of what `make_value_visible` makes of it."""
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
    """The same with each line of each text made visible: no control characters, no marks that turn text around."""
    if isinstance(value, str):
        return value if value.isprintable() else "\n".join(map(make_visible, value.split("\n")))
    if isinstance(value, dict):
        return {make_visible(name): make_value_visible(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [make_value_visible(each) for each in value]
    return value
