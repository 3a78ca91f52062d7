"""Alignment of two sequences: pairs of corresponding items, and items that have only moved.

Equal tokens are aligned first (a longest common subsequence), then the items between them are
paired by likeness, in order. The result is symmetric: both directions are computed from the same
one.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from typing import Any

import msgspec

MAX_CELLS = 250_000
"""Pairs of items that are compared for one exact alignment: about 50 ms. Above, items that occur
once serve as anchors.
"""

Pair = tuple[int, int]
Likeness = Callable[[int, int], int]
"""Function of the indexes of a left and a right item; 0 if they are unrelated."""


class Aligned(msgspec.Struct):
    """Corresponding items of two sequences."""

    pairs: list[Pair]
    """In order on both sides; equal, or similar."""
    moved: list[Pair]
    """Equal, but out of order."""
    coarse: bool = False
    """Whether there were too many items for an exact alignment."""


def align_sequences(
    left: Sequence[Any], right: Sequence[Any], likeness: Likeness | None = None
) -> Aligned:
    """Align tokens, which must be ordered and hashable. Without `likeness` only equal ones are
    paired."""
    if list(right) < list(left):
        aligned = _align_tokens(
            right, left, None if likeness is None else lambda a, b: likeness(b, a)
        )
        return Aligned(
            [(b, a) for a, b in aligned.pairs], [(b, a) for a, b in aligned.moved], aligned.coarse
        )
    return _align_tokens(left, right, likeness)


def _align_tokens(left: Sequence[Any], right: Sequence[Any], likeness: Likeness | None) -> Aligned:
    exact = _ExactPairs(left, right)
    exact.run()
    pairs = exact.pairs
    moved = _moved_pairs(left, right, pairs)
    coarse = exact.coarse
    if likeness is not None:
        gone = {a for a, _ in moved}, {b for _, b in moved}
        more: list[Pair] = []
        for (a, b), (c, d) in zip(
            [(-1, -1), *pairs], [*pairs, (len(left), len(right))], strict=True
        ):
            rest = [i for i in range(a + 1, c) if i not in gone[0]]
            other = [j for j in range(b + 1, d) if j not in gone[1]]
            found, rough = _likeliest_pairs(rest, other, likeness)
            more += found
            coarse = coarse or rough
        pairs = sorted([*pairs, *more])
    return Aligned(pairs, moved, coarse)


class _ExactPairs:
    """Pairs of equal tokens, in order."""

    def __init__(self, left: Sequence[Hashable], right: Sequence[Hashable]) -> None:
        self._left = left
        self._right = right
        self.pairs: list[Pair] = []
        self.coarse = False

    def run(self) -> None:
        """Compute the pairs. Spans are kept on a list, so that no input exceeds the recursion
        limit."""
        spans = [(0, len(self._left), 0, len(self._right))]
        while spans:
            spans += self._split_span(*spans.pop())
        self.pairs.sort()

    def _split_span(self, a: int, b: int, c: int, d: int) -> list[tuple[int, int, int, int]]:
        left, right = self._left, self._right
        while a < b and c < d and left[a] == right[c]:
            self.pairs.append((a, c))
            a, c = a + 1, c + 1
        while a < b and c < d and left[b - 1] == right[d - 1]:
            b, d = b - 1, d - 1
            self.pairs.append((b, d))
        if a == b or c == d:
            return []
        if (b - a) * (d - c) <= MAX_CELLS:
            self.pairs += [(a + i, c + j) for i, j in _longest_common(left[a:b], right[c:d])]
            return []
        self.coarse = True
        anchors = _unique_anchors(left[a:b], right[c:d])
        if not anchors:
            return []
        self.pairs += [(a + i, c + j) for i, j in anchors]
        ends = [(a - 1, c - 1), *((a + i, c + j) for i, j in anchors), (b, d)]
        return [(i + 1, k, j + 1, n) for (i, j), (k, n) in pairwise(ends)]


def _longest_common(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[Pair]:
    """Return a longest common subsequence."""
    return _best_pairs(len(left), len(right), lambda i, j: int(left[i] == right[j]))


def _best_pairs(rows: int, columns: int, worth: Likeness) -> list[Pair]:
    """Return the ordered pairs with the highest total worth, without pairs of worth 0."""
    table = [[0] * (columns + 1)]
    worths = []
    for i in range(rows):
        above, best = table[-1], [0]
        values = [worth(i, j) for j in range(columns)]
        for j, value in enumerate(values):
            best.append(max(above[j] + value if value else 0, above[j + 1], best[j]))
        table.append(best)
        worths.append(values)
    pairs: list[Pair] = []
    i, j = rows, columns
    while i and j:
        if table[i][j] == table[i - 1][j]:
            i -= 1
        elif table[i][j] == table[i][j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            pairs.append((i, j))
    return pairs[::-1]


def _unique_anchors(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[Pair]:
    """Return pairs of items that occur once on both sides, as many as are in one order."""
    places: list[dict[Hashable, list[int]]] = []
    for side in (left, right):
        found: dict[Hashable, list[int]] = defaultdict(list)
        for index, token in enumerate(side):
            found[token].append(index)
        places.append(found)
    once = [
        (at[0], places[1][token][0])
        for token, at in places[0].items()
        if len(at) == len(places[1].get(token, ())) == 1
    ]
    return _longest_ascending(once)


def _longest_ascending(pairs: list[Pair]) -> list[Pair]:
    """Return the longest run of pairs whose second members ascend with the first."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for index, (_, second) in enumerate(pairs):
        at = bisect_left(tails, second)
        before.append(ends[at - 1] if at else -1)
        tails[at : at + 1] = [second]
        ends[at : at + 1] = [index]
    chain: list[Pair] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        chain.append(pairs[at])
        at = before[at]
    return chain[::-1]


def _moved_pairs(
    left: Sequence[Hashable], right: Sequence[Hashable], pairs: list[Pair]
) -> list[Pair]:
    """Return the remaining items that are equal on both sides."""
    used = {a for a, _ in pairs}, {b for _, b in pairs}
    free: dict[Hashable, list[int]] = defaultdict(list)
    for index in range(len(right) - 1, -1, -1):
        if index not in used[1]:
            free[right[index]].append(index)
    return [
        (i, free[token].pop())
        for i, token in enumerate(left)
        if i not in used[0] and free.get(token)
    ]


def _likeliest_pairs(
    left: list[int], right: list[int], likeness: Likeness
) -> tuple[list[Pair], bool]:
    """Return pairs of the items between two exact pairs; by position if there are too many."""
    if len(left) * len(right) <= MAX_CELLS // 4:
        found = _best_pairs(len(left), len(right), lambda i, j: likeness(left[i], right[j]))
        return [(left[i], right[j]) for i, j in found], False
    return [(a, b) for a, b in zip(left, right, strict=False) if likeness(a, b)], True
