"""Words that a machine made at random, by their look alone: keys that no name and no known shape gives away.

Identifiers are random too, and are no secrets: UUIDs, numbers, hexadecimal digests, names in camel case and paths are
left alone.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

SHORTEST = 24
"""Characters."""
_BITS = 3.7
"""Of information a character, at least: a random word of 24 characters of base64 has 4.1 on average, English 3.2."""
_CHANGES = 0.35
"""Changes between lower case, capitals and digits, by character: 0.6 where they come at random, 0.2 in camel case."""
_WORD = re.compile(rb"(?<![A-Za-z0-9+/_\-.%=])[A-Za-z0-9+/_\-]{24,512}={0,2}(?![A-Za-z0-9+/_\-%])")
_PLAIN = re.compile(rb"[0-9a-fA-F\-]+\Z|.*/[a-z]{3,}(?:/|\Z)|[a-z]{3,}/")


def random_words(data: bytes) -> Iterator[tuple[int, int]]:
    """Where there are such words."""
    for found in _WORD.finditer(data):
        if looks_made(found[0]):
            yield found.span()


def looks_made(word: bytes) -> bool:
    """Whether the word has capitals, small letters and digits in the disorder of a key."""
    core = word.rstrip(b"=")
    if len(core) < SHORTEST or _PLAIN.match(core):
        return False
    kinds = [_kind(byte) for byte in core]
    if len(set(kinds) - {3}) < 3:
        return False
    changes = sum(a != b for a, b in pairwise(kinds))
    return changes >= _CHANGES * len(core) and _entropy(core) >= _BITS


def _kind(byte: int) -> int:
    return 0 if 97 <= byte <= 122 else 1 if 65 <= byte <= 90 else 2 if 48 <= byte <= 57 else 3


def _entropy(word: bytes) -> float:
    size = len(word)
    return -sum(count / size * math.log2(count / size) for count in Counter(word).values())
