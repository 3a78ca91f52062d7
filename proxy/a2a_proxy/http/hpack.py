"""HPACK (RFC 7541) for one direction of an observed connection: header blocks in, fields as bytes
out, and fields as literals without indexing (6.2.2): blocks that neither use nor fill a dynamic
table.

The tables come from the `hpack` package; the loop is our own, because a recorder needs speed and
bytes, not text: gRPC C-core peers send `-bin` values raw. The decoder is as lenient as possible: an
encoder that keeps using a larger table than its peer has since announced is accepted; only a block
that cannot be decoded is an error.

Strings of literals are written plainly, never in Huffman code, so raw bytes stay unchanged. Fields
that a sender marks as never to be indexed (6.2.3) keep the mark.
"""

from collections import deque
from collections.abc import Callable, Iterable, Set
from typing import Generic, TypeVar

import msgspec
from hpack.hpack import encode_integer
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
_HEADER_TABLE_SIZE = 1

FIELDS_LIMIT = 10_000
"""Fields of one block that is edited. Decoding cannot be interrupted, and processing a field takes
longer than decoding it."""
MAX_KNOWN_BLOCK = 4096
"""Bytes of a header block that is compared with earlier ones."""
_MAX_BLOCKS = 64

_BlockResult = TypeVar("_BlockResult")


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
    marked: set[int] = set()
    """Indexes of the fields of the last block that are marked as never to be indexed."""

    def apply_settings(self, settings: list[tuple[int, int]]) -> None:
        """Apply SETTINGS_HEADER_TABLE_SIZE announced by the receiver of this direction.

        Raises the limit and never lowers it, because blocks sent before the sender received the
        setting must still be readable.
        """
        for name, size in settings:
            if name == _HEADER_TABLE_SIZE:
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
        if self.marked:
            self.marked = set()
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
            elif first & _NEVER_INDEXED:
                self.marked.add(len(fields) - 1)
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


class HeaderMemo(Generic[_BlockResult]):
    """Reads the blocks of one direction in order, and keeps the results of blocks that repeat while
    the dynamic table is unchanged. `make` gets the fields of a block and which of them are never to
    be indexed, `is_unchanged` its result."""

    def __init__(
        self,
        make: Callable[[list[Field], Set[int]], _BlockResult],
        is_unchanged: Callable[[_BlockResult], bool] = lambda _: False,
        decoder: HpackDecoder | None = None,
        most_fields: int = FIELDS_LIMIT,
    ) -> None:
        self._make, self._is_unchanged, self._most_fields = make, is_unchanged, most_fields
        self.unchanged: set[bytes] = set()
        """The blocks that are forwarded unchanged and need not be read if they are the next one."""
        self._decoder = decoder or HpackDecoder()
        self._result_of_block: dict[bytes, _BlockResult] = {}
        self._changes = self._decoder.changes
        self.apply_settings = self._decoder.apply_settings

    def read(self, block: bytes) -> _BlockResult:
        """Return the result of `make` for the next block. Raises `HpackError`, after which no block
        can be read."""
        decoder = self._decoder
        before = decoder.changes
        if self._changes == before:
            made = self._result_of_block.get(block)
            if made is not None:
                return made
        fields = decoder.decode_block(block)
        if len(fields) > self._most_fields:
            raise HpackError(f"header block of {len(fields)} fields, limit {FIELDS_LIMIT}")
        made = self._make(fields, decoder.marked)
        if self._changes != decoder.changes or len(self._result_of_block) >= _MAX_BLOCKS:
            self.forget()
            self._changes = decoder.changes
        if before == decoder.changes and len(block) <= MAX_KNOWN_BLOCK:
            self._result_of_block[block] = made
            if self._is_unchanged(made):
                self.unchanged.add(block)
        return made

    def forget(self) -> None:
        """Forget the results, because `make` or `is_unchanged` changed."""
        self._result_of_block.clear()
        self.unchanged.clear()


FORGET_TABLE = b"\x20"
"""A size update to 0 (6.3): sent once, it is valid for every table size that the decoder requires,
then and later."""
UNDECODABLE = b"\x80"
"""The field of index 0, which every decoder must treat as a decoding error (6.1)."""

_INDEXED_FIELDS = {
    field: bytes((0x80 | index,))
    for index, field in reversed([*enumerate(HeaderTable.STATIC_TABLE, 1)])
}
_NAME_INDEX = {
    name: index for index, (name, _) in reversed([*enumerate(HeaderTable.STATIC_TABLE, 1)])
}
_NEVER_INDEXED = 0x10
_MAX_CACHED_FIELDS = 256
_MAX_CACHED_BYTES = 512

_literal_cache: dict[Field, bytes] = {}
"""Encoded fields, which repeat from call to call and from connection to connection. Never-indexed
fields are not cached."""


def encode_literals(fields: Iterable[Field], never: Set[int] = frozenset()) -> bytes:
    """Return the block of these fields; those at the indexes in `never` are marked as never to be
    indexed."""
    known = _literal_cache.get
    if not never:
        return b"".join([known(field) or _encode_plain_field(field) for field in fields])
    return b"".join(
        _encode_marked_field(field, _NEVER_INDEXED)
        if place in never
        else known(field) or _encode_plain_field(field)
        for place, field in enumerate(fields)
    )


def encode_literal(field: Field) -> bytes:
    """Return the literal of one field without caching it, because its value is not repeated."""
    return _encode_marked_field(field, 0)


def _encode_plain_field(field: Field) -> bytes:
    data = _INDEXED_FIELDS.get(field) or _encode_marked_field(field, 0)
    if len(data) <= _MAX_CACHED_BYTES:
        if len(_literal_cache) >= _MAX_CACHED_FIELDS:
            _literal_cache.clear()
        _literal_cache[field] = data
    return data


def _encode_marked_field(field: Field, mark: int) -> bytes:
    name, value = field
    if index := _NAME_INDEX.get(name):
        head = encode_integer(index, 4)
        head[0] |= mark
        return bytes(head) + _encode_string(value)
    return bytes((mark,)) + _encode_string(name) + _encode_string(value)


def _encode_string(data: bytes) -> bytes:
    length = len(data)
    return (bytes((length,)) if length < 0x7F else bytes(encode_integer(length, 7))) + data
