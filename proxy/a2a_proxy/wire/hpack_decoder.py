"""HPACK (RFC 7541) for one direction of an observed connection: header blocks in, fields as bytes
out.

The tables come from the `hpack` package; the loop is our own, because a recorder needs speed and
bytes, not text: gRPC C-core peers send `-bin` values raw. The decoder is as lenient as possible: an
encoder that keeps using a larger table than its peer has since announced is accepted; only a block
that cannot be decoded is an error.
"""

from collections import deque

import msgspec
from hpack.huffman_table import HUFFMAN_COMPLETE, HUFFMAN_EMIT_SYMBOL, HUFFMAN_FAIL, HUFFMAN_TABLE
from hpack.table import HeaderTable

from a2a_proxy.model.saved_state import State

Field = tuple[bytes, bytes]

DEFAULT_TABLE_SIZE = 4096
"""Bytes; the initial value of both sides (RFC 9113 6.5.2)."""
MAX_TABLE_SIZE = 16 << 20
"""Maximum bytes of dynamic table, whatever the peers agree on."""
MAX_LIST_SIZE = 16 << 20
"""Bytes of one decoded header list, with 32 added for each field (RFC 7541 4.1)."""

_STATIC_TABLE: tuple[Field, ...] = ((b"", b""), *HeaderTable.STATIC_TABLE)
_FIRST_DYNAMIC = len(_STATIC_TABLE)
_ENTRY_OVERHEAD = 32
_LITERAL_EXPANSION = 64
_MAX_INTEGER_BYTES = 5


class HpackError(ValueError):
    """A header block that cannot be decoded. No later block of the direction can be decoded
    either."""


class HpackDecoder(State):
    """The decoding context of one direction."""

    _dynamic: deque[Field] = msgspec.field(default_factory=deque)
    _size: int = 0
    _maximum: int = DEFAULT_TABLE_SIZE
    _limit: int = DEFAULT_TABLE_SIZE
    changes: int = 0
    """Number of changes of the dynamic table. While it is the same, equal blocks decode to equal
    fields."""

    def allow_table_size(self, size: int) -> None:
        """Apply SETTINGS_HEADER_TABLE_SIZE announced by the receiver of this direction.

        Raises the limit and never lowers it, because blocks sent before the sender received the
        setting must still be readable.
        """
        self._limit = max(self._limit, min(size, MAX_TABLE_SIZE))

    def decode_block(self, block: bytes) -> list[Field]:
        """Decode one complete header block.

        Raises `HpackError`; after that the context is out of step and must not be used again.
        """
        try:
            fields = self._decode_fields(block)
        except IndexError:
            raise HpackError("index or string beyond the end") from None
        # A list can only be too large if the block is long enough to repeat large entries often.
        if len(block) * (self._limit + _LITERAL_EXPANSION) > MAX_LIST_SIZE:
            _check_list_size(fields)
        return fields

    def _decode_fields(self, block: bytes) -> list[Field]:
        dynamic = self._dynamic
        fields: list[Field] = []
        append = fields.append
        pos, end = 0, len(block)
        while pos < end:
            first = block[pos]
            pos += 1
            if first & 0x80:  # 6.1 indexed field
                index = first & 0x7F
                if index == 0x7F:
                    index, pos = _decode_integer(block, pos, 0x7F)
                if index < _FIRST_DYNAMIC:
                    if not index:
                        raise HpackError("index 0")
                    append(_STATIC_TABLE[index])
                else:
                    append(dynamic[index - _FIRST_DYNAMIC])
                continue
            if first & 0x60 == 0x20:  # 6.3 size update
                if fields:
                    raise HpackError("table size update after a field")
                pos = self._resize_table(block, pos, first & 0x1F)
                continue
            prefix = 0x3F if first & 0x40 else 0x0F  # 6.2 literal
            index = first & prefix
            if index:
                if index == prefix:
                    index, pos = _decode_integer(block, pos, prefix)
                name = (
                    _STATIC_TABLE[index][0]
                    if index < _FIRST_DYNAMIC
                    else dynamic[index - _FIRST_DYNAMIC][0]
                )
            else:
                name, pos = _decode_string(block, pos)
            length = block[pos]
            if length < 0x7F and pos + length < end:  # short and not Huffman-coded, the common case
                value = block[pos + 1 : pos + 1 + length]
                pos += 1 + length
            else:
                value, pos = _decode_string(block, pos)
            field = (name, value)
            append(field)
            if first & 0x40:
                self._insert_entry(field)
        return fields

    def _insert_entry(self, field: Field) -> None:
        size = _ENTRY_OVERHEAD + len(field[0]) + len(field[1])
        self.changes += 1
        if size > self._maximum:  # 4.4: an entry larger than the table empties it
            self._dynamic.clear()
            self._size = 0
            return
        self._dynamic.appendleft(field)
        self._size += size
        if self._size > self._maximum:
            self._evict_entries()

    def _evict_entries(self) -> None:
        dynamic = self._dynamic
        while self._size > self._maximum:
            name, value = dynamic.pop()
            self._size -= _ENTRY_OVERHEAD + len(name) + len(value)

    def _resize_table(self, block: bytes, pos: int, size: int) -> int:
        if size == 0x1F:
            size, pos = _decode_integer(block, pos, 0x1F)
        if size > self._limit:
            raise HpackError(f"table size update to {size}, allowed {self._limit}")
        self._maximum = size
        self.changes += 1
        self._evict_entries()
        return pos


def _check_list_size(fields: list[Field]) -> None:
    size = sum(_ENTRY_OVERHEAD + len(name) + len(value) for name, value in fields)
    if size > MAX_LIST_SIZE:
        raise HpackError(f"header list of {size} bytes, limit {MAX_LIST_SIZE}")


def _decode_integer(block: bytes, pos: int, number: int) -> tuple[int, int]:
    """Decode an integer (RFC 7541 5.1) after a prefix of all ones; `number` is that prefix."""
    shift = 0
    for index in range(pos, pos + _MAX_INTEGER_BYTES):
        byte = block[index]
        number += (byte & 0x7F) << shift
        if byte < 0x80:
            return number, index + 1
        shift += 7
    raise HpackError("integer of too many bytes")


def _decode_string(block: bytes, pos: int) -> tuple[bytes, int]:
    """Decode a string (RFC 7541 5.2)."""
    first = block[pos]
    pos += 1
    length = first & 0x7F
    if length == 0x7F:
        length, pos = _decode_integer(block, pos, 0x7F)
    end = pos + length
    if end > len(block):
        raise HpackError(f"string of {length} bytes, {len(block) - pos} left")
    return (_decode_huffman(block[pos:end]) if first & 0x80 else block[pos:end]), end


_huffman_steps: dict[int, tuple[int, int, bytes]] = {}
"""The Huffman automaton by whole bytes, `state << 8 | byte` to `(state << 8, flags, output)`. An
entry is built from the library's half-byte steps on first use: at most 65,536 entries (about 10 MB)
if a peer sends all combinations."""


def _decode_huffman(data: bytes) -> bytes:
    """Decode a Huffman string (RFC 7541 5.2, Appendix B)."""
    state, flags = 0, HUFFMAN_COMPLETE
    out = []
    steps = _huffman_steps
    for byte in data:
        state, flags, symbols = steps.get(state | byte) or _make_huffman_step(state, byte)
        out.append(symbols)
    if not flags & HUFFMAN_COMPLETE:
        raise HpackError("Huffman string with wrong padding")
    return b"".join(out)


def _make_huffman_step(state: int, byte: int) -> tuple[int, int, bytes]:
    """Combine two steps of the library's automaton and cache the result.

    Raises `HpackError` if there is no such step.
    """
    symbols = b""
    node, flags = state >> 8, 0
    for half in (byte >> 4, byte & 0x0F):
        node, flags, symbol = HUFFMAN_TABLE[node << 4 | half]
        if flags & HUFFMAN_FAIL:
            raise HpackError("invalid Huffman string")
        if flags & HUFFMAN_EMIT_SYMBOL:
            symbols += bytes((symbol,))
    _huffman_steps[state | byte] = node << 8, flags, symbols
    return node << 8, flags, symbols
