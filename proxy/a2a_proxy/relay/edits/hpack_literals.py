"""Header fields as literals without indexing (RFC 7541 6.2.2): blocks that neither use nor fill a
dynamic table.

Strings are written plainly, never in Huffman code, so raw bytes stay unchanged. Fields that a
sender marks as never to be indexed (6.2.3) keep the mark.
"""

from collections.abc import Iterable, Set

from hpack.hpack import encode_integer
from hpack.table import HeaderTable

from a2a_proxy.wire.hpack_decoder import Field

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


def never_indexed_fields(block: bytes) -> set[int]:
    """Return the indexes of the fields that a valid block marks as never to be indexed."""
    places: set[int] = set()
    pos, end, place = 0, len(block), 0
    while pos < end:
        first = block[pos]
        pos += 1
        if first & 0x80:
            pos = _skip_integer(block, pos) if first == 0xFF else pos
            place += 1
        elif first & 0x60 == 0x20:
            pos = _skip_integer(block, pos) if first == 0x3F else pos
        else:
            if first & 0xF0 == _NEVER_INDEXED:
                places.add(place)
            index, all_ones = (first & 0x3F, 0x3F) if first & 0x40 else (first & 0x0F, 0x0F)
            if not index:
                pos = _skip_string(block, pos)
            elif index == all_ones:
                pos = _skip_integer(block, pos)
            pos = _skip_string(block, pos)
            place += 1
    return places


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


def _skip_integer(block: bytes, pos: int) -> int:
    while block[pos] & 0x80:
        pos += 1
    return pos + 1


def _skip_string(block: bytes, pos: int) -> int:
    length = block[pos] & 0x7F
    pos += 1
    if length == 0x7F:
        shift = 0
        while True:
            byte = block[pos]
            length += (byte & 0x7F) << shift
            shift += 7
            pos += 1
            if byte < 0x80:
                break
    return pos + length
