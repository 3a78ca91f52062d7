"""Read and replace strings in serialized protobuf messages, with every other byte unchanged. Needs
no descriptors."""

from collections.abc import Callable, Iterator

Path = tuple[int, ...]
"""The numbers of the fields that lead to a value, from the outermost message."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10


_Field = tuple[int, bytes | None, int, int]
"""Number, content of a length-delimited field (None for another one), where its length begins,
where it ends."""


def read_string(data: bytes, path: Path) -> str:
    """Return the last string at this path, as protobuf parsers do, or an empty one. Raises
    ValueError."""
    found = ""
    for number, content, _, _ in _read_fields(data):
        if number == path[0] and content is not None:
            found = content.decode() if len(path) == 1 else read_string(content, path[1:]) or found
    return found


def replace_fields(data: bytes, path: Path, replace: Callable[[bytes], bytes]) -> bytes:
    """Return the message with other content of the length-delimited fields at this path, which
    `replace` returns.

    An empty path is the message itself. Raises ValueError.
    """
    if not path:
        return replace(data)
    parts: list[bytes] = []
    last = 0
    for number, before, length_at, end in _read_fields(data):
        if number != path[0] or before is None:
            continue
        after = replace_fields(before, path[1:], replace)
        if after != before:
            parts += (data[last:length_at], _encode_varint(len(after)), after)
            last = end
    return b"".join((*parts, data[last:])) if parts else data


def _read_fields(data: bytes) -> Iterator[_Field]:
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        kind, length_at, content = key & 7, at, None
        if kind == _VARINT:
            _, at = _read_varint(data, at)
        elif kind == _BYTES:
            size, at = _read_varint(data, at)
            content, at = data[at : at + size], at + size
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            raise ValueError("a field of a kind that proto3 does not have")
        if at > len(data) or not key >> 3:
            raise ValueError("no protobuf message")
        yield key >> 3, content, length_at, at


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(data[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, at + place + 1
    raise ValueError("a number that does not end")


def _encode_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
