"""Bloom filters of identifiers, 12 bits for each: no false negatives, about one in 300 false positives."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator

_BITS_PER_KEY = 12
"""Bits of the filter for each identifier."""
_PROBES = 8


def bloom_filter(idents: Collection[str]) -> bytes:
    """Return the filter of these identifiers, or empty bytes if there are no identifiers."""
    bits = bytearray((_BITS_PER_KEY * len(idents) + 7) // 8)
    for ident in idents:
        for place in _bit_positions(ident, len(bits)):
            bits[place >> 3] |= 1 << (place & 7)
    return bytes(bits)


def may_contain(bloom_bits: bytes, ident: str) -> bool:
    """Whether the identifier may be among the identifiers of the filter."""
    return bool(bloom_bits) and all(
        bloom_bits[place >> 3] >> (place & 7) & 1 for place in _bit_positions(ident, len(bloom_bits))
    )


def _bit_positions(ident: str, size: int) -> Iterator[int]:
    digest = int.from_bytes(hashlib.blake2b(ident.encode(errors="surrogatepass"), digest_size=16).digest())
    first, step = digest >> 64, digest & ((1 << 64) - 1) | 1
    return ((first + number * step) % (size << 3) for number in range(_PROBES))
