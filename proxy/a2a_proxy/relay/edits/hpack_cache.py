"""The HPACK context of one direction, with what its owner made of the blocks that repeat.

Calls of one peer repeat their blocks, octet for octet: what was made of one holds while the dynamic table stands still.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from a2a_proxy.wire.hpack_decoder import Field, HpackDecoder, HpackError

_Made = TypeVar("_Made")

_BLOCKS = 64
_BLOCK_OCTETS = 4096
FIELDS_LIMIT = 10_000
"""Fields of one block. Reading a block cannot be interrupted, and what is made of a field takes longer than it."""


class HeaderMemo(Generic[_Made]):
    """Reads the blocks of one direction in order. `make` gets the fields of a block and its octets."""

    __slots__ = ("_changes", "_decoder", "_known", "_make", "allow")

    def __init__(self, make: Callable[[list[Field], bytes], _Made]) -> None:
        self._make = make
        self._decoder = HpackDecoder()
        self._known: dict[bytes, _Made] = {}
        self._changes = 0
        self.allow = self._decoder.allow
        """The receiver announced SETTINGS_HEADER_TABLE_SIZE."""

    def read(self, block: bytes) -> _Made:
        """What `make` made of a block that now is the next one. Raises `HpackError`: no block can be read after it."""
        decoder = self._decoder
        before = decoder.changes
        if self._changes == before:
            made = self._known.get(block)
            if made is not None:
                return made
        fields = decoder.decode(block)
        if len(fields) > FIELDS_LIMIT:
            raise HpackError(f"header block of {len(fields)} fields, limit {FIELDS_LIMIT}")
        made = self._make(fields, block)
        if self._changes != decoder.changes or len(self._known) >= _BLOCKS:
            self._known.clear()
            self._changes = decoder.changes
        if before == decoder.changes and len(block) <= _BLOCK_OCTETS:
            self._known[block] = made
        return made
