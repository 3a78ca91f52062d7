"""The HPACK context of one direction, with cached results for repeated header blocks.

Calls of one peer repeat their blocks byte for byte; the result for a block stays valid while the dynamic table does not
change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from a2a_proxy.wire.hpack_decoder import Field, HpackDecoder, HpackError

_BlockResult = TypeVar("_BlockResult")

_MAX_BLOCKS = 64
_MAX_BLOCK_BYTES = 4096
FIELDS_LIMIT = 10_000
"""Fields of one block. Decoding cannot be interrupted, and processing a field takes longer than decoding it."""


class HeaderMemo(Generic[_BlockResult]):
    """Reads the blocks of one direction in order. `make` gets the fields of a block and its bytes."""

    __slots__ = ("_changes", "_decoder", "_make", "_result_of_block", "allow")

    def __init__(self, make: Callable[[list[Field], bytes], _BlockResult]) -> None:
        self._make = make
        self._decoder = HpackDecoder()
        self._result_of_block: dict[bytes, _BlockResult] = {}
        self._changes = 0
        self.allow = self._decoder.allow_table_size
        """Announces the receiver's SETTINGS_HEADER_TABLE_SIZE."""

    def read(self, block: bytes) -> _BlockResult:
        """Return the result of `make` for the next block. Raises `HpackError`, after which no block can be read."""
        decoder = self._decoder
        before = decoder.changes
        if self._changes == before:
            made = self._result_of_block.get(block)
            if made is not None:
                return made
        fields = decoder.decode(block)
        if len(fields) > FIELDS_LIMIT:
            raise HpackError(f"header block of {len(fields)} fields, limit {FIELDS_LIMIT}")
        made = self._make(fields, block)
        if self._changes != decoder.changes or len(self._result_of_block) >= _MAX_BLOCKS:
            self._result_of_block.clear()
            self._changes = decoder.changes
        if before == decoder.changes and len(block) <= _MAX_BLOCK_BYTES:
            self._result_of_block[block] = made
        return made
