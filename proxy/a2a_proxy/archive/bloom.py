"""Which identifiers may be somewhere, in twelve bits each: never no for one that is there, yes for one in 300 that is
not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator

_BITS = 12
"""Of the filter for each identifier."""
_PROBES = 8


def bloom(idents: Collection[str]) -> bytes:
    """The filter of these identifiers; empty for none."""
    bits = bytearray((_BITS * len(idents) + 7) // 8)
    for ident in idents:
        for place in _places(ident, len(bits)):
            bits[place >> 3] |= 1 << (place & 7)
    return bytes(bits)


def may_hold(bits: bytes, ident: str) -> bool:
    """The identifier may be among those of the filter."""
    return bool(bits) and all(bits[place >> 3] >> (place & 7) & 1 for place in _places(ident, len(bits)))


def _places(ident: str, size: int) -> Iterator[int]:
    digest = int.from_bytes(hashlib.blake2b(ident.encode(errors="surrogatepass"), digest_size=16).digest())
    first, step = digest >> 64, digest & ((1 << 64) - 1) | 1
    return ((first + number * step) % (size << 3) for number in range(_PROBES))
