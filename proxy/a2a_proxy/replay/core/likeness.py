"""Likeness of requests, which orders the neighbours that a miss names."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from a2a_proxy.recording.difference.fields import IDENTIFIERS, DifferenceRow, ValueChange
from a2a_proxy.replay.core.masks import mask_text
from a2a_proxy.replay.core.match_rules import MATCHER_STEP

_WORD = re.compile(r"\w+|[^\w\s]")
_MAX_WORDS = 4096
"""Maximum number of words of a value that are compared."""
_MAX_WORD_LENGTH = 16
"""Characters of a word, on average, that are read for them."""


_TEXT_DISTANCE, _SHARED_WEIGHT = 2.0, 1.9
"""Distance of two texts without a common word, and how much less it is if all their words are
common."""
_HALF_ALIKE = _TEXT_DISTANCE - _SHARED_WEIGHT / 2


class WordLikeness:
    """The words of recorded requests."""

    def __init__(self, requests: list[Any]) -> None:
        self._requests = requests
        self._words: dict[int, Counter[str]] = {}
        """Words by the index of their request, counted on first use."""

    def most_alike(self, request: Any, among: list[int], count: int) -> list[int]:
        """Return the requests that have most words in common with `request`, at most `count`, in
        recorded order."""
        if len(among) <= count:
            return among
        words = _count_words(request)
        alike = sorted(among, key=lambda index: -_common_share(words, self._words_of(index)))
        return sorted(alike[:count])

    def _words_of(self, index: int) -> Counter[str]:
        if index not in self._words:
            self._words[index] = _count_words(self._requests[index])
        return self._words[index]


def row_distance(row: DifferenceRow) -> float:
    """Return how much a difference counts: 1 for each value, another identifier and a matcher, less
    for two texts that have words in common."""
    path = row.right or row.left or ("",)
    if path[-1] in IDENTIFIERS or path[0] == MATCHER_STEP:
        return 1.0
    if isinstance(row.before, str) and isinstance(row.after, str):
        return _TEXT_DISTANCE - _SHARED_WEIGHT * _common_share(
            _count_words(row.before), _count_words(row.after)
        )
    before = 0 if row.change is ValueChange.RIGHT else _count_leaves(row.before)
    return float(before + (0 if row.change is ValueChange.LEFT else _count_leaves(row.after)))


def are_texts_alike(row: DifferenceRow) -> bool:
    """Whether a difference is one of two texts that have at least half of their words in common."""
    path = row.right or row.left or ("",)
    is_text = isinstance(row.before, str) and isinstance(row.after, str)
    return (
        is_text
        and path[-1] not in IDENTIFIERS
        and path[0] != MATCHER_STEP
        and row_distance(row) <= _HALF_ALIKE
    )


def _common_share(one: Counter[str], other: Counter[str]) -> float:
    every = one.total() + other.total()
    return 2 * (one & other).total() / every if every else 1.0


def _count_words(value: Any) -> Counter[str]:
    found: Counter[str] = Counter()
    left = _MAX_WORDS
    for text in _iter_texts(value):
        words = [
            word[0]
            for word, _ in zip(
                _WORD.finditer(mask_text(text[: _MAX_WORD_LENGTH * left])),
                range(left),
                strict=False,
            )
        ]
        found.update(words)
        left -= len(words)
        if left <= 0:
            break
    return found


def _iter_texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _iter_texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _iter_texts(item)
    else:
        yield str(value)


def _count_leaves(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(_count_leaves, value.values()))
    return sum(map(_count_leaves, value)) if isinstance(value, list) else 1
