"""Detection of random words by their characters alone: keys without a revealing name or a known
form.

UUIDs, numbers, hexadecimal digests, names in camel case and paths are not reported, because they
are rarely secrets.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

SHORTEST = 24
"""Characters in a random word, at least."""
_BITS = 3.7
"""Bits of information per character, at least: 24 random base64 characters have 4.1 on average,
English has 3.2."""
_CHANGES = 0.35
"""Changes between lower case, capitals and digits per character, at least: 0.6 in random words, 0.2
in camel case."""
_WORD = re.compile(rb"(?<![A-Za-z0-9+/_\-.%=])[A-Za-z0-9+/_\-]{24,512}={0,2}(?![A-Za-z0-9+/_\-%])")
_PLAIN = re.compile(rb"[0-9a-fA-F\-]+\Z|.*/[a-z]{3,}(?:/|\Z)|[a-z]{3,}/")


def random_words(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each random word."""
    for found in _WORD.finditer(data):
        if looks_made(found[0]):
            yield found.span()


def looks_made(word: bytes) -> bool:
    """Whether the word mixes capitals, small letters and digits as randomly as a key does."""
    core = word.rstrip(b"=")
    if len(core) < SHORTEST or _PLAIN.match(core):
        return False
    kinds = [_classify_character(byte) for byte in core]
    if len(set(kinds) - {3}) < 3:
        return False
    changes = sum(a != b for a, b in pairwise(kinds))
    return changes >= _CHANGES * len(core) and _measure_entropy(core) >= _BITS


def _classify_character(byte: int) -> int:
    return 0 if 97 <= byte <= 122 else 1 if 65 <= byte <= 90 else 2 if 48 <= byte <= 57 else 3


def _measure_entropy(word: bytes) -> float:
    size = len(word)
    return -sum(count / size * math.log2(count / size) for count in Counter(word).values())
