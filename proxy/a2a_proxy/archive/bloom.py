"""Which identifiers may be somewhere, in twelve bits each: never no for one that is there, yes for one in 300 that is
not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator

_BITS_PER_KEY = 12
"""Of the filter for each identifier."""
_PROBES = 8


def bloom_filter(idents: Collection[str]) -> bytes:
    """The filter of these identifiers; empty for none."""
    bits = bytearray((_BITS_PER_KEY * len(idents) + 7) // 8)
    for ident in idents:
        for place in _bit_positions(ident, len(bits)):
            bits[place >> 3] |= 1 << (place & 7)
    return bytes(bits)


def may_contain(bloom_bits: bytes, ident: str) -> bool:
    """The identifier may be among those of the filter."""
    return bool(bloom_bits) and all(
        bloom_bits[place >> 3] >> (place & 7) & 1 for place in _bit_positions(ident, len(bloom_bits))
    )


def _bit_positions(ident: str, size: int) -> Iterator[int]:
    digest = int.from_bytes(hashlib.blake2b(ident.encode(errors="surrogatepass"), digest_size=16).digest())
    first, step = digest >> 64, digest & ((1 << 64) - 1) | 1
    return ((first + number * step) % (size << 3) for number in range(_PROBES))
