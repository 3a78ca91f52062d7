"""Column encodings of single values: identifiers, texts, numbers, header lists. Pure functions,
each with its inverse.

A peer may send any Unicode (including lone surrogates, which SQLite text cannot hold) and any
number (including numbers beyond 64 bits), so every function here is total and exact.
"""

import json
from functools import lru_cache
from typing import Any

import msgspec

from a2a_proxy.model.wire import Headers

Column = int | str | bytes | None

_INT_MAX = 2**63 - 1
_SMALL_MAX = 2**40
_MAX_CACHED_HEADERS = 256
_QUOTE_BYTE = 0x22


def pack_text(value: str) -> str | bytes:
    """Return TEXT, or a BLOB (`00`, then UTF-16LE, so its length is odd) if the text is not valid
    Unicode."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return b"\0" + value.encode("utf-16-le", "surrogatepass")
    return value


def unpack_text(value: str | bytes | None) -> str:
    """Inverse of `pack_text`. NULL is the empty text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else value[1:].decode("utf-16-le", "surrogatepass")


def pack_uuid(value: str) -> bytes | None:
    """Return 16 bytes if the text is a UUID in its canonical form (lower case, hyphens), else
    None."""
    if len(value) != 36:
        return None
    try:
        data = bytes.fromhex(value.replace("-", ""))
    except ValueError:
        return None
    return data if len(data) == 16 and format_uuid(data) == value else None


def format_uuid(data: bytes) -> str:
    """Return the canonical form of a UUID of 16 bytes."""
    h = data.hex()
    return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"


def pack_ident(value: str) -> str | bytes:
    """Pack an identifier: a UUID as 16 bytes, in JSON quotes as `22` and 16 bytes, others as
    `pack_text` does."""
    size = len(value)
    if size == 36 and (data := pack_uuid(value)) is not None:
        return data
    if size == 38 and value[0] == '"' == value[-1] and (data := pack_uuid(value[1:-1])) is not None:
        return b'"' + data
    return pack_text(value)


def unpack_ident(value: str | bytes | None) -> str:
    """Inverse of `pack_ident`. NULL is the empty text."""
    if value is None or isinstance(value, str):
        return value or ""
    if len(value) == 16:
        return format_uuid(value)
    return f'"{format_uuid(value[1:])}"' if value[0] == _QUOTE_BYTE else unpack_text(value)


def pack_decimal(value: str) -> int | None:
    """Return `-1-n` if the text is the number n in plain decimal, below 2^40; else None.

    The result needs no row of its own.
    """
    if not value.isdecimal() or len(value) > 13 or not value.isascii():
        return None
    number = int(value)
    return -1 - number if number < _SMALL_MAX and str(number) == value else None


def pack_int(value: int) -> int | str:
    """Return INTEGER, or decimal TEXT if the number exceeds 64 bits."""
    return value if -_INT_MAX <= value <= _INT_MAX else str(value)


def unpack_int(value: int | str | None) -> int:
    """Inverse of `pack_int`. NULL is 0."""
    return int(value or 0)


def pack_json(value: Any) -> str:
    """Return compact JSON text, escaped if msgspec cannot encode it (lone surrogates, numbers
    beyond 64 bits)."""
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(value, separators=(",", ":"))


def pack_headers(lists: tuple[Headers, Headers, Headers]) -> bytes:
    """Return header lists as JSON: `[[["name","value"], ...], ...]`, each byte as the code point of
    the same number."""
    return msgspec.json.encode(
        [[(n.decode("latin-1"), v.decode("latin-1")) for n, v in fields] for fields in lists]
    )


_headers_decoder = msgspec.json.Decoder(tuple[tuple[tuple[str, str], ...], ...])


@lru_cache(_MAX_CACHED_HEADERS)
def unpack_headers(data: bytes) -> tuple[Headers, Headers, Headers]:
    """Inverse of `pack_headers`."""
    lists = _headers_decoder.decode(data)
    request, response, trailers = (
        tuple((n.encode("latin-1"), v.encode("latin-1")) for n, v in li) for li in lists
    )
    return request, response, trailers
